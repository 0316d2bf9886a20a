package upload_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/upload"
)

// rig is a service over a real store, and a cluster that has what its jobs put there.
type rig struct {
	*testing.T
	*upload.Service

	store     *faultstore.Store
	home, dir string

	mu     sync.Mutex
	has    map[string]bool
	refuse string    // why jobs fail; empty when they do not
	disk   io.Reader // what jobs take for images of servers; nil for nothing
	told   []string  // to servers, of their images: by which request, and why one came to nothing
	deaf   int       // how often the server does not hear of it
	// refuseAdd is why images are not taken in; empty when they are.
	refuseAdd string
	hold      chan struct{} // jobs wait for it; nil for none
	began     chan string   // of jobs that wait
	jobs      []string      // what they were, by opcode and key
	limits    upload.Limits
	free      int64 // of a million bytes, without what there is; 0 is what the file system says
	past      time.Duration
	epoch     int64
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, home: t.TempDir(), has: map[string]bool{}, began: make(chan string, 1), limits: upload.Limits{Images: -1, Bytes: -1}}
	r.dir = filepath.Join(r.home, "uploads")
	r.open()
	t.Cleanup(func() { r.shut() })
	return r
}

func (r *rig) config() upload.Config {
	c := upload.Config{
		Store: r.store, Epoch: r.epoch, Dir: r.dir, Do: r.do, Has: func(id string) bool { r.mu.Lock(); defer r.mu.Unlock(); return r.has[id] },
		Limits: func(string) upload.Limits { return r.limits }, NewUUID: testkit.NewUUID, Log: slog.New(slog.NewTextHandler(r.Output(), nil)),
		Now: func() job.Time { return job.At(time.Now().Add(r.past)) }, Told: r.tells,
	}
	if r.free > 0 {
		c.Room = func() (int64, int64, error) { return 1e6, r.free - r.taken(), nil }
	}
	return c
}

func (r *rig) open() {
	r.Helper()
	kept, err := sqlite.Open(filepath.Join(r.home, "store"), sqlite.Options{})
	r.check(err)
	r.store = faultstore.New(kept)
	r.Service, err = upload.Open(r.Context(), r.config())
	r.check(err)
	r.Service.Run()
}

func (r *rig) shut() {
	r.Service.Close()
	r.check(r.store.Close())
}

// again is the service of who leads next.
func (r *rig) again() {
	r.Helper()
	r.shut()
	r.open()
}

func (r *rig) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// tells is the server.
func (r *rig) tells(of upload.Capture, failed string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deaf--; r.deaf >= 0 {
		return fault.New(fault.Unavailable, "the store does not answer")
	}
	if of.Server != "s1" {
		r.Errorf("the server %s is told", of.Server)
	}
	if failed != "" {
		failed = ": " + failed
	}
	r.told = append(r.told, of.Asked.Request+failed)
	return nil
}

