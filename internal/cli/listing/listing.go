// Package listing writes the answers of queries as the tables that operators'
// scripts know: columns, alignment, units, words for missing values, and lists
// and objects as Python shows them. It is pure formatting; what is asked and
// where answers come from is the caller's.
//
// Invariants:
//   - Equal answers give equal bytes, whatever the terminal (colours apart).
//   - Rows are written in the order in which they came.
package listing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Field describes a column, as queries and QueryFields answer it.
type Field struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Kind  string `json:"kind"`
	Doc   string `json:"doc"`
}

// Cell is a value with its status; the value is JSON as it came.
type Cell struct {
	Status int
	Value  json.RawMessage
}

// UnmarshalJSON reads the pair [status, value].
func (c *Cell) UnmarshalJSON(data []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("a cell must be a pair of status and value, got %.80s", data)
	}
	c.Value = pair[1]
	return json.Unmarshal(pair[0], &c.Status)
}

// MarshalJSON writes the pair [status, value].
func (c Cell) MarshalJSON() ([]byte, error) { return json.Marshal([2]any{c.Status, c.Value}) }

// Answer is the answer of a query. It reads the form that LUXI's Query and
// RAPI's /2/query give.
type Answer struct {
	Fields []Field  `json:"fields"`
	Data   [][]Cell `json:"data"`
}

// Unknown returns the fields that do not exist. A list with such fields is
// shown, with a warning (UnknownFields), and ends with ExitUnknownField.
func Unknown(fields []Field) []string {
	var out []string
	for _, f := range fields {
		if f.Kind == "unknown" {
			out = append(out, f.Name)
		}
	}
	return out
}

// ExitUnknownField is the exit code of a list with fields that do not exist.
const ExitUnknownField = 14

// UnknownFields is the warning about fields that do not exist.
func UnknownFields(names []string) string {
	return "Warning: Queried for unknown fields " + strings.Join(names, ", ")
}

// Options say how a list is written.
type Options struct {
	// Separator goes between the columns; empty aligns them instead.
	Separator string
	NoHeaders bool
	// Verbose tells in words why a value is missing.
	Verbose bool
	// Units is the unit of sizes: h (fitting), m, g or t; empty is h in
	// aligned tables and m otherwise.
	Units string
	// Location is the time zone that times are shown in; nil is local time.
	Location *time.Location
	// Width is that of the terminal, to which wide columns are cut; 0 cuts nothing.
	Width int
	// Columns are the widths of the columns of tables that continue one another:
	// those before, which this one keeps to at least, and then its own; nil for a
	// table by itself.
	Columns *[]int
	// Times shows pairs of seconds and microseconds as times.
	Times bool
	// Color marks missing values for a terminal.
	Color bool
}

func (o *Options) units() string {
	switch {
	case o.Units != "":
		return o.Units
	case o.Separator != "":
		return "m"
	}
	return "h"
}

func (o *Options) location() *time.Location {
	if o.Location == nil {
		return time.Local
	}
	return o.Location
}

// CheckUnits refuses a unit that is not known.
func CheckUnits(unit string) error {
	switch unit {
	case "", "h", "m", "g", "t":
		return nil
	default:
		return fmt.Errorf("invalid unit %q: h, m, g or t", unit)
	}
}

// missing are the words for values that are not there, by status: short and
// in full.
var missing = map[int][2]string{
	1: {"??", "(unknown)"}, 2: {"?", "(nodata)"}, 3: {"-", "(unavail)"}, 4: {"*", "(offline)"},
}

// colors of missing values: yellow for "not now", red for "no such field".
var colors = map[int]string{1: "\x1b[31m", 2: "\x1b[33m", 3: "\x1b[2m", 4: "\x1b[33m"}

const colorEnd = "\x1b[0m"

