package check

import (
	"slices"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/sim/memory"
	"github.com/drover-project/drover/internal/store"
)

func verdict() *Verdict { return &Verdict{Since: func() time.Duration { return 0 }} }

func names(v *Verdict) (all []string) {
	for _, b := range v.Broken() {
		all = append(all, b.Invariant)
	}
	return all
}

func want(t *testing.T, what string, v *Verdict, invariants ...string) {
	t.Helper()
	if got := names(v); !slices.Equal(got, invariants) {
		t.Errorf("%s breaks %q, want %q", what, v.Broken(), invariants)
	}
}

func lease(holder string, epoch int64) memory.Step {
	return memory.Step{Lease: store.Lease{Name: "leader", Holder: holder, Epoch: epoch}}
}

func tx(rev store.Revision, epoch int64) memory.Step {
	return memory.Step{Revision: rev, Epoch: epoch}
}

func TestEpochs(t *testing.T) {
	for _, tc := range []struct {
		name  string
		steps []memory.Step
		want  []string
	}{
		{"a life", []memory.Step{tx(1, 0), lease("a", 1), tx(2, 1), lease("a", 1), lease("b", 2), tx(3, 2), lease("", 2), lease("a", 3), tx(4, 3)}, nil},
		{"a gap", []memory.Step{tx(1, 0), tx(3, 0)}, []string{Revisions}},
		{"a revision that comes again", []memory.Step{tx(1, 0), tx(1, 0)}, []string{Revisions}},
		{"an epoch that was never given", []memory.Step{tx(1, 1)}, []string{EpochInForce}},
		{"one that another has taken over", []memory.Step{lease("a", 1), lease("b", 2), tx(1, 1)}, []string{EpochInForce}},
		{"one that was given up", []memory.Step{lease("a", 1), lease("", 1), tx(1, 1)}, []string{EpochInForce}},
		{"two holders", []memory.Step{lease("a", 1), lease("b", 1)}, []string{OneHolder}},
		{"taken from one who has it", []memory.Step{lease("a", 1), {Lease: lease("b", 2).Lease, From: lease("a", 1).Lease}}, []string{TakenLease}},
		{"an epoch of before", []memory.Step{lease("a", 2), lease("b", 1)}, []string{OneHolder}},
	} {
		v := verdict()
		e := NewEpochs(v)
		for _, s := range tc.steps {
			e.Committed(memory.Committed{By: "c1", Steps: []memory.Step{s}})
		}
		want(t, tc.name, v, tc.want...)
	}
}

func TestEffects(t *testing.T) {
	one := Effect{Node: "n1", Of: "i1", What: "install", Owner: "c1.1", Epoch: 1, Job: 1}
	with := func(change func(*Effect)) Effect {
		e := one
		change(&e)
		return e
	}
	for _, tc := range []struct {
		name  string
		other Effect
		ended bool
		want  []string
	}{
		{"the same thing", with(func(e *Effect) { e.Job = 2 }), false, []string{OneEffect}},
		{"the same thing afterwards", with(func(e *Effect) { e.Job = 2 }), true, nil},
		{"another thing", with(func(e *Effect) { e.Of = "i2" }), false, nil},
		{"another node", with(func(e *Effect) { e.Node = "n2" }), false, nil},
		{"for an older leader", with(func(e *Effect) { e.Of, e.Followed = "i2", 2 }), false, []string{OldEpoch}},
		{"for the leader that is followed", with(func(e *Effect) { e.Followed = 1 }), true, nil},
	} {
		v := verdict()
		l := NewEffects(v)
		end := l.Works(one)
		if tc.ended {
			end()
		}
		l.Works(tc.other)
		want(t, tc.name, v, tc.want...)
		if left := l.Left(); len(left) != 2 && !tc.ended || l.Begun() != 2 {
			t.Errorf("%s: %v are left of %d", tc.name, left, l.Begun())
		}
	}
	v := verdict()
	l := NewEffects(v)
	over := l.Acts(one)
	l.Acts(one)() // one job may do two things
	l.Acts(with(func(e *Effect) { e.Job, e.Owner = 2, "c2.1" }))()
	want(t, "jobs of two leaders", v)
	l.Acts(with(func(e *Effect) { e.Job = 2 }))()
	want(t, "two jobs", v, OneJob)
	over()
	l.Acts(with(func(e *Effect) { e.Job = 3 }))
	want(t, "another job afterwards", v, OneJob)
}