// do is the cluster.
func (r *rig) do(ctx context.Context, key string, op *opcode.Opcode) (servertag.Outcome, error) {
	r.mu.Lock()
	hold, refuse, id, disk := r.hold, r.refuse, op.Str("image_name"), r.disk
	if op.ID == "OP_IMAGE_ADD" {
		refuse = cmp.Or(refuse, r.refuseAdd)
	}
	r.jobs = append(r.jobs, op.ID+" "+key)
	r.mu.Unlock()
	if hold != nil {
		r.began <- id
		select {
		case <-hold:
		case <-ctx.Done():
			return servertag.Outcome{}, ctx.Err()
		}
	}
	if refuse != "" {
		return servertag.Outcome{Text: refuse}, nil
	}
	if op.ID == "OP_IMAGE_CAPTURE" && disk != nil {
		if err := r.TakeDisk(ctx, id, "raw", disk); err != nil {
			return servertag.Outcome{Text: err.Error()}, nil
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.has[id] = op.ID == "OP_IMAGE_ADD"
	return servertag.Outcome{OK: true}, nil
}

// add tells of an image of alice's.
func (r *rig) add() string {
	r.Helper()
	m, err := r.Add(r.Context(), upload.Image{Project: "alice", Name: "mine", DiskFormat: "raw", ContainerFormat: "bare"})
	r.check(err)
	return m.ID
}

// content is the content of a disk, with a hole in it.
var content = append(append([]byte("disk"), make([]byte, 700<<10)...), "end"...)

func (r *rig) take(id string, from io.Reader, size int64) error {
	return r.Take(r.Context(), id, from, size, nil, time.Minute)
}

// is fails unless an image has a status.
func (r *rig) is(id string, want upload.Status) upload.Shown {
	r.Helper()
	m, err := r.Find("alice", id)
	if err != nil || m.Status != want {
		r.Errorf("the image is %s (%v), want %s: %+v", m.Status, err, want, m.Image)
	}
	return m
}

// files are those in the directory.
func (r *rig) files() (names []string) {
	entries, _ := os.ReadDir(r.dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// taken is how much they have.
func (r *rig) taken() (sum int64) {
	for _, name := range r.files() {
		if info, err := os.Stat(filepath.Join(r.dir, name)); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// refused fails unless an error has a code and says something.
func (r *rig) refused(what string, err error, code fault.Code, text string) {
	r.Helper()
	if !fault.Is(err, code) || !strings.Contains(err.Error(), text) {
		r.Errorf("%s: %s %v, want %s %q", what, fault.CodeOf(err), err, code, text)
	}
}

// TestAnImageComes, with its holes, and goes.
func TestAnImageComes(t *testing.T) {
	r := newRig(t)
	id := r.add()
	if m := r.is(id, upload.Queued); m.File != nil {
		t.Errorf("it has %+v", m.File)
	}
	r.check(r.take(id, bytes.NewReader(content), int64(len(content))))
	m := r.is(id, upload.Active)
	if m.File.Size != int64(len(content)) || m.File.Room != 1 || len(m.File.MD5) != 32 || len(r.files()) != 1 {
		t.Errorf("it is %+v, there are %q", m.File, r.files())
	}
	f, file, err := r.Content(id)
	r.check(err)
	got, err := io.ReadAll(f)
	r.check(errors.Join(err, f.Close()))
	if !bytes.Equal(got, content) || file.SHA256 != m.File.SHA256 {
		t.Error("what is given back is not what came")
	}
	if info, err := os.Stat(filepath.Join(r.dir, r.files()[0])); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v (%v)", info.Mode(), err)
	}
	told, err := r.Image(id)
	if err != nil || told.SHA256 != file.SHA256 || told.Format != "raw" || told.Source != "upload:"+id || told.Name != id {
		t.Errorf("nodes are told %+v (%v)", told, err)
	}
	r.again()
	r.is(id, upload.Active)
	r.check(r.Remove(t.Context(), id, nil, time.Minute))
	if _, err := r.Find("alice", id); !fault.Is(err, fault.NotFound) || len(r.files()) > 0 || r.has[id] {
		t.Errorf("it is removed: %v, %q", err, r.files())
	}
	if len(r.jobs) != 2 || !strings.HasPrefix(r.jobs[0], "OP_IMAGE_ADD") || !strings.HasPrefix(r.jobs[1], "OP_IMAGE_REMOVE") {
		t.Errorf("jobs: %q", r.jobs)
	}
}

// TestWhoSeesAnImage: its project, and all when it is public.
func TestWhoSeesAnImage(t *testing.T) {
	r := newRig(t)
	id := r.add()
	if _, err := r.Find("bob", id); !fault.Is(err, fault.NotFound) || len(r.Seen("bob")) != 0 || len(r.Seen("alice")) != 1 {
		t.Errorf("bob finds it: %v, sees %d", err, len(r.Seen("bob")))
	}
	_, err := r.Change(t.Context(), id, func(m *upload.Shown) error { m.Public, m.Project, m.Stage = true, "eve", upload.Ready; return nil })
	r.check(err)
	if m, err := r.Find("bob", id); err != nil || m.Project != "alice" || m.Stage != upload.Told || len(r.Seen("bob")) != 1 {
		t.Errorf("bob finds %+v, %v", m, err)
	}
}

// broken is a body that ends too early.
type broken struct{ io.Reader }

func (b broken) Read(to []byte) (int, error) {
	n, err := b.Reader.Read(to)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// TestAFileThatDoesNotCome whole, or is none that can be taken, leaves the image as it was, and nothing else.
func TestAFileThatDoesNotCome(t *testing.T) {
	r := newRig(t)
	id := r.add()
	backed := make([]byte, 512)
	copy(backed, "QFI\xfb\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x04")
	size := int64(len(content))
	for what, c := range map[string]struct {
		from   io.Reader
		size   int64
		format string
		code   fault.Code
		text   string
	}{
		"the client goes":                  {broken{bytes.NewReader(content)}, size, "raw", fault.Canceled, "ended before all of the image had come"},
		"it goes, and did not say how far": {broken{bytes.NewReader(content)}, -1, "raw", fault.Canceled, "ended before all of the image had come"},
		"less comes than was said":         {bytes.NewReader(content), size + 1, "raw", fault.Canceled, "Only"},
		"nothing":                          {strings.NewReader(""), 0, "raw", fault.Invalid, "it is empty"},
		"qcow2 as raw":                     {bytes.NewReader(backed), 512, "raw", fault.Invalid, "it is an image of the format qcow2, and raw was said"},
		"raw as qcow2":                     {bytes.NewReader(content), size, "qcow2", fault.Invalid, "no image of the format qcow2"},
		"a backing file":                   {bytes.NewReader(backed), 512, "qcow2", fault.Invalid, "it has a backing file"},
		"gzip":                             {strings.NewReader("\x1f\x8bxx"), 4, "raw", fault.Invalid, "packed by gzip"},
	} {
		_, err := r.Change(t.Context(), id, func(m *upload.Shown) error { m.DiskFormat = c.format; return nil })
		r.check(err)
		r.refused(what, r.take(id, c.from, c.size), c.code, c.text)
		if r.is(id, upload.Queued); len(r.files()) != 0 || len(r.jobs) != 0 {
			t.Errorf("%s: there are %q, and jobs %q", what, r.files(), r.jobs)
		}
	}
	_, err := r.Change(t.Context(), id, func(m *upload.Shown) error { m.DiskFormat = ""; return nil })
	r.check(err)
	r.refused("without a format", r.take(id, bytes.NewReader(content), size), fault.Invalid, "must be set prior")
	r.refused("of no image", r.take("x", bytes.NewReader(content), size), fault.NotFound, "No image found")
}

// TestANodeDoesNotTakeIt: the image is as it was, and says why; it may be tried again.
func TestANodeDoesNotTakeIt(t *testing.T) {
	r := newRig(t)
	id := r.add()
	r.refuse = "Node node1 did not take the image"
	r.refused("", r.take(id, bytes.NewReader(content), -1), fault.Invalid, "did not take the image")
	if m := r.is(id, upload.Queued); m.Why != r.refuse || m.File != nil || len(r.files()) != 0 {
		t.Errorf("it is %+v, there are %q", m, r.files())
	}
	r.refuse = ""
	r.check(r.take(id, bytes.NewReader(content), -1))
	if m := r.is(id, upload.Active); m.Why != "" || r.jobs[0] == r.jobs[1] {
		t.Errorf("it is %+v by the jobs %q", m, r.jobs)
	}
	r.refuse = "disks of instances stand on it"
	for range 2 {
		r.refused("the removal", r.Remove(t.Context(), id, nil, time.Minute), fault.Conflict, r.refuse)
		r.is(id, upload.Active)
	}
	if len(r.files()) != 1 || len(r.jobs) != 4 {
		t.Errorf("there are %q, and jobs %q", r.files(), r.jobs)
	}
}

// TestTwoAtATime: one file comes, and none after it.
func TestTwoAtATime(t *testing.T) {
	r := newRig(t)
	id := r.add()
	comes, to := io.Pipe()
	first := make(chan error, 1)
	go func() {
		err := r.take(id, comes, -1)
		_ = comes.Close() // nobody reads on
		first <- err
	}()
	_, err := to.Write(content[:300<<10]) // a part is read by now
	r.check(err)
	r.is(id, upload.Saving)
	r.refused("a second one", r.take(id, bytes.NewReader(content), -1), fault.Conflict, "from saving to saving")
	_, err = to.Write(content[300<<10:])
	r.check(errors.Join(err, to.Close(), <-first))
	r.refused("one more", r.take(id, bytes.NewReader(content), -1), fault.Conflict, "from active to saving")
	r.is(id, upload.Active)
}

// TestTheImageGoesMeanwhile: what comes of it is not kept.
func TestTheImageGoesMeanwhile(t *testing.T) {
	r := newRig(t)
	id := r.add()
	comes, to := io.Pipe()
	first := make(chan error, 1)
	go func() {
		err := r.take(id, comes, -1)
		_ = comes.Close() // nobody reads on
		first <- err
	}()
	_, err := to.Write(content[:300<<10])
	r.check(errors.Join(err, r.Remove(t.Context(), id, nil, time.Minute)))
	_, _ = to.Write(content[300<<10:])
	_ = to.Close()
	if err := <-first; !errors.Is(err, upload.ErrGone) || len(r.files()) != 0 {
		t.Errorf("%v, there are %q", err, r.files())
	}
}

// TestAFileGoesOnComingWhoseImageStays: where the store does not take that it goes.
func TestAFileGoesOnComingWhoseImageStays(t *testing.T) {
	r := newRig(t)
	id := r.add()
	comes, to := io.Pipe()
	first := make(chan error, 1)
	go func() {
		err := r.take(id, comes, -1)
		_ = comes.Close() // nobody reads on
		first <- err
	}()
	_, err := to.Write(content[:300<<10])
	r.check(err)
	r.store.Inject(faultstore.Fault{When: func(tx store.Tx) bool { return len(tx.Delete) == 1 }, Do: faultstore.FailBefore})
	r.refused("removed", r.Remove(t.Context(), id, nil, time.Minute), fault.Unavailable, "")
	_, _ = to.Write(content[300<<10:])
	_ = to.Close()
	r.check(<-first)
	r.is(id, upload.Active)
}

// TestAnImageIsToldOfAnewMeanwhile: the file of the one that was removed does not become that of another one with its id, also when it was whole by then.
func TestAnImageIsToldOfAnewMeanwhile(t *testing.T) {
	r, id, asked := newRig(t), testkit.NewUUID(), 0
	c := r.config()
	tell := func(s *upload.Service) {
		_, err := s.Add(t.Context(), upload.Image{ID: id, Project: "alice", DiskFormat: "raw", ContainerFormat: "bare"})
		r.check(err)
	}
	var s *upload.Service
	c.Room = func() (int64, int64, error) {
		if asked++; asked == 2 { // for the last part, behind the look whether the image is there still
			r.check(s.Remove(t.Context(), id, nil, 0))
			tell(s)
		}
		return 1e9, 1e9, nil
	}
	s, err := upload.Open(t.Context(), c)
	r.check(err)
	defer s.Close()
	s.Run()
	tell(s)
	if err := s.Take(t.Context(), id, strings.NewReader("disk"), -1, nil, time.Minute); !errors.Is(err, upload.ErrGone) || asked != 2 {
		t.Errorf("%v, and it was asked for room %d times", err, asked)
	}
	if m, err := s.Find("alice", id); err != nil || m.Status != upload.Queued || m.File != nil || len(r.files()) != 0 {
		t.Errorf("the new one is %+v, %v; there are %q", m, err, r.files())
	}
}

// TestAJobThatComesAsTheLastOneEnds: an image that is removed in the moment in which it has become active goes, and does not stay on its way.
func TestAJobThatComesAsTheLastOneEnds(t *testing.T) {
	r := newRig(t)
	id := r.add()
	r.check(r.take(id, bytes.NewReader(content), -1))
	r.is(id, upload.Active)
	on := r.Ending(id, func() { r.check(r.Remove(r.Context(), id, nil, 0)) })
	if r.is(id, upload.Deleting); !on {
		t.Error("nobody has the image removed")
	}
}

// TestThereIsNoRoom: a tenth stays free, whether or not the client says how much comes.
func TestThereIsNoRoom(t *testing.T) {
	r := newRig(t)
	r.free = 400e3
	r.again()
	id, full := r.add(), bytes.Repeat([]byte("x"), len(content))
	for _, size := range []int64{int64(len(full)), -1} {
		r.refused("", r.take(id, bytes.NewReader(full), size), fault.TooLarge, "not enough disk space")
		if r.is(id, upload.Queued); len(r.files()) != 0 {
			t.Errorf("there are %q", r.files())
		}
	}
	r.free = 900e3
	r.again()
	r.check(r.take(id, bytes.NewReader(full), -1))
}

// TestLimits of a project: how many images, and how much they have.
func TestLimits(t *testing.T) {
	r := newRig(t)
	r.limits = upload.Limits{Images: 1, Bytes: int64(len(content)) - 1}
	id := r.add()
	_, err := r.Add(t.Context(), upload.Image{Project: "alice"})
	r.refused("a second image", err, fault.Denied, "Quota exceeded for images")
	_, err = r.Add(t.Context(), upload.Image{Project: "bob"})
	r.check(err)
	for _, size := range []int64{int64(len(content)), -1} {
		r.refused("too much", r.take(id, bytes.NewReader(content), size), fault.TooLarge, "Quota exceeded for image_gigabytes")
	}
	r.limits.Bytes++
	r.check(r.take(id, bytes.NewReader(content), -1))
	if images, bytes := r.Used("alice"); images != 1 || bytes != int64(len(content)) {
		t.Errorf("%d, %d", images, bytes)
	}
	r.limits.Images = 2
	second := r.add()
	r.refused("behind it", r.take(second, bytes.NewReader(content), -1), fault.TooLarge, "Quota exceeded")
}

// TestNowhere: without a directory nothing is uploaded, and it says why.
func TestNowhere(t *testing.T) {
	r := newRig(t)
	c := r.config()
	c.Dir, c.Why = "", "name one"
	s, err := upload.Open(t.Context(), c)
	r.check(err)
	defer s.Close()
	s.Run()
	_, err = s.Add(t.Context(), upload.Image{Project: "alice"})
	r.refused("", err, fault.Unsupported, "name one")
	c.Dir, c.Format = r.dir, func() int { return format.Uploads - 1 } // a program may lead next that would show images to all
	old, err := upload.Open(t.Context(), c)
	r.check(err)
	defer old.Close()
	_, err = old.Add(t.Context(), upload.Image{Project: "alice"})
	r.refused("", err, fault.Unsupported, "needs format 8 of the store")
}

// TestWhatIsLeftOfADeath goes at the next start: what was half made at once, what nothing tells of after a while; and what is told of again comes back.
func TestWhatIsLeftOfADeath(t *testing.T) {
	r := newRig(t)
	id := r.add()
	r.check(r.take(id, bytes.NewReader(content), -1))
	name := r.files()[0]
	for _, other := range []string{".new-1", "image-lost", "other"} {
		r.check(os.WriteFile(filepath.Join(r.dir, other), []byte("x"), 0o600))
	}
	old := time.Now().Add(-30 * 24 * time.Hour) // its time runs from when nothing tells of it
	r.check(os.Chtimes(filepath.Join(r.dir, "image-lost"), old, old))
	for range 2 {
		r.again()
		if got := r.files(); !slices.Equal(got, []string{name, "left-image-lost", "other"}) {
			t.Errorf("there are %q", got)
		}
	}
	r.check(os.Rename(filepath.Join(r.dir, name), filepath.Join(r.dir, "left-"+name)))
	r.past = 8 * 24 * time.Hour
	r.again()
	if got := r.files(); !slices.Equal(got, []string{name, "other"}) {
		t.Errorf("there are %q", got)
	}
}

// TestAKillAmidAnything: whoever comes next goes on with what is stored.
func TestAKillAmidAnything(t *testing.T) {
	r := newRig(t)
	id := r.add()
	r.hold = make(chan struct{})
	r.check(r.Take(t.Context(), id, bytes.NewReader(content), -1, nil, 0))
	<-r.began
	r.is(id, upload.Saving)
	r.again() // amid the job
	<-r.began
	r.is(id, upload.Saving)
	close(r.hold)
	r.until(id, upload.Active)
	r.hold = make(chan struct{})
	r.check(r.Remove(t.Context(), id, nil, 0))
	<-r.began
	r.is(id, upload.Deleting)
	r.refused("nodes do not get it", func() error { _, err := r.Image(id); return err }(), fault.NotFound, "")
	r.again()
	<-r.began
	close(r.hold)
	r.Settled(id)
	if _, err := r.Find("alice", id); !fault.Is(err, fault.NotFound) || len(r.files()) != 0 {
		t.Errorf("%v, there are %q", err, r.files())
	}
	if keys := r.jobs; len(keys) != 4 || keys[0] != keys[1] || keys[2] != keys[3] || keys[1] == keys[2] {
		t.Errorf("the jobs are %q", keys)
	}
}

// until waits for a status that comes of a job.
func (r *rig) until(id string, want upload.Status) {
	r.Helper()
	r.Settled(id)
	r.is(id, want)
}

// TestTheStoreDoesNotSay what became of it: the file stays where it may be told of, and goes where it is not.
func TestTheStoreDoesNotSay(t *testing.T) {
	r := newRig(t)
	id := r.add()
	of := func(tx store.Tx) bool {
		return len(tx.Put) == 1 && strings.Contains(string(tx.Put[0].Value), `"whole"`)
	}
	r.store.Inject(faultstore.Fault{When: of, Do: faultstore.FailBefore})
	if err := r.take(id, bytes.NewReader(content), -1); err == nil {
		t.Error("it is told that it came")
	}
	r.store.Inject(faultstore.Fault{When: of, Do: faultstore.FailAfter})
	_ = r.take(id, bytes.NewReader(content), -1)
	r.until(id, upload.Active)
	if f, _, err := r.Content(id); err != nil || f.Close() != nil {
		t.Errorf("its file is lost: %v", err)
	}
}

// TestNoImageIsChangedInAnothersTerm: by the controller that led before, and does not know yet that another leads. Of a file that came nothing stays.
func TestNoImageIsChangedInAnothersTerm(t *testing.T) {
	r := newRig(t)
	id := r.add()
	lease, err := r.store.AcquireLease(t.Context(), "leader", "me", time.Hour)
	r.check(err)
	r.epoch = lease.Epoch
	s, err := upload.Open(t.Context(), r.config())
	r.check(err)
	defer s.Close()
	s.Run()
	r.check(r.store.ReleaseLease(t.Context(), lease))
	_, err = s.Add(t.Context(), upload.Image{Project: "alice"})
	r.refused("told of", err, fault.Fenced, "")
	_, err = s.Change(t.Context(), id, func(m *upload.Shown) error { m.Name = "other"; return nil })
	r.refused("changed", err, fault.Fenced, "")
	r.refused("a file", s.Take(t.Context(), id, bytes.NewReader(content), -1, nil, time.Minute), fault.Fenced, "")
	r.refused("removed", s.Remove(t.Context(), id, nil, 0), fault.Fenced, "")
	if all := s.Seen("alice"); len(all) != 1 || all[0].Name != "mine" || all[0].Status != upload.Queued || len(r.files()) != 0 || len(r.jobs) != 0 {
		t.Errorf("there are %+v, the files %q, and the jobs %q", all, r.files(), r.jobs)
	}
}

// TestTheOperatorTakesItAway: it is not active any more, and can be deleted.
func TestTheOperatorTakesItAway(t *testing.T) {
	r := newRig(t)
	id := r.add()
	r.check(r.take(id, bytes.NewReader(content), -1))
	r.mu.Lock()
	r.has[id] = false
	r.mu.Unlock()
	r.is(id, upload.Deactivated)
	_, err := r.Change(t.Context(), id, func(m *upload.Shown) error { m.Protected = true; return nil })
	r.check(err)
	r.refused("protected", r.Remove(t.Context(), id, nil, 0), fault.Denied, "is protected")
	_, err = r.Change(t.Context(), id, func(m *upload.Shown) error { m.Protected = false; return nil })
	r.check(errors.Join(err, r.Remove(t.Context(), id, nil, 0)))
	if len(r.files()) != 0 || len(r.jobs) != 1 {
		t.Errorf("there are %q, jobs %q", r.files(), r.jobs)
	}
}
