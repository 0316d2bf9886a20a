package compute_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/flavor"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/testkit"
)

// field is one of a request schema, as this API takes it.
type field testkit.Field

// samples are values that ask for something, by type.
var samples = testkit.FieldSamples()

// sample is a value that asks for something, of the field's type.
func (f *field) sample() any {
	for _, kind := range f.Types {
		if value, known := samples[kind]; known {
			return value
		}
	}
	return true
}

// nested puts a value into a body at a path.
func nested(body any, path string, value any) any {
	if path == "" {
		return value
	}
	if rest, ok := strings.CutPrefix(path, "[]"); ok {
		return []any{nested(nil, strings.TrimPrefix(rest, "."), value)}
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	name := path[:end]
	out, _ := body.(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	out[strings.ReplaceAll(name, "{}", "key")] = nested(out[name], strings.TrimPrefix(path[end:], "."), value)
	return out
}

// before is the microversion before one.
func before(version string) string {
	minor, _ := strconv.Atoi(strings.TrimPrefix(version, "2."))
	return "2." + strconv.Itoa(minor-1)
}

// latest is a microversion that has the field, if there is one here.
func (f *field) latest() string {
	if f.Until != "" && f.Until < newest && len(f.Until) <= len(newest) {
		return f.Until
	}
	return newest
}

const newest = "2.96"

// served reports whether a microversion that has the field is served.
func (f *field) served() bool {
	minor, err := strconv.Atoi(strings.TrimPrefix(f.Since, "2."))
	return err == nil && minor <= 96
}

// TestFieldsOfTheSchemas: each field of each request of Nova's is done or refused, as
// the table says; none is taken and passed over.
func TestFieldsOfTheSchemas(t *testing.T) {
	r := newRig(t)
	fields := testkit.Fields(t, "compute")
	for i := range fields {
		f := (*field)(&fields[i])
		t.Run(f.Resource+" "+f.Action+" "+f.Field, func(t *testing.T) {
			whole := r.T
			defer func() { r.T = whole }()
			r.T = t
			kind, _, _ := strings.Cut(f.Action, " ")
			switch {
			case f.Resource == "instance_actions":
				r.ofActs(f)
			case strings.HasPrefix(f.Resource, "quota"):
				r.ofQuotas(f)
			case f.Resource == "server_groups":
				r.ofServerGroups(f)
			case strings.HasSuffix(f.Action, " query"):
				r.query(f)
			case f.Resource == "servers" && kind == "create":
				r.creation(f)
			case f.Action == "action rebuild":
				r.ofRebuilds(f)
			case kind == "action":
				r.action(f)
			case strings.HasPrefix(f.Resource, "flavor"):
				r.ofFlavors(f)
			default:
				r.change(f)
			}
		})
	}
	const least = 310
	if len(fields) < least {
		t.Errorf("only %d fields were tried", len(fields))
	}
}

// creation asks for a server by one field.
func (r *rig) creation(f *field) {
	var body any
	r.check(json.Unmarshal([]byte(r.creationOf(nil)), &body))
	r.furnish()
	version := []string{"X-Openstack-Nova-Api-Version", f.latest()}
	if f.Verdict == "refused" {
		servers := r.engine.Servers().Len()
		text, err := json.Marshal(nested(body, f.Field, f.sample()))
		r.check(err)
		r.refusedFor(f, r.ask(http.MethodPost, nova+"/servers", string(text), version...))
		if r.engine.Servers().Len() != servers {
			r.Error("a server was made")
		}
		return
	}
	key := strings.TrimPrefix(f.Field, "server.")
	key, _, _ = strings.Cut(key, "[")
	key, _, _ = strings.Cut(key, ".")
	if key == "server" {
		key = "name"
	}
	w, known := wishes[key]
	if !known || w.done == nil {
		r.Fatal("nothing shows that it is done")
	}
	for _, version := range []string{f.Since, f.latest()} {
		more := into(key)
		if version < "2.37" && len(version) <= 4 { // then it need not be said
			more["networks"] = "none"
		}
		made, _ := r.ask(http.MethodPost, nova+"/servers", with(r.creationOf(more), key, r.filled(w.value)), "X-Openstack-Nova-Api-Version", version).read(r)["server"].(map[string]any)["id"].(string)
		if s := r.engine.Servers().Get(made); s == nil || !w.done(s) {
			r.Errorf("in %s the server is %+v", version, s)
		}
	}
	if f.Since != "2.1" {
		r.explained("before it was there", r.ask(http.MethodPost, nova+"/servers", with(r.creationOf(nil), key, r.filled(w.value)), "X-Openstack-Nova-Api-Version", before(f.Since)), http.StatusBadRequest)
	}
}

// refusedFor fails the test unless an answer refuses a field by the name of something
// on its path.
func (r *rig) refusedFor(f *field, a answer) {
	r.Helper()
	r.explained(f.Field, a, http.StatusBadRequest)
	names := strings.FieldsFunc(strings.TrimPrefix(f.Field, "server."), func(c rune) bool { return strings.ContainsRune(".[]{}^", c) })
	if !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(a.text, name) }) {
		r.Errorf("the answer names none of %q: %s", names, a.text)
	}
	if f.Note == "" {
		r.Error("the table does not say why")
	}
}

