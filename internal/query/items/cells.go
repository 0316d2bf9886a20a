package items

import (
	"strconv"

	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/reason"
)

// Shorthands of the field tables.

func known(v any) query.Cell { return query.Cell{Value: v} }

func text(s string) query.Cell { return query.Cell{Value: s} }

// textOrUnavail is Unavail for an empty text.
func textOrUnavail(s string) query.Cell {
	if s == "" {
		return query.Cell{Status: query.Unavail}
	}
	return query.Cell{Value: s}
}

// textOrNoData is NoData for an empty text: the item lacks what it should have.
func textOrNoData(s string) query.Cell {
	if s == "" {
		return query.Cell{Status: query.NoData}
	}
	return query.Cell{Value: s}
}

// seconds since the epoch as clients see times.
func timestamp(ns int64) query.Cell { return query.Cell{Value: float64(ns) / 1e9} }

// truth is the cell of a bool. The constants are boxed once, not for each value.
func truth(b bool) query.Cell {
	if b {
		return query.Cell{Value: true}
	}
	return query.Cell{Value: false}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// strictly makes fields strict: those of items, and further fields of items,
// that the reference does not have.
func strictly[R any](fields []query.Field[R]) []query.Field[R] {
	for i := range fields {
		fields[i].Strict = true
	}
	return fields
}

// def describes a field to clients.
func def(name, title string, kind query.Kind, doc string) query.Def {
	return query.Def{Name: name, Title: title, Kind: kind, Doc: doc}
}

// textField is a field whose texts may be missing.
func textField[R any](name, title, doc string, get func(R) string) query.Field[R] {
	return query.Field[R]{Def: def(name, title, query.KindText, doc), Get: func(_ *query.View, r R) query.Cell { return textOrUnavail(get(r)) }}
}

func numberField[R any](name, title, doc string, get func(R) int64) query.Field[R] {
	return query.Field[R]{Def: def(name, title, query.KindNumber, doc), Get: func(_ *query.View, r R) query.Cell { return known(get(r)) }}
}

// timeField is a moment that may not have come; it is kept in nanoseconds.
func timeField[R any](name, title, doc string, get func(R) int64) query.Field[R] {
	return query.Field[R]{Def: def(name, title, query.KindTimestamp, doc), Get: func(_ *query.View, r R) query.Cell {
		t := get(r)
		if t == 0 {
			return query.Cell{Status: query.Unavail}
		}
		return timestamp(t)
	}}
}

func trailField[R any](get func(R) reason.Trail) query.Field[R] {
	return query.Field[R]{Def: def("reason_trail", "Reason_trail", query.KindOther, "Why, hop by hop: source, reason and nanoseconds since the epoch"),
		Get: func(_ *query.View, r R) query.Cell { return known(get(r)) }}
}
