package imagecache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qemuimg"
	"github.com/drover-project/drover/internal/testkit"
)

// rig is a cache whose images come from files, and from a server that says what each test has it say.
type rig struct {
	*testing.T
	*Cache
	url    string
	serve  func(w http.ResponseWriter, r *http.Request)
	asked  atomic.Int64
	mu     sync.Mutex
	lines  []string
	stood  map[string]bool
	unsure error
	passed atomic.Int64 // time that has passed beside the real one
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t}
	r.Cache = Open(filepath.Join(t.TempDir(), "images"), func() time.Time { return time.Now().Add(time.Duration(r.passed.Load())) },
		func() (map[string]bool, error) { return r.stood, r.unsure })
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.asked.Add(1)
		r.serve(w, q)
	}))
	t.Cleanup(s.Close)
	r.url = s.URL + "/one.img"
	return r
}

func (r *rig) log(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

// bootable is a disk of so many bytes that machines start from, and differs by its mark.
func bootable(size int, mark byte) []byte {
	disk := bytes.Repeat([]byte{mark}, size)
	disk[510], disk[511] = 0x55, 0xaa
	return disk
}

// of is the image of a content.
func of(content []byte, source string) Image {
	sum := sha256.Sum256(content)
	return Image{Name: "one", SHA256: hex.EncodeToString(sum[:]), Format: "raw", Source: source, Size: int64(len(content)), VirtualSize: int64(len(content)+1<<20-1) >> 20}
}

// file writes a file, and returns its path.
func (r *rig) file(content []byte) string {
	r.Helper()
	path := filepath.Join(testkit.OpenDir(r), "file.img")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		r.Fatal(err)
	}
	return path
}

// there are the names of what is in the cache.
func (r *rig) there() (names []string) {
	r.Helper()
	entries, err := os.ReadDir(r.dir)
	if err != nil && !os.IsNotExist(err) {
		r.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// have gets a copy, which must have the content, and lets it go.
func (r *rig) have(image Image, content []byte) {
	r.Helper()
	path, release, err := r.Have(r.Context(), image, r.log)
	if err != nil {
		r.Fatal(err)
	}
	defer release()
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
		r.Errorf("%s has %d bytes, %v", path, len(got), err)
	}
}

func TestAnImageIsFetchedOnce(t *testing.T) {
	r := newRig(t)
	content := bootable(3<<20, 'a')
	r.serve = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }
	found, err := r.Look(t.Context(), Image{Name: "one", Source: r.url}, r.log)
	if want := of(content, r.url); err != nil || found != want {
		t.Fatalf("%+v, %v, want %+v", found, err, want)
	}
	r.have(found, content)
	if n := r.asked.Load(); n != 1 {
		t.Errorf("the server was asked %d times", n)
	}
	path := r.file(content)
	if again, err := r.Look(t.Context(), of(content, path), r.log); err != nil || again.SHA256 != found.SHA256 {
		t.Errorf("the same from a file: %+v, %v", again, err)
	}
	if err := os.Truncate(filepath.Join(r.dir, found.SHA256), 5); err != nil { // somebody has been at it
		t.Fatal(err)
	}
	r.have(found, content)
	if len(r.there()) != 1 || !strings.Contains(strings.Join(r.lines, "\n"), "image one has come: 3 MiB") {
		t.Errorf("there is %v, and it was told %q", r.there(), r.lines)
	}
}

// wanted is how many want an image.
func (r *rig) wanted(content []byte) int {
	r.Cache.mu.Lock()
	defer r.Cache.mu.Unlock()
	sum := sha256.Sum256(content)
	if of := r.copies[hex.EncodeToString(sum[:])]; of != nil {
		return of.users
	}
	return 0
}

