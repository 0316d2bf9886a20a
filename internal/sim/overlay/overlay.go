// Package overlay changes source files for one build, without touching them: what go's
// option -overlay takes. Simulations need two kinds of changes: those of Go's runtime
// that make a seed one history (Runtime), and known faults of Drover, which a simulation
// must find.
//
// Invariants:
//   - A change names a text that is there exactly once. Where it is not, nothing is
//     written and the error says which: another Go, or code that moved, stops a build
//     and is never built upon by halves.
//   - Nothing is changed but in the files that are written, below one directory.
package overlay

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// Edit replaces a text of a file that is there exactly once.
type Edit struct {
	// File is the file's path.
	File string
	// Old is the text that is there, and New what takes its place.
	Old, New string
}

// Write writes the changed files below a directory, together with files that are new, by
// their paths, and returns the file that go build and go test are to be given as -overlay.
func Write(dir string, edits []Edit, added map[string]string) (name string, err error) {
	texts, err := apply(edits)
	if err != nil {
		return "", err
	}
	maps.Copy(texts, added)
	replace := map[string]string{}
	for i, path := range slices.Sorted(maps.Keys(texts)) {
		at := filepath.Join(dir, strconv.Itoa(i)+"-"+filepath.Base(path))
		replace[path] = at
		if err := writeChanged(at, texts[path]); err != nil {
			return "", err
		}
	}
	list, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return "", err
	}
	name = filepath.Join(dir, "overlay.json")
	return name, writeChanged(name, string(list)+"\n")
}

// apply makes the edits, in order: a later one of a file sees what the earlier ones left.
func apply(edits []Edit) (map[string]string, error) {
	texts := map[string]string{}
	for _, e := range edits {
		text, read := texts[e.File]
		if !read {
			content, err := os.ReadFile(e.File)
			if err != nil {
				return nil, fault.New(fault.Environment, "cannot read what is to be changed: %w", err)
			}
			text = string(content)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return nil, fault.New(fault.Conflict, "%s: the text that is to be changed is there %d times, not once:\n%s", e.File, n, e.Old).
				WithHint("the file has changed; find the place again and mend the text beside its replacement")
		}
		texts[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	return texts, nil
}

// writeChanged writes a file whose text is another; builds look at times.
func writeChanged(name, text string) error {
	if have, err := os.ReadFile(name); err == nil && string(have) == text {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(name), 0o750)
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o644)
	}
	if err != nil {
		return fault.New(fault.Environment, "cannot write an overlay: %w", err)
	}
	return nil
}
