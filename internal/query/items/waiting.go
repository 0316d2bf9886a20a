package items

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/schedule"
)

// What jobs wait for, in the words of a list: worked out of the picture for all
// jobs at once, because a place in a line depends on who else stands there. The
// explanation of a single job (machine.Explain) tells more about the same.

// wait is what one job waits for.
type wait struct {
	// step says what the wait is, in the words of the explanation.
	step schedule.Step
	// why tells a person.
	why string
	// on is what it waits for, in the words of waited_for; jobs are those that have
	// to end before it goes on, of many the first few.
	on   []string
	jobs []int64
	// line is what the job stands in, place its number there, from 1; no line for
	// what has no order, as a pause.
	line  string
	place int64
}

// waiting returns what the unfinished jobs wait for, by job. Who waits for
// nothing is not in it.
func waiting(v *query.View) map[job.ID]wait {
	m := memoOf(v)
	if m.waits == nil {
		m.waits = waitsOf(v)
	}
	return m.waits
}

// waitsOf asks in the order of the queue: rules, dependencies, nodes, buckets, slots; and
// locks of what has begun.
func waitsOf(v *query.View) map[job.ID]wait {
	if v.JobTable == nil {
		return map[job.ID]wait{}
	}
	out := lockWaits(v)
	var inLine []*job.Job
	inFlight := map[schedule.Bucket][]int64{}
	for j := range v.JobTable.Unfinished() {
		if _, waits := out[j.ID]; !waits && j.Status() != job.Running {
			inLine = append(inLine, j)
		}
		if !j.Busy() {
			continue
		}
		for _, b := range adHoc(j) {
			inFlight[b] = append(inFlight[b], int64(j.ID))
		}
	}
	slices.SortFunc(inLine, func(a, b *job.Job) int {
		return cmp.Or(cmp.Compare(a.Priority(), b.Priority()), cmp.Compare(a.ID, b.ID))
	})
	q := lines{v: v, inFlight: inFlight, rules: map[string]*jobfilter.Rule{}, held: map[string]wait{}, ahead: map[string]int64{},
		full: v.Cluster.MaxRunningJobs <= int64(v.JobTable.CountIn(job.Running))}
	if v.Rules != nil {
		for _, r := range v.Rules() {
			q.rules[r.UUID] = r
		}
	}
	for _, j := range inLine {
		w, waits := q.waitOf(j)
		if !waits {
			continue
		}
		if w.line != "" {
			q.ahead[w.line]++
			w.place = q.ahead[w.line]
		}
		out[j.ID] = w
	}
	return out
}

// lines are what jobs stand in that neither run nor wait for a lock.
type lines struct {
	v        *query.View
	inFlight map[schedule.Bucket][]int64
	rules    map[string]*jobfilter.Rule
	held     map[string]wait  // what a rule makes jobs wait for, by its UUID
	ahead    map[string]int64 // how many stand in a line so far
	full     bool             // there is no slot
}

// forSlot is the wait for a slot, before a job has its locks and after.
var forSlot = [...]wait{
	{step: schedule.WaitSlot, why: "slot", on: []string{string(job.WaitForSlot)}, line: "slot"},
	{step: schedule.InFlight, why: "slot", on: []string{string(job.WaitForSlot)}, line: "slot"},
}

// waitOf is what a job waits for, if it waits.
func (q *lines) waitOf(j *job.Job) (wait, bool) {
	switch {
	case j.Busy(): // it has its locks
		return forSlot[1], q.full
	case j.CancelReason != "":
		return wait{}, false
	case j.Hold != nil && j.Hold.Node != "":
		node := "node " + j.Hold.Node
		return wait{step: schedule.WaitNode, why: node, on: []string{node}}, true
	case j.Hold != nil:
		return q.heldBy(j.Hold.Rule), true
	}
	if on := pending(q.v, j); len(on) > 0 {
		return dependencyWait(on), true
	}
	for _, b := range adHoc(j) {
		if members := q.inFlight[b]; len(members) >= b.Limit {
			why := fmt.Sprintf("limit %d of %s", b.Limit, b.Label)
			return wait{step: schedule.WaitBucket, why: why, on: []string{onLimit(b)}, jobs: firstFew(members), line: why}, true
		}
	}
	return forSlot[0], q.full
}

func onLimit(b schedule.Bucket) string { return string(job.WaitForLimit) + " " + b.String() }

func firstFew(ids []int64) []int64 { return ids[:min(len(ids), job.MaxWaitJobs)] }

// heldBy is the wait of a job that a rule holds, made once for all of them.
func (q *lines) heldBy(uuid string) wait {
	w, made := q.held[uuid]
	if !made {
		w = heldWait(uuid, q.rules[uuid])
		q.held[uuid] = w
	}
	return w
}

// heldWait is the wait of a job that a rule holds: in a line if the rule lets so
// many through, else until the rule is gone.
func heldWait(uuid string, r *jobfilter.Rule) wait {
	held := wait{step: schedule.Hold, on: []string{string(job.HeldByRule) + " " + uuid}}
	switch {
	case r == nil:
		short, _, _ := strings.Cut(uuid, "-")
		held.why = "rule " + short
	case r.Action.Kind == jobfilter.RateLimit:
		return wait{step: schedule.WaitBucket, why: fmt.Sprintf("limit %d of rule %s", r.Action.Limit, r.Short()), line: uuid,
			on: []string{onLimit(schedule.Bucket{Rule: uuid, Limit: r.Action.Limit})}}
	default:
		held.why = "rule " + r.Short()
	}
	return held
}

