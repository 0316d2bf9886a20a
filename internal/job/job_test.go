package job_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
)

var submitted = time.Unix(1700000000, 123456000)

func dummy(t testing.TB, text string) *opcode.Opcode {
	t.Helper()
	op, err := opcode.Parse([]byte(text), opcode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return op
}

func delay(t testing.TB) *opcode.Opcode {
	t.Helper()
	return dummy(t, `{"OP_ID":"OP_TEST_DELAY","duration":1,"reason":[["user","für Müller",5]]}`)
}

func TestNewAppendsToTheTrail(t *testing.T) {
	j := job.New(7, []*opcode.Opcode{delay(t), delay(t)}, "", submitted)
	want := reason.Trail{
		{Source: "user", Reason: "für Müller", Time: 5},
		{Source: "gnt:opcode:test_delay", Reason: "job=7;index=1", Time: submitted.UnixNano()},
	}
	if got := j.Ops[1].Input.Reason; !reflect.DeepEqual(got, want) {
		t.Errorf("trail %v, want %v", got, want)
	}
}

func TestStatusIsDerived(t *testing.T) {
	for _, tc := range []struct {
		ops  string
		want job.Status
	}{
		{"", job.Success},
		{"queued queued", job.Queued},
		{"success queued", job.Queued},
		{"success waiting", job.Waiting},
		{"success running queued", job.Running},
		{"success success", job.Success},
		{"success error error", job.Error},
		{"canceled queued", job.Canceled},
		{"success canceling", job.Canceling},
	} {
		j := &job.Job{}
		for s := range strings.FieldsSeq(tc.ops) {
			j.Ops = append(j.Ops, job.Op{Status: job.Status(s)})
		}
		if got := j.Status(); got != tc.want {
			t.Errorf("%q: %s, want %s", tc.ops, got, tc.want)
		}
	}
}

func TestFailEndsTheJob(t *testing.T) {
	j := job.New(1, []*opcode.Opcode{delay(t), delay(t), delay(t)}, "", submitted)
	j = j.BeginWait(0, 10).BeginRun(0, 11).Succeed(0, json.RawMessage("null"), 12).BeginWait(1, 13).BeginRun(1, 14)
	j = j.Fail(1, fault.New(fault.NotFound, "Instance web9 not found"), 15)
	if j.Status() != job.Error || j.Ended != 15 || j.Started != 10 {
		t.Errorf("status %s, started %d, ended %d", j.Status(), j.Started, j.Ended)
	}
	for i, want := range []string{
		`null`,
		`["OpPrereqError",["Instance web9 not found","unknown_entity"]]`,
		`["OpExecError",["Preceding opcode failed"]]`,
	} {
		if got := string(j.Ops[i].Result); got != want {
			t.Errorf("result %d: %s, want %s", i, got, want)
		}
	}
}

func TestCancelSaysWhy(t *testing.T) {
	j := job.New(1, []*opcode.Opcode{delay(t), delay(t)}, "", submitted)
	if got := j.Dequeue(9); got.Status() != job.Canceled || got.Ops[0].Result != nil {
		t.Errorf("dequeued: %s %s", got.Status(), got.Ops[0].Result)
	}
	if got := j.Cancel(job.ByRequest, 9); string(got.Ops[1].Result) != `"Job canceled by request"` || len(got.Ops[0].Log) != 0 {
		t.Errorf("by request: %s, log %v", got.Ops[1].Result, got.Ops[0].Log)
	}
	got := j.Cancel("rejected by rule x", 9)
	if class, text, ok := job.DecodeError(got.Ops[0].Result); !ok || class != "OpExecError" || text != "rejected by rule x" {
		t.Errorf("by a rule: %s", got.Ops[0].Result)
	}
	if log := got.Ops[0].Log; len(log) != 1 || string(log[0].Payload) != `"rejected by rule x"` {
		t.Errorf("log: %v", log)
	}
}

func TestResolveDependencies(t *testing.T) {
	ops := []*opcode.Opcode{dummy(t, `{"OP_ID":"OP_TEST_DELAY","duration":1,"depends":[[-1,["success"]],["3",[]],[0,[]]]}`)}
	before := func(id job.ID) func(int64) job.ID {
		return func(relative int64) job.ID { return id + job.ID(relative) }
	}
	got, err := job.ResolveDependencies(10, ops, before(10))
	if err != nil {
		t.Fatal(err)
	}
	if d := got[0].Depends; d[0].Job != 9 || d[1].Job != 3 || d[2].Job != 0 {
		t.Errorf("resolved to %v", d)
	}
	if ops[0].Depends[0].Job != -1 {
		t.Error("the submitted opcode was changed")
	}
	for id, why := range map[job.ID]string{3: "itself", 1: "before the first"} {
		if _, err := job.ResolveDependencies(id, ops, before(id)); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), why) {
			t.Errorf("job %d: %v, want an error with %q", id, err, why)
		}
	}
}

