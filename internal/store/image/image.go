// Package image is the whole content of a store at one moment, on its way from
// one store to another or to a file: copies and backups.
//
// A backup file begins with a line that names its format and one of JSON with
// what the store had given out. Each object follows as a line of JSON and then its
// value as it is; the last line tells how many there were, and the SHA-256 of
// everything before it. All of it may be in a frame of zstd: what `zstd -d` makes of that is the file as it would be without.
//
// Invariants:
//   - An image is complete: a file without its last line, or with another sum,
//     is refused before anything is taken from it.
//   - Values are not looked into: they arrive byte for byte.
package image

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// Image is the content of a store. It can be gone through once.
type Image struct {
	// Revision and Epoch are the newest that the store has given out.
	Revision store.Revision
	Epoch    int64
	// Format is that of the store, zero where it cannot be read.
	Format int
	// Unfit says why the schema of the store's database is not that of its format; nil if it is, and
	// where there is no database.
	Unfit error
	// Objects are all that the store holds, by kind and then in the order of ids.
	Objects iter.Seq2[store.Object, error]
	// Feed are the rows of the stored feed, oldest first; nil where they are
	// not part of the image.
	Feed iter.Seq2[Row, error]
}

// LeaderLease is the name of the lease that carries the epoch of an image.
const LeaderLease = "leader"

// Row is what the feed says of the transactions with revisions First to Last.
type Row struct {
	First, Last store.Revision
	Changes     []store.Change
}

// Compare tells what is different between two images, object by object; count
// is how many objects they have in common. The revisions and epochs of the
// images as a whole are not compared.
func Compare(a, b *Image) (count int, err error) {
	nextA, stopA := iter.Pull2(a.Objects)
	defer stopA()
	nextB, stopB := iter.Pull2(b.Objects)
	defer stopB()
	for ; ; count++ {
		x, errX, moreX := nextA()
		y, errY, moreY := nextB()
		switch {
		case errX != nil:
			return count, errX
		case errY != nil:
			return count, errY
		case !moreX && !moreY:
			return count, nil
		case !moreX:
			return count, fault.New(fault.Internal, "%s %q is only in the second", y.Kind, y.ID)
		case !moreY:
			return count, fault.New(fault.Internal, "%s %q is only in the first", x.Kind, x.ID)
		case x.Key != y.Key:
			return count, fault.New(fault.Internal, "where the first has %s %q, the second has %s %q", x.Kind, x.ID, y.Kind, y.ID)
		case x.Revision != y.Revision || x.At != y.At || !bytes.Equal(x.Value, y.Value):
			return count, fault.New(fault.Internal, "%s %q differs", x.Kind, x.ID)
		}
	}
}

// Findings are what a check has found: nothing in a store that is as it should
// be.
type Findings struct {
	Objects, Rows int
	Problems      []string
	// More is how many further problems there are.
	More int
}

// maxProblems bounds what is told; a damaged store can have millions.
const maxProblems = 100

func (f *Findings) addf(format string, args ...any) {
	if len(f.Problems) == maxProblems {
		f.More++
		return
	}
	f.Problems = append(f.Problems, fmt.Sprintf(format, args...))
}

// last is what the feed says of an object, as the newest.
type last struct {
	revision store.Revision
	deleted  bool
}

// Check proves that the feed and the objects of a store tell one story: the
// feed has every revision from its oldest to the newest, and what it says last of
// an object is what the object is. A failure to read ends the check and is a
// finding itself.
func Check(img *Image) *Findings {
	f := &Findings{}
	if img.Unfit != nil {
		f.addf("%v", img.Unfit)
	}
	told := map[store.Key]last{}
	oldest := f.rows(img, told)
	for o, err := range img.Objects {
		if err != nil {
			f.addf("%v", err)
			return f // nothing certain can be said of what is left
		}
		f.Objects++
		was, known := told[o.Key]
		delete(told, o.Key)
		switch {
		case o.Revision > img.Revision:
			f.addf("%s %q has revision %d, and the newest is %d", o.Kind, o.ID, o.Revision, img.Revision)
		case o.Revision >= oldest && !known:
			f.addf("%s %q has revision %d, of which the feed says nothing", o.Kind, o.ID, o.Revision)
		case known && was.deleted:
			f.addf("%s %q is there, and the feed says that revision %d deleted it", o.Kind, o.ID, was.revision)
		case known && was.revision != o.Revision:
			f.addf("%s %q has revision %d, and the feed says %d", o.Kind, o.ID, o.Revision, was.revision)
		}
	}
	for key, was := range told {
		if !was.deleted {
			f.addf("%s %q is not there, and the feed says that revision %d put it", key.Kind, key.ID, was.revision)
		}
	}
	return f
}

// rows goes through the feed and returns the oldest revision that it keeps.
func (f *Findings) rows(img *Image, told map[store.Key]last) (oldest store.Revision) {
	oldest = img.Revision + 1
	before := store.Revision(0)
	for row, err := range img.Feed {
		if err != nil {
			f.addf("%v", err)
			return oldest
		}
		f.Rows++
		switch {
		case before == 0:
			oldest = row.First
		case row.First != before+1:
			f.addf("the feed lacks revisions %d to %d", before+1, row.First-1)
		}
		if row.Last < row.First {
			f.addf("a row of the feed ends with revision %d before it begins with %d", row.Last, row.First)
		}
		before = row.Last
		for _, c := range row.Changes {
			if c.Revision < row.First || c.Revision > row.Last {
				f.addf("the feed tells of revision %d among those from %d to %d", c.Revision, row.First, row.Last)
			}
			told[c.Key] = last{c.Revision, c.Deleted}
		}
	}
	if before != 0 && before != img.Revision {
		f.addf("the feed ends with revision %d, and the newest is %d", before, img.Revision)
	}
	return oldest
}
