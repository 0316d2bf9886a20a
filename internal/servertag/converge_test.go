package servertag

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/job"
)

func rawUser(name string) string { return DefaultPrefixes().Raw(User, name) }

// seen settles the set by what the cluster has.
func (s Set) seen(now job.Time, ended map[job.ID]Outcome, names ...string) (Set, Plan) {
	sight := Sight{Now: now, Instance: true, Ended: ended}
	for _, n := range names {
		sight.Tags = append(sight.Tags, rawUser(n))
	}
	next := s.Settle(DefaultPolicy(), sight)
	return next, next.Next(sight)
}

// submitted is the set after a job for the step was submitted.
func (s Set) submitted(step Step, id job.ID, now job.Time) Set {
	s = s.Begin(step, now)
	return s.Submitted(s.Serial, id, now)
}

func one(t *testing.T, p Plan, a Action, names ...string) Step {
	t.Helper()
	var got []string
	for _, s := range p.Steps {
		for _, tag := range s.Tags {
			got = append(got, tag.Name)
		}
	}
	if len(p.Steps) != 1 || p.Steps[0].Action != a || !slices.Equal(got, names) {
		t.Fatalf("to do is %+v, want to %s %v", p.Steps, a, names)
	}
	return p.Steps[0]
}

func nothing(t *testing.T, p Plan) {
	t.Helper()
	if len(p.Steps) > 0 {
		t.Fatalf("to do is %+v, want nothing", p.Steps)
	}
}

func TestAddBecomesActive(t *testing.T) {
	s, plan := having(t, "a", "b").seen(1, nil)
	s = s.submitted(one(t, plan, Add, "a", "b"), 7, 1)
	s, plan = s.seen(2, nil)
	nothing(t, plan)
	s, plan = s.seen(3, map[job.ID]Outcome{7: {OK: true}}, "a", "b")
	nothing(t, plan)
	if s.Find(User, "a").Status() != Active || len(s.Jobs) != 0 || s.OldestPending() != 0 {
		t.Errorf("%+v", s)
	}
}

// TestAFailureCountsWithoutTheInstance: what a job says of itself counts also while
// nobody sees the instance; that it went well says nothing then.
// TestAJobFitsIntoALine: a stock Ganeti reads 8 KiB of a request's line, and tags beyond ASCII are long there. What does not fit comes behind.
func TestAJobFitsIntoALine(t *testing.T) {
	var names []string
	for i := range 50 {
		names = append(names, strings.Repeat("α", 17)+fmt.Sprintf("%02d", i))
	}
	s, plan := having(t, names...).seen(1, nil)
	there := map[string]bool{}
	var raw []string
	for id := job.ID(7); len(plan.Steps) > 0; id++ {
		line := ""
		for _, tag := range plan.Steps[0].Tags {
			there[tag.Name] = true
			raw = append(raw, tag.Name)
			line += "&tag=" + url.QueryEscape(tag.Raw)
		}
		if len(line) > 7000 {
			t.Errorf("a line of %d bytes", len(line))
		}
		s = s.submitted(plan.Steps[0], id, 1)
		s, plan = s.seen(2, map[job.ID]Outcome{id: {OK: true}}, raw...)
	}
	if len(there) != len(names) || len(raw) != len(names) {
		t.Errorf("%d of %d tags were brought about, by %d changes", len(there), len(names), len(raw))
	}
}

func TestAFailureCountsWithoutTheInstance(t *testing.T) {
	for _, outcome := range []Outcome{{OK: true}, {Text: "no such instance"}} {
		s, plan := having(t, "a").seen(1, nil)
		s = s.submitted(one(t, plan, Add, "a"), 7, 1)
		s = s.Settle(DefaultPolicy(), Sight{Now: 2, Ended: map[job.ID]Outcome{7: outcome}})
		if a := s.Find(User, "a"); a == nil || len(s.Jobs) != 0 || (a.Failure == nil) != outcome.OK || (a.Retry == 0) != outcome.OK || (a.Tries == 0) != outcome.OK {
			t.Errorf("after %+v: %+v", outcome, s)
		}
	}
}

func TestDeleteWhileTheAddRuns(t *testing.T) {
	p := DefaultPolicy()
	s, plan := having(t, "a").seen(1, nil)
	s = s.submitted(one(t, plan, Add, "a"), 7, 1)
	s, _ = s.Unwant(p, User, "a", alice)
	// Not there now, and yet not done with: the job will put it there.
	s, plan = s.seen(2, nil)
	nothing(t, plan)
	if s.Find(User, "a") == nil {
		t.Fatal("the deletion is forgotten while the job for the addition is under way")
	}
	s, plan = s.seen(3, map[job.ID]Outcome{7: {OK: true}}, "a")
	s = s.submitted(one(t, plan, Remove, "a"), 8, 3)
	s, plan = s.seen(4, map[job.ID]Outcome{8: {OK: true}})
	nothing(t, plan)
	if len(s.Tags) != 0 {
		t.Errorf("left are %+v", s.Tags)
	}
}

