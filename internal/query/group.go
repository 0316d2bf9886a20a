package query

import (
	"iter"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
)

// Calc is a figure of a grouped answer: "count", or one of count, sum, avg, min
// and max of a field.
type Calc struct {
	Func  string
	Field string // empty for the number of rows
}

var calcSyntax = regexp.MustCompile(`^(?:(count)|(count|sum|avg|min|max)\(([A-Za-z0-9_./]+)\))$`)

// ParseCalc reads "count" or "sum(oper_ram)".
func ParseCalc(text string) (Calc, error) {
	m := calcSyntax.FindStringSubmatch(text)
	if m == nil {
		return Calc{}, fault.New(fault.Invalid, "%q is no figure", text).
			WithHint("count, count(FIELD), sum(FIELD), avg(FIELD), min(FIELD) or max(FIELD)")
	}
	return Calc{Func: m[1] + m[2], Field: m[3]}, nil
}

// ParseCalcs reads a list of figures.
func ParseCalcs(texts []string) ([]Calc, error) {
	out := make([]Calc, len(texts))
	for i, text := range texts {
		c, err := ParseCalc(text)
		if err != nil {
			return nil, err
		}
		out[i] = c
	}
	return out, nil
}

// String returns the text that ParseCalc reads.
func (c Calc) String() string {
	if c.Field == "" {
		return c.Func
	}
	return c.Func + "(" + c.Field + ")"
}

// grouping is what rows are grouped by: the values of a field, or the spans of time
// that its values are in.
type grouping struct {
	text, field string
	span        int64 // seconds; 0 for the values themselves
}

var spanSyntax = regexp.MustCompile(`^(.+)/((?:\d{1,9}[smhdw])+)$`)

// checkSpan refuses spans of a field of times that are none, or that nobody can count.
func checkSpan(text string) error {
	m := spanSyntax.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	switch span, ok := writtenDuration(m[2]); {
	case !ok:
		return fault.New(fault.Invalid, "the span of %q is too long", text).At("group_by")
	case span == 0:
		return fault.New(fault.Invalid, "the span of %q has no length", text).At("group_by").WithHint("for example %s/10m", m[1])
	}
	return nil
}

// groupingOf reads "status", or "end_ts/10m": spans of ten minutes. Of days and
// weeks each begins at midnight of UTC.
func groupingOf(text string) grouping {
	if m := spanSyntax.FindStringSubmatch(text); m != nil {
		if span, ok := writtenDuration(m[2]); ok && span > 0 {
			return grouping{text, m[1], span}
		}
	}
	return grouping{text: text, field: text}
}

// GroupedField is the field that groups are made by, as in "end_ts" of "end_ts/10m".
func GroupedField(by string) string { return groupingOf(by).field }

// of is the value that a cell is grouped by: of spans, when the cell's begins.
func (g *grouping) of(c Cell) Cell {
	if g.span == 0 || c.Status != Normal {
		return c
	}
	var at int64
	switch v := c.Value.(type) {
	case [2]int64:
		at = v[0]
	default:
		at = int64(math.Floor(asFloat(v)))
	}
	return Cell{Value: at - at%g.span}
}

// column is what the column is of groups by a field.
func (g *grouping) column(d Def) Def {
	if g.span > 0 {
		d.Name, d.Title, d.Kind, d.Doc = g.text, d.Title+strings.TrimPrefix(g.text, g.field), KindTimestamp, d.Doc+"; when the span begins that it is in"
	}
	return d
}

// groupings reads what a query is grouped by, and refuses spans of what is no time.
func (c Catalog) groupings(what string, by []string) ([]grouping, error) {
	it, err := c.lookup(what)
	if err != nil {
		return nil, err
	}
	out := make([]grouping, len(by))
	for i, text := range by {
		out[i] = groupingOf(text)
		if name := out[i].field; it.def(name).Kind == KindUnknown {
			if err := checkSpan(text); err != nil {
				return nil, err
			}
		}
		if g := out[i]; g.span > 0 && it.def(g.field).Kind != KindUnknown && !it.times(g.field) {
			return nil, fault.New(fault.Invalid, "%s has no times, which %q asks for spans of", g.field, text).At("group_by").
				WithHint("group by %s itself, or by a field of times, as in end_ts/10m", g.field)
		}
	}
	return out, nil
}

// CheckGroups refuses what rows of an item cannot be grouped by.
func (c Catalog) CheckGroups(what string, by []string) error {
	_, err := c.groupings(what, by)
	return err
}

// Group answers a query by groups: one row for each combination of values of
// the fields in by, or of the spans that these are in, as in end_ts/10m, with
// the figures over its rows. r.Fields is not used;
// r.Options apply to the groups, whose columns are the fields of by and the
// texts of the figures; without fields in by all rows are one group. Values that
// are not there are left out of figures; a sum or extreme of none is Unavail.
func (c Catalog) Group(src *Source, r Request, by []string, calcs []Calc) (*Result, error) {
	keys, err := c.groupings(r.What, by)
	if err != nil {
		return nil, err
	}
	inner := Request{What: r.What, Filter: r.Filter}
	for _, g := range keys {
		inner.Fields = append(inner.Fields, g.field)
	}
	for _, f := range calcs {
		if f.Field != "" {
			inner.Fields = append(inner.Fields, f.Field)
		}
	}
	for _, name := range inner.Fields {
		if def, err := c.Fields(r.What, []string{name}); err != nil {
			return nil, err
		} else if def[0].Kind == KindUnknown {
			return nil, parameterError("Can't find field named '%s'", name)
		}
	}
	rows, err := c.Run(src, inner.What, inner.Fields, inner.Filter, Options{Fresh: r.Fresh})
	if err != nil {
		return nil, err
	}
	groups, err := gather(src, rows, keys, calcs)
	if err != nil {
		return nil, err
	}
	defs := slices.Clone(rows.Fields)
	for i := range keys {
		defs[i] = keys[i].column(defs[i])
	}
	t, names := groupTableOf(r.What, defs, len(by), calcs, groups)
	opts := r.Options
	if len(opts.Sort) == 0 {
		for _, name := range by {
			opts.Sort = append(opts.Sort, SortKey{Field: name})
		}
	}
	plan, err := t.prepare(src, Request{What: r.What, Fields: names, Filter: &qlang.All{}, Options: opts})
	if err != nil {
		return nil, err
	}
	return plan.Finish(nil)
}

