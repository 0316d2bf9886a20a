package rollout

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// TestWhatCouldNotBeStoredIsStoredLater: a deployment goes on, and ends, under the controller that leads when the store comes
// back, whatever it could not take meanwhile.
func TestWhatCouldNotBeStoredIsStoredLater(t *testing.T) {
	ends := func(tx store.Tx) bool {
		return slices.ContainsFunc(tx.Put, func(p store.Put) bool {
			return p.Key.Kind == KindDeployment && strings.Contains(string(p.Value), `"status":"ready"`)
		})
	}
	success := func(tx store.Tx) bool {
		return slices.ContainsFunc(tx.Put, func(p store.Put) bool { return p.Key.Kind == KindSuccess })
	}
	for name, strike := range map[string]func(r *rig){
		"the end is not stored": func(r *rig) { r.store.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: ends}) },
		"the end is refused once": func(r *rig) {
			r.store.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: ends, Err: fault.New(fault.WrongState, "damage")})
		},
		"the end is stored, and not told":   func(r *rig) { r.store.Inject(faultstore.Fault{Do: faultstore.FailAfter, When: ends}) },
		"a success is not stored":           func(r *rig) { r.store.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: success}) },
		"a success is stored, and not told": func(r *rig) { r.store.Inject(faultstore.Fault{Do: faultstore.FailAfter, When: success}) },
	} {
		t.Run(name, func(t *testing.T) {
			r := web(t)
			d := r.plan(Wish{Environment: "prod"})
			strike(r)
			if _, err := r.engine.Begin(t.Context(), d.ID, by); err != nil {
				t.Fatal(err)
			}
			if p := r.end(d.ID); p.Status != course.Done || p.States[course.Ready] != 8 {
				t.Errorf("%s: %s %v", p.Status, p.Why, p.States)
			}
			if began := r.began(d.ID); len(began) != 8 { // none of them twice
				t.Errorf("nodes ran %v", began)
			}
		})
	}
}
