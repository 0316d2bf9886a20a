package upload_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/upload"
)

// capture asks for an image of the server s1.
func (r *rig) capture() (string, error) {
	m, err := r.Service.Capture(r.Context(), upload.Image{Project: "alice", Name: "mine"},
		upload.Capture{Server: "s1", Instance: "snf-1", UUID: "u1", Asked: servertag.Asked{User: "alice", Request: "req-1"}}, nil)
	return m.ID, err
}

// captured is an image of the server that is being made.
func (r *rig) captured() string {
	r.Helper()
	id, err := r.capture()
	r.check(err)
	return id
}

// hears fails unless this is what was told of images of the server, one behind the other.
func (r *rig) hears(want ...string) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.told, want) {
		r.Errorf("the server is told %q, want %q", r.told, want)
	}
}

// TestAnImageOfAServer: a job takes its disk, another one takes the image in, and the server is told.
func TestAnImageOfAServer(t *testing.T) {
	r := newRig(t)
	r.disk, r.hold = bytes.NewReader(content), make(chan struct{})
	id := r.captured()
	if began := <-r.began; began != id {
		t.Fatalf("a job of %s began", began)
	}
	r.is(id, upload.Saving)
	if of, err := r.Awaits(id); of != "u1" || err != nil {
		t.Errorf("it waits for %s, %v", of, err)
	}
	if of := r.Captures("s1"); of == nil || of.Asked.Request != "req-1" {
		t.Errorf("what is being made is %+v", of)
	}
	_, err := r.capture()
	r.refused("another one of that server", err, fault.WrongState, "while another one is being made")
	r.refused("a file", r.take(id, bytes.NewReader(content), -1), fault.Conflict, "from saving to saving")
	r.goOn()
	r.until(id, upload.Active)
	m := r.is(id, upload.Active)
	if m.File == nil || m.File.Size != int64(len(content)) || m.DiskFormat != "raw" || m.ContainerFormat != "bare" || m.Capture != nil {
		t.Errorf("it is %+v", m.Image)
	}
	if of := r.Captures("s1"); of != nil || len(r.files()) != 1 {
		t.Errorf("it goes on (%+v), with the files %q", of, r.files())
	}
	if got := r.opcodes(); got != "OP_IMAGE_CAPTURE OP_IMAGE_ADD" {
		t.Errorf("the jobs are %s", got)
	}
	r.hears("req-1")
	_, err = r.Awaits(id)
	r.refused("it waits no more", err, fault.NotFound, "openstack server image create")
	r.check(r.TakeDisk(t.Context(), id, "raw", bytes.NewReader([]byte("another"))))
	if m := r.is(id, upload.Active); m.File.Size != int64(len(content)) {
		t.Errorf("another disk came: %+v", m.File)
	}
	r.disk = bytes.NewReader(content)
	r.until(r.captured(), upload.Active) // another one, by now
}

// goOn has jobs wait no more.
func (r *rig) goOn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.hold)
	r.hold = nil
}

// opcodes are those of the jobs.
func (r *rig) opcodes() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for _, j := range r.jobs {
		id, _, _ := strings.Cut(j, " ")
		ids = append(ids, id)
	}
	return strings.Join(ids, " ")
}

// TestAnImageOfAServerThatComesToNothing is no more, nor its file, and the server is told why.
func TestAnImageOfAServerThatComesToNothing(t *testing.T) {
	for what, c := range map[string]struct {
		does func(*rig)
		told string
	}{
		"the job fails":                  {func(r *rig) { r.refuse = "no snapshots" }, "req-1: no snapshots"},
		"the job ends, and nothing came": {func(r *rig) { r.disk = nil }, "req-1: nothing came of the disk"},
		"the disk does not come":         {func(r *rig) { r.disk = broken{bytes.NewReader(content)} }, "req-1: The upload ended before all of the image had come"},
		"the project may not have it":    {func(r *rig) { r.limits.Bytes = 100 }, "req-1: Quota exceeded for image_gigabytes"},
		"the disk is another's":          {func(r *rig) { r.disk = strings.NewReader("QFI\xfb" + strings.Repeat("x", 600)) }, "req-1: The image cannot be taken"},
		"no node takes it":               {func(r *rig) { r.refuseAdd = "it is broken" }, "req-1: it is broken"},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			r.disk = bytes.NewReader(content)
			c.does(r)
			id := r.captured()
			r.Settled(id)
			if _, err := r.Find("alice", id); !fault.Is(err, fault.NotFound) || len(r.files()) != 0 {
				t.Errorf("%v, and there are the files %q", err, r.files())
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			if len(r.told) != 1 || !strings.HasPrefix(r.told[0], c.told) {
				t.Errorf("the server is told %q, want %q", r.told, c.told)
			}
		})
	}
}

// TestAnImageOfAServerGoesMeanwhile: at once, and its disk is taken no more.
func TestAnImageOfAServerGoesMeanwhile(t *testing.T) {
	r := newRig(t)
	r.disk, r.hold = bytes.NewReader(content), make(chan struct{})
	id := r.captured()
	<-r.began
	r.check(r.Remove(t.Context(), id, nil, time.Hour))
	r.hears("req-1: the image was removed before it was whole")
	if err := r.TakeDisk(t.Context(), id, "raw", bytes.NewReader(content)); !errors.Is(err, upload.ErrGone) {
		t.Errorf("its disk: %v", err)
	}
	other := r.captured() // the server may have another one
	<-r.began
	r.goOn()
	r.Settled(id)
	r.until(other, upload.Active)
	r.hears("req-1: the image was removed before it was whole", "req-1")
}

