package compute_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/api/compute"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/internal/server"
)

const glance = "/image/v2/images"

// file are the headers of an upload.
var file = []string{"Content-Type", "application/octet-stream"}

// patches are those of a change of an image.
var patches = []string{"Content-Type", "application/openstack-images-v2.1-json-patch"}

// told tells of an image, and returns its id.
func (r *rig) told(body string, headers ...string) string {
	r.Helper()
	a := r.ask(http.MethodPost, glance, body, headers...)
	id, _ := a.read(r)["id"].(string)
	if a.status != http.StatusCreated || !strings.HasSuffix(a.header.Get("Location"), glance+"/"+id) {
		r.Fatalf("%d %s %v", a.status, a.text, a.header)
	}
	return id
}

// status asks with a token, and fails unless the answer has a status.
func (r *rig) status(want int, method, path, body, token string, headers ...string) answer {
	r.Helper()
	a := r.ask(method, path, body, append(headers, "X-Auth-Token", token)...)
	if a.status != want {
		r.Errorf("%s %s %s: %d %s, want %d", method, path, fault.Clip(body, 100), a.status, a.text, want)
	}
	return a
}

const newImage = `{"name":"mine","disk_format":"raw","container_format":"bare","min_disk":0,"rack":"3","tags":["b","a","b"]}`

