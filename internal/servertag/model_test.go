package servertag

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/job"
)

// world is a cluster with one server, and a controller that may be killed
// between any two steps: only durable survives. Jobs may end in any order and any way;
// nobody tells the controller when.
type world struct {
	t       *rapid.T
	p       *Policy
	now     job.Time
	cluster map[string]bool
	jobs    map[job.ID]*doing
	durable Set
	// submitted are the jobs that the cluster took, by the serial numbers under
	// which they came.
	submitted map[int64]job.ID
	// last is what was acknowledged last, by name; names that somebody changed on
	// the cluster are in touched, for there the cluster may win.
	last    map[string]bool
	touched map[string]bool
	// away: the instance is not there; missed: the controller knows.
	away, missed bool
}

type doing struct {
	action Action
	tags   []string
	ended  bool
	how    Outcome
}

var names = []string{"a", "b", "c", "d"}

func (w *world) draw(label string, n int) int { return rapid.IntRange(0, n-1).Draw(w.t, label) }

func (w *world) name() string { return names[w.draw("name", len(names))] }

func (w *world) asked() Asked { return Asked{User: "u", Front: "compute", Time: w.now} }

// want is a user's request; it is acknowledged when durable.
func (w *world) want() {
	name := w.name()
	next, created, err := w.durable.Want(w.p, User, []string{name}, w.asked())
	if err != nil {
		w.t.Fatal(err)
	}
	w.durable = next
	if len(created) > 0 {
		w.last[name] = true
		delete(w.touched, name)
	}
}

func (w *world) unwant() {
	name := w.name()
	next, was := w.durable.Unwant(w.p, User, name, w.asked())
	if !was {
		return
	}
	w.durable, w.last[name] = next, false
	delete(w.touched, name)
}

func (w *world) replace() {
	var kept []string
	for _, n := range names {
		if w.draw("keep "+n, 2) == 0 {
			kept = append(kept, n)
		}
	}
	next, err := w.durable.Replace(w.p, User, kept, w.asked())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, n := range names {
		// A tag that was wanted before and after is not asked for anew.
		if w.durable.Has(User, n) != next.Has(User, n) {
			w.last[n] = next.Has(User, n)
			delete(w.touched, n)
		}
	}
	w.durable = next
}

// edit is an administrator's hand on the cluster.
func (w *world) edit() {
	name := w.name()
	raw := rawUser(name)
	w.touched[name] = true
	if w.cluster[raw] {
		delete(w.cluster, raw)
		return
	}
	w.cluster[raw] = true
}

// vanish takes the instance away. Its jobs find nothing.
func (w *world) vanish() {
	w.away = true
	clear(w.cluster)
}

// comeBack puts the instance back as somebody has it in a backup. A tag that nobody here knows any more is then the cluster's; and where nobody saw that it
// was away, what it lacks was taken from it.
func (w *world) comeBack() {
	if !w.away {
		return
	}
	w.away = false
	for _, name := range names {
		if w.draw("restored "+name, 2) == 0 {
			w.touched[name] = w.touched[name] || !w.missed
			continue
		}
		w.cluster[rawUser(name)] = true
		if w.durable.Find(User, name) == nil {
			w.touched[name] = true
		}
	}
}

// endOne lets a job end: it does its work, fails, or is canceled.
func (w *world) endOne() {
	var open []job.ID
	for id, j := range w.jobs {
		if !j.ended {
			open = append(open, id)
		}
	}
	if len(open) == 0 {
		return
	}
	slices.Sort(open)
	j := w.jobs[open[w.draw("job", len(open))]]
	j.ended = true
	switch w.draw("outcome", 4) {
	case 0:
		j.how = Outcome{Text: "no power"}
	case 1:
		j.how = Outcome{Text: "Job canceled by request"}
	default:
		w.carryOut(j)
	}
}

func (w *world) carryOut(j *doing) {
	j.ended = true
	if w.away {
		j.how = Outcome{Text: "Instance not known", Missing: true}
		return
	}
	for _, raw := range j.tags {
		if j.action == Remove && !w.cluster[raw] {
			j.how = Outcome{Text: "Tag(s) not found", Missing: true, Final: true}
			return
		}
	}
	j.how.OK = true
	for _, raw := range j.tags {
		if j.action == Add {
			w.cluster[raw] = true
		} else {
			delete(w.cluster, raw)
		}
	}
}

