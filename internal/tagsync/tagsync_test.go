package tagsync_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/tagsync"
)

const user = servertag.User

func TestTagsComeWithTheServer(t *testing.T) {
	r := newRig(t)
	s := r.create("a_b", "tag-νέο", "50% off")
	want := []string{"cyclades:user:50/25+off", "cyclades:user:a*b", "cyclades:user:tag-/CE/BD/CE/AD/CE/BF"}
	if got := r.onCluster(s); !slices.Equal(got, want) {
		t.Errorf("the instance has %q, want %q", got, want)
	}
	if s.Instance != "snf-1" || s.Status() != server.Active {
		t.Errorf("the server is %+v", s)
	}
	if again := r.create(); again.Number != 2 {
		t.Errorf("the next server has number %d", again.Number)
	}
}

// TestNoNumberIsGivenTwice: also when the newest servers are gone and the controller
// was started again. Whoever knows snf-3 by a message knows one server.
func TestNoNumberIsGivenTwice(t *testing.T) {
	r := newRig(t)
	r.create()
	many, err := r.engine.CreateMany(t.Context(), r.wish(), 3, 3)
	r.check(err)
	for _, s := range many {
		_, err := r.engine.Begin(s.ID, server.Delete, r.asked())
		r.check(err)
		r.until(s.ID, "is gone", func(s *server.Server) bool { return s == nil })
	}
	for want := int64(5); want < 7; want++ {
		r.stop()
		r.start()
		if s := r.create(); s.Number != want || s.Instance != server.InstanceName("snf-", want) {
			t.Errorf("the next server has number %d and is %s, want %d", s.Number, s.Instance, want)
		}
	}
}

func TestUsersReadTheirWrites(t *testing.T) {
	r := newRig(t)
	s := r.create("kept")
	created, err := r.engine.Want(s.ID, user, []string{"a"}, r.asked())
	if err != nil || !slices.Equal(created, []string{"a"}) || !r.engine.Servers().Get(s.ID).Tags.Has(user, "a") {
		t.Fatalf("%v %v", created, err)
	}
	if was, err := r.engine.Unwant(s.ID, user, "a", r.asked()); err != nil || !was {
		t.Fatalf("delete right after add: %v %v", was, err)
	}
	if s, err = r.engine.Replace(s.ID, user, []string{"kept", "b"}, r.asked()); err != nil || !slices.Equal(s.Tags.Names(user), []string{"b", "kept"}) {
		t.Fatalf("%v %v", s.Tags.Names(user), err)
	}
	s = r.settled(s.ID)
	if got := r.onCluster(s); !slices.Equal(got, []string{"cyclades:user:b", "cyclades:user:kept"}) {
		t.Errorf("the instance has %q", got)
	}
	if kept := s.Tags.Find(user, "kept"); kept.Generation != 1 {
		t.Errorf("a tag that stays was touched: %+v", kept)
	}
}

func TestForeignTagsAreLeftAlone(t *testing.T) {
	r := newRig(t)
	s := r.create("mine")
	r.finish("OP_TAGS_SET", tagParams(s, "foreign", "synnefo:network:0:protected", "cyclades:user:a_b", "cyclades:user:adopted", "cyclades:system:ours"))
	r.until(s.ID, "adopts", func(s *server.Server) bool { return s.Tags.Has(user, "adopted") })
	if _, err := r.engine.Replace(s.ID, user, nil, r.asked()); err != nil {
		t.Fatal(err)
	}
	s = r.settled(s.ID)
	want := []string{"cyclades:system:ours", "cyclades:user:a_b", "foreign", "synnefo:network:0:protected"}
	if got := r.onCluster(s); !slices.Equal(got, want) {
		t.Errorf("the instance has %q, want %q", got, want)
	}
}

func TestWhatAnAdministratorRemovesIsGone(t *testing.T) {
	r := newRig(t)
	s := r.create("a", "b")
	r.finish("OP_TAGS_DEL", tagParams(s, "cyclades:user:a"))
	s = r.until(s.ID, "loses the tag", func(s *server.Server) bool { return !s.Tags.Has(user, "a") })
	if got := s.Tags.Names(user); !slices.Equal(got, []string{"b"}) {
		t.Errorf("left are %v", got)
	}
}

