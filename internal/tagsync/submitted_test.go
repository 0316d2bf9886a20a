package tagsync_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/tagsync"
)

// written is a cluster that takes a job about tags only if it is written down in the store that it is about to be handed in.
type written struct {
	tagsync.Backend
	t  *testing.T
	r  *rig
	of *server.Server
}

func (w *written) Submit(ctx context.Context, key string, ops ...*opcode.Opcode) (job.ID, error) {
	if w.of != nil {
		o, err := w.r.store.Get(ctx, store.Key{Kind: tagsync.KindServer, ID: w.of.ID})
		w.r.check(err)
		s, err := server.Decode(o.Value)
		w.r.check(err)
		if !slices.ContainsFunc(s.Tags.Unsubmitted(), func(j servertag.Job) bool { return key == fmt.Sprintf("server/%s/tags/%d", s.ID, j.Serial) }) {
			w.t.Errorf("the job %s is handed in, and the store has of it %+v", key, s.Tags.Jobs)
		}
	}
	return w.Backend.Submit(ctx, key, ops...)
}

// TestNoJobIsHandedInBeforeItIsWrittenDown: the store does not take in at first that a job has begun. A controller that died then would leave a job that nobody
// knows of.
func TestNoJobIsHandedInBeforeItIsWrittenDown(t *testing.T) {
	w := &written{t: t}
	r := newRigAround(t, func(b tagsync.Backend) tagsync.Backend {
		w.Backend = b
		return w
	})
	w.r, w.of = r, r.create()
	refused := r.store.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: func(tx store.Tx) bool {
		return slices.ContainsFunc(tx.Put, func(p store.Put) bool {
			if p.Key.Kind != tagsync.KindServer {
				return false
			}
			s, err := server.Decode(p.Value)
			return err == nil && len(s.Tags.Unsubmitted()) > 0
		})
	}})
	_, err := r.engine.Want(w.of.ID, user, []string{"a"}, r.asked())
	r.check(err)
	<-refused
	if s := r.settled(w.of.ID); s.Tags.Find(user, "a").Status() != servertag.Active {
		t.Errorf("the tag is %+v", s.Tags.Find(user, "a"))
	}
}
