// Package schema reads the numbered steps by which an adapter brings its
// database's schema up to date.
//
// Invariants:
//   - Steps are numbered 1, 2, 3 and so on; a released step never changes.
//   - A database whose schema is newer than the program is refused and left
//     alone.
package schema

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// Step is one step of a schema; its version is the number that its file name
// begins with.
type Step struct {
	Version int64
	Name    string
	SQL     string
}

// Steps reads the files migrations/*.sql, in order, and checks their numbers.
func Steps(files fs.FS) ([]Step, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var steps []Step
	for i, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		number, _, _ := strings.Cut(path.Base(name), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil || version != int64(i+1) {
			return nil, fmt.Errorf("migration %s should have the number %d", name, i+1)
		}
		steps = append(steps, Step{version, path.Base(name), string(text)})
	}
	return steps, nil
}

// Missing returns the steps that a database at a version still needs;
// fault.Unsupported if it is newer than all of them.
func Missing(steps []Step, have int64) ([]Step, error) {
	if newest := int64(len(steps)); have > newest {
		return nil, fault.New(fault.Unsupported, "the database has schema version %d, this program knows versions up to %d", have, newest).
			WithHint("use the program version that wrote it, or a newer one")
	}
	return steps[have:], nil
}
