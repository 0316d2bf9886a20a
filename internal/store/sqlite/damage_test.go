package sqlite

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

var damages = flag.Int("damages", 200, "how many damages TestDamageIsNeverSilent tries")

// wreck is a store's files, in the states in which damage may find them.
type wreck struct {
	database, log []byte // log is nil behind a stop in good order
	revision      store.Revision
	epoch         int64
	content       map[string]string
}

// wrecks makes a store and returns its files as a kill leaves them, and as a
// stop in good order does.
func wrecks(t *testing.T) []wreck {
	t.Helper()
	dir := t.TempDir()
	s := mustOpen(t, dir, Options{})
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 400 {
		tx := job(strconv.Itoa(1+random.IntN(150)), fmt.Sprintf(`{"n":%d,"text":%q}`, i, strings.Repeat("word ", random.IntN(200))))
		if i%9 == 8 {
			tx = store.Tx{Delete: []store.Key{{Kind: "job", ID: strconv.Itoa(1 + random.IntN(150))}}}
		}
		if _, err := store.Commit(t.Context(), s, tx); err != nil {
			t.Fatal(err)
		}
		if i == 200 {
			if err := errors.Join(s.writer.held.end(), s.writer.conn.script("PRAGMA wal_checkpoint(TRUNCATE)")); err != nil {
				t.Fatal(err)
			}
		}
	}
	lease, err := s.AcquireLease(t.Context(), "leader", "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	w := wreck{revision: newestOf(t, s), epoch: lease.Epoch}
	if w.content, err = contentOf(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	w.database, w.log = read(FileName), written(read(FileName+"-wal"))
	mustClose(t, s)
	stopped := w
	stopped.database, stopped.log = read(FileName), nil
	return []wreck{w, stopped}
}

// contentOf reads all that can be asked of a store: objects, and the feed.
func contentOf(ctx context.Context, s *Store) (map[string]string, error) {
	content := map[string]string{}
	for o, err := range s.List(ctx, "job", store.Options{}) {
		if err != nil {
			return nil, err
		}
		content["list "+o.ID] = fmt.Sprintf("%d %d %s", o.Revision, o.At, o.Value)
	}
	for i := range 151 {
		id := strconv.Itoa(i)
		o, err := s.Get(ctx, store.Key{Kind: "job", ID: id})
		switch {
		case err == nil:
			content["get "+id] = fmt.Sprintf("%d %d %s", o.Revision, o.At, o.Value)
		case !fault.Is(err, fault.NotFound):
			return nil, err
		}
	}
	changes, err := s.Changes(ctx, 0, 1<<20)
	for _, c := range changes {
		content[fmt.Sprintf("change %d %s", c.Revision, c.ID)] = fmt.Sprintf("%v %s", c.Deleted, c.Value)
	}
	return content, err
}

// restore puts the files into a directory, with the mark that belongs to them.
func (w *wreck) restore(dir string) error {
	file := filepath.Join(dir, FileName)
	err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(file, w.database, 0o600))
	if w.log != nil {
		err = errors.Join(err, os.WriteFile(file+"-wal", w.log, 0o600))
	}
	if err != nil {
		return err
	}
	m, err := openMark(dir)
	if err != nil {
		return err
	}
	m.set(w.revision)
	return m.file.Close()
}

// harm damages one of the files.
func harm(random *rand.Rand, dir string) (what string, err error) {
	names := []string{FileName, FileName, FileName, FileName + "-wal", FileName + "-wal", markName}
	name := names[random.IntN(len(names))]
	path := filepath.Join(dir, name)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		path, name = filepath.Join(dir, FileName), FileName
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return "", err
	}
	at := random.IntN(len(data))
	switch random.IntN(4) {
	case 0:
		bit := random.IntN(8)
		data[at] ^= 1 << bit
		return fmt.Sprintf("%s: bit %d of byte %d flipped", name, bit, at), os.WriteFile(path, data, 0o600)
	case 1:
		size := []int{16, 512, 4096}[random.IntN(3)]
		at -= at % size
		clear(data[at:min(at+size, len(data))])
		return fmt.Sprintf("%s: %d bytes at %d zeroed", name, size, at), os.WriteFile(path, data, 0o600)
	case 2:
		return fmt.Sprintf("%s: cut at %d", name, at), os.WriteFile(path, data[:at], 0o600)
	default:
		return name + ": deleted", os.Remove(path)
	}
}