// ofQuotas asks about limits of a project, or the default, by one field.
func (r *rig) ofQuotas(f *field) {
	path, method := "/os-quota-sets/"+r.home.ID, map[string]string{"update": http.MethodPut, "delete": http.MethodDelete, "show": http.MethodGet, "detail": http.MethodGet}
	if f.Resource == "quota_class_sets" {
		path = "/os-quota-class-sets/default"
	}
	kind, _, query := strings.Cut(f.Action, " ")
	if query {
		if kind == "detail" {
			path += "/detail"
		}
		a := r.asRoot(method[kind], nova+path+"?"+f.Field+"=x", `{"quota_set":{"cores":5}}`)
		if f.Verdict == "refused" {
			r.refusedFor(f, a)
		} else if a.status != http.StatusOK || !strings.Contains(a.text, `"cores"`) { // limits of a user are those of the project
			r.Errorf("%d %s", a.status, a.text)
		}
		return
	}
	root, key, _ := strings.Cut(f.Field, ".")
	values, more := []string{"40000", `"50000"`}, ""
	switch key {
	case quota.KeyPairs, quota.Metadata, quota.ServerGroups:
		values = []string{"17", `"18"`}
	case "force": // there are more servers than that
		values, key, more = []string{"17", `"18"`}, quota.Cores, `,"force":true`
	case "":
		key = quota.Cores
	}
	for _, value := range values {
		body := `{"` + root + `":{"` + key + `":` + value + more + `}}`
		a := r.asRoot(http.MethodPut, nova+path, body, "X-Openstack-Nova-Api-Version", f.latest())
		if want := strings.Trim(value, `"`); a.status != http.StatusOK || !strings.Contains(a.text, `"`+key+`":`+want) || strconv.FormatInt(r.quotas.Of(r.home.ID)[key], 10) != want {
			r.Errorf("%d %s", a.status, a.text)
		}
		if f.Until != "" && f.latest() == f.Until {
			r.explained("after it was there", r.asRoot(http.MethodPut, nova+path, body, "X-Openstack-Nova-Api-Version", newest), http.StatusBadRequest)
		}
		if f.Since != "2.1" {
			r.explained("before it was there", r.asRoot(http.MethodPut, nova+path, body, "X-Openstack-Nova-Api-Version", before(f.Since)), http.StatusBadRequest)
		}
	}
	for _, set := range r.quotas.All() {
		_, err := r.quotas.Unset(r.Context(), set.Project, quota.Ask{})
		r.check(err)
	}
}

// ofActs asks for what was done to a server by one field of the query.
func (r *rig) ofActs(f *field) {
	s := r.create("web1")
	values := map[string][2]string{"limit": {"1", "0"}, "marker": {"", "nosuch"}, "changes-since": {"2001-01-01T00:00:00Z", "2999-01-01T00:00:00Z"}, "changes-before": {"2999-01-01T00:00:00Z", "2001-01-01T00:00:00Z"}}[f.Field]
	for i, value := range values {
		a := r.ask(http.MethodGet, at(nova, s)+"/os-instance-actions?"+f.Field+"="+value, "", "X-Openstack-Nova-Api-Version", f.latest())
		if found := strings.Contains(a.text, `"create"`); found != (i == 0) {
			r.Errorf("by %s: %d %s", value, a.status, a.text)
		}
	}
}

