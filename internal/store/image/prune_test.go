package image_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store/image"
)

// made writes a backup that was made on a day of January.
func made(t *testing.T, dir, name string, day int) string {
	t.Helper()
	path := filepath.Join(dir, name)
	img := &image.Image{Revision: 7, Epoch: 1, Objects: all(object("job", "1", 3, strings.Repeat("x", 100)))}
	if _, err := image.Create(path, img, time.Date(2030, 1, day, 0, 0, 0, 0, time.UTC), false); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPrune: the newest backups that are whole stay, whatever they are called; one that is not whole does not count and stays, and so does
// what is no backup.
func TestPrune(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	oldest, second := made(t, dir, "z", 1), made(t, dir, "y", 2)
	third, broken, newest := made(t, dir, "x", 3), made(t, dir, "a", 4), made(t, dir, "b", 5)
	text, err := os.ReadFile(broken)
	if err == nil {
		err = os.WriteFile(broken, []byte(strings.Replace(string(text), "xxx", "xyx", 1)), 0o600)
	}
	for name, text := range map[string]string{"notes": "drover backup 1\n", "empty": "", ".backup-1": string(text), "other": "drover backup 9\n{}\n"} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
		}
	}
	if err == nil {
		err = os.Symlink(oldest, filepath.Join(dir, "link"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for keep, want := range map[int]struct{ keep, remove []string }{
		1: {[]string{newest}, []string{broken, third, second, oldest}}, 2: {[]string{newest, third}, []string{second, oldest}},
		3: {[]string{newest, third, second}, []string{oldest}}, 4: {[]string{newest, third, second, oldest}, nil}, 9: {[]string{newest, third, second, oldest}, nil},
	} {
		p, err := image.Prune(dir, keep, "cluster")
		if err != nil {
			t.Fatal(err)
		}
		if got := pathsOf(p.Keep); !slices.Equal(got, want.keep) {
			t.Errorf("of %d to keep, %v stay, not %v", keep, got, want.keep)
		}
		if got := pathsOf(p.Remove); !slices.Equal(got, want.remove) {
			t.Errorf("of %d to keep, %v go, not %v", keep, got, want.remove)
		}
		if _, named := p.Broken[broken]; named != (keep > 1) || len(p.Broken) > 1 {
			t.Errorf("of %d to keep, %v are not whole", keep, p.Broken)
		}
	}
	if _, err := image.Prune(filepath.Join(dir, "nowhere"), 1, "cluster"); err == nil {
		t.Error("a directory that is not there has no backups")
	}
}

// TestPruneOfTwoClusters: the newest of all may be those of one, and the other would lose all that it has.
func TestPruneOfTwoClusters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for day, id := range []string{"a", "a", "b", "a"} {
		img := &image.Image{Revision: 7, Epoch: 1, Objects: all(object("cluster", id, 3, "x"), object("job", "1", 3, "x"))}
		if _, err := image.Create(filepath.Join(dir, strconv.Itoa(day)), img, time.Date(2030, 1, 1+day, 0, 0, 0, 0, time.UTC), false); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := image.Prune(dir, 1, "cluster"); !fault.Is(err, fault.WrongState) || len(p.Remove) > 0 {
		t.Errorf("of two clusters: %v, and %v go", err, pathsOf(p.Remove))
	}
	if err := os.Remove(filepath.Join(dir, "2")); err != nil {
		t.Fatal(err)
	}
	if p, err := image.Prune(dir, 1, "cluster"); err != nil || len(p.Remove) != 2 {
		t.Errorf("of one cluster: %v, and %v go", err, pathsOf(p.Remove))
	}
}

func pathsOf(of []image.Found) (out []string) {
	for _, f := range of {
		out = append(out, f.Path)
	}
	return out
}
