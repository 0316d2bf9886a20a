package queue

import (
	"maps"
	"slices"

	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/store"
)

// What the store refuses for good costs what was refused, never the queue. A
// transaction is refused as a whole, so first each thing in it is written by
// itself, as it is by then. What is refused even so is given up: a job ends or
// was never taken (machine.Unstorable), a job stays out of the archive, a rule
// and a switch are again what is stored. What a client hands in is bounded where
// it comes in, so all this is the last resort.

// permanent tells an error that comes again however often the same is written.
func permanent(err error) bool { return fault.Is(err, fault.Invalid) || fault.Is(err, fault.TooLarge) }

// whole is a work that was divided: who waits for it is told when all of its
// parts have come to an end.
type whole struct {
	parts int
	after []func(error)
	// about tells whose refusal is that of the whole: the jobs', unless a rule or the
	// switches were to be changed.
	about func(*work) bool
	err   error // the first one
}

// refused takes care of a work that the store will never take. It reports false
// if that is to be written in another way.
func (q *Queue) refused(w *work, err error) (over bool) {
	q.cfg.Log.Error("the store refuses what the queue writes", "error", err, "objects", len(w.keys))
	parts := q.divide(w)
	if len(parts) > 1 {
		whole := &whole{parts: len(parts), after: w.after, about: ofJobs}
		if slices.ContainsFunc(w.keys, settings) {
			whole.about = func(part *work) bool { return slices.ContainsFunc(part.keys, settings) }
		}
		w.whole = whole
		for _, p := range parts {
			p.whole = whole
			q.flush(p)
		}
		q.release(w)
		return false
	}
	if other := q.alsoWrites(w); other != nil {
		other.waiting = append(other.waiting, w)
		return false
	}
	q.giveUp(w, err)
	return true
}

func settings(key store.Key) bool { return key.Kind == KindFilter || key.Kind == KindQueue }

func ofJobs(w *work) bool { return len(w.keys) > 0 }

// divide makes a work of each thing in one: a job with all that is written of it,
// a rule, the switches, and what was recorded.
func (q *Queue) divide(w *work) []*work {
	var parts []*work
	by := map[any]*work{}
	part := func(thing any) *work {
		if by[thing] == nil {
			by[thing] = &work{restores: w.restores}
			parts = append(parts, by[thing])
		}
		return by[thing]
	}
	for _, key := range w.keys {
		p := part(q.thing(key))
		p.keys = append(p.keys, key)
	}
	for _, j := range w.gone {
		p := part(j.ID)
		p.gone = append(p.gone, j)
	}
	for _, t := range w.begins {
		p := part(t.job)
		p.begins = append(p.begins, t)
	}
	if w.pruned != nil {
		part(w.pruned).pruned = w.pruned
	}
	if len(w.events) > 0 {
		part("").events = w.events
	}
	if len(w.held)+len(w.locks) > 0 && len(parts) > 1 {
		rest := part("shown, and not stored")
		rest.held, rest.locks = w.held, q.m.LocksNow(w.locks)
	}
	return parts
}

// thing is what a key is written of.
func (q *Queue) thing(key store.Key) any {
	switch key.Kind {
	case KindJob, KindArchived:
		id, _ := job.ParseID(key.ID)
		return id
	case KindSubmission:
		for id, j := range q.archiving {
			if j.Key == key.ID {
				return id
			}
		}
		return q.m.Key(key.ID)
	case exec.KindWork, exec.KindStep:
		return jobOf(key.ID)
	}
	return key
}

// alsoWrites returns another work that is on its way to the store with something
// of this one; nil if there is none. Were both written again at once, each would
// wait for the other without end.
func (q *Queue) alsoWrites(w *work) *work {
	for other := range q.unsettled {
		if other != w && slices.ContainsFunc(other.keys, func(key store.Key) bool { return slices.Contains(w.keys, key) }) {
			return other
		}
	}
	return nil
}

// release writes again what waited for a work to be over.
func (q *Queue) release(w *work) {
	waiting := w.waiting
	w.waiting = nil
	for _, other := range waiting {
		q.flush(other)
	}
}

