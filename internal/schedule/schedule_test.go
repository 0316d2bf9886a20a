package schedule_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/schedule"
)

var now = time.Unix(1_700_000_000, 0)

// newJob makes job 10 of two opcodes; the first depends on the given jobs.
func newJob(reasonText string, depends ...opcode.Dependency) *job.Job {
	op := func(deps []opcode.Dependency) *opcode.Opcode {
		return &opcode.Opcode{ID: "OP_TEST_DUMMY", Depends: deps, Reason: reason.Trail{{Source: "user", Reason: reasonText, Time: 1}}}
	}
	return job.New(10, []*opcode.Opcode{op(depends), op(nil)}, "", now)
}

func decision(kind jobfilter.Kind, limit int) jobfilter.Decision {
	if kind == "" {
		return jobfilter.Decision{}
	}
	return jobfilter.Decision{Rule: &jobfilter.Rule{UUID: "0e9ba8e1-0000-4000-8000-000000000001", Action: jobfilter.Action{Kind: kind, Limit: limit}}}
}

// world is what the decisions of a test depend on.
type world struct {
	rule     jobfilter.Decision
	statuses map[job.ID]job.Status
	inFlight int // in every bucket
	slots    int
	away     *schedule.Absence
}

func (w world) next(j *job.Job) schedule.Verdict {
	return schedule.Next(j, schedule.Facts{
		Rule:      w.rule,
		Depend:    func(id job.ID) (job.Status, bool) { s, ok := w.statuses[id]; return s, ok },
		Buckets:   schedule.Buckets(w.rule, schedule.AdHoc(j)),
		InFlight:  func(schedule.Bucket) int { return w.inFlight },
		SlotsFree: w.slots,
		Away:      w.away,
	})
}

