package image_test

import (
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/store/image"
)

func object(kind, id string, revision store.Revision, value string) store.Object {
	return store.Object{Key: store.Key{Kind: store.Kind(kind), ID: id}, Revision: revision, At: int64(revision) * 7, Value: []byte(value)}
}

func all(objects ...store.Object) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for _, o := range objects {
			o.Value = slices.Clone(o.Value)
			if !yield(o, nil) {
				return
			}
		}
	}
}

func rows(rows ...image.Row) iter.Seq2[image.Row, error] {
	return func(yield func(image.Row, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func put(revision store.Revision, kind, id string) store.Change {
	return store.Change{Revision: revision, Key: store.Key{Kind: store.Kind(kind), ID: id}}
}

var content = []store.Object{object("a", "1", 1, `{"x":"\n"}`), object("a", "ä", 2, "\x00\n}"), object("b", "1", 3, strings.Repeat("y", 1000))}

func TestBackupKeepsEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backup")
	made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n, err := image.Create(path, &image.Image{Revision: 9, Epoch: 4, Objects: all(content...)}, made, false)
	if err != nil || n != 3 {
		t.Fatal(n, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	f, err := image.Open(path)
	if err != nil || f.Revision != 9 || f.Epoch != 4 || f.Objects != 3 || !f.Made.Equal(made) {
		t.Fatalf("%+v, %v", f, err)
	}
	if n, err := image.Compare(f.Image(), &image.Image{Objects: all(content...)}); n != 3 || err != nil {
		t.Errorf("%d objects are equal: %v", n, err)
	}
}

// TestBackupsOfAFormatAreNewToProgramsOfBefore: those take files that begin in one way alone.
func TestBackupsOfAFormatAreNewToProgramsOfBefore(t *testing.T) {
	for n, want := range map[int]string{format.First: "drover backup 1\n", format.Newest: "drover backup 2\n", 0: "drover backup 2\n"} {
		path := filepath.Join(t.TempDir(), "backup")
		if _, err := image.Create(path, &image.Image{Revision: 9, Format: n, Objects: all(content...)}, time.Now(), false); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(text), want) {
			t.Errorf("of format %d it begins with %.20q, %v", n, text, err)
		}
		f, err := image.Open(path)
		if err != nil || f.Format != n || f.Image().Format != n {
			t.Errorf("format %d comes back as %+v, %v", n, f, err)
		}
	}
}

// TestBackupsAreNotReplacedUnasked: a file that is there stays as it is.
func TestBackupsAreNotReplacedUnasked(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "backup")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	img := &image.Image{Revision: 9, Objects: all(content...)}
	if _, err := image.Create(path, img, time.Now(), false); !fault.Is(err, fault.Exists) {
		t.Errorf("made: %v", err)
	}
	// One that comes while the backup is made.
	late := filepath.Join(dir, "late")
	slow := &image.Image{Revision: 9, Objects: func(yield func(store.Object, error) bool) {
		if err := os.WriteFile(late, []byte("precious"), 0o600); err != nil {
			t.Error(err)
		}
		all(content...)(yield)
	}}
	if _, err := image.Create(late, slow, time.Now(), false); !fault.Is(err, fault.Exists) {
		t.Errorf("made: %v", err)
	}
	for _, path := range []string{path, late} {
		if text, err := os.ReadFile(path); err != nil || string(text) != "precious" {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
	if _, err := image.Create(path, img, time.Now(), true); err != nil {
		t.Error(err)
	}
}

func TestBackupOfWhatCannotBeReadLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	broken := func(yield func(store.Object, error) bool) {
		_ = yield(content[0], nil) && yield(store.Object{}, errors.New("no disk"))
	}
	if _, err := image.Create(filepath.Join(dir, "b"), &image.Image{Objects: broken}, time.Now(), false); err == nil {
		t.Error("it was made")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestDamagedBackupIsRefused changes, cuts or lengthens a file anywhere.
func TestDamagedBackupIsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "backup")
	if _, err := image.Create(path, &image.Image{Revision: 9, Epoch: 4, Objects: all(content...)}, time.Now(), true); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := slices.Clone(whole)
		at := rapid.IntRange(0, len(text)-1).Draw(rt, "at")
		switch rapid.IntRange(0, 2).Draw(rt, "damage") {
		case 0:
			text[at] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
		case 1:
			text = text[:at]
		case 2:
			text = slices.Insert(text, at, 'x')
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			rt.Fatal(err)
		}
		// The last byte is a newline, whose loss loses nothing but is noticed too.
		if _, err := image.Open(path); !fault.Is(err, fault.WrongState) {
			rt.Fatalf("opened: %v", err)
		}
	})
}

func TestCompareTellsWhatDiffers(t *testing.T) {
	for _, tc := range []struct {
		other []store.Object
		want  string
	}{
		{content[:2], `b "1" is only in the first`},
		{append(slices.Clone(content), object("c", "1", 1, "z")), `c "1" is only in the second`},
		{[]store.Object{content[0], content[2]}, `where the first has a "ä", the second has b "1"`},
		{[]store.Object{content[0], object("a", "ä", 2, "\x00\n]"), content[2]}, `a "ä" differs`},
		{[]store.Object{content[0], object("a", "ä", 1, "\x00\n}"), content[2]}, `a "ä" differs`},
	} {
		_, err := image.Compare(&image.Image{Objects: all(content...)}, &image.Image{Objects: all(tc.other...)})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v, want %s", err, tc.want)
		}
	}
}

