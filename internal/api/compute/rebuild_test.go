package compute_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/api/compute"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/server"
)

// withDisk makes a server that has a disk.
func (r *rig) withDisk(more map[string]any) *server.Server {
	r.Helper()
	body := map[string]any{"flavorRef": "1"}
	maps.Copy(body, more)
	a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(body))
	if a.status != http.StatusAccepted {
		r.Fatalf("making a server: %d %s", a.status, a.text)
	}
	id, _ := a.read(r)["server"].(map[string]any)["id"].(string)
	return r.settled(id)
}

// rebuild asks for a rebuild, with what is said besides of it as JSON.
func (r *rig) rebuild(s *server.Server, more string, headers ...string) answer {
	r.Helper()
	if more != "" {
		more = "," + more
	}
	return r.ask(http.MethodPost, at(nova, s)+"/action", `{"rebuild":{"imageRef":"`+noop+`"`+more+`}}`, headers...)
}

// TestARebuildKeepsMetadataOverALimit: one that was set later. As many items may be said as there are, and no more.
func TestARebuildKeepsMetadataOverALimit(t *testing.T) {
	r := newRig(t)
	r.furnish()
	s := r.withDisk(map[string]any{"imageRef": disk, "metadata": map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"}})
	r.limit(`{"metadata_items":2}`)
	for _, c := range []struct {
		items  string
		status int
		is     string
	}{
		{`{"a":"5","b":"6","c":"7"}`, http.StatusAccepted, "map[a:5 b:6 c:7]"},
		{`{"a":"1","b":"2","c":"3","d":"4"}`, http.StatusForbidden, "map[a:5 b:6 c:7]"},
	} {
		a := r.rebuild(s, `"metadata":`+c.items)
		if now := r.settled(s.ID); a.status != c.status || fmt.Sprint(now.Metadata) != c.is {
			t.Errorf("%s: %d %s, and then it has %v", c.items, a.status, a.text, now.Metadata)
		}
	}
}

// TestServersAreRebuilt: with the answers that Nova gives. Its cluster is asked for one job.
func TestServersAreRebuilt(t *testing.T) {
	r := newRig(t)
	r.furnish()
	s := r.withDisk(map[string]any{"imageRef": disk, "metadata": map[string]string{"a": "b"}})
	_, jobs := r.cloud.since(0)
	is := func(want, asked string) {
		t.Helper()
		if got := r.seenAs(s); got != want {
			t.Errorf("it is seen as %s, want %s", got, want)
		}
		var got string
		if got, jobs = r.cloud.since(jobs, "os_type"); got != asked {
			t.Errorf("its cluster is asked for %s, want %s", got, asked)
		}
	}
	const whole = "OP_INSTANCE_SHUTDOWN, OP_INSTANCE_REINSTALL os_type=noop, OP_INSTANCE_STARTUP"
	r.cloud.hold(true)
	a := r.rebuild(s, `"name":"web2","metadata":{"c":"d"},"preserve_ephemeral":false`)
	told, _ := a.read(r)["server"].(map[string]any)
	image, _ := told["image"].(map[string]any)
	if a.status != http.StatusAccepted || told["status"] != "REBUILD" || told["name"] != "web2" || image["id"] != noop || told["progress"] != 0.0 || !strings.HasSuffix(a.header.Get("Location"), at(nova, s)) {
		t.Fatalf("%d %s, at %s", a.status, a.text, a.header.Get("Location"))
	}
	r.until(s.ID, "is handed in", func(s *server.Server) bool { return s.Doing() != nil && s.Doing().Job != 0 })
	is("REBUILD active rebuilding on 1", whole)
	for _, body := range []string{`{"rebuild":{"imageRef":"` + noop + `"}}`, `{"os-stop":null}`, `{"resize":{"flavorRef":"2"}}`} {
		r.explained("meanwhile "+body, r.sized(s, body), http.StatusConflict)
	}
	r.cloud.hold(false)
	if s = r.settled(s.ID); s.Name != "web2" || s.Metadata["c"] != "d" || len(s.Metadata) != 1 {
		t.Errorf("it is %+v", s)
	}
	is("ACTIVE active on 1", "")
	r.sized(s, `{"os-stop":null}`)
	r.settled(s.ID)
	r.cloud.hold(true)
	r.rebuild(s, "")
	r.until(s.ID, "is handed in", func(s *server.Server) bool { return s.Doing() != nil && s.Doing().Job != 0 })
	is("REBUILD stopped rebuilding off 1", "OP_INSTANCE_SHUTDOWN, OP_INSTANCE_SHUTDOWN, OP_INSTANCE_REINSTALL os_type=noop")
	r.cloud.hold(false)
	r.settled(s.ID)
	is("SHUTOFF stopped off 1", "")
	r.cloud.broken = "the image is not there any more"
	r.rebuild(s, "")
	r.settled(s.ID)
	is("ERROR error off 1", "OP_INSTANCE_SHUTDOWN, OP_INSTANCE_REINSTALL os_type=noop")
	if shown := r.ask(http.MethodGet, at(nova, s), "").read(r)["server"].(map[string]any); shown["fault"].(map[string]any)["message"] != r.cloud.broken {
		t.Errorf("it is shown as %v", shown)
	}
	r.explained("a start of what is broken", r.sized(s, `{"os-start":null}`), http.StatusConflict)
	r.cloud.broken = ""
	if a := r.rebuild(s, ""); a.status != http.StatusAccepted {
		t.Errorf("another try: %d %s", a.status, a.text)
	}
	r.settled(s.ID)
	is("ACTIVE active on 1", whole)
	if shown := r.ask(http.MethodGet, at(nova, s), "").read(r)["server"].(map[string]any); shown["fault"] != nil {
		t.Errorf("it is shown as %v", shown)
	}
	var done []string
	for _, a := range r.acts(s) {
		act, _ := a.(map[string]any)
		text, _ := act["action"].(string)
		if why, failed := act["message"].(string); failed {
			text += " (" + why + ")"
		}
		done = append(done, text)
	}
	if got := strings.Join(done, ", "); got != "rebuild, rebuild (the image is not there any more), rebuild, stop, rebuild, create" {
		t.Errorf("what was done is %s", got)
	}
}

// TestWhatIsNotRebuilt: and nothing of the server changes by it.
func TestWhatIsNotRebuilt(t *testing.T) {
	r := newRig(t)
	r.furnish()
	s := r.withDisk(map[string]any{"imageRef": disk, "key_name": "mine"})
	before := *s
	for body, status := range map[string]int{
		`{"rebuild":null}`: 400, `{"rebuild":{}}`: 400, `{"rebuild":"x"}`: 400, `{"rebuild":{"imageRef":null}}`: 400, `{"rebuild":{"imageRef":""}}`: 400, `{"rebuild":{"imageRef":"` + testID + `"}}`: 400,
		`{"rebuild":{"imageRef":"` + noop + `"}}`:                     400, // which takes no key
		`{"rebuild":{"imageRef":"` + disk + `","key_name":"nosuch"}}`: 400, `{"rebuild":{"imageRef":"` + disk + `","key_name":""}}`: 400, `{"rebuild":{"imageRef":"` + disk + `","user_data":"%"}}`: 400,
		`{"rebuild":{"imageRef":"` + disk + `","user_data":1}}`: 400, `{"rebuild":{"imageRef":"` + disk + `","name":" a"}}`: 400, `{"rebuild":{"imageRef":"` + disk + `","metadata":{"a":1}}}`: 400,
		`{"rebuild":{"imageRef":"` + disk + `","preserve_ephemeral":true}}`: 400, `{"rebuild":{"imageRef":"` + disk + `","accessIPv4":"x"}}`: 400, `{"rebuild":{"imageRef":"` + disk + `"},"os-stop":null}`: 400,
	} {
		r.explained(body, r.sized(s, body), status)
	}
	r.explained("in Cyclades", r.ask(http.MethodPost, at(cyclades, s)+"/action", `{"rebuild":{"imageRef":"`+disk+`"}}`), http.StatusBadRequest)
	diskless := r.create("web3")
	r.explained("without a disk", r.rebuild(diskless, ""), http.StatusBadRequest)
	r.sized(s, `{"lock":null}`)
	r.explained("locked", r.sized(s, `{"rebuild":{"imageRef":"`+disk+`"}}`), http.StatusConflict)
	r.root = r.admin()
	r.sized(s, `{"unlock":null}`)
	_, reader := r.join("carol", "lab", identity.Reader)
	r.explained("of another project", r.rebuild(s, "", "X-Auth-Token", reader), http.StatusForbidden)
	_, other := r.join("bob", "shop", identity.Member)
	r.explained("of another project", r.rebuild(s, "", "X-Auth-Token", other), http.StatusNotFound)
	if now := r.engine.Servers().Get(s.ID); now.Image.ID != before.Image.ID || now.KeyName() != "mine" || now.Name != before.Name || len(now.Tasks) > 0 {
		t.Errorf("it is %+v", now)
	}
	if a := r.rebuild(s, `"key_name":null`); a.status != http.StatusAccepted || a.read(r)["server"].(map[string]any)["key_name"] != nil {
		t.Errorf("without the key: %d %s", a.status, a.text)
	}
}

const testID = "11111111-2222-3333-4444-555555555555"

// TestKeysOfRebuilds: each is done or refused, before it was there too; the answer has those that strict clients take.
func TestKeysOfRebuilds(t *testing.T) {
	r := newRig(t)
	r.furnish()
	s := r.withDisk(map[string]any{"imageRef": disk})
	for _, key := range slices.Sorted(maps.Keys(compute.Bodies["rebuild"])) { // in an order: who has a key pair is not rebuilt from the image that the row of imageRef names
		w, known := wishes[key]
		if key == "preserve_ephemeral" {
			w, known = refused("true"), true
		}
		if !known {
			t.Errorf("no test asks by the key %s", key)
		}
		image := disk
		if key == "imageRef" {
			image = ""
		}
		body := `{"rebuild":{"` + key + `":` + w.value
		if image != "" {
			body += `,"imageRef":"` + image + `"`
		}
		a := r.sized(s, body+"}}")
		if w.done == nil {
			r.explained(key, a, http.StatusBadRequest)
			continue
		}
		if now := r.engine.Servers().Get(s.ID); a.status != http.StatusAccepted || !w.done(now) {
			t.Errorf("%s: %d %s, and the server is %+v", key, a.status, a.text, now)
		}
		r.settled(s.ID)
	}
	const always = "OS-DCF:diskConfig accessIPv4 accessIPv6 addresses created flavor hostId id image links metadata name progress status tenant_id updated user_id"
	for minor, more := range map[string]string{"2.1": "", "2.9": " locked", "2.19": " description locked", "2.26": " description locked tags", "2.54": " description key_name locked tags", "2.57": " description key_name locked tags user_data",
		"2.63": " description key_name locked tags trusted_image_certificates user_data", "2.71": " description key_name locked server_groups tags trusted_image_certificates user_data",
		"2.73": " description key_name locked locked_reason server_groups tags trusted_image_certificates user_data"} {
		a := r.askedAt(s, `{"rebuild":{"imageRef":"`+disk+`"}}`, minor)
		if got, want := keys(a.read(r)["server"]), slices.Sorted(slices.Values(strings.Fields(always+more))); !slices.Equal(got, want) {
			t.Errorf("in %s it is answered with %s", minor, got)
		}
		r.settled(s.ID)
	}
	a := r.askedAt(s, `{"rebuild":{"imageRef":"`+disk+`"}}`, newest)
	r.settled(s.ID)
	shown := keys(r.ask(http.MethodGet, at(nova, s), "").read(r)["server"])
	if got := keys(a.read(r)["server"]); !slices.Equal(got, slices.Sorted(slices.Values(append(shown, "user_data")))) {
		t.Errorf("in %s it is answered with %s", newest, got)
	}
}

// askedAt has something done to a server at a microversion.
func (r *rig) askedAt(s *server.Server, body, minor string) answer {
	r.Helper()
	return r.ask(http.MethodPost, at(nova, s)+"/action", body, "X-Openstack-Nova-Api-Version", minor)
}
