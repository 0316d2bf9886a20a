package web

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/query"
)

// TestAValueIsToldAnew: who comes again and knows a value as it was at a revision gets it all the same, for it tells of clocks, too; rows are known.
func TestAValueIsToldAnew(t *testing.T) {
	value, rows := &feed{tabs: map[*tab]bool{}}, &feed{tabs: map[*tab]bool{}}
	for _, text := range []string{`{"well":true}`, `{"well":false}`} {
		value.show(&live.Update{Revision: 5, Reset: true, Events: []query.Event{{Row: json.RawMessage(text)}}})
	}
	rows.show(&live.Update{Revision: 5, Reset: true, Fields: []query.Def{{Name: "id"}}, Events: []query.Event{{ID: "1", Row: json.RawMessage(`["1"]`)}}})
	if texts, _, err := value.take(-1, 5); err != nil || len(texts) != 1 || !strings.Contains(string(texts[0]), `"well":false`) {
		t.Errorf("of a value it is told %s: %v", texts, err)
	}
	if texts, _, err := rows.take(-1, 5); err != nil || len(texts) != 0 {
		t.Errorf("of rows that are known it is told %s: %v", texts, err)
	}
}

// TestViewsThatNobodyShowsMakeRoom: they linger for who comes again, and hold up nobody who wants another one.
func TestViewsThatNobodyShowsMakeRoom(t *testing.T) {
	h := &hub{open: map[string]*feed{}}
	for i := range 3 {
		key := strconv.Itoa(i)
		h.open[key] = &feed{hub: h, key: key, users: 1, end: func() {}, tabs: map[*tab]bool{}}
	}
	if h.makeRoom() {
		t.Error("a view is forgotten that a tab shows")
	}
	h.open["1"].leave(nil)
	if !h.makeRoom() || len(h.open) != 2 || h.open["1"] != nil {
		t.Errorf("what is left is %v", h.open)
	}
	if h.makeRoom() {
		t.Error("a view is forgotten that a tab shows")
	}
}
