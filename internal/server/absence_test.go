package server_test

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

// absent is a sight without an instance, told by the cluster, and how job 7 ended.
func absent(outcomes ...servertag.Outcome) server.Sight {
	sight := server.Sight{Sight: servertag.Sight{Now: 200, Ended: map[job.ID]servertag.Outcome{}}, Absent: "two lists lack it"}
	for _, o := range outcomes {
		sight.Ended[7] = o
	}
	return sight
}

// tagged is a server with an instance, of which the tag web is in force, old is to go, and bad was refused for good.
func tagged(t *testing.T) *server.Server {
	t.Helper()
	s := asked(t)
	s = s.Settle(policy, s.Own(seen("u1", servertag.Outcome{OK: true})))
	tags, _, err := s.Tags.Want(policy, servertag.User, []string{"old", "bad"}, alice)
	if err != nil {
		t.Fatal(err)
	}
	sight := seen("u1")
	sight.Tags = append(sight.Tags, "cyclades:user:old")
	s = s.WithTags(tags).Settle(policy, sight)
	tags, _ = s.Tags.Unwant(policy, servertag.User, "old", bob)
	tags = tags.Begin(servertag.Step{Action: servertag.Add, Tags: []*servertag.Tag{tags.Find(servertag.User, "bad")}}, 100).Submitted(1, 9, 100)
	sight.Ended = map[job.ID]servertag.Outcome{9: {Text: "bad tag", Final: true}}
	s = s.WithTags(tags).Settle(policy, sight)
	if tag := s.Tags.Find(servertag.User, "bad"); tag.Failure == nil || s.PendingTags() == 0 {
		t.Fatalf("it is %+v", s.Tags)
	}
	return s
}

// TestAbsenceDropsNoWish: while the instance is away nothing is pending, and nobody forgets what is wanted. When it is there again, as it was in a backup, it gets
// what it is to have, and what it is not to have goes.
func TestAbsenceDropsNoWish(t *testing.T) {
	s := tagged(t)
	gone := s.Settle(policy, absent())
	if gone.Status() != server.Gone || gone.Gone != "two lists lack it" || gone.PendingTags() != 0 {
		t.Errorf("it is %+v", gone)
	}
	for _, name := range []string{"web", "bad"} {
		tag := gone.Tags.Find(servertag.User, name)
		if tag == nil || !tag.Wanted || tag.Seen != servertag.Unknown || tag.Failure != nil {
			t.Fatalf("%s is %+v", name, tag)
		}
		if last := tag.Life[len(tag.Life)-1]; last.What != servertag.WasMissed || last.Text != "two lists lack it" {
			t.Errorf("the life of %s ends with %+v", name, last)
		}
		if gone.TagPending(tag) || !strings.Contains(gone.WaitOf(tag).Why, "gone") {
			t.Errorf("%s waits for %q", name, gone.WaitOf(tag).Why)
		}
	}
	if tag := gone.Tags.Find(servertag.User, "old"); tag == nil || tag.Wanted {
		t.Errorf("what is to go is %+v", tag)
	}
	if again := gone.Settle(policy, absent()); again != gone {
		t.Errorf("looked at again it is %+v", again)
	}
	// What was under way is refused while there is nothing to do it to, which says nothing of later.
	bad := gone.Tags.Begin(servertag.Step{Action: servertag.Add, Tags: []*servertag.Tag{gone.Tags.Find(servertag.User, "bad")}}, 210)
	gone = gone.WithTags(bad.Refused(bad.Serial, "no such instance", 210))
	restored := seen("u1")
	restored.Tags = []string{"cyclades:user:old"}
	back := gone.Settle(policy, restored)
	if back.Deleted != 0 || back.Gone != "" || back.PendingTags() == 0 {
		t.Errorf("back it is %+v", back)
	}
	next, _ := back.Tags.Turn(policy, restored.Sight)
	got := map[servertag.Action]string{}
	for i := range next.Jobs {
		for _, ref := range next.Jobs[i].Tags {
			got[next.Jobs[i].Action] += ref.Raw + " "
		}
	}
	if got[servertag.Add] != "cyclades:user:bad cyclades:user:web " || got[servertag.Remove] != "cyclades:user:old " {
		t.Errorf("what is done then is %q", got)
	}
}

