package lists

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/screen"
	"github.com/drover-project/drover/internal/cli/shell"
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

// watched is a list that is followed: the rows as they were shown last, and how
// wide their columns were.
type watched struct {
	rows    map[string][]listing.Cell
	columns []int
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

// watch shows a list and then how its rows change, until it is interrupted: in place on a
// terminal, else row by row.
func watch(ctx context.Context, sh *shell.Shell, what string, fields []string, filter qlang.Node, o *Options) error {
	if inPlace(sh, o) {
		in, out, _ := sh.Screen()
		return screen.Show(ctx, screen.On(sh, in, out), newWatchPage(sh, what, fields, filter, o))
	}
	sh.EndWithReader()
	var w watched
	since := int64(0)
	for {
		var u update
		if err := news(ctx, sh, &u, what, fields, filter, o, since); err != nil {
			return err
		}
		events := w.apply(&u)
		if len(events) > 0 || since == 0 {
			if err := showEvents(sh, what, &u, events, &w, o); err != nil {
				return err
			}
		}
		if since == 0 {
			if unknown := listing.Unknown(u.Fields); len(unknown) > 0 {
				noteUnknown(ctx, sh, what, unknown)
			}
		}
		since = u.Revision
	}
}

// inPlace tells whether a list that is followed stays in place on a terminal.
func inPlace(sh *shell.Shell, o *Options) bool {
	_, _, ok := sh.Screen()
	return ok && !sh.Classic() && !sh.Structured() && o.separator == "" && !o.noHeaders
}

// news asks what is new in a list since a revision, and waits for it.
func news(ctx context.Context, sh *shell.Shell, u *update, what string, fields []string, filter qlang.Node, o *Options, since int64) error {
	options := map[string]any{"watch": since, "sort": shell.NonNil(o.sort), "limit": o.limit}
	return sh.Stay(ctx, "Query", u, what, fields, qlang.JSON(filter), options)
}

// newWatchPage is a list to be followed on a terminal. Rows of jobs have their status and
// their number besides, to be put in order by.
func newWatchPage(sh *shell.Shell, what string, fields []string, filter qlang.Node, o *Options) *watchPage {
	p := &watchPage{sh: sh, what: what, o: o}
	if what == "job" {
		fields = append(slices.Clone(fields), "status", "id")
		p.hidden = 2
	}
	p.ask = func(since int64) func(context.Context) (any, error) {
		return func(ctx context.Context) (any, error) {
			u := &update{}
			return u, news(ctx, sh, u, what, fields, filter, o, since)
		}
	}
	return p
}

// showEvents shows rows with a sign and a time before each, or as JSON one to a
// line.
func showEvents(sh *shell.Shell, what string, u *update, events []rowEvent, w *watched, o *Options) error {
	if sh.Structured() {
		return showEventLines(sh, u.Fields, events)
	}
	a := &listing.Answer{Fields: append([]listing.Field{{Name: "sign", Title: " ", Kind: "text"}, {Name: "at", Title: "At", Kind: "text"}}, u.Fields...)}
	for _, e := range events {
		mark := listing.Cell{Value: json.RawMessage(`"` + signs[e.Type] + `"`)}
		at := listing.Cell{Value: json.RawMessage(`"` + sh.Now().Format(time.TimeOnly) + `"`)}
		a.Data = append(a.Data, append([]listing.Cell{mark, at}, e.Row...))
	}
	options := tableOptions(sh, o)
	options.NoHeaders = o.noHeaders || w.columns != nil
	options.Columns = &w.columns
	return listing.Write(sh.Out, what, a, options)
}

// showEventLines gives the time at which an event was told; the rows of the first
// answer have one too.
func showEventLines(sh *shell.Shell, fields []listing.Field, events []rowEvent) error {
	rows := &listing.Answer{Fields: fields}
	for _, e := range events {
		rows.Data = append(rows.Data, e.Row)
	}
	values, err := Objects(rows)
	if err != nil {
		return err
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for i, e := range events {
		if err := enc.Encode(map[string]any{"type": e.Type, "id": e.ID, "at": sh.Now().Format(time.RFC3339Nano), "row": values[i]}); err != nil {
			return err
		}
	}
	return sh.Printf("%s", b.String())
}