func TestReached(t *testing.T) {
	var r Reached
	r.Add("a")
	r.AddN("b", 2)
	r.Add("a")
	if got := r.String(); got != "a: 2; b: 2" {
		t.Error(got)
	}
}

func TestRules(t *testing.T) {
	for _, tc := range []struct {
		action   string
		limit    int
		again    bool // another is asked for
		handedIn time.Duration
		running  int
		want     []string
	}{
		{"PAUSE", 0, false, 6, 1, []string{RuleHolds}},
		{"REJECT", 0, false, 6, 1, []string{RuleHolds}},
		{"PAUSE", 0, false, 5, 1, nil},
		{"PAUSE", 0, true, 6, 1, nil},
		{"ACCEPT", 0, false, 6, 9, nil},
		{"RATE_LIMIT", 2, false, 6, 2, nil},
		{"RATE_LIMIT", 2, false, 6, 3, []string{RuleHolds}},
	} {
		v := &Verdict{Since: func() time.Duration { return 5 }}
		r := NewRules(v)
		r.Acts("a", 1, tc.handedIn, tc.running)
		r.Asked("a")
		r.InForce("a", tc.action, tc.limit)
		if tc.again {
			r.Asked("a")
		}
		r.Acts("b", 1, tc.handedIn, tc.running)
		r.Acts("a", 1, tc.handedIn, tc.running)
		want(t, tc.action, v, tc.want...)
	}
}

func TestServers(t *testing.T) {
	started, stopped := map[string]bool{"start": false}, map[string]bool{"stop": false}
	takenOn := map[string]bool{"start": true}
	for _, tc := range []struct {
		name string
		are  []Wishes
		want []string
	}{
		{"a newer wish", []Wishes{{Generation: 1, Tags: "a"}, {Generation: 2, Tags: "a b"}}, nil},
		{"the same ones", []Wishes{{Generation: 1, Tags: "a", Jobs: started}, {Generation: 1, Tags: "a", Jobs: started}}, nil},
		{"a job", []Wishes{{Jobs: started}, {Jobs: takenOn}, {}}, nil},
		{"the task behind it", []Wishes{{Newest: [2]int64{1, 0}, Jobs: started}, {Newest: [2]int64{2, 0}, Jobs: stopped}}, nil},
		{"the wishes of before", []Wishes{{Generation: 2, Tags: "a b"}, {Generation: 1, Tags: "a"}}, []string{UponStored}},
		{"others in their place", []Wishes{{Generation: 2, Tags: "a b"}, {Generation: 2, Tags: "a c"}}, []string{UponStored}},
		{"a task that is forgotten", []Wishes{{Newest: [2]int64{2, 0}}, {Newest: [2]int64{1, 0}}}, []string{UponStored}},
		{"a job that is forgotten", []Wishes{{Newest: [2]int64{0, 2}}, {Newest: [2]int64{0, 1}}}, []string{UponStored}},
		{"a job that was taken, and is to be", []Wishes{{Jobs: takenOn}, {Jobs: started}}, []string{UponStored}},
		{"a job that was over, and is not", []Wishes{{Jobs: takenOn}, {}, {Jobs: takenOn}}, []string{UponStored}},
	} {
		v := verdict()
		s := NewServers(v)
		for _, is := range tc.are {
			s.Stored("1", is)
			s.Stored("2", Wishes{})
		}
		want(t, tc.name, v, tc.want...)
	}
	v := verdict()
	s := NewServers(v)
	s.Stored("1", Wishes{Generation: 2})
	s.Gone("1")
	s.Stored("1", Wishes{Generation: 1})
	want(t, "one that is gone, and comes again,", v)
}