func TestCheckDependency(t *testing.T) {
	for _, tc := range []struct {
		statuses string
		status   job.Status
		exists   bool
		want     job.DependencyState
	}{
		{"", job.Success, true, job.DependencyMet},
		{"", job.Error, true, job.DependencyMet},
		{"", job.Canceled, true, job.DependencyCanceled},
		{"canceled", job.Canceled, true, job.DependencyMet},
		{"success", job.Canceled, true, job.DependencyCanceled},
		{"success", job.Error, true, job.DependencyFailed},
		{"success error", job.Error, true, job.DependencyMet},
		{"success", job.Running, true, job.DependencyPending},
		{"", "", false, job.DependencyFailed},
	} {
		got, why := job.CheckDependency(opcode.Dependency{Job: 1, Statuses: strings.Fields(tc.statuses)}, tc.status, tc.exists)
		if got != tc.want || why == "" {
			t.Errorf("%q on %s: %v (%s), want %v", tc.statuses, tc.status, got, why, tc.want)
		}
	}
}

func TestCircles(t *testing.T) {
	graph := map[job.ID][]job.ID{1: {2, 99}, 2: {3}, 3: {2, 4}, 4: {}, 5: {6, 4}, 6: {7}, 7: {5, 3}, 8: {1, 5}}
	want := map[job.ID][]job.ID{2: {2, 3}, 3: {2, 3}, 5: {5, 6, 7}, 6: {5, 6, 7}, 7: {5, 6, 7}}
	if got := job.Circles(graph); !reflect.DeepEqual(got, want) {
		t.Errorf("circles %v, want %v", got, want)
	}
}

// TestCirclesAreThoseOfTheClosure compares with a search for every job.
func TestCirclesAreThoseOfTheClosure(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		graph := map[job.ID][]job.ID{}
		n := rapid.IntRange(1, 8).Draw(rt, "jobs")
		for id := range n {
			graph[job.ID(id)] = rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) job.ID {
				return job.ID(rapid.IntRange(0, n).Draw(rt, "on"))
			}), 0, 3).Draw(rt, "depends")
		}
		found := job.Circles(graph)
		for id := range graph {
			want := len(graph[id]) > 0 && reaches(graph, graph[id], id, map[job.ID]bool{}) && !onlyItself(graph, id)
			if _, got := found[id]; got != want {
				rt.Fatalf("job %d in a circle: %v, want %v, of %v", id, got, want, graph)
			}
		}
	})
}

func reaches(graph map[job.ID][]job.ID, from []job.ID, to job.ID, seen map[job.ID]bool) bool {
	for _, id := range from {
		if id == to {
			return true
		}
		if !seen[id] {
			seen[id] = true
			if reaches(graph, graph[id], to, seen) {
				return true
			}
		}
	}
	return false
}

// onlyItself tells that the job is in no circle but that with itself, which is
// refused elsewhere.
func onlyItself(graph map[job.ID][]job.ID, id job.ID) bool {
	others := map[job.ID][]job.ID{}
	for k, v := range graph {
		for _, d := range v {
			if k != d {
				others[k] = append(others[k], d)
			}
		}
	}
	return !reaches(others, others[id], id, map[job.ID]bool{})
}

