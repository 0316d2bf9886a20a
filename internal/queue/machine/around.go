package machine

import (
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
)

// How much is told of what is around a job: jobs and locks at all, and how many jobs of one lock, or of one job.
const (
	mostAround = 40
	mostBeside = 5
)

// Around is what a job waits for, in the end, and who waits for it: jobs, and the locks between them.
type Around struct {
	// Points are the job itself, first, and what is around it; LeftOut is how many jobs are not among them that have or want one of the locks, or
	// have to do with the job.
	Points  []Point `json:"points"`
	Links   []Link  `json:"links"`
	LeftOut int     `json:"left_out"`
}

// Point is a job, or a lock.
type Point struct {
	Job     job.ID     `json:"job,omitempty"`
	Status  job.Status `json:"status,omitempty"`
	Summary []string   `json:"summary,omitempty"`
	// Why is what keeps the job, where that is no other one: a rule, a slot, a node.
	Why string `json:"why,omitempty"`
	// Lock is what people call a lock, Key its name for queries.
	Lock string `json:"lock,omitempty"`
	Key  string `json:"key,omitempty"`
}

// LinkKind says what two points have to do with one another.
type LinkKind string

// The kinds of links.
const (
	LinkDepends LinkKind = "depends" // a job on another one that has not ended as it needs
	LinkMet     LinkKind = "met"     // a job on another one that has
	LinkWaits   LinkKind = "waits"   // a job for a lock
	LinkBehind  LinkKind = "behind"  // a job behind another one that gets the lock first
	LinkNeeds   LinkKind = "needs"   // a job will want a lock, which others have now
	LinkHeld    LinkKind = "held"    // a lock by a job
)

// Link leads from what waits, as the numbers of points, to what it waits for. Mode is that of a lock: shared or exclusive.
type Link struct {
	From int      `json:"from"`
	To   int      `json:"to"`
	Kind LinkKind `json:"kind"`
	Mode string   `json:"mode,omitempty"`
}

// around is what was found so far.
type around struct {
	Around
	m     *Machine
	jobs  map[job.ID]int
	locks map[lock.Name]int
	open  []*entry // of which it is not known yet what they wait for
	left  map[job.ID]bool
}

// Around tells what a job waits for and who waits for it, false if it has ended. On a clone it holds up nobody.
func (m *Machine) Around(id job.ID) (Around, bool) {
	e, ok := m.jobs.Get(id)
	if !ok {
		return Around{}, false
	}
	a := &around{Around: Around{Links: []Link{}}, m: m, jobs: map[job.ID]int{}, locks: map[lock.Name]int{}, left: map[job.ID]bool{}}
	a.job(id, e.job.Status())
	a.open = nil
	a.onJobs(e, true)
	a.onLock(e)
	a.onNeeds(e)
	a.ofLocks(e)
	a.ofJobs(e)
	for len(a.open) > 0 {
		next := a.open[0]
		a.open = a.open[1:]
		a.onJobs(next, false)
		a.onLock(next)
	}
	a.count()
	return a.Around, true
}

// onJobs adds the jobs that one depends on; of the job itself also those that have ended as it needs.
func (a *around) onJobs(e *entry, itself bool) {
	for i := range e.job.Ops {
		for _, d := range e.job.Ops[i].Input.Depends {
			status, exists := a.m.status(e, job.ID(d.Job))
			state, _ := job.CheckDependency(d, status, exists)
			kind := LinkDepends
			if state == job.DependencyMet {
				kind = LinkMet
			}
			if kind == LinkDepends || itself {
				a.link(a.at(e), a.job(job.ID(d.Job), status), kind, "")
			}
		}
	}
}

// onLock adds the lock that a job waits for, who has it, and who gets it first.
func (a *around) onLock(e *entry) {
	w, waits := a.m.locks.Waiting(e.owner(), mostBeside)
	if !waits {
		return
	}
	at := a.lock(w.Name)
	a.link(a.at(e), at, LinkWaits, w.Mode.String())
	for _, o := range w.Ahead {
		a.link(a.at(e), a.owner(o), LinkBehind, "")
	}
	a.holders(at, w.Holders)
}

func (a *around) holders(at int, owners []lock.Owner) {
	for _, o := range owners {
		a.link(at, a.owner(o), LinkHeld, "")
	}
}