// groupRow is a group: its key, and the cells of its columns.
type groupRow struct {
	key   string
	cells []Cell
	// taken is how many values each figure has taken in.
	taken []int64
}

func newGroup(key string, by []Cell, calcs []Calc) *groupRow {
	g := &groupRow{key: key, cells: slices.Clone(by), taken: make([]int64, len(calcs))}
	for _, c := range calcs {
		g.cells = append(g.cells, c.start())
	}
	return g
}

// gather folds rows, whose first columns are the key, into groups in order of
// their first rows. Without a key all rows are one group, also when there are none:
// how many there are of nothing is 0.
func gather(src *Source, rows *Result, by []grouping, calcs []Calc) ([]*groupRow, error) {
	keys, key := len(by), make([]Cell, len(by))
	index := map[string]*groupRow{}
	var out []*groupRow
	var buf []byte
	taken := 0
	for row := range rows.Rows() {
		if taken++; taken%blockSize == 0 {
			if err := src.interrupted(); err != nil {
				return nil, err
			}
		}
		for i := range by {
			key[i] = by[i].of(row[i])
		}
		buf = appendList(buf[:0], key, appendCell)
		g := index[string(buf)]
		if g == nil {
			g = newGroup(string(buf), key, calcs)
			index[g.key] = g
			out = append(out, g)
		}
		next := keys
		for i, c := range calcs {
			value := Cell{}
			if c.Field != "" {
				value = row[next]
				next++
			}
			if value.Status == Normal {
				g.taken[i]++
			}
			if err := c.add(&g.cells[keys+i], value); err != nil {
				return nil, err
			}
		}
	}
	if keys == 0 && len(out) == 0 {
		out = append(out, newGroup("", nil, calcs))
	}
	for _, g := range out {
		for i, c := range calcs {
			c.finish(&g.cells[keys+i], g.taken[i])
		}
	}
	return out, nil
}

func (c Calc) start() Cell {
	if c.Func == "count" {
		return Cell{Value: int64(0)}
	}
	return Cell{Status: Unavail}
}

// add takes one more value into a figure.
func (c Calc) add(sum *Cell, value Cell) error {
	if value.Status != Normal {
		return nil
	}
	first := sum.Status != Normal
	switch c.Func {
	case "count":
		sum.Value = sum.Value.(int64) + 1
	case "sum", "avg":
		total, isNumber := plus(sum.Value, value.Value)
		if !isNumber {
			return parameterError("Cannot add up %s: %s is no number", c.Field, show(value.Value))
		}
		*sum = Cell{Value: total}
	case "min":
		if first || CompareCells(value, *sum) < 0 {
			*sum = value
		}
	case "max":
		if first || CompareCells(value, *sum) > 0 {
			*sum = value
		}
	}
	return nil
}

// finish makes the figure of so many values of what add came to: an average of
// their sum.
func (c Calc) finish(sum *Cell, values int64) {
	if c.Func == "avg" && sum.Status == Normal {
		*sum = Cell{Value: asFloat(sum.Value) / float64(values)}
	}
}

// kind is that of the figure of a field. The average of numbers has a fraction;
// that of sizes and times is one of their own, which lists show as such.
func (c Calc) kind(of Kind) Kind {
	switch {
	case c.Func == "count":
		return KindNumber
	case c.Func == "avg" && of == KindNumber:
		return KindFloat
	}
	return of
}

// plus adds numbers, false if b is none; a is nil for the first.
func plus(a, b any) (any, bool) {
	switch b := b.(type) {
	case int64:
		if a == nil {
			return b, true
		}
		if n, ok := a.(int64); ok {
			return n + b, true
		}
		return asFloat(a) + float64(b), true
	case float64:
		return asFloat(a) + b, true
	case Nanos:
		return asFloat(a) + b.seconds(), true
	}
	return nil, false
}

// groupTableOf makes an item of the groups, so that they can be sorted and
// paged as any rows.
func groupTableOf(what string, defs []Def, keys int, calcs []Calc, groups []*groupRow) (*Table[*groupRow], []string) {
	t := Table[*groupRow]{
		What:     what,
		All:      func(*View) iter.Seq[*groupRow] { return slices.Values(groups) },
		Identity: func(g *groupRow) string { return g.key },
	}
	add := func(d Def) {
		n := len(t.Fields)
		t.Fields = append(t.Fields, Field[*groupRow]{Def: d, Get: func(_ *View, g *groupRow) Cell { return g.cells[n] }})
	}
	for _, d := range defs[:keys] {
		add(d)
	}
	next := keys
	for _, c := range calcs {
		d := Def{Name: c.String(), Title: c.String(), Kind: KindNumber, Doc: "Number of rows"}
		if c.Field != "" {
			d.Doc = "Figure " + c.Func + " of " + c.Field
			d.Kind = c.kind(defs[next].Kind)
			d.Title = c.Func + "(" + defs[next].Title + ")"
			next++
		}
		add(d)
	}
	names := make([]string, len(t.Fields))
	for i := range t.Fields {
		names[i] = t.Fields[i].Name
	}
	return t.Indexed(), names
}
