package app

import (
	"context"
	"encoding/json"
	"iter"
	"strconv"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/image"
	"github.com/drover-project/drover/internal/store/life"
	"github.com/drover-project/drover/internal/tagsync"
)

// jump is how much further a restored store goes on giving out numbers: more
// than were given since the backup, at 10 jobs a second for a day.
const (
	jump     = 1_000_000
	jumpText = "a million"
)

// restore makes a store from a backup and compares the two.
func restore(ctx context.Context, file, place string) (made loaded, err error) {
	f, err := image.Open(file)
	if err != nil {
		return made, err
	}
	newLife := newUUID()
	raised := func() *image.Image {
		img := f.Image()
		img.Revision, img.Epoch = img.Revision+jump, img.Epoch+jump
		img.Objects = life.Renew(withNumber(withFloor(img.Objects, img.Revision), img.Revision), newLife)
		return img
	}
	return loadInto(ctx, place, raised(), func(use func(*image.Image) error) error { return use(raised()) })
}

// withNumber puts the floor of the numbers of servers into its place among objects, a million above the
// greatest that is known: one that was made since the backup may be on another cluster, under the name that
// comes from its number. Kinds and ids come in order, so all numbers have been seen when it is its turn.
func withNumber(objects iter.Seq2[store.Object, error], revision store.Revision) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		var greatest int64
		done := false
		floor := func() (store.Object, error) {
			done = true
			text, err := json.Marshal(tagsync.Floor{Number: greatest + jump})
			return store.Object{Key: tagsync.FloorKey, Revision: revision, Value: text}, err
		}
		for o, err := range objects {
			if err != nil {
				yield(o, err)
				return
			}
			n := numberIn(o)
			greatest = max(greatest, n)
			if o.Key == tagsync.NumberKey && n > 0 { // for programs that know of no floor
				o.Value = strconv.AppendInt(nil, n+jump, 10)
			}
			replaced := o.Key == tagsync.FloorKey
			behind := o.Kind > tagsync.FloorKey.Kind || o.Kind == tagsync.FloorKey.Kind && store.CompareIDs(o.ID, tagsync.FloorKey.ID) > 0
			if !done && (replaced || behind) && !yield(floor()) || !replaced && !yield(o, nil) {
				return
			}
		}
		if !done {
			yield(floor())
		}
	}
}

// numberIn is the number of a server that an object tells of, 0 for none. What cannot be read does not tell any: numbers then
// go on far above those that can.
func numberIn(o store.Object) (n int64) {
	switch {
	case o.Kind == tagsync.KindServer:
		if s, err := server.Decode(o.Value); err == nil {
			n = s.Number
		}
	case o.Key == tagsync.NumberKey:
		n, _ = strconv.ParseInt(string(o.Value), 10, 64)
	case o.Key == tagsync.FloorKey:
		var f tagsync.Floor
		if json.Unmarshal(o.Value, &f) == nil {
			n = f.Number
		}
	}
	return n
}

// withFloor puts the floor of job ids into its place among objects: a million
// above the greatest that is known. Kinds come in order, so all jobs have been
// seen when it is the turn of the queue's own.
func withFloor(objects iter.Seq2[store.Object, error], revision store.Revision) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		var greatest job.ID
		done := false
		floor := func() (store.Object, error) {
			done = true
			text, err := json.Marshal(queue.Floor{Job: greatest + jump})
			return store.Object{Key: queue.FloorKey, Revision: revision, Value: text}, err
		}
		for o, err := range objects {
			if err == nil && (o.Kind == queue.KindJob || o.Kind == queue.KindArchived) {
				if id, err := job.ParseID(o.ID); err == nil {
					greatest = max(greatest, id)
				}
			}
			if err == nil && o.Key == queue.FloorKey {
				var old queue.Floor
				if json.Unmarshal(o.Value, &old) != nil {
					old.Job = greatest + jump // nobody knows it: far above
				}
				greatest = max(greatest, old.Job)
				o.Key.ID = "" // replaced by the new one
			}
			if err == nil && !done && (o.Kind > queue.KindQueue || o.Kind == queue.KindQueue && (o.ID == "" || store.CompareIDs(o.ID, queue.FloorKey.ID) > 0)) {
				if !yield(floor()) {
					return
				}
			}
			if (err != nil || o.ID != "") && !yield(o, err) {
				return
			}
		}
		if !done {
			yield(floor())
		}
	}
}
