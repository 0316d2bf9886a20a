package queue_test

import (
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
)

// A job about an instance that comes while the job begins has no locks by then, for
// nobody knew the instance: it asks for them before it does anything, also when
// somebody else holds them. One about an instance that does not come is refused.
func TestNothingRunsWithoutItsLocks(t *testing.T) {
	r := newRig(t, 5)
	looks := make(chan func())
	r.beforeLook = func() { (<-looks)() }
	other := r.submit(shutdown("web1")) // locks the name, whether there is an instance or not
	r.began(other, 0)
	reboot := `{"OP_ID":"OP_INSTANCE_REBOOT","instance_name":"web1","reboot_type":"hard"}`
	early := r.submit(reboot)
	looks <- func() {
		r.check(r.keeper.Update(ctx, func(*cluster.Snapshot) ([]cluster.Change, error) {
			return []cluster.Change{cluster.Put(&cluster.Instance{Meta: cluster.NewMeta("uuid-web1", 1), Name: "web1"})}, nil
		}))
	}
	r.status(early, job.Waiting)
	if x, err := r.q.Explain(ctx, early); err != nil || x.Locks.Waits == nil || !slices.Equal(x.Locks.Waits.Holders, []lock.Owner{lock.Owner(other)}) {
		t.Errorf("it waits for %+v, %v", x.Locks.Waits, err)
	}
	r.finish(other, 0, nil)
	looks <- func() {}
	r.began(early, 0)
	if x, err := r.q.Explain(ctx, early); err != nil || len(x.Locks.Held) == 0 {
		t.Errorf("it runs with the locks %v, %v", x.Locks.Held, err)
	}
	r.finish(early, 0, nil)
	r.status(early, job.Success)

	never := r.submit(`{"OP_ID":"OP_INSTANCE_REBOOT","instance_name":"web2","reboot_type":"hard"}`)
	looks <- func() {}
	j := r.status(never, job.Error)
	if class, text, _ := job.DecodeError(j.Ops[0].Result); class != "OpPrereqError" || text != "not known" {
		t.Errorf("it ends with %s", j.Ops[0].Result)
	}
}
