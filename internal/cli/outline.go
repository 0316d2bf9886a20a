package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// record is a list of named values in an order of its own.
type record []entry

type entry struct {
	key   string
	value any
}

// outline writes a value the way info commands show things: one "key: value"
// per line, lists with dashes, deeper levels indented. It is read by people;
// scripts ask for JSON.
func outline(value any) string {
	var b strings.Builder
	writeOutline(&b, value, 0, false)
	return b.String()
}

// writeOutline writes a value at an indentation; inline means that the line is
// begun already.
func writeOutline(b *strings.Builder, value any, indent int, inline bool) {
	switch v := value.(type) {
	case record:
		writeRecord(b, v, indent, inline)
	case map[string]any:
		r := make(record, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			r = append(r, entry{key, v[key]})
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
		b.WriteString(pythonText(v) + "\n")
	}
}

func writeRecord(b *strings.Builder, r record, indent int, inline bool) {
	for i, e := range r {
		if i > 0 || !inline {
			b.WriteString(strings.Repeat(" ", indent))
		}
		b.WriteString(e.key + ": ")
		if !isContainer(e.value) {
			b.WriteString(pythonText(e.value) + "\n")
			continue
		}
		b.WriteByte('\n')
		writeOutline(b, e.value, indent+2, false)
	}
	if len(r) == 0 && inline {
		b.WriteByte('\n')
	}
}

func isContainer(value any) bool {
	switch value.(type) {
	case record, map[string]any, []any:
		return true
	default:
		return false
	}
}

// pythonText shows a plain value with the words that scripts around the
// classic tools know.
func pythonText(value any) string {
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