// TestOpcodesLeaveNoMoreThanTheLimits: what is too long is clipped, and says so.
func TestOpcodesLeaveNoMoreThanTheLimits(t *testing.T) {
	j := job.New(1, []*opcode.Opcode{delay(t)}, "", submitted).BeginWait(0, 2).BeginRun(0, 3)
	long := strings.Repeat("ü<", job.MaxText)
	text, err := json.Marshal(long)
	if err != nil {
		t.Fatal(err)
	}
	failed := j.Fail(0, &fault.Error{Code: fault.NotFound, Message: long}, 4)
	if class, why, ok := job.DecodeError(failed.Ops[0].Result); !ok || class != "OpPrereqError" || len(why) > job.MaxText || !strings.Contains(why, "more bytes") {
		t.Errorf("error: %v %s, %d bytes", ok, class, len(why))
	}
	if got := len(j.AddLog(0, job.LogMessage, text, 4).Ops[0].Log[0].Payload); got > job.MaxLogPayload {
		t.Errorf("a message of %d bytes", got)
	}
	other := json.RawMessage("[" + strings.Repeat("1,", job.MaxLogPayload) + "1]")
	if got := string(j.AddLog(0, job.LogDelayTest, other, 4).Ops[0].Log[0].Payload); !strings.Contains(got, "left out") {
		t.Errorf("an entry: %.80s", got)
	}
	large := json.RawMessage(`"` + strings.Repeat("x", job.MaxResult) + `"`)
	if got := string(j.Succeed(0, large, 4).Ops[0].Result); !strings.Contains(got, "left out") {
		t.Errorf("a result: %.80s", got)
	}
	many := make([]job.LogEntry, job.MaxLog-1)
	for i := range many {
		many[i] = job.LogEntry{Time: 4, Type: job.LogMessage, Payload: json.RawMessage(`"m"`)}
	}
	j = j.AddLogs(0, many...).AddLogs(0, many...).AddMessage(0, "m", 4)
	if log := j.Ops[0].Log; len(log) != job.MaxLog+1 || !strings.Contains(string(log[job.MaxLog].Payload), "left out") {
		t.Errorf("%d messages, the last %s", len(log), log[len(log)-1].Payload)
	}
	for _, ops := range [][]*opcode.Opcode{{delay(t).With("on_nodes", []any{strings.Repeat("x", job.MaxInput)})}} {
		if err := job.CheckInput(ops); !fault.Is(err, fault.TooLarge) {
			t.Errorf("large opcodes: %v", err)
		}
	}
}

// An opcode that is queued again has no times: it did not run.
func TestRequeueClearsTheTimes(t *testing.T) {
	j := job.New(1, []*opcode.Opcode{delay(t)}, "", submitted).BeginWait(0, 2).BeginRun(0, 3).Requeue(0)
	if op := j.Ops[0]; op.Status != job.Queued || op.Start != 0 || op.Exec != 0 {
		t.Errorf("queued again: %+v", op)
	}
}

// A job that was lost says so in the trail of every opcode that it took along,
// and in none that had ended before.
func TestLostIsTold(t *testing.T) {
	j := job.New(1, []*opcode.Opcode{delay(t), delay(t), delay(t)}, "", submitted).BeginWait(0, 2).BeginRun(0, 3).Succeed(0, nil, 4)
	lost := j.BeginWait(1, 5).BeginRun(1, 6).Lost(1, "the controller died", submitted)
	want := reason.Entry{Source: "gnt:daemon:luxid:deathdetection", Reason: "the controller died", Time: submitted.UnixNano()}
	for i, op := range lost.Ops {
		trail := op.Input.Reason
		if told := trail[len(trail)-1] == want; told != (i >= 1) {
			t.Errorf("opcode %d (%s): the trail ends with %+v", i, op.Status, trail[len(trail)-1])
		}
	}
	if before := j.Ops[2].Input.Reason; len(before) == len(lost.Ops[2].Input.Reason) {
		t.Error("the trail of the job as it was has grown")
	}
}

