package query

import (
	"fmt"
	"strings"
	"time"
)

// Text tells an explanation in words, some lines of them.
func (ex *Explanation) Text(now time.Time) string {
	var b strings.Builder
	how := map[string]string{"names": "found by their names", "index": "found by the index of " + ex.Index, "scan": "all looked at"}[ex.Access]
	fmt.Fprintf(&b, "rows:  %d considered (%s), %d left by the filter\n", ex.Considered, how, ex.Kept)
	if len(ex.Live) == 0 {
		b.WriteString("nodes: none is asked\n")
		return b.String()
	}
	nodes := "nodes"
	if ex.Nodes == 1 {
		nodes = "node"
	}
	fmt.Fprintf(&b, "nodes: %s comes from %d %s\n", strings.Join(ex.Live, ", "), ex.Nodes, nodes)
	if ex.AsOf != 0 {
		age := max(0, now.Sub(time.Unix(0, ex.AsOf)))
		fmt.Fprintf(&b, "       the oldest of what they told is %.1f s old (lists ask them now with --fresh)\n", age.Seconds())
	}
	if ex.Silent > 0 {
		fmt.Fprintf(&b, "       %d of them do not answer\n", ex.Silent)
	}
	if ex.FilterLive {
		b.WriteString("       the filter is applied again to what they told\n")
	}
	return b.String()
}
