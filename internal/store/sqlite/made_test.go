package sqlite

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/image"
)

// picture is an image of one job.
func picture() *image.Image {
	return &image.Image{Revision: 7, Epoch: 3, Objects: func(yield func(store.Object, error) bool) {
		yield(store.Object{Key: store.Key{Kind: "job", ID: "1"}, Revision: 5, Value: []byte("1")}, nil)
	}}
}

func unproved(string) error { return nil }

// TestAStoreThatWasNotFinishedIsNotBegunAnew leaves a directory as a restore does that is killed.
func TestAStoreThatWasNotFinishedIsNotBegunAnew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.MkdirAll(filepath.Join(dir, partName), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, partName, FileName), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(dir, Options{}); !fault.Is(err, fault.WrongState) {
		t.Fatalf("opened: %v, %v", s, err)
	}
	if _, err := Load(dir, picture(), unproved); err != nil {
		t.Fatal(err)
	}
	// A kill behind the last step of it leaves nothing that matters.
	if err := os.Mkdir(filepath.Join(dir, partName), 0o700); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, dir, Options{})
	if _, err := s.Get(t.Context(), store.Key{Kind: "job", ID: "1"}); err != nil {
		t.Error(err)
	}
	mustClose(t, s)
}

// TestWhatRootMakesBelongsToItsPlace: the service that is to open a restored store need not be root.
func TestWhatRootMakesBelongsToItsPlace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make files for others")
	}
	const owner = 12345
	place := t.TempDir()
	if err := os.Chown(place, owner, owner); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(place, "store")
	if _, err := Load(dir, picture(), unproved); err != nil {
		t.Fatal(err)
	}
	if err := Image(t.Context(), dir, []string{dir}, func(*image.Image) error { return nil }); err != nil { // as `store check` by root
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != owner || stat.Gid != owner {
			t.Errorf("%s belongs to %d:%d", path, stat.Uid, stat.Gid)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAStoreOfTheFutureIsNoDamage: what helps is a newer program, and not a backup.
func TestAStoreOfTheFutureIsNoDamage(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	if err := s.writer.conn.script("UPDATE schema_version SET version = 99"); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	if found, err := Check(t.Context(), dir, []string{dir}); !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "program version") {
		t.Errorf("%+v, %v", found, err)
	}
}

// noRoomIn has the test of this name be the process that has no room.
const noRoomIn = "DROVER_TEST_NO_ROOM_IN"

// TestAStartWithoutRoomSaysSo opens a store in a process that may make no file longer: that is
// what a full disk is to SQLite's shared memory.
func TestAStartWithoutRoomSaysSo(t *testing.T) {
	if dir := os.Getenv(noRoomIn); dir != "" {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 8192, Max: 8192}); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir, Options{})
		if !fault.Is(err, fault.Exhausted) || !strings.Contains(err.Error(), "disk of the store is full") {
			t.Fatalf("opened: %v, %v", s, err)
		}
		return
	}
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	commitJobs(t, s, 3)
	mustClose(t, s)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), noRoomIn+"="+dir)
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if got := newestOf(t, mustOpen(t, dir, Options{})); got != 3 {
		t.Errorf("with room again: revision %d", got)
	}
	for err, want := range map[error]bool{syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EIO: false, errors.New("x"): false} {
		if noRoom(err) != want {
			t.Errorf("%v", err)
		}
	}
}

// TestAStoreIsNotLoadedOver: a restore into a place that has a store is refused, and leaves that as it is.
func TestAStoreIsNotLoadedOver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	if _, err := Load(dir, picture(), unproved); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, FileName)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir, picture(), unproved); !fault.Is(err, fault.WrongState) {
		t.Errorf("a store was loaded over: %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, before) {
		t.Errorf("the store that was there is another: %v", err)
	}
}

// diesAndLosesItsDatabase leaves a directory as a controller does that is killed, and whose database is lost then; what lies there is
// returned.
func diesAndLosesItsDatabase(t *testing.T, s *Store, dir string) map[string][]byte {
	t.Helper()
	left := map[string][]byte{}
	for _, name := range []string{FileName + "-wal", FileName + "-shm", markName} {
		var err error
		if left[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, s)
	if err := os.Remove(filepath.Join(dir, FileName)); err != nil {
		t.Fatal(err)
	}
	for name, data := range left {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return left
}

// TestALogOfBeforeIsNotPlayedOverANewStore: a controller died hard, its database was lost, and what lay beside it was not.
func TestALogOfBeforeIsNotPlayedOverANewStore(t *testing.T) {
	for _, tc := range []struct {
		what       string
		checkpoint bool // SQLite had moved a part of the log into the database
	}{{"a log that has all", false}, {"a log that has the newest", true}} {
		dir := t.TempDir()
		s := mustOpen(t, dir, Options{})
		commitJobs(t, s, 40)
		if tc.checkpoint {
			if _, err := s.readers.Exec("PRAGMA query_only(0)"); err != nil {
				t.Fatal(err)
			}
			if _, err := s.readers.Exec("PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
				t.Fatal(err)
			}
			commitJobs(t, s, 3)
		}
		left := diesAndLosesItsDatabase(t, s, dir)
		aside, err := Load(dir, picture(), unproved)
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range left {
			if kept, err := os.ReadFile(filepath.Join(aside, name)); err != nil || !bytes.Equal(kept, data) {
				t.Errorf("%s: %s is not what it was: %v", tc.what, name, err)
			}
		}
		if found, err := Check(t.Context(), dir, []string{dir}); err != nil || len(found.Problems) > 0 || found.Objects != 1 {
			t.Errorf("%s: %+v, %v", tc.what, found, err)
		}
		restored := mustOpen(t, dir, Options{})
		if got := newestOf(t, restored); got != picture().Revision+1 {
			t.Errorf("%s: the store ends with revision %d", tc.what, got)
		}
		mustClose(t, restored)
		// A second loss does not cost what the first one left.
		if err := errors.Join(os.Remove(filepath.Join(dir, FileName)), os.WriteFile(filepath.Join(dir, FileName+"-wal"), []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir, picture(), unproved); !fault.Is(err, fault.WrongState) {
			t.Errorf("%s: what was left of two stores: %v", tc.what, err)
		}
		if kept, err := os.ReadFile(filepath.Join(aside, FileName+"-wal")); err != nil || !bytes.Equal(kept, left[FileName+"-wal"]) {
			t.Errorf("%s: the first log was not kept: %v", tc.what, err)
		}
	}
}

// TestAStoreThatIsNotWhatItWasToBeGetsNoPlace: nothing may be started on it.
func TestAStoreThatIsNotWhatItWasToBeGetsNoPlace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	log := filepath.Join(dir, FileName+"-wal")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(log, []byte("of before"), 0o600)); err != nil {
		t.Fatal(err)
	}
	unlike := errors.New("it differs")
	_, err := Load(dir, picture(), func(made string) error {
		return errors.Join(unlike, Image(t.Context(), made, []string{made}, func(*image.Image) error { return nil }))
	})
	if !errors.Is(err, unlike) || fault.Is(err, fault.WrongState) {
		t.Errorf("loaded: %v", err)
	}
	if exists(filepath.Join(dir, FileName)) || exists(filepath.Join(dir, partName)) || !exists(log) {
		t.Error("the directory is not what it was")
	}
}
