package rollout

import (
	"reflect"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// TestAPreviewStoresNothing: it tells what the stored plan would, and leaves no trace; who wants what was shown gets just that, or is refused.
func TestAPreviewStoresNothing(t *testing.T) {
	r := web(t)
	stored := func() (n int) {
		t.Helper()
		for _, kind := range []store.Kind{KindDeployment, KindPlan, KindPart} {
			for _, err := range r.store.List(t.Context(), kind, store.Options{}) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
		}
		return n
	}
	before := stored()
	shown, err := r.preview(Wish{Environment: "prod"})
	if err != nil {
		t.Fatal(err)
	}
	if after := stored(); after != before || shown.Deployment.ID != 0 || shown.Deployment.Runs != 8 {
		t.Errorf("%d objects became %d; shown is %+v", before, after, shown.Deployment)
	}
	d := r.plan(Wish{Environment: "prod", Basis: &shown.Deployment.Basis})
	tasks, err := r.engine.Tasks(t.Context(), d.ID)
	if err != nil {
		t.Fatal(err)
	}
	for i := range tasks {
		tasks[i].Deployment = 0
	}
	if !reflect.DeepEqual(tasks, shown.Tasks) {
		t.Errorf("stored is\n%+v\nshown was\n%+v", tasks, shown.Tasks)
	}
	if err := r.engine.DeleteNode(t.Context(), "prod", "1", by); err != nil {
		t.Fatal(err)
	}
	_, _, err = r.engine.Plan(t.Context(), Wish{Environment: "prod", Basis: &shown.Deployment.Basis}, by)
	r.refused(err, fault.Conflict, "the plan that was shown was computed from a state that has moved on: the environment is at generation 2, not 1")
	_, err = r.preview(Wish{})
	r.refused(err, fault.Invalid, "name it")
	_, err = r.preview(Wish{Environment: "prod", Mode: "loud"})
	r.refused(err, fault.Invalid, "loud")
}