// outcome tells what became of a damaged store.
func (w *wreck) outcome(ctx context.Context, dir string) (string, error) {
	s, err := Open(dir, Options{})
	if err != nil {
		return "refused", nil //nolint:nilerr // that is the outcome
	}
	content, err := contentOf(ctx, s)
	lease, errLease := s.AcquireLease(ctx, "leader", "a", time.Minute)
	errClose := s.Close()
	if err != nil || errLease != nil || errClose != nil {
		return "told when read", nil //nolint:nilerr // as above
	}
	if maps.Equal(content, w.content) && lease.Epoch > w.epoch {
		return "unharmed", nil
	}
	found, err := Check(ctx, dir, []string{dir})
	if err != nil || len(found.Problems) > 0 {
		return "told by the check", nil //nolint:nilerr // as above
	}
	return "", fmt.Errorf("it opens, %d things differ, the epoch is %d after %d, and the check finds nothing", differ(content, w.content), lease.Epoch, w.epoch)
}

func differ(a, b map[string]string) (n int) {
	for key, value := range a {
		if b[key] != value {
			n++
		}
	}
	for key := range b {
		if _, there := a[key]; !there {
			n++
		}
	}
	return n
}

// TestDamageIsNeverSilent flips, zeroes, cuts off and deletes pieces of a
// store's files. Whatever is left either has all that was committed, or somebody
// is told: at the start, when it is read, or by the check.
func TestDamageIsNeverSilent(t *testing.T) {
	t.Parallel()
	states := wrecks(t)
	n := *damages
	if testing.Short() {
		n /= 10
	}
	outcomes := map[string]int{}
	for seed := range n {
		random := rand.New(rand.NewPCG(uint64(seed), 7))
		w := &states[random.IntN(len(states))]
		dir := filepath.Join(t.TempDir(), strconv.Itoa(seed))
		if err := w.restore(dir); err != nil {
			t.Fatal(err)
		}
		what, err := harm(random, dir)
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := w.outcome(t.Context(), dir)
		if err != nil {
			t.Errorf("damage %d, %s: %v", seed, what, err)
		}
		outcomes[outcome]++
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	t.Log(outcomes)
}

// TestMalformedPagesAreDamage: whoever comes upon a page that SQLite cannot read is told that the store is damaged, and not to
// try again.
func TestMalformedPagesAreDamage(t *testing.T) {
	w := wrecks(t)[1]
	pageSize := int(w.database[16])<<8 | int(w.database[17])
	read, wrote := 0, 0
	const enough = 3
	for page := 1; page < len(w.database)/pageSize && (read < enough || wrote == 0); page++ {
		const kind, leaf, count = 0, 13, 3 // of a table; how many cells it has
		begin := page * pageSize
		if w.database[begin+kind] != leaf || !bytes.Contains(w.database[begin:begin+pageSize], []byte("word word")) {
			continue
		}
		dir := t.TempDir()
		database := slices.Clone(w.database)
		database[begin+count] = 0x7f
		if err := os.WriteFile(filepath.Join(dir, FileName), database, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir, Options{})
		if err != nil {
			if !fault.Is(err, fault.WrongState) && !strings.Contains(err.Error(), "malformed") {
				t.Errorf("page %d: %v", page, err)
			}
			continue
		}
		for i := range 151 {
			key := store.Key{Kind: "job", ID: strconv.Itoa(i)}
			if _, err := s.Get(t.Context(), key); err == nil || fault.Is(err, fault.NotFound) {
				continue
			} else if read++; !fault.Is(err, fault.WrongState) {
				t.Fatalf("page %d, read: %v", page, err)
			}
			_, err := store.Commit(t.Context(), s, store.Tx{Put: []store.Put{{Key: key, Value: []byte(strings.Repeat("x", 1<<20))}}})
			if err != nil {
				wrote++
				if !fault.Is(err, fault.WrongState) {
					t.Fatalf("page %d, written: %v", page, err)
				}
			}
			break
		}
		_ = s.Close() // it may be unable to
	}
	if read == 0 || wrote == 0 {
		t.Errorf("of those who read %d came upon it, and %d of those who wrote", read, wrote)
	}
}
