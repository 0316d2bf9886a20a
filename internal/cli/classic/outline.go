// Package classic writes what the classic tools (gnt-instance, gnt-os, ...) write:
// the outlines of their info commands, their lists of operating systems, what
// they tell about a change. Operators' scripts read these texts, so each is held
// to recordings of the tools, byte for byte.
//
// Invariants:
//   - Everything here is a function of values that were asked for elsewhere:
//     there are no commands, and nobody is asked anything.
//   - What a text needs is named beside it (InstanceForm, NetworkFields, ...), and
//     read in that order.
package classic

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Record is a list of named values in an order of its own.
type Record []Entry

// Entry is one of the values of a Record.
type Entry struct {
	Key   string
	Value any
}

// Line is an entry of a record.
func Line(key string, value any) Entry { return Entry{Key: key, Value: value} }

// Outline writes a value the way info commands show things: one "key: value"
// per line, lists with dashes, deeper levels indented. It is read by people;
// scripts ask for JSON.
func Outline(value any) string {
	var b strings.Builder
	writeOutline(&b, value, 0, false)
	return b.String()
}

// writeOutline writes a value at an indentation; inline means that the line is
// begun already.
func writeOutline(b *strings.Builder, value any, indent int, inline bool) {
	switch v := value.(type) {
	case Record:
		writeRecord(b, v, indent, inline)
	case map[string]any:
		r := make(Record, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			r = append(r, Entry{key, v[key]})
		}
		writeRecord(b, r, indent, inline)
	case []any:
		for i, item := range v {
			if i > 0 || !inline {
				b.WriteString(strings.Repeat(" ", indent))
			}
			b.WriteString("- ")
			writeOutline(b, item, indent+2, true)
		}
		if len(v) == 0 && inline {
			b.WriteByte('\n')
		}
	default:
		b.WriteString(Text(v) + "\n")
	}
}

func writeRecord(b *strings.Builder, r Record, indent int, inline bool) {
	for i, e := range r {
		if i > 0 || !inline {
			b.WriteString(strings.Repeat(" ", indent))
		}
		b.WriteString(e.Key + ": ")
		if !isContainer(e.Value) {
			b.WriteString(Text(e.Value) + "\n")
			continue
		}
		b.WriteByte('\n')
		writeOutline(b, e.Value, indent+2, false)
	}
	if len(r) == 0 && inline {
		b.WriteByte('\n')
	}
}

func isContainer(value any) bool {
	switch value.(type) {
	case Record, map[string]any, []any:
		return true
	default:
		return false
	}
}

// Text shows a plain value with the words that scripts around the
// classic tools know.
func Text(value any) string {
	switch v := value.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	default:
		return fmt.Sprint(v)
	}
}