func TestNext(t *testing.T) {
	on := func(statuses ...string) opcode.Dependency { return opcode.Dependency{Job: 7, Statuses: statuses} }
	seven := func(s job.Status) map[job.ID]job.Status { return map[job.ID]job.Status{7: s} }
	plain := newJob("")
	for name, c := range map[string]struct {
		job  *job.Job
		in   world
		want schedule.Step
		why  string
	}{
		"free":               {plain, world{slots: 1}, schedule.Run, "nothing stands in the way"},
		"no slot":            {plain, world{}, schedule.WaitSlot, "max_running_jobs"},
		"ended":              {plain.Dequeue(1), world{slots: 1}, schedule.Ended, "canceled"},
		"waits for locks":    {plain.BeginWait(0, 1), world{slots: 1}, schedule.InFlight, "opcode 0 is waiting"},
		"runs":               {plain.Succeed(0, nil, 1).BeginWait(1, 2).BeginRun(1, 3), world{slots: 1}, schedule.InFlight, "opcode 1 is running"},
		"between opcodes":    {plain.Succeed(0, nil, 1), world{slots: 1}, schedule.Run, "nothing"},
		"asked to end":       {plain.Succeed(0, nil, 1).RequestCancel(job.ByRequest), world{slots: 1}, schedule.Cancel, job.ByRequest},
		"end over pause":     {plain.RequestCancel("enough"), world{rule: decision(jobfilter.Pause, 0)}, schedule.Cancel, "enough"},
		"runs and paused":    {plain.BeginWait(0, 1).BeginRun(0, 2), world{rule: decision(jobfilter.Pause, 0)}, schedule.InFlight, "running"},
		"paused":             {plain, world{rule: decision(jobfilter.Pause, 0), slots: 1}, schedule.Hold, "paused by"},
		"rejected":           {plain, world{rule: decision(jobfilter.Reject, 0), slots: 1}, schedule.Cancel, "rejected by"},
		"accepted":           {plain, world{rule: decision(jobfilter.Accept, 0), slots: 1}, schedule.Run, ""},
		"limit reached":      {plain, world{rule: decision(jobfilter.RateLimit, 2), inFlight: 2, slots: 1}, schedule.WaitBucket, "2 of 2 jobs"},
		"limit overrun":      {plain, world{rule: decision(jobfilter.RateLimit, 2), inFlight: 5, slots: 1}, schedule.WaitBucket, "5 of 2 jobs"},
		"below the limit":    {plain, world{rule: decision(jobfilter.RateLimit, 2), inFlight: 1, slots: 1}, schedule.Run, ""},
		"ad-hoc limit":       {newJob("rate-limit:1:x"), world{inFlight: 1, slots: 1}, schedule.WaitBucket, "rate-limit:1:x"},
		"paused, not in it":  {newJob("rate-limit:1:x"), world{rule: decision(jobfilter.Pause, 0), inFlight: 1}, schedule.Hold, "paused"},
		"dependency pending": {newJob("", on()), world{statuses: seven(job.Running), slots: 1}, schedule.WaitDependency, "waits for job 7"},
		"dependency met":     {newJob("", on("success")), world{statuses: seven(job.Success), slots: 1}, schedule.Run, ""},
		"any but canceled":   {newJob("", on()), world{statuses: seven(job.Error), slots: 1}, schedule.Run, ""},
		"dependency failed":  {newJob("", on("success")), world{statuses: seven(job.Error), slots: 1}, schedule.Fail, "status 'error'"},
		"dependency gone":    {newJob("", on("success")), world{slots: 1}, schedule.Fail, "Job 7 not found"},
		"with it canceled":   {newJob("", on("success")), world{statuses: seven(job.Canceled), slots: 1}, schedule.Cancel, "job 7 was canceled"},
		"canceled is fine":   {newJob("", on("canceled")), world{statuses: seven(job.Canceled), slots: 1}, schedule.Run, ""},
		"rule before it":     {newJob("", on()), world{rule: decision(jobfilter.Pause, 0), statuses: seven(job.Running), slots: 1}, schedule.Hold, ""},
		"it before bucket":   {newJob("rate-limit:1:x", on()), world{statuses: seven(job.Running), inFlight: 1, slots: 1}, schedule.WaitDependency, ""},
		"node away":          {plain, world{slots: 1, away: &schedule.Absence{Node: "n1", Lost: true}}, schedule.WaitNode, "waits for node n1, which is away"},
		"node not come":      {plain, world{slots: 1, away: &schedule.Absence{Node: "n1"}}, schedule.WaitNode, "waits for node n1, which does not follow this controller yet"},
		"node before bucket": {newJob("rate-limit:1:x"), world{inFlight: 1, slots: 1, away: &schedule.Absence{Node: "n1"}}, schedule.WaitNode, ""},
		"it before node":     {newJob("", on()), world{statuses: seven(job.Running), slots: 1, away: &schedule.Absence{Node: "n1"}}, schedule.WaitDependency, ""},
		"bucket before slot": {newJob("rate-limit:1:x"), world{inFlight: 1}, schedule.WaitBucket, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.in.next(c.job)
			if v.Step != c.want || !strings.Contains(v.Why, c.why) {
				t.Errorf("%s (%s), want %s (%s)", v.Step, v.Why, c.want, c.why)
			}
			if (v.Err != nil) != (v.Step == schedule.Fail) || (v.Step == schedule.Hold) && v.Rule == nil || (v.On != nil) != (v.Step == schedule.WaitDependency) {
				t.Errorf("verdict %+v", v)
			}
		})
	}
}

func TestFailureOfADependencyIsOneOfTheWork(t *testing.T) {
	v := world{slots: 1}.next(newJob("", opcode.Dependency{Job: 7}))
	if !fault.Is(v.Err, fault.Failed) {
		t.Errorf("error %v", v.Err)
	}
}

func TestBuckets(t *testing.T) {
	adhoc := schedule.AdHoc(newJob("rate-limit:3:maint"))
	got := fmt.Sprint(schedule.Buckets(decision(jobfilter.RateLimit, 2), adhoc))
	want := "[rate limit 2 of filter rule 0e9ba8e1-0000-4000-8000-000000000001 ad-hoc limit rate-limit:3:maint]"
	if got != want {
		t.Errorf("buckets %s", got)
	}
	if got := schedule.Buckets(decision(jobfilter.Pause, 0), nil); got != nil {
		t.Errorf("a paused job is in %v", got)
	}
}

// Each opcode has a trail of its own, and any of them may name a limit.
func TestLimitsOfAllOpcodesCount(t *testing.T) {
	named := func(text string) *opcode.Opcode {
		return &opcode.Opcode{ID: "OP_TEST_DUMMY", Reason: reason.Trail{{Source: "user", Reason: text, Time: 1}}}
	}
	j := job.New(10, []*opcode.Opcode{named("no limit"), named("rate-limit:2:disks"), named("rate-limit:1:net")}, "", now)
	if got, want := schedule.AdHoc(j), []reason.Bucket{{Label: "disks", Limit: 2}, {Label: "net", Limit: 1}}; !slices.Equal(got, want) {
		t.Errorf("limits %v, want %v", got, want)
	}
}