func TestLateOutcomeDoesNotTouchANewerChange(t *testing.T) {
	p := DefaultPolicy()
	s, plan := having(t, "a").seen(1, nil)
	s = s.submitted(one(t, plan, Add, "a"), 7, 1)
	s, _ = s.Unwant(p, User, "a", alice)
	s, _, _ = s.Want(p, User, []string{"a"}, alice)
	s, plan = s.seen(2, map[job.ID]Outcome{7: {Text: "disk full"}})
	if tag := s.Find(User, "a"); tag.Failure != nil || tag.Tries != 0 {
		t.Errorf("the failure of an older generation counts: %+v", tag)
	}
	one(t, plan, Add, "a")
	if again, _ := s.seen(3, map[job.ID]Outcome{7: {OK: true}}); again.Find(User, "a").Status() != PendAdd {
		t.Error("a job that is not under way changes a tag")
	}
}

func TestNotFoundOnDeleteIsDone(t *testing.T) {
	p := DefaultPolicy()
	s, _ := having(t, "a", "b").seen(1, nil, "a", "b")
	s, _ = s.Unwant(p, User, "a", alice)
	s, _ = s.Unwant(p, User, "b", alice)
	s, plan := s.seen(2, nil, "a", "b")
	s = s.submitted(one(t, plan, Remove, "a", "b"), 7, 2)
	// Somebody removed a meanwhile, so the job failed as a whole.
	s, plan = s.seen(3, map[job.ID]Outcome{7: {Text: "Tag(s) 'a' not found", Missing: true, Final: true}}, "b")
	if s.Find(User, "a") != nil {
		t.Error("a tag that is gone is still to be removed")
	}
	if b := s.Find(User, "b"); b.Failure != nil || b.Tries > 0 {
		t.Errorf("the rest counts as failed: %+v", b)
	}
	one(t, plan, Remove, "b")
}

func TestFailuresAreTriedAgainAndReported(t *testing.T) {
	s, now := having(t, "a"), job.Time(0)
	for try := 1; try <= maxTries; try++ {
		var plan Plan
		if s, plan = s.seen(now, nil); try > 1 && len(plan.Steps) > 0 {
			t.Fatal("tried again at once")
		}
		if try > 1 {
			now = plan.Wake
			s, plan = s.seen(now, nil)
		}
		id := job.ID(try)
		s = s.submitted(one(t, plan, Add, "a"), id, now)
		s, _ = s.seen(now, map[job.ID]Outcome{id: {Text: "no power"}})
		want := PendAdd
		if try == maxTries {
			want = Error
		}
		if got := s.Find(User, "a"); got.Status() != want || got.Failure.Text != "no power" || got.Failure.Job != id {
			t.Fatalf("after %d tries: %s, %+v", try, got.Status(), got.Failure)
		}
	}
	if s, _ := s.seen(now, nil, "a"); s.Find(User, "a").Status() != Active {
		t.Error("a tag that came to be there after all is not active")
	}
}

// TestATagInForceTellsNoFailure: nor counts those of before, when it is taken
// away and wanted again.
func TestATagInForceTellsNoFailure(t *testing.T) {
	s, plan := having(t, "a").seen(0, nil)
	s = s.submitted(one(t, plan, Add, "a"), 1, 0)
	s, plan = s.seen(0, map[job.ID]Outcome{1: {Text: "no power"}})
	if f := s.Find(User, "a").Failure; f == nil || f.Text != "no power" {
		t.Fatalf("the failure is %+v", f)
	}
	s, plan = s.seen(plan.Wake, nil)
	s = s.submitted(one(t, plan, Add, "a"), 2, plan.Wake)
	s, plan = s.seen(plan.Wake+1, map[job.ID]Outcome{2: {OK: true}}, "a")
	nothing(t, plan)
	if a := s.Find(User, "a"); a.Status() != Active || a.Failure != nil || a.Tries != 0 || a.Retry != 0 {
		t.Errorf("it is %s, %+v", a.Status(), a)
	}
}

