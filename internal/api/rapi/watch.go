package rapi

import (
	"encoding/json"
	"fmt"
	"iter"
	"strconv"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
	"github.com/drover-project/drover/internal/store"
)

// queryWatch follows a query: the answer is a stream of server-sent events. The
// filter is text (filter=) or JSON (qfilter=); with sort= and limit= the first rows
// are followed. A client that lost its
// connection goes on by the header Last-Event-ID, or since=.
func queryWatch(r *request) (any, error) {
	if err := r.checkParameters("fields", "filter", "qfilter", "sort", "limit", "since"); err != nil {
		return nil, err
	}
	fields, err := r.fieldsOfQuery()
	if err != nil {
		return nil, err
	}
	filter, err := r.filterOfQuery()
	if err != nil {
		return nil, err
	}
	since, err := r.since()
	if err != nil {
		return nil, err
	}
	limit, err := r.limit()
	if err != nil {
		return nil, err
	}
	q := query.Request{What: r.variables["item"], Fields: fields, Filter: filter,
		Options: query.Options{Sort: query.ParseSort(splitWords(r.text("sort"))), Limit: limit}}
	if err := items.All.Check(q, r.Now()); err != nil {
		return nil, err // now, while a status can still be sent
	}
	return eventStream{updates: r.Querier.Follow(r.Context(), q, since)}, nil
}

func (r *request) filterOfQuery() (qlang.Node, error) {
	if text := r.text("qfilter"); text != "" {
		return qlang.ParseJSON([]byte(text))
	}
	switch text := r.text("filter"); {
	case text == "":
		return &qlang.All{}, nil
	case text[0] == '[': // no text begins so
		return qlang.ParseJSON([]byte(text))
	default:
		return qlang.ParseText(text)
	}
}

// since is the revision that a client has seen already, 0 for none.
func (r *request) since() (store.Revision, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.text("since")
	}
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, badRequest("Invalid value for the 'since' parameter")
	}
	return store.Revision(n), nil
}

// eventStream is an answer of server-sent events: "reset" with the fields
// (forget all rows), and "enter", "change" and "leave" with the id of a row and
// its cells. The last event of an update carries its revision as id.
type eventStream struct {
	updates iter.Seq2[*live.Update, error]
	// entitled tells whether the client may still have it.
	entitled func() error
}

// Chunks yields the stream; each piece is to be sent at once.
func (e eventStream) Chunks() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if !yield([]byte(": following\n\n")) {
			return
		}
		for u, err := range e.updates {
			piece := failed(err)
			if err == nil {
				piece = update(u)
			}
			if !yield(piece) {
				return
			}
		}
	}
}

func failed(err error) []byte {
	if err == nil {
		return nil
	}
	return message(nil, "error", 0, map[string]string{"code": string(fault.CodeOf(err)), "message": err.Error()})
}

// update writes the events of an update.
func update(u *live.Update) []byte {
	var out []byte
	id := func(last bool) store.Revision {
		if last {
			return u.Revision
		}
		return 0
	}
	if u.Reset {
		out = message(out, "reset", id(len(u.Events) == 0), map[string]any{"fields": u.Fields})
	}
	for i, e := range u.Events {
		out = message(out, e.Type, id(i == len(u.Events)-1), map[string]any{"id": e.ID, "row": e.Row})
	}
	return out
}

// message appends one event; revision 0 stands for none.
func message(out []byte, event string, revision store.Revision, data any) []byte {
	out = append(out, "event: "+event+"\n"...)
	if revision != 0 {
		out = fmt.Appendf(out, "id: %d\n", revision)
	}
	text, err := encode(data)
	if err != nil {
		text = json.RawMessage("null\n") // not reached: the data is JSON already
	}
	return append(append(append(out, "data: "...), text...), '\n')
}
