package query

import (
	"iter"
	"strconv"
)

// Result is the answer to a query. Its cells are computed when they are read,
// from the state of the query; reading it twice gives the same.
type Result struct {
	// Fields describes the columns.
	Fields []Def
	// Next is the page token to go on with when Limit cut rows off, else empty.
	Next string
	rows int
	row  func(i int, into []Cell)
	// id returns the identity of a row within its item.
	id func(i int) string
}

// Len returns the number of rows.
func (r *Result) Len() int { return r.rows }

// Row computes row i into the slice, which must have a place for each column.
func (r *Result) Row(i int, into []Cell) { r.row(i, into) }

// Identity returns what tells row i apart from the other rows of its item over
// time: a UUID, a job id.
func (r *Result) Identity(i int) string { return r.id(i) }

// Rows yields the rows in order. The slice is the same each time.
func (r *Result) Rows() iter.Seq[[]Cell] {
	return func(yield func([]Cell) bool) {
		row := make([]Cell, len(r.Fields))
		for i := range r.rows {
			r.row(i, row)
			if !yield(row) {
				return
			}
		}
	}
}

// All returns all rows.
func (r *Result) All() [][]Cell {
	cells := make([]Cell, r.rows*len(r.Fields))
	out := make([][]Cell, r.rows)
	for i := range out {
		out[i], cells = cells[:len(r.Fields):len(r.Fields)], cells[len(r.Fields):]
		r.row(i, out[i])
	}
	return out
}

// chunk is how much JSON is gathered before it is handed on, in bytes.
const chunk = 64 << 10

// Chunks yields the answer as clients read it, {"fields": [...], "data":
// [[[status, value], ...], ...]}, in pieces of some ten kilobytes. The slice
// is overwritten each time. When Limit cut rows off there is the page token,
// too, as "next".
func (r *Result) Chunks() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		b := append(appendDefs(append(make([]byte, 0, chunk+chunk/2), `{"fields":`...), r.Fields), `,"data":[`...)
		first := true
		for row := range r.Rows() {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = appendList(b, row, appendCell)
			if len(b) >= chunk {
				if !yield(b) {
					return
				}
				b = b[:0]
			}
		}
		b = append(b, ']')
		if r.Next != "" {
			b = appendString(append(b, `,"next":`...), r.Next)
		}
		yield(append(b, '}'))
	}
}

// AppendJSON appends the whole answer as clients read it.
func (r *Result) AppendJSON(dst []byte) []byte {
	for piece := range r.Chunks() {
		dst = append(dst, piece...)
	}
	return dst
}

// MarshalJSON returns the whole answer as clients read it.
func (r *Result) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }

func appendCell(dst []byte, c Cell) []byte {
	dst = append(dst, '[', '0'+byte(c.Status), ',')
	return append(appendValue(dst, c.Value), ']')
}

// AppendDefs appends descriptions of fields as clients read them.
func appendDefs(dst []byte, defs []Def) []byte {
	return appendList(dst, defs, func(b []byte, d Def) []byte {
		b = appendString(append(b, `{"name":`...), d.Name)
		b = appendString(append(b, `,"title":`...), d.Title)
		b = appendString(append(b, `,"kind":`...), string(d.Kind))
		return append(appendString(append(b, `,"doc":`...), d.Doc), '}')
	})
}

// AppendValues appends the answer in the old form: a list of rows of bare
// values, null where there is none.
func (r *Result) AppendValues(dst []byte) []byte {
	dst = append(dst, '[')
	first := true
	for row := range r.Rows() {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendList(dst, row, func(b []byte, c Cell) []byte { return appendValue(b, c.Value) })
	}
	return append(dst, ']')
}

// AppendObjects appends the answer as a list of objects with the field names
// as keys, null where there is no value, as bulk lists are read.
func (r *Result) AppendObjects(dst []byte) []byte {
	dst = append(dst, '[')
	for i := range r.rows {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.AppendObject(dst, i)
	}
	return append(dst, ']')
}

// AppendObject appends row i as an object with the field names as keys.
func (r *Result) AppendObject(dst []byte, i int) []byte {
	row := make([]Cell, len(r.Fields))
	r.row(i, row)
	dst = append(dst, '{')
	for n, c := range row {
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, r.Fields[n].Name), ':')
		dst = appendValue(dst, c.Value)
	}
	return append(dst, '}')
}

// result makes the answer out of the rows that are left.
func (t *table[R]) result(v *view, rows []R, r Request, order ordering[R]) (*Result, error) {
	rows, next, err := order.page(v, rows, r.Options, t.identity)
	if err != nil {
		return nil, err
	}
	columns := t.columns(r.Fields)
	out := &Result{Fields: make([]Def, len(columns)), Next: next, rows: len(rows)}
	for i := range columns {
		out.Fields[i] = columns[i].def
	}
	out.row = func(i int, into []Cell) {
		row := rows[i]
		for n := range columns {
			into[n] = columns[n].get(v, row)
		}
	}
	out.id = func(i int) string { return t.identity(rows[i]) }
	return out, nil
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
