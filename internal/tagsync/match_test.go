package tagsync_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/tagsync"
)

// forgetful does not know how creations ended.
type forgetful struct{ tagsync.Backend }

func (forgetful) Creation(context.Context, string, *server.Server) (servertag.Outcome, bool, error) {
	return servertag.Outcome{}, false, nil
}

// asOfBefore has the engine begin anew on servers whose records say no UUIDs.
func (r *rig) asOfBefore() {
	r.Helper()
	r.engine.Close()
	tx := store.Tx{}
	for o, err := range r.store.List(r.ctx, tagsync.KindServer, store.Options{}) {
		r.check(err)
		s, err := server.Decode(o.Value)
		r.check(err)
		s.UUID = ""
		value, err := s.Encode()
		r.check(err)
		tx.Put = append(tx.Put, store.Put{Key: o.Key, At: o.At, Value: value})
	}
	_, err := store.Commit(r.ctx, r.store, tx)
	r.check(err)
	r.check(r.core.Close())
	r.start()
}

// TestARecordOfBeforeIsMatchedByItsCreation: what nobody else can have made is the server's.
func TestARecordOfBeforeIsMatchedByItsCreation(t *testing.T) {
	r := newRig(t)
	s := r.create("mine")
	r.asOfBefore()
	again := r.until(s.ID, "knows its instance", func(s *server.Server) bool { return s.UUID != "" })
	if again.UUID != s.UUID || again.Status() != server.Active || !again.Tags.Has(user, "mine") {
		t.Errorf("it was %+v, and is %+v", s, again)
	}
	r.finish("OP_INSTANCE_REMOVE", map[string]any{"instance_name": s.Instance, "ignore_failures": true})
	r.until(s.ID, "is gone", func(s *server.Server) bool { return s.Status() == server.Gone })
	uuid := r.byOperator(s.Instance)
	r.asOfBefore() // of a server that is gone nothing needs to be found
	r.check(r.engine.Attend(t.Context(), s.ID))
	if now := r.engine.Servers().Get(s.ID); now.Status() != server.Gone || now.UUID != "" {
		t.Errorf("it is %+v", now)
	}
	r.stands(s.Instance, uuid)
}

// TestAnUnmatchedServer is in error, and nothing is done to the instance of its name, until somebody says whose that is.
func TestAnUnmatchedServer(t *testing.T) {
	r := newRigAround(t, func(b tagsync.Backend) tagsync.Backend { return forgetful{b} })
	s, other := r.create("mine"), r.create()
	r.asOfBefore()
	unmatched := r.until(s.ID, "is unmatched", func(s *server.Server) bool { return s.Unmatched != 0 })
	r.until(other.ID, "is unmatched", func(s *server.Server) bool { return s.Unmatched != 0 })
	before := r.shown.Load().Inventory.Instance(s.UUID)
	if unmatched.Status() != server.Failed || !strings.Contains(unmatched.Trouble().Text, "until an operator says it") || !unmatched.Tags.Has(user, "mine") {
		t.Errorf("it is %+v", unmatched)
	}
	if report := r.examine(s.ID, true); !report.Drift || !report.Left || len(report.Findings) != 1 || !report.Findings[0].Unmatched || report.Findings[0].Missing {
		t.Errorf("it is examined as %+v", report)
	}
	for _, do := range []server.Do{server.Delete, server.Stop, server.Reboot, server.RebootHard} {
		if _, err := r.engine.Begin(s.ID, do, r.asked()); !fault.Is(err, fault.WrongState) {
			t.Errorf("%s: %v", do, err)
		}
	}
	_, err := r.engine.Want(s.ID, user, []string{"later"}, r.asked())
	r.check(err)
	r.engine.Reconcile()
	r.check(r.engine.Attend(t.Context(), s.ID))
	if now := r.shown.Load().Inventory.Instance(s.UUID); now != before {
		t.Errorf("its instance has become %+v", now)
	}
	r.matching(s, other)
	s = r.settled(s.ID)
	if s.Status() != server.Active || s.UUID != before.UUID {
		t.Errorf("once matched it is %+v", s)
	}
	if tags := r.onCluster(s); !slices.Contains(tags, "cyclades:user:later") {
		t.Errorf("what was wanted meanwhile is not there: %v", tags)
	}
}