func (w *world) sight() Sight {
	s := Sight{Now: w.now, Instance: !w.away, Ended: map[job.ID]Outcome{}, Tags: []string{"foreign"}}
	for raw := range w.cluster {
		s.Tags = append(s.Tags, raw)
	}
	slices.Sort(s.Tags)
	for id, j := range w.jobs {
		if j.ended {
			s.Ended[id] = j.how
		}
	}
	return s
}

// turn is a turn of the controller, which may be killed after each of its steps.
func (w *world) turn(mayDie bool) (busy bool) {
	dies := func(where string) bool { return mayDie && w.draw("dies "+where, 6) == 0 }
	sight := w.sight()
	switch {
	case w.away && !w.missed:
		w.durable = w.durable.Missed(w.now, "it is not there")
	case !w.away && w.missed:
		w.durable = w.durable.Unseen()
	}
	w.missed = w.away
	w.durable = w.durable.Settle(w.p, sight)
	plan := w.durable.Next(sight)
	for _, step := range plan.Steps {
		w.durable = w.durable.Begin(step, w.now)
	}
	if dies("begun") {
		return true
	}
	for _, unnamed := range w.durable.Unsubmitted() {
		id, known := w.submitted[unnamed.Serial]
		if !known {
			id = job.ID(len(w.jobs) + 1)
			j := &doing{action: unnamed.Action}
			for _, ref := range unnamed.Tags {
				j.tags = append(j.tags, ref.Raw)
			}
			w.jobs[id], w.submitted[unnamed.Serial] = j, id
		}
		if dies("submitted") {
			return true
		}
		w.durable = w.durable.Submitted(unnamed.Serial, id, w.now)
		if dies("recorded") {
			return true
		}
	}
	if plan.Wake > w.now && !mayDie {
		w.now = plan.Wake
	}
	return len(plan.Steps) > 0 || len(w.durable.Jobs) > 0 || plan.Wake != 0
}

// quiet lets everything that is to be done be done.
func (w *world) quiet() {
	const patience = 100
	for range patience {
		busy := w.turn(false)
		for _, j := range w.jobs {
			if !j.ended {
				w.carryOut(j)
			}
		}
		if !busy {
			return
		}
	}
	w.t.Fatalf("no rest is found: %+v", w.durable)
}

func (w *world) check() {
	if n := len(w.durable.Jobs); n > 2 || n == 2 && w.durable.Jobs[0].Action == w.durable.Jobs[1].Action {
		w.t.Fatalf("jobs under way: %+v", w.durable.Jobs)
	}
	for _, name := range names {
		if wanted, asked := w.last[name]; asked && !w.touched[name] && w.durable.Has(User, name) != wanted {
			w.t.Fatalf("%s: acknowledged was %v, and users read %v", name, wanted, !wanted)
		}
	}
}

func (w *world) agree() {
	for _, name := range names {
		tag, there := w.durable.Find(User, name), w.cluster[rawUser(name)]
		if tag == nil && !there || tag != nil && tag.Wanted && there && tag.Status() == Active {
			continue
		}
		w.t.Fatalf("%s: on the cluster %v, and we have %+v; now %d, jobs %+v", name, there, tag, w.now, w.durable.Jobs)
	}
	if len(w.durable.Jobs) > 0 || w.durable.OldestPending() != 0 {
		w.t.Fatalf("left to do: %+v", w.durable)
	}
}

// TestModel has users, administrators, a failing cluster and crashes meet in
// any order. Whenever one looks, users read what was acknowledged to them; when
// everything has come to rest, users, store and cluster agree.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, p: DefaultPolicy(), now: 1, cluster: map[string]bool{}, jobs: map[job.ID]*doing{},
			submitted: map[int64]job.ID{}, last: map[string]bool{}, touched: map[string]bool{}}
		act := func(do func()) func(*rapid.T) {
			return func(t *rapid.T) {
				w.t = t
				w.now++
				do()
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"want": act(w.want), "unwant": act(w.unwant), "replace": act(w.replace), "edit": act(w.edit),
			"vanish": act(w.vanish), "come back": act(w.comeBack), "come back too": act(w.comeBack),
			"job ends": act(w.endOne), "job ends too": act(w.endOne),
			"turn": act(func() { w.turn(true) }), "turn too": act(func() { w.turn(true) }),
			"time": act(func() { w.now += 400_000_000 }),
			"":     func(*rapid.T) { w.check() },
		})
		w.t = t
		w.comeBack()
		w.quiet()
		w.check()
		w.agree()
	})
}