// Write writes a list of the items of a kind, for example "instance".
func Write(w io.Writer, what string, a *Answer, o Options) error {
	t := table{right: make([]bool, len(a.Fields)), entire: make([]bool, len(a.Fields)), separator: o.Separator, width: o.Width, before: o.Columns}
	header := make([]entry, len(a.Fields))
	show := make([]func(any) string, len(a.Fields))
	for i, f := range a.Fields {
		header[i].text = f.Title
		t.entire[i] = f.Kind == "timestamp" || slices.Contains(pairTimes, f.Name)
		t.right[i] = f.Kind == "number" || f.Kind == "float" || f.Kind == "unit"
		show[i] = formatter(what, f, &o)
	}
	if !o.NoHeaders {
		t.add(header)
	}
	for _, row := range a.Data {
		cells := make([]entry, len(row))
		for i, c := range row {
			e, err := o.entry(c, show[i])
			if at, ok := Moment(a.Fields[i], c.Value); ok && o.Times && c.Status == 0 {
				e.text = at.In(o.location()).Format(time.DateTime)
			}
			if err != nil {
				return fmt.Errorf("field %s: %w", a.Fields[i].Name, err)
			}
			cells[i] = e
		}
		t.add(cells)
	}
	return t.write(w)
}

func (o *Options) entry(c Cell, show func(any) string) (entry, error) {
	if words, ok := missing[c.Status]; ok {
		e := entry{text: words[0]}
		if o.Verbose {
			e.text = words[1]
		}
		if o.Color {
			e.color = colors[c.Status]
		}
		return e, nil
	}
	v, err := decode(c.Value)
	if err != nil {
		return entry{}, err
	}
	return entry{text: Printable(show(v))}, nil
}

// kindWords describe the kinds of fields in lists of fields.
var kindWords = map[string]string{
	"unknown": "Unknown", "text": "Text", "bool": "Boolean", "number": "Number", "float": "Floating-point number",
	"unit": "Storage size", "timestamp": "Timestamp", "other": "Custom",
}

// WriteFields writes a list of fields.
func WriteFields(w io.Writer, fields []Field, o Options) error {
	t := table{right: make([]bool, 4), entire: make([]bool, 4), separator: o.Separator, width: o.Width, wraps: true}
	add := func(texts ...string) {
		row := make([]entry, len(texts))
		for i, s := range texts {
			row[i].text = s
		}
		t.add(row)
	}
	if !o.NoHeaders {
		add("Name", "Type", "Title", "Description")
	}
	for _, f := range fields {
		add(f.Name, kindWords[f.Kind], f.Title, f.Doc)
	}
	return t.write(w)
}

// entry is a text in a table with the colour it has on a terminal.
type entry struct{ text, color string }

type table struct {
	rows      [][]entry
	right     []bool
	entire    []bool // columns that are not cut: half a time tells nothing
	separator string
	// width is that of the terminal, 0 for any. Where it is too small, the last
	// column is wrapped if wraps says so, and the widest columns are cut if not.
	width int
	wraps bool
	// before is as Options.Columns.
	before *[]int
}

func (t *table) add(row []entry) { t.rows = append(t.rows, row) }

func (t *table) write(w io.Writer) error {
	var out bytes.Buffer
	widths := t.widths()
	if t.before != nil {
		for i, w := range *t.before {
			widths[i] = max(widths[i], w)
		}
		*t.before = slices.Clone(widths)
	}
	fit(widths, t.entire, t.width, t.wraps)
	for _, row := range t.rows {
		for _, line := range t.lines(row, widths) {
			for i, e := range line {
				t.writeEntry(&out, i, e, widths)
			}
			out.WriteByte('\n')
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}

// widths returns the width of each column in characters; all 0 when a
// separator takes the place of alignment.
func (t *table) widths() []int {
	out := make([]int, len(t.right))
	if t.separator != "" {
		return out
	}
	for _, row := range t.rows {
		for i, e := range row {
			out[i] = max(out[i], utf8.RuneCountInString(e.text))
		}
	}
	return out
}

func (t *table) writeEntry(out *bytes.Buffer, i int, e entry, widths []int) {
	if i > 0 {
		if t.separator != "" {
			out.WriteString(t.separator)
		} else {
			out.WriteByte(' ')
		}
	}
	pad := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(e.text)))
	if t.right[i] {
		out.WriteString(pad)
	}
	if e.color != "" {
		out.WriteString(e.color + e.text + colorEnd)
	} else {
		out.WriteString(e.text)
	}
	// The last column is not padded to the right.
	if !t.right[i] && i < len(t.right)-1 {
		out.WriteString(pad)
	}
}
