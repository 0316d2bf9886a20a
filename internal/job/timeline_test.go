package job_test

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
)

// lines writes a timeline shortly, with times since the submission.
func lines(j *job.Job, lasting ...job.Span) string {
	var out []string
	for _, s := range j.Timeline(lasting...) {
		to := ""
		if s.To != 0 {
			to = strconv.FormatInt(int64(s.To-j.Received), 10)
		}
		out = append(out, fmt.Sprintf("%d-%s %s[%d] %s", s.From-j.Received, to, s.Kind, s.Opcode, s.Text))
	}
	return strings.Join(out, "\n")
}

func TestTimeline(t *testing.T) {
	plain := job.New(1, []*opcode.Opcode{delay(t), delay(t)}, "", submitted)
	at := func(n job.Time) job.Time { return plain.Received + n }
	hold := job.Span{Kind: job.HeldByRule, From: at(0), To: at(5), On: "u", Text: "paused"}
	lock := job.Span{Kind: job.WaitForLock, From: at(7), To: at(9), On: "node/a", Text: "waits for the lock"}
	running := plain.WithWait(hold).BeginWait(0, at(7)).WithWait(lock).BeginRun(0, at(10))
	ended := running.WithNodes(0, []string{"node1", "node2"}).Succeed(0, nil, at(20))
	stepping := running.WithSteps(0, []job.Step{{Text: "make it", Node: "node1", State: job.StepRunning, From: at(11)}})
	stepped := running.WithSteps(0, []job.Step{{Text: "what a controller before did", State: job.StepDone}, {Text: "make it", Node: "node1", State: job.StepDone, From: at(11), To: at(14)},
		{Text: "start it", Node: "node1", State: job.StepLeft, From: at(14), To: at(16)}, {Text: "mark it", State: job.StepPlanned}})
	for name, c := range map[string]struct {
		job     *job.Job
		lasting []job.Span
		want    string
	}{
		"at once":       {plain.BeginWait(0, at(0)).BeginRun(0, at(0)), nil, "0-0 received[0] received\n0- ran[0] TEST_DELAY(1.0)"},
		"queued":        {plain, nil, "0-0 received[0] received"},
		"waits":         {plain, []job.Span{{Kind: job.WaitForDependency, From: at(3), Text: "waits"}}, "0-0 received[0] received\n0-3 slot[0] " + job.NoSlot + "\n3- dependency[0] waits"},
		"cancelled":     {plain.Dequeue(at(4)), nil, "0-0 received[0] received\n0-4 slot[0] " + job.NoSlot + "\n4-4 ended[1] the job ended as canceled"},
		"gave up":       {plain.BeginWait(0, at(0)).WithWait(lock).Cancel("no more", at(9)), nil, "0-0 received[0] received\n0-7 slot[0] " + job.NoSlotWhileReady + "\n7-9 lock[0] waits for the lock\n9-9 ended[1] the job ended as canceled: opcode 0: no more"},
		"in its second": {ended.BeginWait(1, at(20)).BeginRun(1, at(20)).Fail(1, errors.New("it broke"), at(30)), nil, "0-0 received[0] received\n0-5 rule[0] paused\n5-7 slot[0] " + job.NoSlot + "\n7-9 lock[0] waits for the lock\n9-10 slot[0] " + job.NoSlotWhileReady + "\n10-20 ran[0] TEST_DELAY(1.0) on node1, node2: success\n20-30 ran[1] TEST_DELAY(1.0): error\n30-30 ended[1] the job ended as error: opcode 1: it broke"},
		"in steps": {stepped.Fail(0, errors.New("it broke"), at(20)), nil, "0-0 received[0] received\n0-5 rule[0] paused\n5-7 slot[0] " + job.NoSlot + "\n7-9 lock[0] waits for the lock\n9-10 slot[0] " + job.NoSlotWhileReady +
			"\n10-20 ran[0] TEST_DELAY(1.0): error\n11-14 step[0] make it on node1\n14-16 step[0] start it on node1: left\n20-20 ended[1] the job ended as error: opcode 0: it broke"},
		"in a step": {stepping, nil, "0-0 received[0] received\n0-5 rule[0] paused\n5-7 slot[0] " + job.NoSlot + "\n7-9 lock[0] waits for the lock\n9-10 slot[0] " + job.NoSlotWhileReady + "\n10- ran[0] TEST_DELAY(1.0)\n11- step[0] make it on node1"},
	} {
		if got := lines(c.job, c.lasting...); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
	if w := stepped.Waited(); w != 10 {
		t.Errorf("with steps it waited %d", w)
	}
	if w := ended.Waited(); w != 10 {
		t.Errorf("waited %d", w)
	}
}

// When an opcode began to run first is what the first restart behind that tells; one before it asked for its locks tells nothing.
func TestBegan(t *testing.T) {
	j := job.New(1, []*opcode.Opcode{delay(t), delay(t)}, "", submitted)
	at := func(n job.Time) job.Time { return j.Received + n }
	restart := func(from, to job.Time) job.Span { return job.Span{Kind: job.Restart, From: at(from), To: at(to)} }
	j = j.WithWait(restart(1, 2)).BeginWait(0, at(3)).BeginRun(0, at(4))
	if got := j.Began(0); got != 0 {
		t.Errorf("before a restart it began at %d", got)
	}
	j = j.Resume(0).WithWait(restart(4, 9)).BeginRun(0, at(10)).Resume(0).WithWait(restart(10, 20)).BeginRun(0, at(21))
	if got := j.Began(0); got != at(4) {
		t.Errorf("it began at %d", got)
	}
	if got := j.Began(1); got != 0 {
		t.Errorf("the one behind it began at %d", got)
	}
}

func TestWaitsAreBoundedAndSaySo(t *testing.T) {
	j := job.New(1, []*opcode.Opcode{delay(t)}, "", submitted)
	if strings.Contains(string(j.Encode()), "waits") {
		t.Errorf("a job that never waited is stored as %s", j.Encode())
	}
	long := job.Span{Kind: job.WaitForLock, Text: strings.Repeat("ü", job.MaxWaitText), Jobs: make([]job.ID, 100)}
	for i := range 1000 {
		long.From, long.To = j.Received+job.Time(2*i), j.Received+job.Time(2*i+1)
		j = j.WithWait(long)
	}
	last := j.Waits[job.MaxWaits-1]
	if len(j.Waits) != job.MaxWaits || last.Kind != job.LeftOut || last.To != long.To || !strings.Contains(last.Text, "left out") {
		t.Errorf("%d waits, the last %+v", len(j.Waits), last)
	}
	if first := j.Waits[0]; len(first.Text) > job.MaxWaitText || len(first.Jobs) != job.MaxWaitJobs {
		t.Errorf("the first: %+v", first)
	}
	back, err := job.Decode(j.ID, j.Head(), nil)
	if err != nil || !reflect.DeepEqual(back.Waits, j.Waits) {
		t.Errorf("stored and read: %v, %+v", err, back)
	}
	again := j.WithWait(job.Span{Kind: job.WaitForLock, From: last.To, To: last.To + 1})
	if len(again.Waits) != job.MaxWaits || again.Waits[job.MaxWaits-1].To != last.To+1 {
		t.Errorf("one more: %+v", again.Waits[job.MaxWaits-1])
	}
}

func TestAWaitThatGoesOnIsOne(t *testing.T) {
	j := job.New(1, []*opcode.Opcode{delay(t)}, "", submitted)
	limit := job.Span{Kind: job.WaitForLimit, On: "l", From: j.Received, To: j.Received + 5}
	next := limit
	next.From, next.To = limit.To, limit.To+5
	if got := j.WithWait(limit).WithWait(next); len(got.Waits) != 1 || got.Waits[0].To != next.To {
		t.Errorf("two waits: %+v", got.Waits)
	}
}