func TestOneBadTagDoesNotHoldTheOthers(t *testing.T) {
	s, plan := having(t, "a", "bad", "c").seen(1, nil)
	refuse := func(id job.ID) map[job.ID]Outcome {
		return map[job.ID]Outcome{id: {Text: "Too many tags", Final: true}}
	}
	s = s.submitted(one(t, plan, Add, "a", "bad", "c"), 1, 1)
	s, plan = s.seen(2, refuse(1))
	s = s.submitted(one(t, plan, Add, "a"), 2, 2)
	s, plan = s.seen(3, map[job.ID]Outcome{2: {OK: true}}, "a")
	s = s.submitted(one(t, plan, Add, "bad"), 3, 3)
	s, plan = s.seen(4, refuse(3), "a")
	s = s.submitted(one(t, plan, Add, "c"), 4, 4)
	s, plan = s.seen(5, map[job.ID]Outcome{4: {OK: true}}, "a", "c")
	nothing(t, plan)
	for name, want := range map[string]Status{"a": Active, "bad": Error, "c": Active} {
		if got := s.Find(User, name).Status(); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if s, _, _ = s.Want(DefaultPolicy(), User, []string{"bad"}, alice); s.Find(User, "bad").Status() != PendAdd {
		t.Error("asking again does not try again")
	}
}

// TestAFailureThatMayPassIsTriedAgainTogether: it says nothing of one of the tags, so all wait the same pause and go in one job again.
func TestAFailureThatMayPassIsTriedAgainTogether(t *testing.T) {
	s, plan := having(t, "a", "b").seen(1, nil)
	s = s.submitted(one(t, plan, Add, "a", "b"), 1, 1)
	s, plan = s.seen(2, map[job.ID]Outcome{1: {Text: "the node is away"}})
	nothing(t, plan)
	if plan.Wake <= 2 {
		t.Errorf("it is tried again at %d", plan.Wake)
	}
	_, plan = s.seen(plan.Wake, nil)
	one(t, plan, Add, "a", "b")
}

func TestTheClusterIsRightAboutTheRest(t *testing.T) {
	s, _ := having(t, "a", "b").seen(1, nil, "a")
	sight := Sight{Now: 2, Instance: true, Tags: []string{
		rawUser("new"), "cyclades:system:kept", "cyclades:user:a_b", "other", "synnefo:network:0:protected"}}
	s = s.Settle(DefaultPolicy(), sight)
	if got := s.Names(User); !slices.Equal(got, []string{"b", "new"}) {
		t.Errorf("wanted are %v", got) // a was taken away there; b is not there yet, and stays wanted
	}
	if got := s.Names(System); !slices.Equal(got, []string{"kept"}) {
		t.Errorf("the system's are %v", got)
	}
	one(t, s.Next(sight), Add, "b")
}

func TestNothingIsDoneWithoutAServer(t *testing.T) {
	s := having(t, "a").Settle(DefaultPolicy(), Sight{Now: 1})
	nothing(t, s.Next(Sight{Now: 1}))
	if s.Find(User, "a").Status() != PendAdd {
		t.Errorf("%+v", s.Tags)
	}
}

// A removal that the cluster cannot find anything for, though all is there, is tried again later and ever more rarely: not at once, again and
// again.
func TestARemovalThatFindsNothingIsTriedLater(t *testing.T) {
	s, plan := having(t, "a").seen(1, nil)
	s = s.submitted(one(t, plan, Add, "a"), 7, 1)
	s, _ = s.seen(2, map[job.ID]Outcome{7: {OK: true}}, "a")
	s, was := s.Unwant(DefaultPolicy(), User, "a", Asked{Time: 3})
	if !was {
		t.Fatal("the tag is not wanted")
	}
	s, plan = s.seen(4, nil, "a")
	s = s.submitted(one(t, plan, Remove, "a"), 8, 4)
	s, plan = s.seen(5, map[job.ID]Outcome{8: {Text: "Tag(s) 'a' not found", Missing: true, Final: true}}, "a")
	nothing(t, plan)
	if tag := s.Find(User, "a"); tag == nil || tag.Tries != 1 || tag.Retry <= 5 || tag.Failure == nil || tag.Failure.Final {
		t.Errorf("the tag is %+v", tag)
	}
	_, plan = s.seen(s.Find(User, "a").Retry, nil, "a")
	one(t, plan, Remove, "a")
}

// TestARefusalIsOfItsGeneration: what was asked for anew since the job was begun has not failed, and is tried as anything else.
func TestARefusalIsOfItsGeneration(t *testing.T) {
	s, plan := having(t, "a", "b").seen(1, nil)
	s = s.Begin(one(t, plan, Add, "a", "b"), 1)
	serial := s.Serial
	s, _ = s.Unwant(DefaultPolicy(), User, "a", alice)
	s, _, err := s.Want(DefaultPolicy(), User, []string{"a"}, alice)
	if err != nil {
		t.Fatal(err)
	}
	s = s.Refused(serial, "no", 2)
	if a, b := s.Find(User, "a"), s.Find(User, "b"); a.Alone || a.Failure != nil || !b.Alone {
		t.Errorf("asked for anew: %+v; and not: %+v", a, b)
	}
	_, plan = s.seen(3, nil)
	one(t, plan, Add, "a")
}