func TestOneFetchForTwo(t *testing.T) {
	r := newRig(t)
	content := bootable(1<<20, 'a')
	r.serve = func(w http.ResponseWriter, _ *http.Request) {
		for began := time.Now(); r.wanted(content) < 8 && time.Since(began) < testkit.Patience(); { // all have come, and wait for this one
			runtime.Gosched()
		}
		_, _ = w.Write(content)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { r.have(of(content, r.url), content) })
	}
	all.Wait()
	if n := r.asked.Load(); n != 1 {
		t.Errorf("the server was asked %d times", n)
	}
}

// bad is what goes wrong with an image.
type bad struct {
	serve func(w http.ResponseWriter, r *http.Request)
	image func(i *Image)
	code  fault.Code
	want  string
}

func TestWhatIsNoImageIsNotKept(t *testing.T) {
	content := bootable(1<<20, 'a')
	whole := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }
	redirect := func(to string) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
	}
	zeros := strings.Repeat("0", 64)
	for name, c := range map[string]bad{
		"another sum": {whole, func(i *Image) { i.SHA256 = zeros }, fault.Failed, "not " + zeros},
		"a body cut short": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1048576")
			_, _ = w.Write(content[:9999])
		}, nil, fault.Failed, "ended before all had come"},
		"another size":       {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content[:700]) }, nil, fault.Failed, "there it has 700 bytes"},
		"more than there is": {func(w http.ResponseWriter, _ *http.Request) { endless(w, 5) }, nil, fault.Failed, "more comes than the 1048576 bytes"},
		"nothing there":      {http.NotFound, nil, fault.NotFound, "404"},
		"a broken server":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, nil, fault.Failed, "502"},
		"to a file":          {redirect("file:///etc/passwd"), nil, fault.Failed, "leads from http to file"},
		"round and round":    {redirect("/again"), nil, fault.Failed, "more than 10 times"},
		"a page":             {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<!DOCTYPE html>")) }, func(i *Image) { *i = Image{Name: "one", Source: i.Source} }, fault.Invalid, "page of the web"},
		"of no format":       {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1024)) }, func(i *Image) { *i = Image{Name: "one", Source: i.Source} }, fault.Invalid, "--format raw"},
		"said to be qcow2":   {whole, func(i *Image) { i.Format = "qcow2" }, fault.Invalid, "no image of the format qcow2"},
		"for another disk":   {whole, func(i *Image) { i.VirtualSize = 7 }, fault.Failed, "for a disk of 1 MiB"},
		"a sum that is none": {whole, func(i *Image) { i.SHA256 = "../../etc/passwd" }, fault.Invalid, "no SHA-256"},
		"a name of a device": {nil, func(i *Image) { i.Source = "/dev/null" }, fault.Invalid, "no plain file"},
		"a directory":        {nil, func(i *Image) { i.Source = "/etc" }, fault.Invalid, "no plain file"},
		"no file":            {nil, func(i *Image) { i.Source = "/nonexistent/one.img" }, fault.NotFound, "no such file on the node"},
		"no source":          {nil, func(i *Image) { i.Source = "one.img" }, fault.Invalid, "no source"},
		"another protocol":   {nil, func(i *Image) { i.Source = "ftp://example.com/one.img" }, fault.Invalid, "no source"},
		"a way round":        {nil, func(i *Image) { i.Source = "/srv/../etc/passwd" }, fault.Invalid, "shortest"},
		"a password":         {nil, func(i *Image) { i.Source = "https://me:secret@example.com/" }, fault.Invalid, "password"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.serve = c.serve
			image := of(content, r.url)
			if c.image != nil {
				c.image(&image)
			}
			_, err := r.Look(t.Context(), image, r.log)
			if !fault.Is(err, c.code) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "image one (") {
				t.Errorf("%v, want %s: %s", err, c.code, c.want)
			}
			if len(r.there()) > 0 {
				t.Errorf("it leaves %v", r.there())
			}
		})
	}
}