// action asks for something to be done to a server.
func (r *rig) action(f *field) {
	s := r.create("web1")
	name, key, deep := strings.Cut(f.Field, ".")
	if f.Verdict == "refused" {
		a := r.ask(http.MethodPost, at(nova, s)+"/action", `{"`+name+`":null}`)
		if r.refusedFor(f, a); len(r.engine.Servers().Get(s.ID).Tasks) > 0 {
			r.Error("something is being done")
		}
		return
	}
	if first := map[string]string{"os-start": "os-stop", "unlock": "lock"}[name]; first != "" {
		r.ask(http.MethodPost, at(nova, s)+"/action", `{"`+first+`":null}`)
		r.settled(s.ID)
	}
	if name == "os-getConsoleOutput" {
		r.printed = "one\ntwo\n"
		if a := r.ask(http.MethodPost, at(nova, s)+"/action", `{"`+name+`":{"length":1}}`); a.status != http.StatusOK || a.text != `{"output":"two\n"}` {
			r.Errorf("%d %s", a.status, a.text)
		}
		return
	}
	if name == "createBackup" {
		r.instances(instanceOf(s, "kvm"))
		a := r.ask(http.MethodPost, at(nova, s)+"/action", `{"createBackup":{"name":"one","backup_type":"daily","rotation":3,"metadata":{"a":"b"}}}`)
		id, _ := a.read(r)["image_id"].(string)
		m, err := r.uploads.Find(r.home.ID, id)
		if err != nil || m.Name != "one" || m.Properties["a"] != "b" || m.Properties["backup_type"] != "daily" {
			r.Errorf("%d %s: the image is %+v, %v", a.status, a.text, m, err)
		}
		return
	}
	if name == "createImage" {
		r.instances(instanceOf(s, "kvm"))
		m, err := r.uploads.Find(r.home.ID, r.imageOf(s, `,"metadata":{"a":"b"}`))
		if err != nil || m.Name != "backup" || m.Properties["a"] != "b" || m.Properties["instance_uuid"] != s.ID {
			r.Errorf("the image is %+v, %v", m, err)
		}
		return
	}
	if key == "locked_reason" {
		a := r.ask(http.MethodPost, at(nova, s)+"/action", `{"lock":{"locked_reason":"mine"}}`)
		if l := r.engine.Servers().Get(s.ID).Lock; a.status != http.StatusAccepted || l == nil || l.Reason != "mine" {
			r.Errorf("%d %s, and the lock is %+v", a.status, a.text, l)
		}
		r.explained("before it was there", r.ask(http.MethodPost, at(nova, s)+"/action", `{"lock":{"locked_reason":"mine"}}`, "X-Openstack-Nova-Api-Version", before(f.Since)), http.StatusBadRequest)
		return
	}
	argument, status := "null", http.StatusAccepted
	switch name {
	case "reboot":
		argument = `{"type":"HARD"}`
	case "resize":
		argument = `{"flavorRef":"` + r.diskless() + `","OS-DCF:diskConfig":"MANUAL"}`
	case "confirmResize", "revertResize":
		r.ask(http.MethodPost, at(nova, s)+"/action", `{"resize":{"flavorRef":"`+r.diskless()+`"}}`)
		if r.settled(s.ID); name == "confirmResize" {
			status = http.StatusNoContent
		}
	}
	if deep {
		r.explained("another "+key, r.ask(http.MethodPost, at(nova, s)+"/action", `{"`+name+`":{"`+key+`":"x"}}`), http.StatusBadRequest)
	}
	serial := r.engine.Servers().Get(s.ID).Serial
	a := r.ask(http.MethodPost, at(nova, s)+"/action", `{"`+name+`":`+argument+`}`)
	if now := r.engine.Servers().Get(s.ID); a.status != status || now != nil && now.Serial == serial {
		r.Errorf("%d %s, and the server is %+v", a.status, a.text, now)
	}
}

// ofRebuilds asks for a rebuild by one field.
func (r *rig) ofRebuilds(f *field) {
	r.furnish()
	s := r.withDisk(map[string]any{"imageRef": disk})
	whole := any(map[string]any{"rebuild": map[string]any{"imageRef": disk}})
	ask := func(body any, version string) answer {
		text, err := json.Marshal(body)
		r.check(err)
		return r.ask(http.MethodPost, at(nova, s)+"/action", string(text), "X-Openstack-Nova-Api-Version", version)
	}
	if f.Verdict == "refused" {
		if r.refusedFor(f, ask(nested(whole, f.Field, f.sample()), f.latest())); len(r.engine.Servers().Get(s.ID).Tasks) > 0 {
			r.Error("something is being done")
		}
		return
	}
	_, key, said := strings.Cut(f.Field, ".")
	key, _, _ = strings.Cut(key, ".")
	w := wishes[key]
	if w.done == nil && said {
		r.Fatal("nothing shows that it is done")
	}
	body := whole
	if said {
		body = nested(whole, "rebuild."+key, json.RawMessage(w.value))
	}
	for _, version := range []string{f.Since, f.latest()} {
		a := ask(body, version)
		if now := r.engine.Servers().Get(s.ID); a.status != http.StatusAccepted || said && !w.done(now) {
			r.Errorf("in %s %d %s, and the server is %+v", version, a.status, a.text, now)
		}
		r.settled(s.ID)
	}
	if f.Since != "2.1" {
		r.explained("before it was there", ask(body, before(f.Since)), http.StatusBadRequest)
	}
}

