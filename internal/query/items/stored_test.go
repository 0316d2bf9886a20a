package items_test

import (
	"testing"
	"time"

	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
)

func TestStored(t *testing.T) {
	for name, c := range map[string]struct {
		r    query.Request
		want bool
	}{
		"jobs":                    {query.Request{What: "job", Fields: []string{"id", "status", "ops", "opresult", "waits"}}, true},
		"what holds a job":        {query.Request{What: "job", Fields: []string{"id", "held_by"}}, false},
		"a filter by it":          {query.Request{What: "job", Fields: []string{"id"}, Filter: qlang.AnyOf("wait_reason", "x")}, false},
		"the order of it":         {query.Request{What: "job", Fields: []string{"id"}, Options: query.Options{Sort: query.ParseSort([]string{"held_since"})}}, false},
		"rules":                   {query.Request{What: "filter", Fields: []string{"uuid", "action", "reason"}}, true},
		"how many a rule holds":   {query.Request{What: "filter", Fields: []string{"held"}}, false},
		"instances":               {query.Request{What: "instance", Fields: []string{"name", "pnode", "be/maxmem", "tags"}}, true},
		"what runs":               {query.Request{What: "instance", Fields: []string{"name", "status"}}, false},
		"an unknown field":        {query.Request{What: "node", Fields: []string{"nothing"}}, true},
		"locks":                   {query.Request{What: "lock", Fields: []string{"name"}}, false},
		"operating systems":       {query.Request{What: "os", Fields: []string{"name"}}, false},
		"the cluster":             {query.Request{What: "cluster", Fields: []string{"drain_flag"}}, false},
		"a filter by live values": {query.Request{What: "instance", Fields: []string{"name"}, Filter: qlang.AnyOf("oper_state", "x")}, false},
	} {
		if got, err := items.All.Stored(c.r, time.Unix(0, 0)); got != c.want || err != nil {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
	if _, err := items.All.Stored(query.Request{What: "nothing"}, time.Unix(0, 0)); err == nil {
		t.Error("an item that there is not is no error")
	}
	if _, err := items.All.Stored(query.Request{What: "job", Filter: qlang.AnyOf("nothing", "x")}, time.Unix(0, 0)); err == nil {
		t.Error("a filter by a field that there is not is no error")
	}
}
