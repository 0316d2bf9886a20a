package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

var (
	policy = servertag.DefaultPolicy()
	alice  = servertag.Asked{User: "alice", Front: "compute", Request: "req-a", Time: 1}
	bob    = servertag.Asked{User: "bob", Front: "compute", Request: "req-b", Time: 2}
)

// begin has something done to a server.
func begin(t *testing.T, s *server.Server, do server.Do, by servertag.Asked) *server.Server {
	t.Helper()
	next, err := s.Begin(do, by)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// asked is a server whose creation is job 7.
func asked(t *testing.T) *server.Server {
	t.Helper()
	s := begin(t, &server.Server{ID: "s1", Number: 1, Instance: "snf-1"}, server.Create, alice)
	return s.Submitted(s.Tasks[0].Serial, 7)
}

// seen is a sight of an instance that was made at 50, and how job 7 ended.
func seen(uuid string, creation ...servertag.Outcome) server.Sight {
	sight := server.Sight{Sight: servertag.Sight{Now: 100, Instance: true, Tags: []string{"cyclades:user:web"}, Ended: map[job.ID]servertag.Outcome{}}, UUID: uuid, Made: 50, Stopped: true}
	for _, o := range creation {
		sight.Ended[7] = o
	}
	return sight
}

// TestWhoseInstanceItIs: the server's own is the one that its creation made, and
// no other that has the name.
func TestWhoseInstanceItIs(t *testing.T) {
	fresh := asked(t)
	known := fresh.Settle(policy, fresh.Own(seen("u1", servertag.Outcome{OK: true})))
	if known.UUID != "u1" || known.Built == 0 {
		t.Fatalf("it does not know its instance: %+v", known)
	}
	before := *known
	before.UUID = ""
	refused := fresh.Settle(policy, server.Sight{Sight: servertag.Sight{Now: 90, Ended: map[job.ID]servertag.Outcome{7: {Text: "no room"}}}})
	for what, c := range map[string]struct {
		server *server.Server
		sight  server.Sight
		own    bool
	}{
		"before its creation is submitted":          {begin(t, &server.Server{Instance: "snf-1"}, server.Create, alice), seen("u1"), false},
		"while its creation runs":                   {fresh, seen("u1"), false},
		"its creation made it":                      {fresh, seen("u1", servertag.Outcome{OK: true}), true},
		"its creation failed, having made it":       {fresh, seen("u1", servertag.Outcome{Began: 50, Ended: 60}), true},
		"its creation failed, at once":              {fresh, seen("u1", servertag.Outcome{Began: 40, Ended: 50}), true},
		"it was there before its creation":          {fresh, seen("u1", servertag.Outcome{Began: 51, Ended: 60}), false},
		"it was made after its creation had failed": {fresh, seen("u1", servertag.Outcome{Began: 40, Ended: 49}), false},
		"its creation never ran":                    {fresh, seen("u1", servertag.Outcome{Text: "rejected"}), false},
		"its creation failed long ago":              {refused, seen("u1"), false},
		"the one it knows":                          {known, seen("u1"), true},
		"another one":                               {known, seen("u2"), false},
		"another one, of a cluster that tells none": {known, seen(""), false},
		"known before UUIDs were":                   {&before, seen("u1"), false},
	} {
		if got := c.server.Own(c.sight); got.Instance != c.own || (got.Tags != nil) != c.own || got.Stopped != c.own {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if none := (server.Sight{UUID: ""}); fresh.Own(none).Instance {
		t.Error("there is an instance where none was seen")
	}
}

// TestTheOnesThatAreMeant: what is done to a server names its instance in a way
// that no other one answers to.
func TestTheOnesThatAreMeant(t *testing.T) {
	s := asked(t)
	s = s.Settle(policy, s.Own(seen("u1", servertag.Outcome{OK: true})))
	for _, do := range []server.Do{server.Delete, server.Start, server.Stop, server.Reboot, server.RebootHard} {
		op, err := s.Opcode(&server.Task{Do: do, Asked: bob})
		if err != nil || op.Str("instance_uuid") != "u1" || op.Str("instance_name") != "snf-1" {
			t.Errorf("%s: %v, %v", do, op.Params, err)
		}
	}
	op, err := s.EffectOpcode(&servertag.Applied{Effect: servertag.Effect{Namespace: servertag.User, Tag: "stay", Parameter: "always_failover", Value: true}})
	if err != nil || op.Str("instance_uuid") != "u1" {
		t.Errorf("an effect: %v, %v", op.Params, err)
	}
}

// TestASuccessEndsAFault: what failed is told until something else was done.
func TestASuccessEndsAFault(t *testing.T) {
	s := asked(t)
	s = s.Settle(policy, s.Own(seen("u1", servertag.Outcome{OK: true})))
	for _, c := range []struct {
		outcome servertag.Outcome
		fault   bool
	}{{servertag.Outcome{Text: "no room"}, true}, {servertag.Outcome{OK: true}, false}} {
		s = begin(t, s, server.RebootHard, bob)
		s = s.Submitted(s.Serial, 9)
		sight := seen("u1")
		sight.Ended = map[job.ID]servertag.Outcome{9: c.outcome}
		if s = s.Settle(policy, s.Own(sight)); (s.Fault != nil) != c.fault {
			t.Errorf("behind %+v the fault is %+v", c.outcome, s.Fault)
		}
	}
}

// TestWhatStandsStill: it is started, or rebooted hard, which is the same; a guest that does not run cannot be asked to reboot, or to stop.
func TestWhatStandsStill(t *testing.T) {
	s := asked(t)
	s = s.Settle(policy, s.Own(seen("u1", servertag.Outcome{OK: true})))
	if s.Status() != server.Shutoff {
		t.Fatalf("it is %s", s.Status())
	}
	for do, may := range map[server.Do]bool{server.Start: true, server.RebootHard: true, server.Delete: true, server.Stop: false, server.Reboot: false} {
		if _, err := s.Begin(do, bob); (err == nil) != may || err != nil && !fault.Is(err, fault.WrongState) {
			t.Errorf("%s: %v", do, err)
		}
	}
}

// TestDeletions: nothing is done about what is not there, and nothing twice.
func TestDeletions(t *testing.T) {
	empty := server.Sight{Sight: servertag.Sight{Now: 100, Ended: map[job.ID]servertag.Outcome{}}}
	refused := asked(t).Settle(policy, server.Sight{Sight: servertag.Sight{Now: 90, Ended: map[job.ID]servertag.Outcome{7: {Text: "no room"}}}})
	if refused.Status() != server.Failed {
		t.Fatalf("after its creation failed it is %s", refused.Status())
	}
	if s := begin(t, refused, server.Delete, bob).Settle(policy, empty); s != nil {
		t.Errorf("one that was never there is not done with: %+v", s)
	}
	stranger := begin(t, refused, server.Delete, bob)
	if s := stranger.Settle(policy, stranger.Own(seen("u2"))); s != nil {
		t.Errorf("it is not done with while a stranger has its name: %+v", s)
	}
	s := begin(t, asked(t), server.Delete, bob)
	if again := begin(t, s, server.Delete, alice); again != s || len(s.Tasks) != 2 {
		t.Errorf("a second deletion: %+v", again.Tasks)
	}
	if _, err := s.Begin(server.Reboot, alice); !fault.Is(err, fault.WrongState) {
		t.Errorf("rebooting what is being deleted: %v", err)
	}
}

// TestTrailsNameTheRequestThatAJobServes: not who asked for something else since.
func TestTrailsNameTheRequestThatAJobServes(t *testing.T) {
	tags, _, err := servertag.Set{}.Want(policy, servertag.User, []string{"web"}, alice)
	if err != nil {
		t.Fatal(err)
	}
	plan := tags.Next(servertag.Sight{Now: 10, Instance: true})
	tags = tags.Begin(plan.Steps[0], 10)
	begun := tags.Unsubmitted()[0]
	tags, _ = tags.Unwant(policy, servertag.User, "web", alice)
	if tags, _, err = tags.Want(policy, servertag.User, []string{"web"}, bob); err != nil {
		t.Fatal(err)
	}
	s := (&server.Server{ID: "s1", Instance: "snf-1", UUID: "u1"}).WithTags(tags)
	op, err := s.TagOpcode(&begun)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range op.Reason {
		if e.Source == "gnt:account:compute" && e.Reason != "alice" {
			t.Errorf("the job that serves alice's wish names %q", e.Reason)
		}
	}
}

// TestReasonsHoldNoWordsOfUsers: rules of operators search them.
func TestReasonsHoldNoWordsOfUsers(t *testing.T) {
	tags, _, err := servertag.Set{}.Want(policy, servertag.User, []string{"maintenance pink bunny", "web"}, alice)
	if err != nil {
		t.Fatal(err)
	}
	tags = tags.Begin(tags.Next(servertag.Sight{Now: 10, Instance: true}).Steps[0], 10)
	s := (&server.Server{ID: "s1", Name: "bunny", Description: "bunny", Metadata: map[string]string{"a": "bunny"}, Instance: "snf-1", UUID: "u1", Image: server.Image{OS: "noop"}}).WithTags(tags)
	op, err := s.TagOpcode(&tags.Unsubmitted()[0])
	if err != nil {
		t.Fatal(err)
	}
	begun, err := s.Begin(server.Create, alice)
	if err != nil {
		t.Fatal(err)
	}
	create, err := begun.Opcode(begun.Doing())
	if err != nil {
		t.Fatal(err)
	}
	told := ""
	for _, e := range slices.Concat(op.Reason, create.Reason) {
		told += e.Source + " " + e.Reason + "\n"
	}
	if strings.Contains(told, "bunny") || !strings.Contains(told, "add 2 tags of server s1") {
		t.Errorf("the reasons are %s", told)
	}
}

// TestARefusedCreationForgetsWhatItsMachineWasToBeTold: nobody makes it any more, and it may hold secrets.
func TestARefusedCreationForgetsWhatItsMachineWasToBeTold(t *testing.T) {
	before := &server.Server{ID: "s1", Guest: &server.Guest{KeyName: "mine", UserData: "hunter2"}}
	begun, err := before.Begin(server.Create, servertag.Asked{})
	if err != nil {
		t.Fatal(err)
	}
	after := begun.Refused(begun.Serial, "there is no such image", 1)
	if after.Guest.UserData != "" || after.KeyName() != "mine" || begun.Guest.UserData == "" {
		t.Errorf("it knows %+v, and the one before %+v", after.Guest, begun.Guest)
	}
}
