package history

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
)

// TestNothingOldIsReadAtAStandby has a standby lose all it hears by while it may answer
// by itself: it knows neither of what the leader changes nor that its lease is called
// off. The leader acknowledges nothing until that has ended.
func TestNothingOldIsReadAtAStandby(t *testing.T) {
	g := newGroup(t, testkit.Build(t))
	rounds := 5
	if testing.Short() {
		rounds = 2
	}
	for n := range rounds {
		leads, others := g.leader()
		standby, tag := others[n%len(others)], "round:"+strconv.Itoa(n)
		before := g.answersOfStandbys()
		g.until("a standby answers by itself", func() bool {
			return standby.ask(t.Context(), new(any), "QueryTags", "cluster", "") == nil && g.answersOfStandbys() > before
		})
		standby.line.set(true)
		leads.peer.set(true)
		op := map[string]any{"OP_ID": "OP_TAGS_SET", "kind": "cluster", "name": nil, "tags": []string{tag}, "reason": []any{}}
		if err := new(clients).run(t.Context(), &asker{member: leads}, op); err != nil {
			t.Fatal(err)
		}
		limit, cancel := context.WithTimeout(t.Context(), time.Second)
		var list []string
		err := standby.ask(limit, &list, "QueryTags", "cluster", "")
		cancel()
		if err == nil && !slices.Contains(list, tag) {
			t.Errorf("after %s was acknowledged, a standby that was cut off showed %s", tag, list)
		}
		standby.line.set(false)
		leads.peer.set(false)
	}
	g.end()
}
