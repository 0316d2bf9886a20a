package compute_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/server"
)

// instanceOf is the instance of a server in the inventory, of a hypervisor, with a disk.
func instanceOf(s *server.Server, hypervisor string) *cluster.Instance {
	return &cluster.Instance{Meta: cluster.NewMeta(s.UUID, 1), Name: s.Instance, Hypervisor: hypervisor, Disks: []cluster.Disk{{Size: 1500}}}
}

// instances are those that there are.
func (r *rig) instances(all ...*cluster.Instance) {
	var changes []cluster.Change
	for _, i := range all {
		changes = append(changes, cluster.Put(i))
	}
	r.inventory(changes...)
}

// imageOf asks for an image of a server, with what is said besides its name as JSON, and returns its id.
func (r *rig) imageOf(s *server.Server, more string) string {
	r.Helper()
	a := r.ask(http.MethodPost, at(nova, s)+"/action", `{"createImage":{"name":"backup"`+more+`}}`)
	id, _ := a.read(r)["image_id"].(string)
	if a.status != http.StatusAccepted || len(id) != 36 {
		r.Fatalf("%d %s", a.status, a.text)
	}
	return id
}

// TestAnImageOfAServer: with the answers and the marks that Nova gives it, and while it is being made the server says so.
func TestAnImageOfAServer(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	r.instances(instanceOf(s, "kvm"))
	r.captures = make(chan struct{})
	id := r.imageOf(s, `,"metadata":{"for":"tests"}`)
	shown := r.ask(http.MethodGet, glance+"/"+id, "").text
	for _, want := range []string{`"status":"saving"`, `"name":"backup"`, `"for":"tests"`, `"image_type":"snapshot"`, `"instance_uuid":"` + s.ID + `"`, `"base_image_ref":"` + s.Image.ID + `"`, `"disk_format":null`, `"min_disk":2`, `"visibility":"private"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s is not in %s", want, shown)
		}
	}
	is := func(task string) {
		t.Helper()
		if body := r.ask(http.MethodGet, at(nova, s), "").text; !strings.Contains(body, `"OS-EXT-STS:task_state":`+task) || !strings.Contains(body, `"status":"ACTIVE"`) {
			t.Errorf("the server is not %s: %s", task, body)
		}
	}
	is(`"image_snapshot"`)
	r.explained("another image", r.ask(http.MethodPost, at(nova, s)+"/action", `{"createImage":{"name":"other"}}`), http.StatusConflict)
	if act, _ := r.acts(s)[0].(map[string]any); act["action"] != "createImage" || act["message"] != nil {
		t.Errorf("what is being done is %v", act)
	}
	close(r.captures)
	r.captured(id)
	is("null")
	if act, _ := r.acts(s)[0].(map[string]any); act["action"] != "createImage" || act["message"] != nil {
		t.Errorf("what was done is %v", act)
	}
	if body := r.ask(http.MethodGet, glance+"/"+id, "").text; !strings.Contains(body, `"status":"active"`) || !strings.Contains(body, `"size":600`) || !strings.Contains(body, `"disk_format":"raw"`) {
		t.Errorf("the image is %s", body)
	}
	if m, err := r.uploads.Find(r.home.ID, r.imageOf(s, `,"metadata":{"image_type":"mine"}`)); err != nil || m.Properties["image_type"] != "mine" {
		t.Errorf("what is said does not count: %v, %v", m.Properties, err)
	} else {
		r.captured(m.ID)
	}
	old := r.ask(http.MethodPost, at(nova, s)+"/action", `{"createImage":{"name":"old"}}`, "X-Openstack-Nova-Api-Version", "2.44")
	if old.status != http.StatusAccepted || old.text != "" || !strings.Contains(old.header.Get("Location"), "/image/v2/images/") {
		t.Errorf("before 2.45: %d %q %v", old.status, old.text, old.header)
	}
}

// captured waits until an image of a server is active, or gone.
func (r *rig) captured(id string) {
	r.Helper()
	for {
		if a := r.ask(http.MethodGet, glance+"/"+id, ""); !strings.Contains(a.text, `"status":"saving"`) {
			return
		}
	}
}

// TestAnImageOfAServerThatComesToNothing is no more, and what was done to the server says why.
func TestAnImageOfAServerThatComesToNothing(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	r.instances(instanceOf(s, "kvm"))
	r.refused = "its node is away"
	id := r.imageOf(s, "")
	r.captured(id)
	r.explained("the image", r.ask(http.MethodGet, glance+"/"+id, ""), http.StatusNotFound)
	if act, _ := r.acts(s)[0].(map[string]any); act["action"] != "createImage" || act["message"] != "its node is away" {
		t.Errorf("what was done is %v", act)
	}
}

// TestWhatNoImageIsMadeOf is refused, and no image is there.
func TestWhatNoImageIsMadeOf(t *testing.T) {
	r := newRig(t)
	s, pretended, bare := r.create("web1"), r.create("web2"), r.create("web3")
	without := instanceOf(bare, "kvm")
	without.Disks = nil
	r.instances(instanceOf(s, "kvm"), instanceOf(pretended, cluster.Pretended), without)
	ask := func(s *server.Server, argument string, headers ...string) answer {
		return r.ask(http.MethodPost, at(nova, s)+"/action", `{"createImage":`+argument+`}`, headers...)
	}
	for _, argument := range []string{`null`, `{}`, `{"name":""}`, `{"name":null}`, `{"name":7}`, `{"name":" x"}`, `{"name":"` + strings.Repeat("x", 256) + `"}`, `{"name":"a\u0000"}`, `{"name":"x","metadata":{"a":null}}`,
		`{"name":"x","metadata":7}`, `{"name":"x","more":1}`} {
		r.explained(argument, ask(s, argument), http.StatusBadRequest)
	}
	r.explained("a property that is another's", ask(s, `{"name":"x","metadata":{"hw_disk_bus":"ide"}}`), http.StatusForbidden)
	r.explained("a pretended one", ask(pretended, `{"name":"x"}`), http.StatusBadRequest)
	r.explained("one without a disk", ask(bare, `{"name":"x"}`), http.StatusConflict)
	r.explained("one of Cyclades", r.ask(http.MethodPost, at(cyclades, s)+"/action", `{"createImage":{"name":"x"}}`), http.StatusBadRequest)
	r.cloud.hold(true)
	r.ask(http.MethodPost, at(nova, s)+"/action", `{"os-stop":null}`)
	r.explained("while something is done", ask(s, `{"name":"x"}`), http.StatusConflict)
	r.cloud.hold(false)
	r.settled(s.ID)
	if all := r.ask(http.MethodGet, glance+"?owner="+r.home.ID, "").text; !strings.Contains(all, `"images":[]`) {
		t.Errorf("there are %s", all)
	}
	_, token := r.join("bob", "other", "member")
	r.status(http.StatusNotFound, http.MethodPost, at(nova, s)+"/action", `{"createImage":{"name":"x"}}`, token)
}

// TestBackupsTakeTurns: a backup has the marks by which clients find it, and the oldest goes when there are more than are to stay.
func TestBackupsTakeTurns(t *testing.T) {
	r := newRig(t)
	s := r.create("web1")
	r.instances(instanceOf(s, "kvm"))
	ask := func(argument string) answer {
		return r.ask(http.MethodPost, at(nova, s)+"/action", `{"createBackup":`+argument+`}`)
	}
	for _, argument := range []string{`null`, `{"name":"x","backup_type":"daily"}`, `{"name":"x","rotation":1}`, `{"backup_type":"daily","rotation":1}`, `{"name":"x","backup_type":"daily","rotation":-1}`,
		`{"name":"x","backup_type":"daily","rotation":"many"}`, `{"name":"x","backup_type":7,"rotation":1}`, `{"name":"x","backup_type":"daily","rotation":1.5}`} {
		r.explained(argument, ask(argument), http.StatusBadRequest)
	}
	var ids []string
	for _, argument := range []string{`{"name":"one","backup_type":"daily","rotation":1,"metadata":{"instance_uuid":"mine"}}`, `{"name":"two","backup_type":"daily","rotation":"1"}`} {
		a := ask(argument)
		id, _ := a.read(r)["image_id"].(string)
		if a.status != http.StatusAccepted {
			t.Fatalf("%s: %d %s", argument, a.status, a.text)
		}
		r.captured(id)
		ids = append(ids, id)
	}
	query := glance + "?image_type=backup&backup_type=daily&instance_uuid=" + s.ID
	for strings.Contains(r.ask(http.MethodGet, query, "").text, ids[0]) { // it goes behind the other
	}
	if all := r.ask(http.MethodGet, query, "").text; !strings.Contains(all, ids[1]) || !strings.Contains(all, `"name":"two"`) {
		t.Errorf("there are %s", all)
	}
	if all := r.ask(http.MethodGet, glance+"?backup_type=weekly", "").text; !strings.Contains(all, `"images":[]`) {
		t.Errorf("of another type there are %s", all)
	}
	if act, _ := r.acts(s)[0].(map[string]any); act["action"] != "createBackup" || act["message"] != nil {
		t.Errorf("what was done is %v", act)
	}
}