func TestARuleHoldsTagJobs(t *testing.T) {
	r := newRig(t)
	s := r.create()
	predicates, err := jobfilter.ParsePredicates([]byte(`[["opcode", ["=", "OP_ID", "OP_TAGS_SET"]]]`))
	r.check(err)
	uuid, _, err := r.queue.PutFilter(t.Context(), "", jobfilter.Rule{Predicates: predicates, Action: jobfilter.Action{Kind: jobfilter.Pause}}, queue.By{})
	r.check(err)
	_, err = r.engine.Want(s.ID, user, []string{"a"}, r.asked())
	r.check(err)
	held := r.until(s.ID, "has a job that is held", func(s *server.Server) bool {
		jobs := s.Jobs()
		if len(jobs) != 1 {
			return false
		}
		j := r.queue.Jobs().Get(jobs[0])
		return j != nil && j.Hold != nil
	})
	tag := held.Tags.Find(user, "a")
	if tag.Status() != servertag.PendAdd {
		t.Errorf("the tag is %s", tag.Status())
	}
	trail := r.queue.Jobs().Get(held.Jobs()[0]).Ops[0].Input.Reason
	if len(trail) < 2 || trail[0].Source != "gnt:account:compute" || trail[0].Reason != "alice (127.0.0.1)" ||
		trail[1].Source != "gnt:server-tag" || !strings.Contains(trail[1].Reason, "req-7") || !strings.Contains(trail[1].Reason, "add 1 tag of server") {
		t.Errorf("the reason trail is %+v", trail)
	}
	r.check(r.queue.DeleteFilter(t.Context(), uuid, queue.By{}))
	if s = r.settled(s.ID); s.Tags.Find(user, "a").Status() != servertag.Active {
		t.Errorf("after the rule: %+v", s.Tags)
	}
}

func TestADrainedQueueIsTriedAgain(t *testing.T) {
	r := newRig(t)
	s := r.create()
	r.check(r.queue.SetDrained(t.Context(), true, queue.By{}))
	_, err := r.engine.Want(s.ID, user, []string{"a"}, r.asked())
	r.check(err)
	r.check(r.queue.SetDrained(t.Context(), false, queue.By{}))
	if s = r.settled(s.ID); s.Tags.Find(user, "a").Status() != servertag.Active {
		t.Errorf("after the queue was drained: %+v", s.Tags)
	}
}

func TestAnInstanceRemovedBehindOurBack(t *testing.T) {
	r := newRig(t)
	s := r.create("a")
	if j := r.finish("OP_INSTANCE_REMOVE", map[string]any{"instance_name": s.Instance}); j.Status() != job.Success {
		t.Fatalf("the job is %s", j.Status())
	}
	s = r.until(s.ID, "is deleted", func(s *server.Server) bool { return s.Status() == server.Gone })
	if s.PendingTags() != 0 || !s.Tags.Has(user, "a") || !strings.Contains(s.Gone, "the inventory of revision") {
		t.Errorf("it is %+v", s)
	}
	if _, err := r.engine.Want(s.ID, user, []string{"b"}, r.asked()); !fault.Is(err, fault.WrongState) {
		t.Errorf("tagging a deleted server: %v", err)
	}
	if _, err := r.engine.Begin(s.ID, server.Delete, r.asked()); err != nil {
		t.Fatal(err)
	}
	r.until(s.ID, "is done with", func(s *server.Server) bool { return s == nil })
}

func TestPowerAndDelete(t *testing.T) {
	r := newRig(t)
	s := r.create()
	for _, do := range []server.Do{server.Stop, server.Start, server.Reboot} {
		if _, err := r.engine.Begin(s.ID, do, r.asked()); err != nil {
			t.Fatalf("%s: %v", do, err)
		}
		want := map[server.Do]server.Status{server.Stop: server.Shutoff, server.Start: server.Active, server.Reboot: server.Active}[do]
		if s = r.settled(s.ID); s.Status() != want || s.Fault != nil {
			t.Fatalf("after %s it is %s, %+v", do, s.Status(), s.Fault)
		}
	}
	if _, err := r.engine.Begin(s.ID, server.Start, r.asked()); !fault.Is(err, fault.WrongState) {
		t.Errorf("starting what runs: %v", err)
	}
	if _, err := r.engine.Begin(s.ID, server.Delete, r.asked()); err != nil {
		t.Fatal(err)
	}
	r.until(s.ID, "goes", func(s *server.Server) bool { return s == nil })
	if r.shown.Load().Inventory.InstanceNamed(s.Instance) != nil {
		t.Error("the instance is still there")
	}
}

// A number of the newest server that cannot be read is passed over by far: none is used again.
func TestADamagedNumberIsPassedOver(t *testing.T) {
	r := newRig(t)
	before := r.create().Number
	_, err := store.Commit(r.ctx, r.store, store.Tx{Put: []store.Put{{Key: tagsync.NumberKey, Value: []byte("x")}}})
	r.check(err)
	r.stop()
	r.start()
	if told := r.engine.Unreadable(); len(told) != 1 {
		t.Errorf("told of as unreadable: %v", told)
	}
	if after := r.create().Number; after <= before+100_000 {
		t.Errorf("the numbers are %d and %d", before, after)
	}
}
