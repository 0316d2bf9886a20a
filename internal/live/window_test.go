package live_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

// TestDistancesMoveWithTime: what is shown of the last hour leaves when that is over, though nothing has changed, and who comes later is not shown it.
func TestDistancesMoveWithTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 100)
		r.change(cluster.Put(&cluster.Instance{Meta: cluster.NewMeta("uuid-web1", time.Now().UnixNano()), Name: "web1", AdminState: "up"}))
		filter, err := qlang.ParseText("ctime > -1h")
		if err != nil {
			t.Fatal(err)
		}
		q := query.Request{What: "instance", Fields: []string{"name"}, Filter: filter}
		begun := time.Now()
		count := func() (rows int) {
			for u, err := range r.Show(t.Context(), q, time.Second) {
				if err != nil {
					t.Fatal(err)
				}
				return len(u.Events)
			}
			return -1
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		seen := []int{}
		for u, err := range r.Show(ctx, q, time.Second) {
			if err != nil {
				t.Fatal(err)
			}
			if seen = append(seen, len(u.Events)); len(u.Events) == 0 {
				break
			}
			if n := count(); n != 1 {
				t.Errorf("another one is shown %d", n)
			}
		}
		if took := time.Since(begun); took < time.Hour || took > time.Hour+2*time.Minute {
			t.Errorf("it was shown for %s", took)
		}
		if len(seen) != 2 || seen[0] != 1 {
			t.Errorf("shown were %v instances", seen)
		}
		if n := count(); n != 0 {
			t.Errorf("who comes later is shown %d", n)
		}
		r.change(cluster.Put(&cluster.Instance{Meta: cluster.NewMeta("uuid-web2", time.Now().UnixNano()), Name: "web2", AdminState: "up"}))
		figures, err := query.ParseCalcs([]string{"count"})
		if err != nil {
			t.Fatal(err)
		}
		var counts []string
		for u, err := range r.ShowGroups(ctx, query.Request{What: "instance", Filter: filter}, nil, figures, time.Second) {
			if err != nil {
				t.Fatal(err)
			}
			if counts = append(counts, string(u.Events[0].Row)); len(counts) == 2 {
				break
			}
		}
		if want := []string{"[[0,1]]", "[[0,0]]"}; !slices.Equal(counts, want) {
			t.Errorf("counted were %v", counts)
		}
	})
}