// What has ended is held by nobody.
func TestFinalJobsAreNotHeld(t *testing.T) {
	held := job.New(1, []*opcode.Opcode{delay(t), delay(t)}, "", submitted).WithHold(&job.Hold{Rule: "u", Since: 2})
	for name, end := range map[string]*job.Job{
		"Dequeue": held.Dequeue(3), "Cancel": held.Cancel(job.ByRequest, 3), "Cancel by a rule": held.Cancel("rejected", 3),
		"Fail": held.Fail(0, fault.New(fault.Failed, "no"), 3), "Lost": held.Lost(0, "crash", submitted),
	} {
		if !end.Final() || end.Hold != nil {
			t.Errorf("%s: status %s, hold %+v", name, end.Status(), end.Hold)
		}
	}
	if held.Hold == nil {
		t.Error("the job as it was is not held any more")
	}
}

// TestRandomLife drives a job through random transitions and
// checks that storing and reading gives the same job, and that the invariants
// of the package hold on the way.
func TestRandomLife(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var ops []*opcode.Opcode
		for range rapid.IntRange(1, 4).Draw(rt, "ops") {
			ops = append(ops, delay(t))
		}
		j := job.New(3, ops, rapid.SampledFrom([]string{"", "key-ü"}).Draw(rt, "key"), submitted)
		now := j.Received
		for range rapid.IntRange(0, 12).Draw(rt, "steps") {
			now++
			j = step(rt, j, now)
			checkInvariants(rt, j)
		}
		kept := shelf{}
		kept.write(j.Parts())
		got, err := kept.read()
		if err != nil {
			rt.Fatal(err)
		}
		if string(got.Encode()) != string(j.Encode()) || got.Status() != j.Status() || got.LastSerial() != j.LastSerial() {
			rt.Fatalf("read %s, wrote %s", got.Encode(), j.Encode())
		}
	})
}

func step(rt *rapid.T, j *job.Job, now job.Time) *job.Job {
	i := j.Next()
	if i == len(j.Ops) {
		return j
	}
	switch j.Ops[i].Status {
	case job.Queued:
		return rapid.SampledFrom([]*job.Job{j.BeginWait(i, now), j.BeginWait(i, now), j.SetPriority(-10), j.Dequeue(now)}).Draw(rt, "queued")
	case job.Waiting:
		return rapid.SampledFrom([]*job.Job{j.BeginRun(i, now), j.Requeue(i), j.Cancel(job.ByRequest, now)}).Draw(rt, "waiting")
	default:
		return rapid.SampledFrom([]*job.Job{
			j.AddMessage(i, "schön \x01 \"quoted\"", now), j.Succeed(i, json.RawMessage(`{"a":[1]}`), now),
			j.Fail(i, fault.New(fault.Failed, "no"), now), j.RequestCancel("rule"), j.Lost(i, "crash", submitted),
		}).Draw(rt, "running")
	}
}

func checkInvariants(rt *rapid.T, j *job.Job) {
	next := j.Next()
	for i := range j.Ops {
		op := &j.Ops[i]
		if final := op.Status.Final(); i > next && next < len(j.Ops) && final {
			rt.Fatalf("opcode %d is final behind an unfinished one", i)
		}
		if op.Status.Final() != (op.End != 0) {
			rt.Fatalf("opcode %d is %s with end %d", i, op.Status, op.End)
		}
	}
	if j.Final() != (j.Ended != 0) {
		rt.Fatalf("job is %s with end %d", j.Status(), j.Ended)
	}
	serial := int64(0)
	for _, e := range j.LogAfter(0) {
		if e.Serial != serial+1 {
			rt.Fatalf("log serial %d after %d", e.Serial, serial)
		}
		serial = e.Serial
	}
}

func TestSecretsAreNotStored(t *testing.T) {
	j := job.New(1, []*opcode.Opcode{dummy(t, `{"OP_ID":"OP_TEST_OS_PARAMS","osparams_secret":{"root":"hunter2"}}`)}, "", submitted)
	stored := j.Head()
	if strings.Contains(string(stored), "hunter2") {
		t.Fatalf("the secret is in %s", stored)
	}
	if got := j.Ops[0].Input.Map("osparams_secret")["root"]; got != "hunter2" {
		t.Errorf("the live job has %v", got)
	}
	read, err := job.Decode(1, stored, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := read.Ops[0].Input.LostSecret(); got != "osparams_secret" {
		t.Errorf("LostSecret of the stored job = %q", got)
	}
}