// matching has an operator match a server that is unmatched, after some slips.
func (r *rig) matching(s, other *server.Server) {
	r.Helper()
	by := audit.By{Account: reason.Account{Name: "root", Surface: "luxi"}, Trail: reason.Trail{{Source: reason.SourceUser, Reason: "looked at its disk", Time: 1}}}
	match := func(id, instance string, dry bool) (*tagsync.Matched, error) {
		return r.engine.Match(r.ctx, id, instance, dry, by)
	}
	for what, c := range map[string]struct {
		id, instance string
		want         fault.Code
	}{
		"no server":   {"none", s.Instance, fault.NotFound},
		"no instance": {s.ID, "none", fault.NotFound},
	} {
		if m, err := match(c.id, c.instance, false); !fault.Is(err, c.want) {
			r.Fatalf("%s: %+v, %v", what, m, err)
		}
	}
	for _, instance := range []string{s.Instance, s.UUID} {
		m, err := match(s.ID, instance, true)
		if err != nil || m.After != (tagsync.Identity{Instance: s.Instance, UUID: s.UUID}) || m.Before != (tagsync.Identity{Instance: s.Instance}) || m.Marked {
			r.Fatalf("by %s it would be %+v, %v", instance, m, err)
		}
	}
	if now := r.engine.Servers().Get(s.ID); now.UUID != "" || len(r.events()) != 0 {
		r.Fatalf("asking has changed it to %+v, %v", now, r.events())
	}
	_, err := match(s.ID, s.Instance, false)
	r.check(err)
	events := r.events()
	if len(events) != 1 || events[0].What != audit.ServerMatch || events[0].Object != s.ID || events[0].Name != s.Name || events[0].Why() != "looked at its disk" || events[0].Who != "root" ||
		string(events[0].Before) != `{"instance":"`+s.Instance+`"}` || string(events[0].After) != `{"instance":"`+s.Instance+`","uuid":"`+s.UUID+`"}` {
		r.Fatalf("told of it is %+v", events)
	}
	if m, err := match(other.ID, s.UUID, false); !fault.Is(err, fault.Exists) {
		r.Fatalf("a second server of one instance: %+v, %v", m, err)
	}
	if m, err := match(s.ID, other.UUID, false); !fault.Is(err, fault.WrongState) {
		r.Fatalf("a second instance of one server: %+v, %v", m, err)
	}
}

// events are those that tell of what operators did.
func (r *rig) events() (out []*audit.Event) {
	r.Helper()
	for e, err := range r.queue.Events(r.ctx) {
		r.check(err)
		out = append(out, e)
	}
	return out
}

// TestAnInstanceIsOneServersHoweverManyAsk has operators say at the same time of several servers that they are one and the same instance: one of them is heard,
// and the others are told whose it is.
func TestAnInstanceIsOneServersHoweverManyAsk(t *testing.T) {
	r := newRigAround(t, func(b tagsync.Backend) tagsync.Backend { return forgetful{b} })
	servers := []*server.Server{r.create(), r.create(), r.create(), r.create()}
	r.asOfBefore()
	for _, s := range servers {
		r.until(s.ID, "is unmatched", func(s *server.Server) bool { return s.Unmatched != 0 })
	}
	begin, answers := make(chan struct{}), make(chan error)
	for _, s := range servers {
		go func() {
			<-begin
			_, err := r.engine.Match(r.ctx, s.ID, servers[0].UUID, false, audit.By{})
			answers <- err
		}()
	}
	close(begin)
	heard := 0
	for range servers {
		switch err := <-answers; {
		case err == nil:
			heard++
		case !fault.Is(err, fault.Exists):
			t.Errorf("one that was not the first: %v", err)
		}
	}
	known := 0
	for _, s := range servers {
		if now := r.engine.Servers().Get(s.ID); now.UUID != "" {
			known++
		}
	}
	if heard != 1 || known != 1 {
		t.Errorf("%d were told that they have the instance, and %d have it", heard, known)
	}
}

