package query

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/schedule"
)

// What jobs wait for, in the words of a list: worked out of the picture for all
// jobs at once, because a place in a line depends on who else stands there. The
// explanation of a single job (machine.Explain) tells more about the same.

// wait is what one job waits for.
type wait struct {
	why string
	// line is what the job stands in, place its number there, from 1; no line for
	// what has no order, as a pause.
	line  string
	place int64
}

// waiting returns what the unfinished jobs wait for, by job. Who waits for
// nothing is not in it.
func (v *view) waiting() map[job.ID]wait {
	if v.waits == nil {
		v.waits = waitsOf(v)
	}
	return v.waits
}

// waitsOf asks in the order of the queue: rules, dependencies, buckets, slots; and
// locks of what has begun.
func waitsOf(v *view) map[job.ID]wait {
	out := map[job.ID]wait{}
	if v.JobTable == nil {
		return out
	}
	var queued []*job.Job
	inFlight := map[schedule.Bucket]int{}
	for j := range v.JobTable.Unfinished() {
		if !j.Busy() {
			queued = append(queued, j)
			continue
		}
		for _, b := range adHoc(j) {
			inFlight[b]++
		}
	}
	slices.SortFunc(queued, func(a, b *job.Job) int {
		return cmp.Or(cmp.Compare(a.Priority(), b.Priority()), cmp.Compare(a.ID, b.ID))
	})
	rules := map[string]*jobfilter.Rule{}
	if v.Rules != nil {
		for _, r := range v.Rules() {
			rules[r.UUID] = r
		}
	}
	free := v.cluster.MaxRunningJobs - int64(v.JobTable.CountIn(job.Running))
	lines := map[string]int64{}
	for _, j := range queued {
		w, waits := v.waitOf(j, rules, inFlight, free)
		if !waits {
			continue
		}
		if w.line != "" {
			lines[w.line]++
			w.place = lines[w.line]
		}
		out[j.ID] = w
	}
	v.addLockWaits(out)
	return out
}

// waitOf is what a job waits for whose next opcode is not in flight.
func (v *view) waitOf(j *job.Job, rules map[string]*jobfilter.Rule, inFlight map[schedule.Bucket]int, free int64) (wait, bool) {
	if j.Hold != nil {
		return heldWait(j.Hold.Rule, rules[j.Hold.Rule]), true
	}
	if on := v.pending(j); on != "" {
		return wait{why: "after " + on}, true
	}
	for _, b := range adHoc(j) {
		if inFlight[b] >= b.Limit {
			why := fmt.Sprintf("limit %d of %s", b.Limit, b.Label)
			return wait{why: why, line: why}, true
		}
	}
	return wait{why: "slot", line: "slot"}, free <= 0
}

// heldWait is the wait of a job that a rule holds: in a line if the rule lets so
// many through, else until the rule is gone.
func heldWait(uuid string, r *jobfilter.Rule) wait {
	switch {
	case r == nil:
		short, _, _ := strings.Cut(uuid, "-")
		return wait{why: "rule " + short}
	case r.Action.Kind == jobfilter.RateLimit:
		return wait{why: fmt.Sprintf("limit %d of rule %s", r.Action.Limit, r.Short()), line: uuid}
	}
	return wait{why: "rule " + r.Short()}
}

// pending names the jobs that have to end before this one.
func (v *view) pending(j *job.Job) string {
	var on []string
	for _, id := range j.Dependencies() {
		if other := v.JobTable.Get(id); other != nil && !other.Final() {
			on = append(on, id.String())
		}
	}
	switch len(on) {
	case 0:
		return ""
	case 1:
		return "job " + on[0]
	}
	return "jobs " + strings.Join(on, ", ")
}

func adHoc(j *job.Job) []schedule.Bucket {
	return schedule.Buckets(jobfilter.Decision{}, schedule.AdHoc(j))
}

// addLockWaits adds the jobs that wait for a lock, with who holds it.
func (v *view) addLockWaits(out map[job.ID]wait) {
	if v.Locks == nil {
		return
	}
	for _, s := range v.Locks() {
		if len(s.Pending) == 0 {
			continue
		}
		why := "lock " + v.inv.LockName(s.Name)
		if s.Holders.Len() > 0 {
			why += " of job " + joinOwners(s.Holders)
		}
		for i, p := range s.Pending {
			out[job.ID(p.Owner)] = wait{why: why, place: int64(i) + 1}
		}
	}
}

func joinOwners(owners lock.Owners) string {
	texts := make([]string, 0, owners.Len())
	for o := range owners.All() {
		texts = append(texts, strconv.FormatInt(int64(o), 10))
	}
	return strings.Join(texts, ", ")
}

// waitReason and waitPlace are fields of jobs that have not ended.
func waitReason(v *view, r jobRow) Cell {
	if w, waits := v.waiting()[r.id]; waits {
		return text(w.why)
	}
	return Cell{Status: Unavail}
}

func waitPlace(v *view, r jobRow) Cell {
	if w := v.waiting()[r.id]; w.place > 0 {
		return known(w.place)
	}
	return Cell{Status: Unavail}
}
