package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/qlang"
)

// update is what the controller says is new in the answer of a query.
type update struct {
	Revision int64
	Reset    bool // forget all rows, events are all there are
	Fields   []listing.Field
	Events   []rowEvent
}

type rowEvent struct {
	Type string `json:"type"` // enter, change or leave
	ID   string `json:"id"`
	Row  []listing.Cell
}

// signs stand before rows for what became of them.
var signs = map[string]string{"enter": "+", "change": "~", "leave": "-"}

// watched is a list that is followed: the rows as they were shown last.
type watched struct {
	rows map[string][]listing.Cell
}

// apply takes an update in and returns what is different from what was shown.
// Rows that left come with the values they had.
func (w *watched) apply(u *update) []rowEvent {
	if w.rows == nil {
		w.rows = map[string][]listing.Cell{}
	}
	gone := map[string]bool{}
	if u.Reset {
		for id := range w.rows {
			gone[id] = true
		}
	}
	var out []rowEvent
	for _, e := range u.Events {
		if e.Type == "leave" {
			gone[e.ID] = true
			continue
		}
		delete(gone, e.ID)
		before, shown := w.rows[e.ID]
		w.rows[e.ID] = e.Row
		switch {
		case !shown:
			out = append(out, rowEvent{"enter", e.ID, e.Row})
		case !sameCells(before, e.Row):
			out = append(out, rowEvent{"change", e.ID, e.Row})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(gone)) {
		if row, shown := w.rows[id]; shown {
			delete(w.rows, id)
			out = append(out, rowEvent{"leave", id, row})
		}
	}
	return out
}

func sameCells(a, b []listing.Cell) bool {
	return slices.EqualFunc(a, b, func(x, y listing.Cell) bool { return x.Status == y.Status && bytes.Equal(x.Value, y.Value) })
}

// watch shows a list and then how its rows change, until it is interrupted.
func (sh *shell) watch(ctx context.Context, what string, fields []string, filter qlang.Node, o *listOptions) error {
	var w watched
	since := int64(0)
	for {
		var u update
		if err := sh.ask(ctx, "Query", &u, what, fields, qlang.JSON(filter), map[string]int64{"watch": since}); err != nil {
			return err
		}
		events := w.apply(&u)
		if len(events) > 0 || since == 0 {
			if err := sh.showEvents(what, u.Fields, events, since == 0, o); err != nil {
				return err
			}
		}
		if since == 0 {
			if unknown := listing.Unknown(u.Fields); len(unknown) > 0 {
				sh.noteUnknown(ctx, what, unknown)
			}
		}
		since = u.Revision
	}
}

// showEvents shows rows with a sign before each, or as JSON one to a line.
func (sh *shell) showEvents(what string, fields []listing.Field, events []rowEvent, first bool, o *listOptions) error {
	if sh.flags.output == "json" {
		return sh.showEventLines(fields, events)
	}
	a := &listing.Answer{Fields: append([]listing.Field{{Name: "sign", Title: " ", Kind: "text"}}, fields...)}
	for _, e := range events {
		sign := listing.Cell{Value: json.RawMessage(`"` + signs[e.Type] + `"`)}
		a.Data = append(a.Data, append([]listing.Cell{sign}, e.Row...))
	}
	options := sh.tableOptions(o)
	options.NoHeaders = o.noHeaders || !first
	return listing.Write(sh.out, what, a, options)
}

func (sh *shell) showEventLines(fields []listing.Field, events []rowEvent) error {
	rows := &listing.Answer{Fields: fields}
	for _, e := range events {
		rows.Data = append(rows.Data, e.Row)
	}
	values, err := objects(rows)
	if err != nil {
		return err
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for i, e := range events {
		if err := enc.Encode(map[string]any{"type": e.Type, "id": e.ID, "row": values[i]}); err != nil {
			return err
		}
	}
	return sh.printf("%s", b.String())
}