// TestAKillAmidAnImageOfAServer: whoever comes next goes on with the same jobs, and a disk that came does not come again.
func TestAKillAmidAnImageOfAServer(t *testing.T) {
	r := newRig(t)
	r.disk, r.hold = bytes.NewReader(content), make(chan struct{})
	id := r.captured()
	<-r.began
	r.again() // amid the job
	<-r.began
	r.is(id, upload.Saving)
	if of := r.Captures("s1"); of == nil || of.Asked.Request != "req-1" {
		t.Errorf("what is being made is %+v", of)
	}
	r.check(r.TakeDisk(t.Context(), id, "raw", bytes.NewReader(content)))
	r.again() // its disk is here, and the job that brought it has not ended
	<-r.began
	if r.Captures("s1") != nil {
		t.Error("it waits for its disk")
	}
	r.disk = nil
	r.goOn()
	r.until(id, upload.Active)
	r.hears("req-1")
	if len(r.jobs) != 3 || r.jobs[0] != r.jobs[1] || r.opcodes() != "OP_IMAGE_CAPTURE OP_IMAGE_CAPTURE OP_IMAGE_ADD" {
		t.Errorf("the jobs are %q", r.jobs)
	}
}

// TestOlderBackupsGo: those of the same server and type, when the newer one is whole; what is protected stays until the next time. One that comes to nothing takes no place.
func TestOlderBackupsGo(t *testing.T) {
	r := newRig(t)
	number := 0
	backup := func(kind string, keep int) string {
		t.Helper()
		number++
		r.past = time.Duration(number) * time.Minute
		r.disk = bytes.NewReader(content)
		m, err := r.Service.Capture(t.Context(), upload.Image{Project: "alice", Properties: map[string]string{upload.TypeProperty: upload.IsBackup, upload.ServerProperty: "s1", upload.BackupProperty: kind}},
			upload.Capture{Server: "s1", Instance: "snf-1", UUID: "u1", Backup: &upload.Backup{Type: kind, Keep: keep}}, nil)
		r.check(err)
		r.Settled(m.ID)
		return m.ID
	}
	there := func(what string, want ...string) {
		t.Helper()
		var got []string
		for _, m := range r.Seen("alice") {
			r.Settled(m.ID) // some are going
		}
		for _, m := range r.Seen("alice") {
			got = append(got, m.ID)
		}
		want = append([]string{"alices2", "bobs1"}, want...) // nothing is taken from others
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: there are %q, want %q", what, got, want)
		}
	}
	protect := func(id string, is bool) {
		t.Helper()
		_, err := r.Change(t.Context(), id, func(m *upload.Shown) error { m.Protected = is; return nil })
		r.check(err)
	}
	alike := func(project, server string) {
		t.Helper()
		_, err := r.Add(t.Context(), upload.Image{Project: project, Public: true, Properties: map[string]string{upload.TypeProperty: upload.IsBackup, upload.ServerProperty: server, upload.BackupProperty: "daily"},
			ID: project + server, DiskFormat: "raw", ContainerFormat: "bare"})
		r.check(errors.Join(err, r.take(project+server, bytes.NewReader(content), -1)))
	}
	alike("alice", "s2")
	alike("bob", "s1") // who sees the image may say so of his own
	first, other := backup("daily", 2), backup("weekly", 1)
	second := backup("daily", 2)
	there("as many as may stay", first, other, second)
	r.refuse = "no snapshots"
	backup("daily", 1)
	there("one that came to nothing", first, other, second)
	r.refuse = ""
	protect(first, true)
	third := backup("daily", 2)
	there("the oldest is protected", first, other, second, third)
	protect(first, false)
	fourth := backup("daily", 2)
	there("the next time", other, third, fourth)
	number = -10
	fifth := backup("daily", 2)
	there("the clock went back", other, fourth, fifth)
	backup("daily", 0)
	there("none is to stay", other)
}

// TestTheServerIsToldOnce, at least, whatever the store says of what is kept of the image then.
func TestTheServerIsToldOnce(t *testing.T) {
	t.Parallel() // it waits for what is tried again
	r := newRig(t)
	r.disk, r.deaf = bytes.NewReader(content), 1
	r.store.Inject(faultstore.Fault{When: func(tx store.Tx) bool {
		return len(tx.Put) == 1 && strings.Contains(string(tx.Put[0].Value), `"ready"`)
	}, Do: faultstore.FailBefore})
	r.until(r.captured(), upload.Active)
	r.hears("req-1", "req-1")
}

// TestImagesOfServersNeedTheirFormat of the store, and a directory.
func TestImagesOfServersNeedTheirFormat(t *testing.T) {
	r := newRig(t)
	c := r.config()
	c.Format = func() int { return format.Captures - 1 }
	before, err := upload.Open(t.Context(), c)
	r.check(err)
	defer before.Close()
	_, err = before.Capture(t.Context(), upload.Image{}, upload.Capture{Server: "s1"}, nil)
	r.refused("before", err, fault.Unsupported, "needs format 11 of the store")
	c.Format, c.Dir, c.Why = nil, "", "there is no room here"
	nowhere, err := upload.Open(t.Context(), c)
	r.check(err)
	defer nowhere.Close()
	_, err = nowhere.Capture(t.Context(), upload.Image{}, upload.Capture{Server: "s1"}, nil)
	r.refused("nowhere", err, fault.Unsupported, "there is no room here")
}