// TestAnInstanceThatWasPutBackIsMatched: it has another UUID, so an operator says that it is the server's.
func TestAnInstanceThatWasPutBackIsMatched(t *testing.T) {
	r := newRig(t)
	s := r.create("mine")
	r.finish("OP_INSTANCE_REMOVE", map[string]any{"instance_name": s.Instance, "ignore_failures": true})
	r.until(s.ID, "is gone", func(s *server.Server) bool { return s.Status() == server.Gone })
	uuid := r.byOperator(s.Instance)
	_, err := r.engine.Match(t.Context(), s.ID, uuid, false, audit.By{})
	r.check(err)
	r.until(s.ID, "has the tag", func(s *server.Server) bool { return s.Tags.Has(user, "theirs") })
	s = r.settled(s.ID)
	if s.Status() != server.Active || s.UUID != uuid {
		t.Errorf("it is %s, %+v", s.Status(), s)
	}
	if got := r.onCluster(s); !slices.Contains(got, "cyclades:user:mine") || !s.Tags.Has(user, "mine") {
		t.Errorf("what its user wants of it was forgotten while it was away: it has %q", got)
	}
	_, err = r.engine.Begin(s.ID, server.Delete, r.asked())
	r.check(err)
	r.until(s.ID, "is done with", func(s *server.Server) bool { return s == nil })
	if r.shown.Load().Inventory.Instance(uuid) != nil {
		t.Error("what is the server's now is not deleted with it")
	}
}

// TestARenamedInstanceIsFollowed: the server is it under its new name, at once, and what is asked of the server reaches it.
func TestARenamedInstanceIsFollowed(t *testing.T) {
	r := newRig(t)
	s := r.create("mine")
	r.finish("OP_INSTANCE_SHUTDOWN", map[string]any{"instance_name": s.Instance})
	if j := r.finish("OP_INSTANCE_RENAME", map[string]any{"instance_name": s.Instance, "new_name": "renamed", "name_check": false, "ip_check": false}); j.Status() != job.Success {
		t.Fatalf("renaming: %s", j.Ops[0].Result)
	}
	now := r.until(s.ID, "is called renamed", func(s *server.Server) bool { return s.Instance == "renamed" })
	if now.UUID != s.UUID || now.Status() != server.Shutoff || !now.Tags.Has(user, "mine") {
		t.Errorf("it is %+v", now)
	}
	stranger := r.byOperator(s.Instance)
	_, err := r.engine.Want(s.ID, user, []string{"more"}, r.asked())
	r.check(err)
	s2 := r.settled(s.ID)
	if tags := r.onCluster(s2); !slices.Contains(tags, "cyclades:user:more") {
		t.Errorf("the renamed instance has the tags %v", tags)
	}
	_, err = r.engine.Begin(s.ID, server.Delete, r.asked())
	r.check(err)
	r.until(s.ID, "is done with", func(s *server.Server) bool { return s == nil })
	r.stands(s.Instance, stranger)
	if r.shown.Load().Inventory.Instance(s.UUID) != nil {
		t.Error("the renamed instance stays")
	}
}

// TestJobsAboutTagsHoldNoUUIDBelowTheFormat: programs of before would not read them.
func TestJobsAboutTagsHoldNoUUIDBelowTheFormat(t *testing.T) {
	for present, want := range map[int]bool{1: false, 2: true} {
		r := &rig{Failing: t, ctx: t.Context(), dir: t.TempDir(), log: quiet, format: func() int { return present }}
		r.effects = []servertag.Effect{{Namespace: servertag.User, Tag: "loud", Label: "x"}}
		r.start()
		s := r.create()
		_, err := r.engine.Want(s.ID, user, []string{"loud"}, r.asked())
		r.check(err)
		r.until(s.ID, "has its tag and its effect", func(s *server.Server) bool { return atRest(s) && len(s.Tags.Effects) == 1 && s.Tags.Effects[0].InForce })
		seen := 0
		for j := range r.queue.Jobs().All() {
			whole, err := r.queue.Job(t.Context(), j.ID)
			r.check(err)
			if op := whole.Ops[0].Input; op.ID == "OP_TAGS_SET" {
				seen++
				if op.Has("instance_uuid") != want {
					t.Errorf("at format %d a job holds %v", present, op.Params)
				}
			}
		}
		if seen != 2 {
			t.Errorf("%d jobs are about tags", seen)
		}
		r.stop()
	}
}
