package web

import (
	"cmp"
	"context"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
)

const (
	// mostLookedAt is of how many rows the values are that are offered, the first ones of the item's order. Of a field that has few values,
	// at most fewValues, all rows are looked at: what is rare is wanted most.
	mostLookedAt = 10_000
	fewValues    = 100
	// mostOffered is how many values are offered, and mostLiteral how long one is at most.
	mostOffered = 12
	mostLiteral = 200
)

// value is one that a field has, as filters write it, and how often.
type value struct {
	Text  string `json:"text"`
	Count int64  `json:"count"`
}

// valuesOf offers values of a field that have what was typed in them, those first that begin with it, and of these what is most.
func valuesOf(s *Server, _ http.ResponseWriter, r *http.Request, _ *visitor) (any, error) {
	t, err := thingOf(r.PathValue("item"))
	if err != nil {
		return nil, err
	}
	field, typed := r.URL.Query().Get("field"), strings.ToLower(r.URL.Query().Get("typed"))
	if err := known(t.Item, []string{field}, "field"); err != nil {
		return nil, err
	}
	defs, err := items.All.Fields(t.Item, []string{field})
	if err != nil {
		return nil, err
	}
	kind := defs[0].Kind
	counts, err := s.countValues(r.Context(), t, field, kind)
	if err != nil {
		return nil, err
	}
	type candidate struct {
		value

		later bool // it does not begin with what was typed
		text  string
	}
	var all []candidate
	for text, n := range counts {
		literal, err := written(kind, text)
		begins := strings.HasPrefix(strings.ToLower(text), typed) || strings.HasPrefix(strings.ToLower(literal), typed)
		has := begins || !numeric(kind) && strings.Contains(strings.ToLower(text), typed)
		if err == nil && has && len(literal) <= mostLiteral {
			all = append(all, candidate{value{literal, n}, !begins, text})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		by := cmp.Or(boolean(a.later)-boolean(b.later), cmp.Compare(b.Count, a.Count))
		if by == 0 && numeric(kind) {
			by = cmp.Compare(len(a.text), len(b.text)) // the smaller number first
		}
		return cmp.Or(by, cmp.Compare(a.text, b.text))
	})
	out := []value{}
	for _, c := range all[:min(len(all), mostOffered)] {
		out = append(out, c.value)
	}
	return out, nil
}

func boolean(is bool) int {
	if is {
		return 1
	}
	return 0
}

// countValues counts the texts and numbers that a field has.
func (s *Server) countValues(ctx context.Context, t thing, field string, kind query.Kind) (map[string]int64, error) {
	r := query.Request{What: t.Item, Fields: []string{field}, Filter: &qlang.All{}, Options: query.Options{Sort: query.ParseSort(words(t.Sort)), Limit: mostLookedAt}}
	result, err := s.cfg.Querier.Query(ctx, r)
	if err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	for row := range result.Rows() {
		if text, ok := textIn(row[0], kind); ok {
			counts[text]++
		}
	}
	if result.Len() < mostLookedAt || len(counts) == 0 || len(counts) > fewValues {
		return counts, nil
	}
	figures, err := query.ParseCalcs([]string{"count"})
	if err != nil {
		return nil, err
	}
	r.Options = query.Options{}
	if result, err = s.cfg.Querier.Group(ctx, r, []string{field}, figures); err != nil {
		return nil, err
	}
	for row := range result.Rows() {
		if text, ok := textIn(row[0], kind); ok {
			counts[text], _ = row[1].Value.(int64)
		}
	}
	return counts, nil
}

// numeric reports whether the values of a kind are numbers. Times are none: nobody types one as it is.
func numeric(kind query.Kind) bool {
	return kind == query.KindNumber || kind == query.KindUnit || kind == query.KindFloat
}

// textIn is the text of a cell that is one, or that of a number.
func textIn(c query.Cell, kind query.Kind) (string, bool) {
	if c.Status != query.Normal || c.Value == nil {
		return "", false
	}
	of := reflect.ValueOf(c.Value)
	switch {
	case of.Kind() == reflect.String:
		return of.String(), of.String() != ""
	case numeric(kind) && of.CanInt():
		return strconv.FormatInt(of.Int(), 10), true
	case numeric(kind) && of.CanFloat():
		return strconv.FormatFloat(of.Float(), 'f', -1, 64), true
	}
	return "", false
}

// written is a value as filters have it; sizes that are whole gibibytes as people say them.
func written(kind query.Kind, text string) (string, error) {
	if !numeric(kind) {
		return literalOf(text)
	}
	const gib = 1024
	if n, err := strconv.ParseInt(text, 10, 64); kind == query.KindUnit && err == nil && n != 0 && n%gib == 0 {
		return strconv.FormatInt(n/gib, 10) + "G", nil
	}
	return text, nil
}

// literalOf is a text as filters write it.
func literalOf(text string) (string, error) {
	written, err := qlang.Text(&qlang.Compare{Op: qlang.Eq, Field: "name", Value: qlang.TextValue(text)})
	return strings.TrimPrefix(written, "name == "), err
}