func TestCheck(t *testing.T) {
	feed := []image.Row{{First: 2, Last: 2, Changes: []store.Change{put(2, "a", "2")}}, {First: 3, Last: 5, Changes: []store.Change{put(4, "a", "3"), put(5, "a", "2")}}}
	gone := put(5, "a", "2")
	gone.Deleted = true
	for what, tc := range map[string]struct {
		revision store.Revision
		objects  []store.Object
		feed     []image.Row
		want     string
	}{
		"nothing": {5, []store.Object{object("a", "1", 1, "x"), object("a", "2", 5, "x"), object("a", "3", 4, "x")}, feed, ""},
		"a deletion": {5, []store.Object{object("a", "3", 4, "x")},
			[]image.Row{feed[0], {First: 3, Last: 5, Changes: []store.Change{put(4, "a", "3"), gone}}}, ""},
		"a gap":                 {5, []store.Object{object("a", "3", 4, "x"), object("a", "2", 5, "x")}, []image.Row{{First: 1, Last: 1}, feed[1]}, "the feed lacks revisions 2 to 2"},
		"a lost object":         {5, []store.Object{object("a", "2", 5, "x")}, feed, `a "3" is not there`},
		"an older object":       {5, []store.Object{object("a", "2", 2, "x"), object("a", "3", 4, "x")}, feed, `a "2" has revision 2, and the feed says 5`},
		"an object of nowhere":  {5, []store.Object{object("a", "2", 5, "x"), object("a", "3", 4, "x"), object("a", "4", 3, "x")}, feed, "of which the feed says nothing"},
		"one of the future":     {5, []store.Object{object("a", "2", 5, "x"), object("a", "3", 4, "x"), object("a", "4", 6, "x")}, feed, "and the newest is 5"},
		"one that was deleted":  {5, []store.Object{object("a", "2", 5, "x")}, []image.Row{{First: 5, Last: 5, Changes: []store.Change{gone}}}, "revision 5 deleted it"},
		"a feed that ends":      {6, []store.Object{object("a", "2", 5, "x"), object("a", "3", 4, "x")}, feed, "the feed ends with revision 5"},
		"a row that is no span": {5, nil, []image.Row{{First: 5, Last: 5, Changes: []store.Change{{Revision: 7, Key: gone.Key, Deleted: true}}}}, "tells of revision 7 among"},
	} {
		f := image.Check(&image.Image{Revision: tc.revision, Objects: all(tc.objects...), Feed: rows(tc.feed...)})
		text := strings.Join(f.Problems, "\n")
		if (text == "") != (tc.want == "") || !strings.Contains(text, tc.want) {
			t.Errorf("%s: found %q, want %q", what, text, tc.want)
		}
	}
}

func TestCheckTellsOfASchemaThatDoesNotFit(t *testing.T) {
	f := image.Check(&image.Image{Revision: 1, Format: format.Newest, Unfit: errors.New("it does not fit"), Objects: all(), Feed: rows(image.Row{First: 1, Last: 1})})
	if len(f.Problems) != 1 || f.Problems[0] != "it does not fit" {
		t.Errorf("found %q", f.Problems)
	}
}

func TestProblemsThatAreToldAreBounded(t *testing.T) {
	var many []store.Object
	for i := range 150 {
		many = append(many, object("a", strconv.Itoa(i), 9, "x"))
	}
	if f := image.Check(&image.Image{Revision: 1, Objects: all(many...), Feed: rows()}); len(f.Problems) != 100 || f.More != 50 {
		t.Errorf("%d and %d more", len(f.Problems), f.More)
	}
}