// onNeeds adds the locks that a job will want and others have in a way that does not go with it.
func (a *around) onNeeds(e *entry) {
	if e.place == inRunner {
		return
	}
	for _, w := range a.m.needs(e) {
		if _, known := a.locks[w.Name]; known {
			continue
		}
		s := a.m.locks.Now([]lock.State{{Name: w.Name}})[0]
		if w.Mode != lock.Exclusive && s.Mode != lock.Exclusive {
			continue
		}
		others := slices.DeleteFunc(slices.Collect(s.Holders.All()), func(o lock.Owner) bool { return o == e.owner() })
		if len(others) == 0 {
			continue
		}
		at := a.lock(w.Name)
		a.link(a.at(e), at, LinkNeeds, w.Mode.String())
		a.holders(at, others[:min(len(others), mostBeside)])
	}
}

// ofLocks adds the locks that the job has alone, or that others wait for, and who does.
func (a *around) ofLocks(e *entry) {
	for _, w := range a.m.locks.Held(e.owner()) {
		s := a.m.locks.Now([]lock.State{{Name: w.Name}})[0]
		if w.Mode != lock.Exclusive && len(s.Pending) == 0 {
			continue
		}
		at := a.lock(w.Name)
		a.link(at, a.at(e), LinkHeld, w.Mode.String())
		for _, p := range s.Pending[:min(len(s.Pending), mostBeside)] {
			a.link(a.besides(p.Owner), at, LinkWaits, p.Mode.String())
		}
	}
}

// ofJobs adds the jobs that depend on the job.
func (a *around) ofJobs(e *entry) {
	by := a.m.dependents(e.id())
	for _, id := range by[:min(len(by), mostBeside)] {
		a.link(a.besides(lock.Owner(id)), a.at(e), LinkDepends, "")
	}
	for _, id := range by[min(len(by), mostBeside):] {
		a.left[id] = true
	}
}

// count says how many jobs are left out.
func (a *around) count() {
	for n := range a.locks {
		s := a.m.locks.Now([]lock.State{{Name: n}})[0]
		for o := range s.Holders.All() {
			a.left[job.ID(o)] = true
		}
		for _, p := range s.Pending {
			a.left[job.ID(p.Owner)] = true
		}
	}
	for id := range a.left {
		if _, shown := a.jobs[id]; !shown {
			a.LeftOut++
		}
	}
}

// link adds a link between points that have room.
func (a *around) link(from, to int, kind LinkKind, mode string) {
	l := Link{from, to, kind, mode}
	if from < 0 || to < 0 || from == to || slices.Contains(a.Links, l) {
		return
	}
	a.Links = append(a.Links, l)
}

func (a *around) at(e *entry) int { return a.jobs[e.id()] }

func (a *around) owner(o lock.Owner) int { return a.job(job.ID(o), "") }

// besides is the point of a job that waits; for what else it waits is not looked at.
func (a *around) besides(o lock.Owner) int {
	open := a.open
	at := a.owner(o)
	a.open = open
	return at
}

// job is the point of a job, -1 if there is no room for it. The status is told of one that has ended.
func (a *around) job(id job.ID, status job.Status) int {
	if at, known := a.jobs[id]; known {
		return at
	}
	if len(a.Points) == mostAround {
		a.left[id] = true
		return -1
	}
	p := Point{Job: id, Status: status}
	if e, open := a.m.jobs.Get(id); open {
		p.Status, p.Summary = e.job.Status(), e.job.Summary()
		if text, on := a.m.standing(e); on == 0 && !e.waitsForLock(a.m) {
			p.Why = strings.TrimPrefix(strings.TrimPrefix(text, ", "), "and ")
		}
		a.open = append(a.open, e)
	}
	a.jobs[id] = len(a.Points)
	a.Points = append(a.Points, p)
	return a.jobs[id]
}

func (e *entry) waitsForLock(m *Machine) bool {
	_, waits := m.locks.Waiting(e.owner(), 0)
	return waits
}

// lock is the point of a lock, -1 if there is no room for it.
func (a *around) lock(n lock.Name) int {
	if at, known := a.locks[n]; known {
		return at
	}
	if len(a.Points) == mostAround {
		return -1
	}
	a.locks[n] = len(a.Points)
	a.Points = append(a.Points, Point{Lock: a.m.lockName(n), Key: n.String()})
	return a.locks[n]
}
