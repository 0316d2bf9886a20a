package queue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
)

func alice(why string) queue.By {
	return queue.By{
		Account: reason.Account{Surface: "rapi", Name: "alice", From: "192.0.2.7"},
		Trail:   reason.Trail{{Source: "gnt:user", Reason: why, Time: 1}},
	}
}

func (r *rig) events() []*audit.Event {
	r.t.Helper()
	var out []*audit.Event
	for e, err := range r.q.Events(ctx) {
		r.check(err)
		out = append(out, e)
	}
	return out
}

// TestWhatIsNoJobIsRecorded: who did what to the queue, why, and what was before
// and after, also over a crash; what was refused or found nothing is not told.
func TestWhatIsNoJobIsRecorded(t *testing.T) {
	r := newRig(t, 1)
	busy := r.submit(dummy)
	r.began(busy, 0)
	waiting := r.submit(delay)
	uuid, _, err := r.q.PutFilter(ctx, "", rule(t, 3, `"CONTINUE"`, `[]`), alice("later"))
	r.check(err)
	_, err = r.q.ChangePriority(ctx, waiting, 5, alice("not urgent"))
	r.check(err)
	_, err = r.q.Cancel(ctx, 999, false, alice("nothing there"))
	r.check(err)
	r.check(r.q.DeleteFilter(ctx, uuid, alice("done")))
	if err := r.q.DeleteFilter(ctx, uuid, alice("again")); !fault.Is(err, fault.NotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	_, err = r.q.Cancel(ctx, waiting, false, alice("wrong host"))
	r.check(err)
	r.check(r.q.SetDrained(ctx, false, alice("it is not drained")))
	r.check(r.q.SetDrained(ctx, true, alice("move")))
	r.check(r.q.SetDrained(ctx, true, alice("it is drained")))
	r.crash()
	r.check(r.q.SetDrained(ctx, false, alice("moved")))
	hour, day := 3600.0, 86400.0
	r.check(r.q.SetWatcherPause(ctx, nil, alice("they are not paused")))
	r.check(r.q.SetWatcherPause(ctx, &hour, alice("quiet")))
	r.check(r.q.SetWatcherPause(ctx, &day, alice("longer")))
	r.check(r.q.SetWatcherPause(ctx, &day, alice("so they are")))
	r.check(r.q.SetWatcherPause(ctx, nil, alice("on")))

	want := []string{
		"filter.add later null -> {", "job.change-priority not urgent 0 -> 5", "filter.delete done { -> null",
		"job.cancel wrong host null -> null", "queue.drain move false -> true", "queue.undrain moved true -> false",
		"watcher.pause quiet null -> 3600", "watcher.pause longer 3600 -> 86400", "watcher.continue on 86400 -> null",
	}
	got := r.events()
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d: %+v", len(got), len(want), got)
	}
	for i, e := range got {
		text := strings.Join([]string{string(e.What), e.Why(), start(e.Before), "->", start(e.After)}, " ")
		if text != want[i] || e.ID != int64(i+1) || e.Who != "alice" || e.Surface != "rapi" || e.From != "192.0.2.7" {
			t.Errorf("event %d is %q of %+v, want %q", i, text, e, want[i])
		}
	}
}

// start is the beginning of JSON that tells what kind of value it is.
func start(text []byte) string {
	switch {
	case text == nil:
		return "null"
	case text[0] == '{':
		return "{"
	}
	return string(text)
}

// TestASetOfEditsIsAllOrNone: one bad edit keeps the others from being made, a
// digest of other rules refuses all, and a good set takes effect as one.
func TestASetOfEditsIsAllOrNone(t *testing.T) {
	r := newRig(t, 1)
	hold := jobfilter.Edit{Verb: jobfilter.Put, Parts: rule(t, 1, `"PAUSE"`, `[["opcode",["=","OP_ID","OP_TEST_DELAY"]]]`)}
	hold.Parts.Name = "hold"
	change := func(digest string, edits ...jobfilter.Edit) error {
		_, err := r.q.ChangeFilters(ctx, queue.FilterChange{Edits: edits, Digest: digest})
		return err
	}
	if err := change("", hold, jobfilter.Edit{Verb: jobfilter.Delete, Rule: "nosuch"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("a set with a bad edit: %v", err)
	}
	r.check(change(jobfilter.Digest(nil), hold))
	if err := change(jobfilter.Digest(nil), jobfilter.Edit{Verb: jobfilter.Delete, Rule: "hold"}); !fault.Is(err, fault.Conflict) {
		t.Errorf("other rules than those that were seen: %v", err)
	}
	if err := change(""); !fault.Is(err, fault.Invalid) {
		t.Errorf("no edit at all: %v", err)
	}
	rules := r.shown.Load().Rules
	if len(rules) != 1 || rules[0].Name != "hold" {
		t.Fatalf("the rules are %+v", rules)
	}
	id := r.submit(delay)
	r.held(id, rules[0].UUID)
	off := jobfilter.Edit{Verb: jobfilter.Change, Rule: "hold", Body: []byte(`{"shadow":true}`)}
	r.check(change(jobfilter.Digest(rules), off))
	r.status(id, job.Success)
}

// TestARuleThatIsAddedEndsByItself while the queue goes on.
func TestARuleThatIsAddedEndsByItself(t *testing.T) {
	r := newRig(t, 1)
	soon := rule(t, 1, `"PAUSE"`, `[]`)
	soon.Until = time.Now().Add(50 * time.Millisecond)
	_, _, err := r.q.PutFilter(ctx, "", soon, queue.By{})
	r.check(err)
	r.status(r.submit(delay), job.Success)
}

// TestRulesEndByThemselves: a rule with an end is gone at that time, the jobs it
// held go on, and that is recorded; after a restart too.
func TestRulesEndByThemselves(t *testing.T) {
	r := newRig(t, 1)
	soon := rule(t, 1, `"PAUSE"`, `[["opcode",["=","OP_ID","OP_TEST_DELAY"]]]`)
	soon.Until = time.Now().Add(300 * time.Millisecond)
	later := rule(t, 2, `"CONTINUE"`, `[]`)
	later.Until = time.Now().Add(time.Hour)
	for _, rule := range []jobfilter.Rule{later, soon} {
		_, _, err := r.q.PutFilter(ctx, "", rule, queue.By{})
		r.check(err)
	}
	id := r.submit(delay)
	r.crash()
	r.status(id, job.Success)
	rules := r.shown.Load().Rules
	if len(rules) != 1 || rules[0].Until.IsZero() {
		t.Errorf("the rules are %+v", rules)
	}
	last := r.events()
	if e := last[len(last)-1]; e.What != audit.FilterExpire || e.Who != "drover" || e.Before == nil {
		t.Errorf("recorded as %+v", e)
	}
}
