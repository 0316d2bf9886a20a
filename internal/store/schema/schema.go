// Package schema reads the numbered steps by which an adapter brings its
// database's schema up to date.
//
// A step whose file is called NUMBER_format_F.sql belongs to a format of the store (package
// format), and so do those behind it: they are taken when the store is raised to that
// format, in the same transaction, and not when it is opened. So a program that knows
// of no formats, and looks at the number alone, can use the store until then, and not after.
//
// Invariants:
//   - Steps are numbered 1, 2, 3 and so on; a released step never changes.
//   - A database whose schema is newer than the program is refused and left
//     alone.
//   - Opening takes no step of a format that the store does not have (TestMissing).
package schema

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store/format"
)

// Step is one step of a schema; its version is the number that its file name
// begins with.
type Step struct {
	Version int64
	Name    string
	SQL     string
	// Format is the least format of a store that has the step.
	Format int
}

// Steps reads the files migrations/*.sql, in order, and checks their numbers.
func Steps(files fs.FS) ([]Step, error) {
	names, err := fs.Glob(files, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var steps []Step
	of := format.First
	for i, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		number, what, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".sql"), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil || version != int64(i+1) {
			return nil, fmt.Errorf("migration %s should have the number %d", name, i+1)
		}
		if to, is := strings.CutPrefix(what, "format_"); is {
			n, err := strconv.Atoi(to)
			if err != nil || n <= of || n > format.Newest {
				return nil, fmt.Errorf("migration %s should be of a format behind %d, up to %d", name, of, format.Newest)
			}
			of = n
		}
		steps = append(steps, Step{version, path.Base(name), string(text), of})
	}
	return steps, nil
}

// Missing returns the steps that a database at a version still needs to be opened;
// fault.Unsupported if it is newer than all of them.
func Missing(steps []Step, have int64) ([]Step, error) {
	if newest := int64(len(steps)); have > newest {
		return nil, fault.New(fault.Unsupported, "the database has schema version %d, this program knows versions up to %d", have, newest).
			WithHint("use the program version that wrote it, or a newer one")
	}
	of := format.First
	if have > 0 {
		of = steps[have-1].Format
	}
	return steps[have:Version(steps, of)], nil
}

// Version is the version of a schema in which a store of a format is kept.
func Version(steps []Step, of int) (version int64) {
	for _, s := range steps {
		if s.Format <= of {
			version = s.Version
		}
	}
	return version
}

// Raise returns the steps that bring a database at a version to a format.
func Raise(steps []Step, have int64, to int) []Step {
	return steps[have:max(have, Version(steps, to))]
}

// Agree refuses a database whose version is not that of its store's format, zero for one
// that cannot be read.
func Agree(steps []Step, have int64, of int) error {
	if of == 0 {
		return fault.New(fault.WrongState, "the format of the store cannot be read")
	}
	if want := Version(steps, of); have != want {
		return fault.New(fault.WrongState, "the store has format %d, and its schema version %d is not that of this format, %d", of, have, want)
	}
	return nil
}
