package query

import (
	"testing"
	"time"
)

func TestExplainedNamesWhereRowsComeFrom(t *testing.T) {
	for _, c := range []struct {
		ex   Explanation
		want string
	}{
		{Explanation{Access: "index", Index: "pnode, snodes", Considered: 20, Kept: 3},
			"rows:  20 considered (found by the index of pnode, snodes), 3 left by the filter\nnodes: none is asked\n"},
		{Explanation{Access: "scan", Considered: 9, Kept: 9, Live: []string{"oper_ram"}, Nodes: 2, AsOf: 1e9, FilterLive: true},
			"rows:  9 considered (all looked at), 9 left by the filter\nnodes: oper_ram comes from 2 nodes\n" +
				"       the oldest of what they told is 1.5 s old (lists ask them now with --fresh)\n       the filter is applied again to what they told\n"},
	} {
		if got := c.ex.Text(time.Unix(2, 5e8)); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}