// diskless makes a flavor to which the servers of the tests can be resized, once.
func (r *rig) diskless() string {
	r.Helper()
	if _, err := r.flavors.Find("d2"); err != nil {
		_, err := r.flavors.Add(r.Context(), flavor.Flavor{Flavor: server.Flavor{ID: "d2", Name: "d2", RAM: 256, VCPUs: 2}}, flavor.Ask{})
		r.check(err)
	}
	return "d2"
}

// change changes a server, its metadata or its tags by one field.
func (r *rig) change(f *field) {
	s := r.create("web1")
	method, path, key, value := http.MethodPut, at(nova, s), strings.TrimPrefix(f.Field, "server."), ""
	var done func(*server.Server) bool
	switch f.Resource + " " + f.Action {
	case "servers update":
		if key == "server" {
			key = "name"
		}
		w := wishes[key]
		value, done = `{"server":{"`+key+`":`+w.value+`}}`, w.done
	case "server_metadata create", "server_metadata update_all":
		if path, value = path+"/metadata", `{"metadata":{"a":"b"}}`; f.Action == "create" {
			method = http.MethodPost
		}
		done = func(s *server.Server) bool { return s.Metadata["a"] == "b" }
	case "server_metadata update":
		path, value = path+"/metadata/a", `{"meta":{"a":"b"}}`
		done = func(s *server.Server) bool { return s.Metadata["a"] == "b" }
	case "server_tags update_all":
		path, value = path+"/tags", `{"tags":["a"]}`
		done = func(s *server.Server) bool { return s.Tags.Has("user", "a") }
	default:
		r.Fatal("no request for it")
	}
	a := r.ask(method, path, value, "X-Openstack-Nova-Api-Version", f.latest())
	if f.Verdict == "refused" {
		r.refusedFor(f, a)
		return
	}
	if done == nil || a.status != http.StatusOK || !done(r.engine.Servers().Get(s.ID)) {
		r.Errorf("%d %s, and the server is %+v", a.status, a.text, r.engine.Servers().Get(s.ID))
	}
	if f.Since != "2.1" {
		r.explained("before it was there", r.ask(method, path, value, "X-Openstack-Nova-Api-Version", before(f.Since)), http.StatusBadRequest)
	}
}

// asks are values of queries: one by which a thing is found, and one by which it is
// not, or which is refused.
var asks = map[string][2]string{
	"name": {"^web1$", "^b"}, "display_name": {"eb", "x"}, "description": {"min", "x"}, "display_description": {"^mine$", "x"}, "image": {noop, "x"}, "image_ref": {noop, "x"},
	"flavor": {"4", "1"}, "status": {"active", "ERROR"}, "vm_state": {"active", "stopped"}, "power_state": {"1", "4"}, "task_state": {"", "rebooting"},
	"availability_zone": {"nova", "far"}, "access_ip_v4": {"192.0.2.7", "192.0.2.8"}, "access_ip_v6": {"2001:db8::7", "::1"}, "changes-since": {"2001-01-01T00:00:00Z", "2999-01-01T00:00:00Z"},
	"all_tenants": {"no", "yes"}, "sort_key": {"uuid", "nosuch"}, "sort_dir": {"asc", "up"}, "limit": {"1", "-1"}, "marker": {"", "nosuch"},
	"tags": {"a", "b"}, "tags-any": {"b,a", "b,c"}, "not-tags": {"b", "a"}, "not-tags-any": {"b,c", "b,a"},
	"user_id": {"USER", "x"}, "key_name": {"", "x"}, "project_id": {"PROJECT", "x"}, "tenant_id": {"PROJECT", "x"}, "uuid": {"ID", "x"},
	"hostname": {"^snf-", "^web"}, "created_at": {"CREATED", "2001-01-01T00:00:00Z"}, "launched_at": {"BUILT", "2001-01-01T00:00:00Z"}, "terminated_at": {"", "BUILT"},
	"locked": {"false", "true"}, "locked_by": {"", "owner"}, "config_drive": {"False", "True"}, "auto_disk_config": {"0", "1"}, "progress": {"0", "7"},
	"ip": {"192.0.2.", "0.2.9"}, "ip6": {"2001:db8::9$", "192"}, "metadata": {"%7B%22a%22:%22b%22%7D", "%7B%22a%22:%22c%22%7D"}, "changes-before": {"2999-01-01T00:00:00Z", "2001-01-01T00:00:00Z"},
	"minRam": {"128", "129"}, "minDisk": {"0", "1"}, "is_public": {"True", "0"},
}

