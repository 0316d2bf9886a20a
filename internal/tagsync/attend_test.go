package tagsync_test

import (
	"context"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/tagsync"
)

// slowLook is a cluster that tells what it saw when it is let, once armed has something.
type slowLook struct {
	tagsync.Backend
	armed chan struct{}
	saw   chan struct{}
	let   chan struct{}
}

func (s slowLook) Look(ctx context.Context, instance server.Ref, jobs []job.ID) (server.Sight, error) {
	sight, err := s.Backend.Look(ctx, instance, jobs)
	select {
	case <-s.armed:
		close(s.saw)
		<-s.let
	default:
	}
	return sight, err
}

// TestWhoAttendsIsToldOfALaterLook: a look that was under way when somebody asks for one saw what was before. Who asked waits for the next one.
func TestWhoAttendsIsToldOfALaterLook(t *testing.T) {
	slow := slowLook{armed: make(chan struct{}, 1), saw: make(chan struct{}), let: make(chan struct{})}
	r := newRigAround(t, func(b tagsync.Backend) tagsync.Backend {
		slow.Backend = b
		return slow
	})
	s := r.create()
	slow.armed <- struct{}{}
	r.engine.Reconcile()
	<-slow.saw
	r.finish("OP_TAGS_SET", tagParams(s, "cyclades:user:adopted"))
	attended := make(chan error, 1)
	go func() { attended <- r.engine.Attend(t.Context(), s.ID) }()
	time.AfterFunc(50*time.Millisecond, func() { close(slow.let) }) // who asks by then is in time for the test to mean something
	if err := <-attended; err != nil || !r.engine.Servers().Get(s.ID).Tags.Has(user, "adopted") {
		t.Errorf("attended to, %v, the server has the tags %q", err, r.engine.Servers().Get(s.ID).Tags.Names(user))
	}
}

// TestWhatIsToGoIsNotTagged: a tag that is wanted of a server that is being deleted makes no job.
func TestWhatIsToGoIsNotTagged(t *testing.T) {
	r := newRig(t)
	s := r.create()
	rule, err := jobfilter.ParseRule([]byte(`{"action":"PAUSE","predicates":[["opcode",["=","OP_ID","OP_INSTANCE_REMOVE"]]]}`))
	r.check(err)
	uuid, _, err := r.queue.PutFilter(t.Context(), "", rule, queue.By{})
	r.check(err)
	_, err = r.engine.Begin(s.ID, server.Delete, r.asked())
	r.check(err)
	_, err = r.engine.Want(s.ID, user, []string{"late"}, r.asked())
	r.check(err)
	r.check(r.engine.Attend(t.Context(), s.ID))
	if now := r.engine.Servers().Get(s.ID); !now.Deleting() || len(now.Tags.Jobs) > 0 {
		t.Errorf("it is to go: %t, with jobs about tags %+v", now.Deleting(), now.Tags.Jobs)
	}
	r.check(r.queue.DeleteFilter(t.Context(), uuid, queue.By{}))
	r.until(s.ID, "is gone", func(s *server.Server) bool { return s == nil })
}