// endless sends so many MiB, or for ever.
func endless(w http.ResponseWriter, mib int) {
	piece := bytes.Repeat([]byte{'x'}, 1<<20)
	for n := 0; n < mib || mib < 0; n++ {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

func TestABodyWithoutAnEnd(t *testing.T) {
	r := newRig(t)
	r.room = func() (int64, error) { return 10 << 20, nil }
	r.serve = func(w http.ResponseWriter, _ *http.Request) { endless(w, -1) }
	_, err := r.Look(t.Context(), Image{Name: "one", Source: r.url}, r.log)
	if !fault.Is(err, fault.Exhausted) || !strings.Contains(err.Error(), "more than 9437184 bytes come") || len(r.there()) > 0 {
		t.Errorf("%v, %v", err, r.there())
	}
}

func TestNoRoom(t *testing.T) {
	r := newRig(t)
	content := bootable(1<<20, 'a')
	r.room = func() (int64, error) { return 1 << 20, nil }
	_, err := r.Look(t.Context(), of(content, r.file(content)), r.log)
	if !fault.Is(err, fault.Exhausted) || !strings.Contains(err.Error(), "no room") || len(r.there()) > 0 {
		t.Errorf("%v, %v", err, r.there())
	}
	if err := trouble(fmt.Errorf("write: %w", syscall.ENOSPC)); !fault.Is(err, fault.Exhausted) {
		t.Errorf("a full disk is %v", err)
	}
}

// TestRoomIsMade: what nobody uses goes when its room is needed, the longest unused first, and what nobody has used for long goes anyway.
func TestRoomIsMade(t *testing.T) {
	r := newRig(t)
	var all [4][]byte
	for n := range all {
		all[n] = bootable(1<<20, byte('a'+n))
	}
	r.room = func() (int64, error) { return 3<<20 - int64(len(r.there()))<<20, nil } // for three, less a tenth: two
	image := func(n int) Image { return of(all[n], r.file(all[n])) }
	r.have(image(0), all[0])
	r.passed.Add(int64(time.Hour))
	_, release, err := r.Have(t.Context(), image(1), r.log)
	if err != nil {
		t.Fatal(err)
	}
	r.passed.Add(int64(time.Hour))
	r.have(image(2), all[2])
	if got := strings.Join(r.there(), " "); strings.Contains(got, image(0).SHA256) || len(r.there()) != 2 {
		t.Errorf("behind the third there is %s", got)
	}
	r.passed.Add(int64(2 * unused))
	r.have(image(3), all[3])
	if got := strings.Join(r.there(), " "); !strings.Contains(got, image(1).SHA256) || strings.Contains(got, image(2).SHA256) {
		t.Errorf("much later there is %s", got)
	}
	release()
}

// TestWhatDisksStandOnStays, however long nobody has asked for it, and however much its room is needed; where nobody can tell, nothing goes.
func TestWhatDisksStandOnStays(t *testing.T) {
	r := newRig(t)
	one, two := bootable(1<<20, 'a'), bootable(1<<20, 'b')
	image := of(one, r.file(one))
	r.have(image, one)
	r.stood = map[string]bool{image.SHA256: true}
	r.passed.Add(int64(2 * unused))
	r.room = func() (int64, error) { return 2<<20 - int64(len(r.there()))<<20, nil }
	if _, err := r.Look(t.Context(), of(two, r.file(two)), r.log); !fault.Is(err, fault.Exhausted) || len(r.there()) != 1 {
		t.Errorf("%v, %v", err, r.there())
	}
	r.stood, r.unsure = nil, errors.New("who knows")
	if _, err := r.Look(t.Context(), of(two, r.file(two)), r.log); !fault.Is(err, fault.Environment) || len(r.there()) != 1 {
		t.Errorf("%v, %v", err, r.there())
	}
	r.room = func() (int64, error) { return 1 << 30, nil }
	r.have(of(two, r.file(two)), two) // there is room for it
	if got := r.there(); len(got) != 2 {
		t.Errorf("long unused, and it may be that a disk stands on it: %v", got)
	}
	r.unsure = nil
	r.passed.Add(int64(2 * unused))
	three := bootable(1<<20, 'c')
	if r.have(of(three, r.file(three)), three); len(r.there()) != 1 {
		t.Errorf("%v", r.there())
	}
}

// TestNothingIsLeft: what a kill left goes, and what is being fetched by another stays.
func TestNothingIsLeft(t *testing.T) {
	r := newRig(t)
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"killed", "fetched"} {
		if err := os.WriteFile(filepath.Join(r.dir, halfMade+name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(filepath.Join(r.dir, halfMade+"fetched"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	content := bootable(1<<20, 'a')
	r.have(of(content, r.file(content)), content)
	if got := strings.Join(r.there(), " "); strings.Contains(got, "killed") || !strings.Contains(got, "fetched") {
		t.Errorf("there is %s", got)
	}
	// Who ends a fetch in its midst, or a source that sends nothing, leaves nothing either.
	for what, end := range map[string]func(context.CancelCauseFunc){"ended": func(stop context.CancelCauseFunc) { stop(fault.New(fault.Canceled, "nobody needs it")) }, "silent": func(context.CancelCauseFunc) {}} {
		r := newRig(t)
		ctx, stop := context.WithCancelCause(t.Context())
		r.stall = time.Minute
		if what == "silent" {
			r.stall = 100 * time.Millisecond
		}
		r.serve = func(w http.ResponseWriter, q *http.Request) {
			_, _ = w.Write(content[:99999])
			_ = http.NewResponseController(w).Flush()
			end(stop)
			<-q.Context().Done()
		}
		_, err := r.Look(ctx, Image{Name: "one", Source: r.url}, r.log)
		stop(nil)
		if err == nil || what == "ended" && (!fault.Is(err, fault.Canceled) || !strings.Contains(err.Error(), "nobody needs it")) ||
			what == "silent" && (!fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "nothing came of it")) || len(r.there()) > 0 {
			t.Errorf("%s: %v, there is %v", what, err, r.there())
		}
	}
}

// TestASecretOfTheNode: an agent that is root hands nobody what only root may read.
func TestASecretOfTheNode(t *testing.T) {
	r := newRig(t)
	content := bootable(1<<20, 'a')
	path := r.file(content)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	_, err := r.Look(t.Context(), of(content, path), r.log)
	if root := os.Geteuid() == 0; fault.Is(err, fault.Denied) != root || (err == nil) == root {
		t.Error(err)
	}
	dir := filepath.Dir(path)
	if err := errors.Join(os.Chmod(path, 0o644), os.Chmod(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	_, err = r.Look(t.Context(), of(content, path), r.log)
	if root := os.Geteuid() == 0; fault.Is(err, fault.Denied) != root || root && !strings.Contains(err.Error(), "chmod a+x "+dir) {
		t.Errorf("in a directory of root's: %v", err)
	}
}

// qemuImg runs the program, which is skipped where there is none.
func qemuImg(t *testing.T, args ...string) {
	t.Helper()
	program, err := qemuimg.Program()
	if err != nil {
		testkit.Missingf(t, "qemu-img is not installed")
	}
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	for tries := 0; err != nil && tries < 10 && bytes.Contains(out, []byte("accurate CPU usage")); tries++ {
		// How often a key is stretched is measured, which fails on a busy machine.
		out, err = exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	}
	if err != nil {
		t.Fatalf("qemu-img %v: %v\n%s", args, err, out)
	}
}

// TestImagesOfQEMU has the program make images, sound ones and others.
func TestImagesOfQEMU(t *testing.T) {
	r := newRig(t)
	dir := testkit.OpenDir(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	qemuImg(t, "create", "-q", "-f", "qcow2", at("good"), "5M")
	qemuImg(t, "create", "-q", "-f", "qcow2", "-b", at("good"), "-F", "qcow2", at("backed"))
	qemuImg(t, "create", "-q", "-f", "qcow2", "-o", "data_file="+at("data"), at("outside"), "5M")
	qemuImg(t, "create", "-q", "-f", "qcow2", "-o", "encrypt.format=luks,encrypt.key-secret=s", "--object", "secret,id=s,data=x", at("sealed"), "5M")
	good, err := os.ReadFile(at("good"))
	if err == nil {
		broken := bytes.Clone(good)
		copy(broken[40:48], "\xff\xff\xff\xff\xff\xff\xff\xff") // where its tables are
		err = os.WriteFile(at("broken"), broken, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"good", "backed", "outside", "sealed", "broken"} {
		if err := os.Chmod(at(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found, err := r.Look(t.Context(), Image{Name: "one", Source: at("good")}, r.log)
	if err != nil || found.Format != "qcow2" || found.VirtualSize != 5 || found.Size != int64(len(good)) {
		t.Errorf("%+v, %v", found, err)
	}
	for name, want := range map[string]string{"backed": "backing file, '" + at("good"), "outside": "data in another file", "sealed": "encrypted", "broken": "no sound image"} {
		if _, err := r.Look(t.Context(), Image{Name: "one", Source: at(name)}, r.log); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(r.there()) != 1 {
		t.Errorf("there is %v", r.there())
	}
}

// TestAnImageThatIsCutOff is refused, though its beginning is sound, and so is one with a damaged table; one that has lost room alone is taken.
func TestAnImageThatIsCutOff(t *testing.T) {
	r := newRig(t)
	path := filepath.Join(testkit.OpenDir(t), "image")
	qemuImg(t, "convert", "-f", "raw", "-O", "qcow2", r.file(bytes.Repeat(bootable(1<<20, 'a'), 3)), path)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const cluster, offset = 64 << 10, 1<<56 - 1
	table := func(content []byte, at uint64) []byte { return content[binary.BigEndian.Uint64(content[at:])&offset:] }
	first := func(content []byte) []byte { // where it says that the first cluster of the disk is
		return content[binary.BigEndian.Uint64(table(content, 40))&offset:]
	}
	leaking, damaged := bytes.Clone(whole), bytes.Clone(whole)
	clear(first(leaking)[:8])
	binary.BigEndian.PutUint64(first(damaged), 1<<63|1<<40)
	for name, c := range map[string]struct {
		content []byte
		sound   bool
	}{
		"whole": {whole, true}, "leaking": {leaking, true}, "its header": {whole[:300], false}, "half of it": {whole[:len(whole)/2], false},
		"all but its end": {whole[:len(whole)-2*cluster], false}, "damaged": {damaged, false},
	} {
		before := len(r.there())
		found, err := r.Look(t.Context(), Image{Name: "one", Source: r.file(c.content)}, r.log)
		if c.sound && (err != nil || found.VirtualSize != 3) {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
		if !c.sound && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "image one (") || !strings.Contains(err.Error(), "no sound image of the format qcow2: ERROR") || len(r.there()) != before) {
			t.Errorf("%s: %v; there is %v", name, err, r.there())
		}
	}
}

// TestTheProgramIsMissing: a node without it says so.
func TestTheProgramIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := qemuimg.Program(); !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "qemu-utils") {
		t.Error(err)
	}
}

// TestWhatHasJustBegunIsNotCleared: of two fetches neither takes the other's file for one that a kill left.
func TestWhatHasJustBegunIsNotCleared(t *testing.T) {
	r := newRig(t)
	if err := r.prepare(); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if err := r.prepare(); err != nil {
				stopped <- err
				return
			}
		}
	}()
	defer func() {
		close(stop)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()
	for range 2000 {
		f, _, err := r.half(Image{}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(f.Name()); err != nil {
			t.Fatalf("it is cleared while it is fetched: %v", err)
		}
		if err := errors.Join(os.Remove(f.Name()), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