// TestEffectsComeBackWithTheInstance: what was in force on the instance is set again.
func TestEffectsComeBackWithTheInstance(t *testing.T) {
	p := servertag.DefaultPolicy()
	p.Effects = []servertag.Effect{{Namespace: servertag.User, Tag: "web", Label: "x"}}
	s := tagged(t)
	change, _ := s.Tags.NextEffect(p, seen("u1").Sight)
	sight := seen("u1")
	sight.Ended[11] = servertag.Outcome{OK: true}
	s = s.WithTags(s.Tags.BeginEffect(change).EffectSubmitted(s.Tags.Serial+1, 11)).Settle(p, sight)
	if change, _ := s.Tags.NextEffect(p, seen("u1").Sight); change != nil {
		t.Fatalf("it is not in force: %+v", s.Tags.Effects)
	}
	s = s.Settle(p, absent()).Settle(p, seen("u1"))
	if change, _ := s.Tags.NextEffect(p, seen("u1").Sight); change == nil || change.Undo {
		t.Errorf("it is left out: %+v", s.Tags.Effects)
	}
}

// TestADeletionNeedsMoreThanAbsence: another cluster's word that there is nothing does not end a server that is to be deleted; its deletion does, or our own inventory.
func TestADeletionNeedsMoreThanAbsence(t *testing.T) {
	s := tagged(t)
	begun := begin(t, s, server.Delete, bob)
	again := begin(t, s.Settle(policy, absent()), server.Delete, bob)
	for what, s := range map[string]*server.Server{"begun": begun, "begun when it was gone": again} {
		submitted := s.Submitted(s.Doing().Serial, 7)
		proven := func(s server.Sight) server.Sight { s.Proven = true; return s }
		for how, c := range map[string]struct {
			server *server.Server
			sight  server.Sight
			over   bool
		}{
			"not handed in, and told that it is gone": {s, absent(), false},
			"not handed in, and gone":                 {s, proven(absent()), true},
			"under way":                               {submitted, absent(), false},
			"deleted":                                 {submitted, absent(servertag.Outcome{OK: true}), true},
			"nothing found to delete":                 {submitted, absent(servertag.Outcome{Missing: true}), true},
			"failed, and told that it is gone":        {submitted, absent(servertag.Outcome{Text: "no power"}), false},
			"failed, and gone":                        {submitted, proven(absent(servertag.Outcome{Text: "no power"})), true},
			"deleted, they say, and it is there":      {submitted, seen("u1", servertag.Outcome{OK: true}), false},
			"not handed in, and there after all":      {s, seen("u1"), false},
		} {
			if next := c.server.Settle(policy, c.sight); (next == nil) != c.over {
				t.Errorf("%s, %s: %+v", what, how, next)
			}
		}
	}
	for what, sight := range map[string]server.Sight{"its creation may have been handed in": absent(), "nor is it there yet": {Proven: true}} {
		asked := begin(t, begin(t, &server.Server{ID: "s2", Number: 2, Instance: "snf-2"}, server.Create, alice), server.Delete, bob)
		if next := asked.Settle(policy, sight); next == nil {
			t.Errorf("%s, and the server is forgotten", what)
		}
	}
	never := begin(t, begin(t, &server.Server{ID: "s2", Number: 2, Instance: "snf-2"}, server.Create, alice).Refused(1, "no room", 50), server.Delete, bob)
	if next := never.Settle(policy, absent()); next != nil {
		t.Errorf("what was never made is still there: %+v", next)
	}
}

// TestAMatchedInstanceGetsWhatIsWanted: what was seen on another one is not thought to be taken away on this one.
func TestAMatchedInstanceGetsWhatIsWanted(t *testing.T) {
	s := tagged(t).Settle(policy, absent())
	bare := seen("u2")
	bare.Tags = nil
	matched, err := s.Match(absent(), bare, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if next := matched.Settle(policy, bare); !next.Tags.Has(servertag.User, "web") || next.PendingTags() == 0 || next.Gone != "" {
		t.Errorf("it is %+v", next)
	}
	unmatched := ofBefore(t)
	held := unmatched.Tags
	held.Tags[0].Seen = servertag.Present
	unmatched = unmatched.WithTags(held)
	unmatched = unmatched.Settle(policy, unmatched.Own(bare))
	if matched, err = unmatched.Match(unmatched.Own(bare), bare, nil, nil); err != nil {
		t.Fatal(err)
	}
	if next := matched.Settle(policy, bare); !next.Tags.Has(servertag.User, "web") {
		t.Errorf("an unmatched one becomes %+v", next)
	}
}