// giveUp undoes what one thing was to become. What restores something is not
// restored itself.
func (q *Queue) giveUp(w *work, err error) {
	again := &work{restores: true}
	id := job.ID(0)
	for _, key := range w.keys {
		switch {
		case key.Kind == KindJob:
			id, _ = job.ParseID(key.ID)
		case key.Kind == KindArchived:
			moving, _ := job.ParseID(key.ID)
			delete(q.archiving, moving)
		case key.Kind == KindFilter && !w.restores:
			w.first(func(error) { q.restoreRule(key.ID) })
		case key == FlagsKey && !w.restores:
			stored := q.cfg.Picture.Load().Flags
			q.apply(again, machine.SetDrained{On: stored.Drained, By: stored.Drain})
			q.apply(again, machine.SetWatcherPause{Until: stored.WatcherPause})
		}
	}
	if q.m.Job(id) != nil {
		stored := q.live(id) != nil
		if !stored {
			q.lose(id, err)
		}
		q.apply(again, machine.Unstorable{Job: id, Stored: stored, Err: err})
		if stored && q.m.Job(id) == nil {
			q.unread = append(q.unread, "job "+id.String()+" cannot be written any more: "+err.Error())
		}
	}
	for _, b := range w.begins {
		q.forgetKill(b.job)
	}
	q.flush(again)
}

// keptLost is how many jobs that were never taken are remembered, for those whose submissions have not been answered yet:
// as many as two of the largest submissions have.
const keptLost = 2 * machine.MaxJobs

// lose remembers why the store never took a job, and forgets the oldest of which that was so.
func (q *Queue) lose(id job.ID, err error) {
	q.lost[id] = err
	if len(q.lost) <= keptLost {
		return
	}
	ids := slices.Sorted(maps.Keys(q.lost))
	for _, old := range ids[:len(ids)/2] {
		delete(q.lost, old)
	}
}

// first has something done before anybody is told how the work ended.
func (w *work) first(f func(error)) {
	list := &w.after
	if w.whole != nil {
		list = &w.whole.after
	}
	*list = slices.Insert(*list, 0, f)
}

// withRefused adds to the outcomes of a submission what the store refused: that
// keeps no other one of its jobs from being taken. A job may have been given up
// with a later work than that of its submission, which then ended well.
func (q *Queue) withRefused(out []Outcome, err error) ([]Outcome, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.lost) == 0 {
		return out, err
	}
	out = slices.Clone(out)
	found := false
	for i := range out {
		if why := q.lost[out[i].ID]; why != nil && out[i].Err == nil {
			out[i], found = Outcome{Err: refusal(why)}, true
		}
	}
	if found && permanent(err) {
		err = nil
	}
	return out, err
}

// refusal is how a client is told that the store refuses.
func refusal(err error) error {
	return fault.New(fault.CodeOf(err), "the change was refused by the store: %w", err)
}

// conclude returns what is to be done, in order, when a work has come to an end.
func (w *work) conclude(err error) []func() {
	var out []func()
	if err == nil {
		for _, b := range w.begins {
			out = append(out, b.do)
		}
	}
	after := w.after
	if whole := w.whole; whole != nil {
		if whole.err == nil && (!permanent(err) || whole.about(w)) {
			whole.err = err
		}
		if whole.parts--; whole.parts > 0 {
			return out
		}
		after, err = whole.after, whole.err
	}
	for _, f := range after {
		out = append(out, func() { f(err) })
	}
	return out
}

// restoreRule puts a rule in force again as it is stored.
func (q *Queue) restoreRule(uuid string) {
	_, err := q.planRules(func(rules []jobfilter.Rule, _ job.ID) ([]jobfilter.Rule, []string, error) {
		rules = slices.DeleteFunc(rules, func(r jobfilter.Rule) bool { return r.UUID == uuid })
		for _, stored := range q.cfg.Picture.Load().Rules {
			if stored.UUID == uuid {
				rules = append(rules, *stored)
			}
		}
		return rules, []string{uuid}, nil
	}, func(w *work) { w.restores = true })
	if err != nil {
		q.cfg.Log.Error("a filter rule that the store refused stays in force until the next start", "rule", uuid, "error", err)
	}
}
