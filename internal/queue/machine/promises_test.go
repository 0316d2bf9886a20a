package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
)

// desk is a machine whose opcodes lock what their comments say: "=web1" alone,
// "web1" together with others, nothing without a comment.
type desk struct {
	*testing.T
	*Machine

	prefix string
	now    time.Time
}

func newDesk(t *testing.T, slots int, l Loaded) *desk {
	t.Helper()
	d := &desk{T: t, now: time.Unix(2e9, 0)}
	l.World = d.world(slots)
	if l.Resumable == nil {
		l.Resumable = func(string) (bool, string) { return false, "the test says so" }
	}
	m, err := New(l)
	if err != nil {
		t.Fatal(err)
	}
	d.Machine = m
	d.do(Recover{})
	return d
}

func (d *desk) world(slots int) World {
	prefix := d.prefix
	return World{MaxRunning: slots, Locks: func(op *opcode.Opcode) lock.Request {
		switch {
		case op.Comment == nil:
			return nil
		case (*op.Comment)[0] == '=':
			return lock.Request{{Name: lock.Name{Level: lock.Instance, Item: prefix + (*op.Comment)[1:]}, Mode: lock.Exclusive}}
		}
		return lock.Request{{Name: lock.Name{Level: lock.Instance, Item: prefix + *op.Comment}, Mode: lock.Shared}}
	}}
}

func (d *desk) do(e Event) *Ready {
	d.now = d.now.Add(time.Second)
	return d.Apply(e, d.now)
}

// submit takes a job of one opcode with a comment, empty for none.
func (d *desk) submit(comment string) job.ID {
	d.Helper()
	op := *dummyOp
	if comment != "" {
		op.Comment = &comment
	}
	return d.submitOps(Submission{Ops: []*opcode.Opcode{&op}})[0].ID
}

func (d *desk) submitOps(subs ...Submission) []Outcome {
	d.Helper()
	known := map[string]job.ID{}
	for _, s := range subs {
		known[s.Key] = 0
	}
	s, _ := d.Prepare(Submit{Jobs: subs, Known: known})
	return d.do(s).Outcomes
}

// starts are the jobs of which an event had an opcode begin.
func starts(r *Ready) (ids []job.ID) {
	for _, s := range r.Starts {
		ids = append(ids, s.Job)
	}
	return ids
}

func (d *desk) end(id job.ID) *Ready { return d.do(Done{Log: Log{Job: id}, Result: []byte(`null`)}) }

// Who has all locks goes before others of the same priority: they may wait for
// those locks.
func TestWhoHasItsLocksGoesFirst(t *testing.T) {
	d := newDesk(t, 2, Loaded{})
	first := d.submit("=web1")
	next := d.submit("=web1") // begins to wait for the lock
	d.submit("")              // takes the last slot
	d.do(d.world(1))
	d.submit("") // waits for a slot
	if got := starts(d.end(3)); len(got) > 0 {
		t.Fatalf("began %v over the limit", got)
	}
	if got := starts(d.end(first)); !slices.Equal(got, []job.ID{next}) {
		t.Errorf("began %v, want %d, which has its locks", got, next)
	}
}

// A job that begins has the locks that its opcode needs as things are then, not
// as they were when it began to wait.
func TestLocksAreThoseOfTheNewestInventory(t *testing.T) {
	d := newDesk(t, 5, Loaded{})
	first, second := d.submit("=web1"), d.submit("=web1")
	d.prefix = "moved-"
	d.do(d.world(5))
	third := d.submit("=web1") // has the lock under its new name
	if got := starts(d.end(first)); len(got) > 0 {
		t.Fatalf("job %v began beside job %d, which has its lock", got, third)
	}
	if got := starts(d.end(third)); !slices.Equal(got, []job.ID{second}) {
		t.Errorf("began %v, want %d", got, second)
	}
	if held := d.locks.Held(lock.Owner(second)); len(held) != 1 || held[0].Name.Item != "moved-web1" {
		t.Errorf("it holds %v", held)
	}
}

// A waiter that steps back for a priority lets those go on for whom it was in the
// way.
func TestSteppingBackServesOthers(t *testing.T) {
	d := newDesk(t, 5, Loaded{})
	d.submit("web1")
	inTheWay, behind := d.submit("=web1"), d.submit("web1")
	if got := starts(d.do(ChangePriority{Job: inTheWay, Priority: MaxPriority})); !slices.Equal(got, []job.ID{behind}) {
		t.Errorf("began %v, want %d", got, behind)
	}
}