// TestAnImageIsUploaded: as a stock client does it, and a server is made of it.
func TestAnImageIsUploaded(t *testing.T) {
	r := newRig(t)
	id := r.told(newImage)
	at := glance + "/" + id
	shown := r.ask(http.MethodGet, at, "").text
	for _, want := range []string{`"status":"queued"`, `"visibility":"private"`, `"size":null`, `"checksum":null`, `"rack":"3"`, `"tags":["a","b"]`, `"owner":"` + r.home.ID + `"`, `"file":"/v2/images/` + id + `/file"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s is not in %s", want, shown)
		}
	}
	r.status(http.StatusNoContent, http.MethodGet, at+"/file", "", r.token)
	if a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"imageRef": id})); a.status != http.StatusBadRequest || !strings.Contains(a.text, "is not active") {
		t.Errorf("a server of nothing: %d %s", a.status, a.text)
	}
	r.status(http.StatusUnsupportedMediaType, http.MethodPut, at+"/file", "content", r.token)
	r.status(http.StatusNoContent, http.MethodPut, at+"/file", "content", r.token, file...)
	r.status(http.StatusConflict, http.MethodPut, at+"/file", "other", r.token, file...)
	shown = r.ask(http.MethodGet, at, "").text
	for _, want := range []string{`"status":"active"`, `"size":7`, `"checksum":"9a0364b9e99bb480dd25e1f0284c8555"`, `"os_hash_algo":"sha256"`, `"virtual_size":1048576`} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s is not in %s", want, shown)
		}
	}
	if a := r.status(http.StatusOK, http.MethodGet, at+"/file", "", r.token); a.text != "content" || a.header.Get("Content-MD5") != "9a0364b9e99bb480dd25e1f0284c8555" || a.header.Get("Content-Length") != "7" {
		t.Errorf("it comes back as %q, %v", a.text, a.header)
	}
	asked, _ := r.takenIn.Load(id)
	if trail := asked.(*opcode.Opcode).Reason; len(trail) != 2 || !strings.Contains(trail[1].Reason, "take image "+id+" in, request req-") {
		t.Errorf("the job is for %+v", trail)
	}
	a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"imageRef": id, "flavorRef": "1"}))
	made, _ := a.read(r)["server"].(map[string]any)["id"].(string)
	if s := r.settled(made); s == nil || s.Status() != server.Active || r.cloud.newest().Str("os_type") != "image+"+id {
		t.Errorf("the server is %+v", s)
	}
	r.refused = "disks of instances stand on it"
	if a := r.status(http.StatusConflict, http.MethodDelete, at, "", r.token); !strings.Contains(a.text, "stand on it") {
		t.Error(a.text)
	}
	r.refused = ""
	r.status(http.StatusNoContent, http.MethodDelete, at, "", r.token)
	r.status(http.StatusNotFound, http.MethodGet, at, "", r.token)
	r.status(http.StatusNotFound, http.MethodDelete, at, "", r.token)
}

// TestImagesOfOthers: nobody else sees a private one, by any way, or makes a server of it; a public one everybody does, and changes it does its project alone.
func TestImagesOfOthers(t *testing.T) {
	r := newRig(t)
	id := r.told(newImage)
	at := glance + "/" + id
	r.status(http.StatusNoContent, http.MethodPut, at+"/file", "content", r.token, file...)
	_, bob := r.join("bob", "lab", identity.Member)
	_, carol := r.join("carol", "office", identity.Reader)
	tries := func(seen bool) {
		t.Helper()
		status, change := http.StatusNotFound, http.StatusNotFound
		if seen {
			status, change = http.StatusOK, http.StatusForbidden
		}
		r.status(status, http.MethodGet, at, "", bob)
		r.status(status, http.MethodGet, at+"/file", "", bob)
		r.status(change, http.MethodDelete, at, "", bob)
		r.status(change, http.MethodPatch, at, `[{"op":"replace","path":"/name","value":"x"}]`, bob, patches...)
		r.status(change, http.MethodPut, at+"/file", "x", bob, file...)
		r.status(change, http.MethodPut, at+"/tags/x", "", bob)
		r.status(status, http.MethodGet, nova+"/images/"+id, "", bob, "X-Openstack-Nova-Api-Version", "2.35")
		for _, path := range []string{glance, glance + "?name=mine", nova + "/images", nova + "/images/detail"} {
			if a := r.status(http.StatusOK, http.MethodGet, path, "", bob, "X-Openstack-Nova-Api-Version", "2.35"); strings.Contains(a.text, id) != seen {
				t.Errorf("%s: %s", path, a.text)
			}
		}
		want := http.StatusBadRequest
		if seen {
			want = http.StatusAccepted
		}
		r.status(want, http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"imageRef": id, "flavorRef": "1"}), bob)
	}
	tries(false)
	r.status(http.StatusForbidden, http.MethodPost, glance, newImage, carol)
	publish := `[{"op":"replace","path":"/visibility","value":"public"}]`
	r.status(http.StatusForbidden, http.MethodPatch, at, publish, r.token, patches...)
	r.status(http.StatusForbidden, http.MethodPost, glance, `{"visibility":"public"}`, r.token)
	_, root := r.join("root", "rootroom", identity.Admin)
	r.status(http.StatusNotFound, http.MethodPatch, at, publish, root, patches...)
	u, err := r.accounts.FindUser("root")
	r.check(err)
	r.check(r.accounts.SetRole(t.Context(), u.ID, r.home.ID, identity.Admin, true))
	_, root, err = r.accounts.Log(t.Context(), identity.Login{User: "root", Password: "opensesame", Project: "home"})
	r.check(err)
	r.status(http.StatusOK, http.MethodPatch, at, publish, root, patches...)
	tries(true)
	r.status(http.StatusForbidden, http.MethodDelete, glance+"/"+server.DefaultImages()[0].ID, "", root)
}

// TestImagesAreChanged: as JSON Patch has it; what cannot be is refused, and all of a request or nothing is done.
func TestImagesAreChanged(t *testing.T) {
	r := newRig(t)
	id := r.told(newImage)
	at := glance + "/" + id
	change := func(want int, body string) answer {
		t.Helper()
		return r.status(want, http.MethodPatch, at, body, r.token, patches...)
	}
	a := change(http.StatusOK, `[{"op":"replace","path":"/name","value":"two"},{"op":"add","path":"/a~1b","value":"c"},{"op":"remove","path":"/rack"},{"op":"replace","path":"/min_ram","value":64},
		{"op":"replace","path":"/tags","value":["x"]},{"op":"replace","path":"/protected","value":true}]`)
	for _, want := range []string{`"name":"two"`, `"a/b":"c"`, `"min_ram":64`, `"tags":["x"]`, `"protected":true`} {
		if !strings.Contains(a.text, want) || strings.Contains(a.text, "rack") {
			t.Errorf("%s is not in %s", want, a.text)
		}
	}
	r.status(http.StatusForbidden, http.MethodDelete, at, "", r.token)
	for body, want := range map[string]int{
		`[{"op":"replace","path":"/name","value":"three"},{"op":"remove","path":"/rack"}]`: 409, `[{"op":"replace","path":"/nosuch","value":"x"}]`: 409, `[{"op":"move","path":"/name"}]`: 400,
		`[{"op":"remove","path":"/name"}]`: 403, `[{"op":"replace","path":"/status","value":"active"}]`: 403, `[{"op":"replace","path":"/id","value":"x"}]`: 403,
		`[{"op":"replace","path":"/owner","value":"x"}]`: 403, `[{"op":"replace","path":"/visibility","value":"shared"}]`: 400, `[{"op":"replace","path":"name","value":"x"}]`: 400,
		`[{"op":"replace","path":"/min_disk","value":-1}]`: 400, `[{"op":"add","path":"/n","value":1}]`: 400, `[{"op":"add","path":"/hw_disk_bus","value":"scsi"}]`: 403, `[{"op":"add","path":"/x"}]`: 400,
		`{}`: 400, `[{"op":"replace","path":"/disk_format","value":"vmdk"}]`: 400, `[{"op":"add","path":"/locations/-","value":"x"}]`: 400, `[{"op":"replace","path":"/tags","value":[""]}]`: 400,
	} {
		change(want, body)
	}
	if a := r.ask(http.MethodGet, at, ""); !strings.Contains(a.text, `"name":"two"`) {
		t.Error(a.text)
	}
	before := []string{"Content-Type", "application/openstack-images-v2.0-json-patch"}
	a = r.status(http.StatusOK, http.MethodPatch, at, `[{"replace":"/protected","value":false},{"add":"/rack","value":"7"},{"remove":"/a~1b"}]`, r.token, before...)
	if !strings.Contains(a.text, `"protected":false`) || !strings.Contains(a.text, `"rack":"7"`) || strings.Contains(a.text, "a/b") {
		t.Errorf("as it was changed before there was JSON Patch: %s", a.text)
	}
	for _, body := range []string{`[{"op":"replace","path":"/name","value":"x"}]`, `[{"move":"/name","value":"x"}]`, `[{"value":"x"}]`, `[{"replace":"/name","add":"/name","value":"x"}]`, `[{"replace":"/name"}]`, `{}`} {
		r.status(http.StatusBadRequest, http.MethodPatch, at, body, r.token, before...)
	}
	if a := r.status(http.StatusUnsupportedMediaType, http.MethodPatch, at, `[]`, r.token); !strings.Contains(a.header.Get("Accept-Patch"), "v2.0-json-patch") {
		t.Error(a.header)
	}
	r.status(http.StatusNoContent, http.MethodPut, at+"/tags/new", "", r.token)
	r.status(http.StatusNoContent, http.MethodDelete, at+"/tags/x", "", r.token)
	r.status(http.StatusNotFound, http.MethodDelete, at+"/tags/x", "", r.token)
	r.status(http.StatusNoContent, http.MethodPut, at+"/file", "content", r.token, file...)
	change(http.StatusForbidden, `[{"op":"replace","path":"/disk_format","value":"qcow2"}]`)
	if a := r.ask(http.MethodGet, at, ""); !strings.Contains(a.text, `"tags":["new"]`) {
		t.Error(a.text)
	}
	if a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"imageRef": id, "flavorRef": "4"})); a.status != http.StatusBadRequest {
		t.Errorf("on no disk: %d %s", a.status, a.text)
	}
	change(http.StatusOK, `[{"op":"replace","path":"/min_ram","value":4096},{"op":"replace","path":"/os_hidden","value":true}]`)
	if a := r.ask(http.MethodPost, nova+"/servers", r.creationOf(map[string]any{"imageRef": id, "flavorRef": "1"})); a.status != http.StatusBadRequest || !strings.Contains(a.text, "memory is too small") {
		t.Errorf("with too little memory: %d %s", a.status, a.text)
	}
	if got, hidden := r.ask(http.MethodGet, glance, "").text, r.ask(http.MethodGet, glance+"?os_hidden=true", "").text; strings.Contains(got, id) || !strings.Contains(hidden, id) {
		t.Errorf("what is hidden: %s, %s", got, hidden)
	}
}

// TestNewImagesAreChecked: what is asked of them is done or refused by name.
func TestNewImagesAreChecked(t *testing.T) {
	r := newRig(t)
	for body, want := range map[string]int{
		`{"disk_format":"iso"}`: 400, `{"container_format":"ova"}`: 400, `{"visibility":"community"}`: 400, `{"owner":"x"}`: 403, `{"status":"active"}`: 403, `{"locations":[]}`: 403,
		`{"name":7}`: 400, `{"name":"` + strings.Repeat("x", 256) + `"}`: 400, `{"id":"x"}`: 400, `{"id":"` + server.DefaultImages()[0].ID + `"}`: 409, `{"img_signature":"x"}`: 403,
		`{"kernel_id":"x"}`: 403, `{"x":{}}`: 400, `{"protected":"maybe"}`: 400, `{"min_ram":"lots"}`: 400, `{"":"x"}`: 400, `[]`: 400,
	} {
		r.explained(body, r.ask(http.MethodPost, glance, body), want)
	}
	const id = "5b7c7f7e-1111-4c8b-9a52-0d1f6c0e5a02"
	if got := r.told(`{"id":"` + id + `","kernel_id":null,"name":null}`); got != id {
		t.Error(got)
	}
	r.explained("again", r.ask(http.MethodPost, glance, `{"id":"`+id+`"}`), http.StatusConflict)
	a := r.ask(http.MethodPut, glance+"/"+id+"/file", "x", file...)
	if r.explained("without a format", a, http.StatusBadRequest); !strings.Contains(a.text, "disk_format, container_format must be set") {
		t.Error(a.text)
	}
	_, err := r.quotas.Set(t.Context(), r.home.ID, quota.Limits{quota.Images: 1, quota.ImageGiB: 0}, quota.Ask{})
	r.check(err)
	r.explained("beyond the quota", r.ask(http.MethodPost, glance, `{}`), http.StatusForbidden)
	r.status(http.StatusOK, http.MethodPatch, glance+"/"+id, `[{"op":"replace","path":"/disk_format","value":"raw"},{"op":"replace","path":"/container_format","value":"bare"}]`, r.token, patches...)
	r.explained("beyond the quota", r.ask(http.MethodPut, glance+"/"+id+"/file", "x", file...), http.StatusRequestEntityTooLarge)
}

// TestASlowClient: an upload may take longer than other requests, and its client hears why it was for nothing when it has sent all.
func TestASlowClient(t *testing.T) {
	r := newRig(t)
	s := httptest.NewUnstartedServer(r.api)
	s.Config.ReadHeaderTimeout, s.Config.ReadTimeout, s.Config.WriteTimeout = time.Minute, 1, 1 // over at once
	s.Start()
	defer s.Close()
	for format, want := range map[string]int{"raw": http.StatusNoContent, "qcow2": http.StatusBadRequest} {
		id := r.told(`{"disk_format":"` + format + `","container_format":"bare"}`)
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL+glance+"/"+id+"/file", strings.NewReader(strings.Repeat("x", 3<<20)))
		r.check(err)
		q.Header.Set("X-Auth-Token", r.token)
		q.Header.Set("Content-Type", "application/octet-stream")
		a, err := http.DefaultClient.Do(q)
		r.check(err)
		if a.Body.Close() != nil || a.StatusCode != want {
			t.Errorf("%s: %d", format, a.StatusCode)
		}
		if want != http.StatusNoContent {
			continue
		}
		q, err = http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+glance+"/"+id+"/file", nil)
		r.check(err)
		q.Header.Set("X-Auth-Token", r.token)
		a, err = http.DefaultClient.Do(q)
		r.check(err)
		if got, err := io.ReadAll(a.Body); err != nil || len(got) != 3<<20 || a.Body.Close() != nil {
			t.Errorf("%d bytes come back: %v", len(got), err)
		}
	}
}

// TestEachPartOfAFileHasItsTime: what takes as long as it takes is bounded part by part, as it comes and as it goes.
func TestEachPartOfAFileHasItsTime(t *testing.T) {
	link := &timed{ResponseWriter: httptest.NewRecorder()}
	out, in, done := compute.AtLeisure(link, httptest.NewRequestWithContext(t.Context(), http.MethodGet, glance+"/x/file", link))
	defer done()
	out.WriteHeader(http.StatusOK)
	for range 2 {
		_, err := out.Write([]byte("part"))
		_, read := in.Body.Read(make([]byte, 1))
		if err != nil || read != nil {
			t.Errorf("%v, %v", err, read)
		}
	}
	const each = ", time to go, part goes, time to come, part comes"
	if got := strings.Join(link.happened, ", "); got != "time to go, head goes"+each+each {
		t.Errorf("it went so: %s", got)
	}
}

// timed is a connection that tells what happens on it.
type timed struct {
	http.ResponseWriter

	happened []string
}

func (l *timed) did(what string) { l.happened = append(l.happened, what) }

func (l *timed) SetWriteDeadline(time.Time) error { l.did("time to go"); return nil }

func (l *timed) SetReadDeadline(time.Time) error { l.did("time to come"); return nil }

func (l *timed) WriteHeader(int) { l.did("head goes") }

func (l *timed) Write(part []byte) (int, error) { l.did("part goes"); return len(part), nil }

func (l *timed) Read(to []byte) (int, error) { l.did("part comes"); return len(to), nil }

// TestATermEndsAmidAnUpload: nobody waits for the client then.
func TestATermEndsAmidAnUpload(t *testing.T) {
	r := newRig(t)
	id := r.told(newImage)
	term, end := context.WithCancel(t.Context())
	s := httptest.NewUnstartedServer(r.api)
	s.Config.BaseContext = func(net.Listener) context.Context { return term }
	s.Start()
	defer s.Close()
	body, to := io.Pipe()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.URL+glance+"/"+id+"/file", body)
	r.check(err)
	q.Header.Set("X-Auth-Token", r.token)
	q.Header.Set("Content-Type", "application/octet-stream")
	go func() {
		_, _ = to.Write([]byte("some"))
		for !strings.Contains(r.ask(http.MethodGet, glance+"/"+id, "").text, `"status":"saving"`) {
			runtime.Gosched()
		}
		end()
	}()
	a, err := http.DefaultClient.Do(q)
	r.check(err)
	if a.Body.Close() != nil || a.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("the client hears %d", a.StatusCode)
	}
}

// TestSchemasTellOfImages: of every key that one has.
func TestSchemasTellOfImages(t *testing.T) {
	r := newRig(t)
	id := r.told(newImage)
	r.status(http.StatusNoContent, http.MethodPut, glance+"/"+id+"/file", "content", r.token, file...)
	schema := r.ask(http.MethodGet, "/image/v2/schemas/image", "").read(r)["properties"].(map[string]any)
	for key := range r.ask(http.MethodGet, glance+"/"+id, "").read(r) {
		if schema[key] == nil && key != "rack" {
			t.Errorf("the schema has no %s", key)
		}
	}
	if many := r.status(http.StatusOK, http.MethodGet, "/image/v2/schemas/images", "", r.token); !strings.Contains(many.text, `"name":"images"`) {
		t.Error(many.text)
	}
}

// TestWhatIsAboutAFile: requests that have other bounds.
func TestWhatIsAboutAFile(t *testing.T) {
	for path, want := range map[string]bool{glance + "/x/file": true, glance + "/x": false, nova + "/servers/x/file": false, "/image/v2/imagesx/file": false} {
		if got := compute.IsFile(httptest.NewRequestWithContext(t.Context(), http.MethodPut, path, nil)); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
