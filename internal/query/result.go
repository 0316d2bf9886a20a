package query

import (
	"iter"
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

// Pieces yields a JSON list between two texts in pieces of some ten kilobytes:
// what comes before, n elements with commas between, and what comes after. The
// slice is overwritten each time.
func Pieces(before string, n int, one func(dst []byte, i int) []byte, after string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		b := append(make([]byte, 0, chunk+chunk/2), before...)
		for i := range n {
			if i > 0 {
				b = append(b, ',')
			}
			b = one(b, i)
			if len(b) >= chunk {
				if !yield(b) {
					return
				}
				b = b[:0]
			}
		}
		yield(append(b, after...))
	}
}

// Chunks yields the answer as clients read it, {"fields": [...], "data":
// [[[status, value], ...], ...]}, in pieces as Pieces has them. When Limit cut
// rows off there is the page token, too, as "next".
func (r *Result) Chunks() iter.Seq[[]byte] {
	before := append(appendDefs([]byte(`{"fields":`), r.Fields), `,"data":[`...)
	after := []byte{']'}
	if r.Next != "" {
		after = appendString(append(after, `,"next":`...), r.Next)
	}
	return Pieces(string(before), r.rows, r.listOf(appendCell), string(append(after, '}')))
}

// listOf returns a function that appends a row as a list of its cells.
func (r *Result) listOf(one func([]byte, Cell) []byte) func(dst []byte, i int) []byte {
	row := make([]Cell, len(r.Fields))
	return func(dst []byte, i int) []byte {
		r.row(i, row)
		return appendList(dst, row, one)
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
	return append(AppendValue(dst, c.Value), ']')
}

// appendDefs appends descriptions of fields as clients read them.
func appendDefs(dst []byte, defs []Def) []byte {
	return appendList(dst, defs, func(b []byte, d Def) []byte {
		b = appendString(append(b, `{"name":`...), d.Name)
		b = appendString(append(b, `,"title":`...), d.Title)
		b = appendString(append(b, `,"kind":`...), string(d.Kind))
		return append(appendString(append(b, `,"doc":`...), d.Doc), '}')
	})
}

// Values is the answer in the old form: a list of rows of bare values, null
// where there is none.
type Values struct{ result *Result }

// Values returns the answer in the old form.
func (r *Result) Values() Values { return Values{r} }

// Chunks yields the list in pieces as Pieces has them.
func (v Values) Chunks() iter.Seq[[]byte] {
	return Pieces("[", v.result.rows, v.result.listOf(appendBare), "]")
}

func appendBare(dst []byte, c Cell) []byte { return AppendValue(dst, c.Value) }

// AppendValues appends the whole answer in the old form.
func (r *Result) AppendValues(dst []byte) []byte {
	for piece := range r.Values().Chunks() {
		dst = append(dst, piece...)
	}
	return dst
}

// AppendRow appends row i as a list of its cells, each [status, value].
func (r *Result) AppendRow(dst []byte, i int) []byte { return r.listOf(appendCell)(dst, i) }

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
		dst = AppendValue(dst, c.Value)
	}
	return append(dst, '}')
}

// Bare returns a function that appends the values of some fields of a row as a
// JSON list, null where there is none.
func (t *Table[R]) Bare(fields []string) func(dst []byte, r R) []byte {
	columns := t.columns(fields)
	return func(dst []byte, r R) []byte {
		return appendList(dst, columns, func(b []byte, c column[R]) []byte {
			return AppendValue(b, c.get(nil, r).Value)
		})
	}
}

// result makes the answer out of the rows that are left.
func (t *Table[R]) result(v *View, rows []R, r Request, order ordering[R]) (*Result, error) {
	rows, next, err := order.page(v, rows, r.Options, t.Identity, func(row R) R { return t.restored(v, row) })
	if err != nil {
		return nil, err
	}
	columns := t.columns(r.Fields)
	out := &Result{Fields: make([]Def, len(columns)), Next: next, rows: len(rows)}
	for i := range columns {
		out.Fields[i] = columns[i].def
	}
	out.row = func(i int, into []Cell) {
		if i%blockSize == 0 {
			block := rows[i:min(i+blockSize, len(rows))]
			fetch(block, t.Touch)
			fetch(block, t.TouchParts)
		}
		row := t.restored(v, rows[i])
		for n := range columns {
			into[n] = columns[n].get(v, row)
		}
	}
	out.id = func(i int) string { return t.Identity(rows[i]) }
	return out, nil
}