// After a restart a job is held since the rule was there, or since it came
// itself if that was later; not since the restart.
func TestHoldsAreOlderThanTheRestart(t *testing.T) {
	const ruled = 1_000_000_000 // in seconds
	pause := jobfilter.Rule{UUID: "a", Action: jobfilter.Action{Kind: jobfilter.Pause},
		Reason: reason.Trail{{Source: "user", Time: (ruled - 60) * 1e9}, {Source: "gnt:daemon:luxi", Time: ruled * 1e9}}} // a client's clock may be behind
	before := job.New(1, []*opcode.Opcode{dummyOp}, "", time.Unix(ruled-5, 0))
	after := job.New(2, []*opcode.Opcode{dummyOp}, "", time.Unix(ruled+5, 0))
	d := newDesk(t, 1, Loaded{Jobs: []*job.Job{before, after}, Rules: []jobfilter.Rule{pause}, LastID: 2})
	for id, want := range map[job.ID]int64{1: ruled, 2: ruled + 5} {
		if h := d.Job(id).Hold; h == nil || h.Since != job.Time(want*1e6) {
			t.Errorf("job %d is held by %+v, want since %d", id, h, want)
		}
	}
}

// A key that came with a refused job names none: the next job with it is taken.
func TestKeyOfARefusedJobIsFree(t *testing.T) {
	d := newDesk(t, 1, Loaded{})
	circle := *dummyOp
	circle.Depends = []opcode.Dependency{{Job: 1}}
	refused := d.submitOps(Submission{Ops: []*opcode.Opcode{&circle}, Key: "k"})
	if refused[0].Err == nil {
		t.Fatal("a job that waits for itself was taken")
	}
	taken := d.submitOps(Submission{Ops: []*opcode.Opcode{dummyOp}, Key: "k"})
	if taken[0].Err != nil || d.Job(taken[0].ID) == nil || d.Key("k") != taken[0].ID {
		t.Errorf("outcome %+v, and the key names job %d", taken[0], d.Key("k"))
	}
}

// A job that waits for a place knows how many are before it.
func TestPlaceInLine(t *testing.T) {
	d := newDesk(t, 5, Loaded{Rules: []jobfilter.Rule{{UUID: "a", Action: jobfilter.Action{Kind: jobfilter.RateLimit, Limit: 1}}}})
	d.submit("")
	for place := 1; place <= 3; place++ {
		x, _ := d.Explain(d.submit(""))
		if len(x.Buckets) != 1 || x.Buckets[0].Place != place {
			t.Errorf("place %+v, want %d", x.Buckets, place)
		}
	}
}

// A limit that comes while jobs wait for their locks takes back all but as many as it lets run, the last in line first; what runs already counts.
func TestALimitHoldsForWhoWaitsForLocks(t *testing.T) {
	d := newDesk(t, 10, Loaded{})
	holder := d.submit("=web1")
	var waiting []job.ID
	for range 4 {
		waiting = append(waiting, d.submit("web1")) // shared: all begin at once when it is free
	}
	running := d.submit("")
	plan, err := d.PlanRules(put(aRule("limit", 0, `["RATE_LIMIT",2]`, `[["jobid",[">","id",`+holder.String()+`]]]`)), inTurn)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	effects, _ := d.Forecast(plan, d.now)
	for _, f := range effects {
		told = append(told, f.Text)
	}
	want := []string{"goes on, and has one of the places", "gives up its wait for locks, and waits for one of the 2 places, as number 1 in line",
		"gives up its wait for locks, and waits for one of the 2 places, as number 2 in line", "gives up its wait for locks, and waits for one of the 2 places, as number 3 in line",
		"goes on, and has one of the places"}
	if !slices.Equal(told, want) {
		t.Errorf("foretold:\n%s", strings.Join(told, "\n"))
	}
	d.do(plan)
	if got := starts(d.end(holder)); !slices.Equal(got, waiting[:1]) {
		t.Errorf("beside job %d began %v, want one of them", running, got)
	}
	if got := starts(d.end(running)); !slices.Equal(got, waiting[1:2]) {
		t.Errorf("then began %v", got)
	}
}