// pending are the jobs that have to end before this one.
func pending(v *query.View, j *job.Job) []int64 {
	var on []int64
	for _, id := range j.Dependencies() {
		if other := v.JobTable.Get(id); other != nil && !other.Final() {
			on = append(on, int64(id))
		}
	}
	return on
}

func dependencyWait(ids []int64) wait {
	w := wait{step: schedule.WaitDependency, jobs: ids}
	numbers := make([]string, len(ids))
	for i, id := range ids {
		numbers[i] = itoa(id)
		w.on = append(w.on, "job "+numbers[i])
	}
	w.why = "after job " + numbers[0]
	if len(ids) > 1 {
		w.why = "after jobs " + strings.Join(numbers, ", ")
	}
	return w
}

func adHoc(j *job.Job) []schedule.Bucket {
	return schedule.Buckets(jobfilter.Decision{}, schedule.AdHoc(j))
}

// lockWaits are the waits of the jobs that wait for a lock, with who holds it.
func lockWaits(v *query.View) map[job.ID]wait {
	out := map[job.ID]wait{}
	if v.Locks == nil {
		return out
	}
	for _, s := range v.Locks() {
		if len(s.Pending) == 0 {
			continue
		}
		name := "lock " + v.Inventory.LockName(s.Name)
		w := wait{step: schedule.InFlight, why: name, on: []string{name}}
		if s.Holders.Len() > 0 {
			w.why += " of job " + joinOwners(s.Holders)
		}
		for o := range s.Holders.All() {
			w.jobs = append(w.jobs, int64(o))
		}
		w.jobs = firstFew(w.jobs)
		for i, p := range s.Pending {
			w.place = int64(i) + 1
			out[job.ID(p.Owner)] = w
		}
	}
	return out
}

func joinOwners(owners lock.Owners) string {
	texts := make([]string, 0, owners.Len())
	for o := range owners.All() {
		texts = append(texts, strconv.FormatInt(int64(o), 10))
	}
	return strings.Join(texts, ", ")
}

// jobWaitFields tell what keeps a job from going on at the moment.
func jobWaitFields() []query.Field[jobRow] {
	field := func(name, title string, kind query.Kind, doc string, get func(w wait, j *job.Job) query.Cell) query.Field[jobRow] {
		return query.Field[jobRow]{Def: def(name, title, kind, doc), From: query.InMemory, Mutual: true,
			Get: func(v *query.View, r jobRow) query.Cell {
				if w, waits := waiting(v)[r.id]; waits {
					return get(w, r.j)
				}
				return query.Cell{Status: query.Unavail}
			}}
	}
	since := field("waits_since", "Waits_since", query.KindOther, "Since when that keeps it from going on, in seconds and microseconds", waitsSince)
	since.Mode = query.ModeSeconds
	return []query.Field[jobRow]{
		{Def: def("step", "Step", query.KindText, "What becomes of the job next, in the words of its explanation: "+schedule.StepNames()),
			From: query.InMemory, Mutual: true, Get: jobStep},
		field("wait_reason", "Wait_reason", query.KindText, "What keeps a job from going on: "+job.WaitReasons(),
			func(w wait, _ *job.Job) query.Cell { return text(w.why) }),
		field("waits_for", "Waits_for", query.KindOther, "What keeps it from going on, for programs, in the words of waited_for: "+job.WaitNames(false),
			func(w wait, _ *job.Job) query.Cell { return known(w.on) }),
		field("waits_for_jobs", "Waits_for_jobs", query.KindOther, "The jobs that keep it from going on: those it depends on, that have the lock or fill the limit, of many the first eight",
			func(w wait, _ *job.Job) query.Cell { return known(numbers(w.jobs)) }),
		since,
		field("place", "Place", query.KindNumber, "Place of the job in the line that it waits in, from 1", func(w wait, _ *job.Job) query.Cell {
			if w.place == 0 {
				return query.Cell{Status: query.Unavail}
			}
			return known(w.place)
		}),
	}
}

// jobStep says what the explanation of the job calls its step.
func jobStep(v *query.View, r jobRow) query.Cell {
	w, waits := waiting(v)[r.id]
	switch {
	case r.j == nil:
		return query.Cell{Status: query.Unavail}
	case damaged(r.j):
		return query.Cell{Status: query.NoData}
	case r.j.Final():
		return text(string(schedule.Ended))
	case waits:
		return text(string(w.step))
	case r.j.Busy():
		return text(string(schedule.InFlight))
	case r.j.CancelReason != "":
		return text(string(schedule.Cancel))
	}
	return text(string(schedule.Run))
}

// waitsSince is since when a job waits for what it waits for: what kept it before is
// among the waits that are over.
func waitsSince(_ wait, j *job.Job) query.Cell {
	if j.Hold != nil {
		return moment(j.Hold.Since)
	}
	return moment(j.Known())
}

func numbers(ids []int64) []any {
	out := make([]any, len(ids))
	for i, id := range ids {
		out[i] = id
	}
	return out
}