// lists are where the queries of a resource are asked, and what is found there.
var lists = map[string][2]string{"servers index query": {"/servers", "web1"}, "servers detail query": {"/servers/detail", "web1"}, "flavors index query": {"/flavors", "m1.diskless"},
	"flavors detail query": {"/flavors/detail", "m1.diskless"}, "limits index query": {"/limits", "maxTotalCores"}, "keypairs index query": {"/os-keypairs", "keypairs"}}

// query asks for a list by one field of the query.
func (r *rig) query(f *field) {
	id := r.found(f)
	s := r.engine.Servers().Get(id)
	list := lists[f.Resource+" "+f.Action]
	ask := func(value string) answer {
		value = strings.NewReplacer("USER", s.User, "PROJECT", s.Project, "ID", s.ID,
			"CREATED", moment(s.Created), "BUILT", moment(s.Built)).Replace(value)
		return r.ask(http.MethodGet, nova+list[0]+"?"+strings.ReplaceAll(f.Field, "{^_}", "_id")+"="+value, "")
	}
	if f.Verdict == "refused" {
		r.refusedFor(f, ask("x"))
		return
	}
	values, known := asks[f.Field]
	key := f.Field
	switch {
	case f.Resource == "flavors" && key == "sort_key":
		values = [2]string{"name", "nosuch"}
	case f.Resource == "flavors" && key == "limit":
		values = [2]string{"4", "-1"}
	case f.Resource == "keypairs" && key == "user_id":
		values = [2]string{"USER", "x"} // another's are nobody's business
	case !known:
		r.Fatal("nothing shows that it is done")
	}
	if a := ask(values[0]); a.status != http.StatusOK || !strings.Contains(a.text, `"`+list[1]+`"`) {
		r.Errorf("by %s it is not found: %d %s", values[0], a.status, a.text)
	}
	if values[1] == "" {
		return
	}
	if a := ask(values[1]); a.status < http.StatusBadRequest && strings.Contains(a.text, `"`+list[1]+`"`) {
		r.Errorf("by %s it is found: %s", values[1], a.text)
	}
	if f.Since != "2.1" && f.Resource == "servers" { // as Nova does, it was not looked at before it was there
		a := r.ask(http.MethodGet, nova+list[0]+"?"+key+"="+values[1], "", "X-Openstack-Nova-Api-Version", before(f.Since))
		if a.status != http.StatusOK || !strings.Contains(a.text, `"`+list[1]+`"`) {
			r.Errorf("before it was there: %d %s", a.status, a.text)
		}
	}
}

// moment is a time as queries have it.
func moment(t job.Time) string { return time.UnixMicro(int64(t)).UTC().Format(time.RFC3339) }

// found is the id of the one server that queries ask for.
func (r *rig) found(f *field) string {
	if !f.served() && f.Verdict == "done" {
		r.Fatal("it is done in a microversion that is not served")
	}
	for s := range r.engine.Servers().Of(r.home.ID) {
		if s.Name == "web1" && s.Description == "mine" {
			return s.ID
		}
		r.ask(http.MethodDelete, at(nova, s), "")
		r.settled(s.ID)
	}
	a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"name": "web1", "description": "mine", "tags": []string{"a"}, "accessIPv4": "192.0.2.7", "accessIPv6": "2001:db8::7", "metadata": map[string]string{"a": "b"}}))
	if a.status != http.StatusAccepted {
		r.Fatalf("making a server: %d %s", a.status, a.text)
	}
	id, _ := a.read(r)["server"].(map[string]any)["id"].(string)
	s := r.settled(id)
	r.wired(&cluster.Instance{Meta: cluster.NewMeta(s.UUID, 1), Name: s.Instance, NICs: []cluster.NIC{{UUID: "n1", IP: "192.0.2.9", Network: office}, {UUID: "n2", IP: "2001:db8::9", Network: office}}})
	return id
}
