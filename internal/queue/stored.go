package queue

import (
	"context"
	"iter"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/store"
)

// Stored reads what a store has of jobs and events. It needs no queue, so it is
// for controllers that follow another's, too.
type Stored struct {
	store store.Store
	read  func(context.Context, store.Key) (store.Object, error)
}

// NewStored returns the reader of a store.
func NewStored(s store.Store) *Stored { return &Stored{s, s.Get} }

// Job returns a job, whole, live or archived; fault.NotFound if there is none, a
// *job.DamageError if it cannot be read.
func (s *Stored) Job(ctx context.Context, id job.ID) (*job.Job, error) {
	o, err := s.read(ctx, jobKey(id))
	if fault.Is(err, fault.NotFound) { // it is there, or went there meanwhile
		return s.archived(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	return s.Decode(ctx, o)
}

// Decode reads a job from its stored head and, if there are any, its other parts.
func (s *Stored) Decode(ctx context.Context, head store.Object) (*job.Job, error) {
	id, err := job.ParseID(head.ID)
	if err != nil {
		return nil, err
	}
	return job.Decode(id, head.Value, func(name string) ([]byte, error) {
		o, err := s.read(ctx, partKey(head.ID, name))
		return o.Value, err
	})
}

// Heads reads the heads of up to so many jobs of a kind, KindJob or KindArchived, from
// an id on, for Decode.
func (s *Stored) Heads(ctx context.Context, kind store.Kind, from job.ID, most int) iter.Seq2[store.Object, error] {
	return s.store.List(ctx, kind, store.Options{After: (from - 1).String(), Limit: most})
}

func (s *Stored) archived(ctx context.Context, id job.ID) (*job.Job, error) {
	o, err := s.read(ctx, store.Key{Kind: KindArchived, ID: id.String()})
	if fault.Is(err, fault.NotFound) {
		return nil, s.missing(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	return s.decodeArchived(ctx, o)
}

func (s *Stored) decodeArchived(ctx context.Context, o store.Object) (*job.Job, error) {
	j, err := s.Decode(ctx, o)
	if err == nil {
		j.Archived = true
	}
	return j, err
}

// Span is which jobs the archive has: from its oldest one on, which ended at Ended, to its newest. The zero value is for an archive without any.
type Span struct {
	First, Last job.ID
	Ended       job.Time
}

// Jobs is how many there are if none between them is missing, as those are that have not been archived yet.
func (s Span) Jobs() int64 {
	if s.First == 0 {
		return 0
	}
	return int64(s.Last-s.First) + 1
}

// Span looks which jobs the archive has.
func (s *Stored) Span(ctx context.Context) (span Span, err error) {
	for o, err := range s.store.List(ctx, KindArchived, store.Options{Limit: 1}) {
		if err != nil {
			return Span{}, err
		}
		if span.First, err = job.ParseID(o.ID); err != nil {
			return Span{}, nil // what is no job comes behind all of them, so there is none
		}
		span.Last, span.Ended = span.First, job.Time(o.At)
	}
	for o, err := range s.store.List(ctx, KindArchived, store.Options{Desc: true}) {
		if err != nil {
			return Span{}, err
		}
		if last, err := job.ParseID(o.ID); err == nil {
			span.Last = last
			break
		}
	}
	return span, nil
}

// Archived reads the archived jobs with from <= end < until, in the order in
// which they ended; all of them, by id, from 0 until job.Never. A job that cannot
// be read is a *job.DamageError, and the next one follows; any other error is the end.
func (s *Stored) Archived(ctx context.Context, from, until job.Time) iter.Seq2[*job.Job, error] {
	opts := store.Options{}
	if from > 0 || until < job.Never {
		opts = endedBetween(from, until)
	}
	return s.list(ctx, KindArchived, opts, s.decodeArchived)
}

// endedIn reads the jobs with from <= end < until that are not archived, whole;
// as Archived.
func (s *Stored) endedIn(ctx context.Context, from, until job.Time) iter.Seq2[*job.Job, error] {
	return s.list(ctx, KindJob, endedBetween(from, until), s.Decode)
}

func endedBetween(from, until job.Time) store.Options {
	return store.Options{ByAt: true, Since: int64(from), Until: int64(until)}
}

func (s *Stored) list(ctx context.Context, kind store.Kind, opts store.Options,
	decode func(context.Context, store.Object) (*job.Job, error),
) iter.Seq2[*job.Job, error] {
	return func(yield func(*job.Job, error) bool) {
		for o, err := range s.store.List(ctx, kind, opts) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(decode(ctx, o)) {
				return
			}
		}
	}
}

// Events reads what was recorded, oldest first. In place of an event that cannot be read
// stands one that says so (audit.Unreadable).
func (s *Stored) Events(ctx context.Context) iter.Seq2[*audit.Event, error] {
	return func(yield func(*audit.Event, error) bool) {
		for o, err := range s.store.List(ctx, KindEvent, store.Options{}) {
			if err != nil {
				yield(nil, err)
				return
			}
			e, err := audit.Decode(o.Value)
			if err != nil {
				e = audit.Damaged(o.ID, err)
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}