// genWorld draws a job in any state, and facts.
func genWorld(t *rapid.T) (*job.Job, world) {
	statuses := map[job.ID]job.Status{}
	var deps []opcode.Dependency
	for id := range job.ID(rapid.IntRange(0, 3).Draw(t, "dependencies")) {
		deps = append(deps, opcode.Dependency{Job: int64(id + 1), Statuses: rapid.SampledFrom([][]string{nil, {"success"}, {"error", "canceled"}}).Draw(t, "wanted")})
		if s := rapid.SampledFrom(append(job.Statuses[:], "gone")).Draw(t, "status"); s != "gone" {
			statuses[id+1] = s
		}
	}
	j := newJob(rapid.SampledFrom([]string{"", "rate-limit:1:x", "rate-limit:3:x", "rate-limit:0:x"}).Draw(t, "reason"), deps...)
	switch rapid.IntRange(0, 5).Draw(t, "state") {
	case 1:
		j = j.BeginWait(0, 1)
	case 2:
		j = j.BeginWait(0, 1).BeginRun(0, 2)
	case 3:
		j = j.Succeed(0, nil, 3)
	case 4:
		j = j.Fail(0, errors.New("x"), 3)
	case 5:
		j = j.RequestCancel("why not")
	}
	kind := rapid.SampledFrom([]jobfilter.Kind{"", jobfilter.Accept, jobfilter.Pause, jobfilter.Reject, jobfilter.RateLimit}).Draw(t, "action")
	return j, world{
		rule: decision(kind, rapid.IntRange(1, 3).Draw(t, "limit")), statuses: statuses,
		inFlight: rapid.IntRange(0, 3).Draw(t, "in flight"), slots: rapid.IntRange(0, 2).Draw(t, "slots"),
	}
}

// TestRunNeedsEverything: a job runs exactly if nothing stands in its way, and
// whatever does is named.
func TestRunNeedsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j, w := genWorld(t)
		v := w.next(j)
		kind := w.rule.Action().Kind
		full := slices.ContainsFunc(schedule.Buckets(w.rule, schedule.AdHoc(j)), func(b schedule.Bucket) bool { return w.inFlight >= b.Limit })
		met := !slices.ContainsFunc(pendingOrBad(j, w), func(bool) bool { return true })
		free := !j.Final() && !j.Busy() && j.CancelReason == "" && kind != jobfilter.Pause && kind != jobfilter.Reject && met && !full && w.slots > 0
		if (v.Step == schedule.Run) != free {
			t.Fatalf("%s: %s, and free is %v", v.Step, v.Why, free)
		}
		if v.Why == "" {
			t.Fatalf("%s for no reason", v.Step)
		}
	})
}

// pendingOrBad has an element for each dependency in the way of the next opcode.
func pendingOrBad(j *job.Job, w world) (out []bool) {
	for i := range j.Ops {
		for _, d := range j.Ops[i].Input.Depends {
			status, exists := w.statuses[job.ID(d.Job)]
			state, _ := job.CheckDependency(d, status, exists)
			if state == job.DependencyPending || i == j.Next() && state != job.DependencyMet {
				out = append(out, true)
			}
		}
	}
	return out
}

// TestMoreRoomNeverHolds: more slots or fewer jobs in flight never make a job
// wait that could run.
func TestMoreRoomNeverHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j, w := genWorld(t)
		roomy := w
		roomy.slots++
		roomy.inFlight = max(w.inFlight-1, 0)
		if v := roomy.next(j); w.next(j).Step == schedule.Run && v.Step != schedule.Run {
			t.Fatalf("with more room: %s", v.Step)
		}
	})
}

func TestBeforeIsATotalOrder(t *testing.T) {
	type rank struct {
		priority int
		id       job.ID
	}
	gen := rapid.Custom(func(t *rapid.T) rank {
		return rank{rapid.IntRange(-2, 2).Draw(t, "priority"), job.ID(rapid.IntRange(1, 4).Draw(t, "id"))}
	})
	before := func(a, b rank) bool { return schedule.Before(a.priority, a.id, b.priority, b.id) }
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := gen.Draw(t, "a"), gen.Draw(t, "b"), gen.Draw(t, "c")
		if before(a, b) && before(b, a) || a != b && !before(a, b) && !before(b, a) {
			t.Fatalf("%v and %v", a, b)
		}
		if before(a, b) && before(b, c) && !before(a, c) {
			t.Fatalf("%v, %v, %v", a, b, c)
		}
		if a.priority < b.priority && !before(a, b) {
			t.Fatalf("%v is more urgent than %v", a, b)
		}
	})
}
