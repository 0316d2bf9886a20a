package web

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
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
	counts, err := s.countValues(r.Context(), t, field)
	if err != nil {
		return nil, err
	}
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), typed) }
	later := func(text string) int {
		if strings.HasPrefix(strings.ToLower(text), typed) {
			return 0
		}
		return 1
	}
	all := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(later(a), later(b)), cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	out := []value{}
	for _, text := range all {
		literal, err := literalOf(text)
		if err == nil && has(text) && len(literal) <= mostLiteral && len(out) < mostOffered {
			out = append(out, value{literal, counts[text]})
		}
	}
	return out, nil
}

// countValues counts the texts that a field has.
func (s *Server) countValues(ctx context.Context, t thing, field string) (map[string]int64, error) {
	r := query.Request{What: t.Item, Fields: []string{field}, Filter: &qlang.All{}, Options: query.Options{Sort: query.ParseSort(words(t.Sort)), Limit: mostLookedAt}}
	result, err := s.cfg.Querier.Query(ctx, r)
	if err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	for row := range result.Rows() {
		if text, ok := textIn(row[0]); ok {
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
		if text, ok := textIn(row[0]); ok {
			counts[text], _ = row[1].Value.(int64)
		}
	}
	return counts, nil
}

// textIn is the text of a cell that is one; numbers and times are not completed.
func textIn(c query.Cell) (string, bool) {
	if c.Status != query.Normal || c.Value == nil {
		return "", false
	}
	of := reflect.ValueOf(c.Value)
	return of.String(), of.Kind() == reflect.String && of.String() != ""
}

// literalOf is a text as filters write it.
func literalOf(text string) (string, error) {
	written, err := qlang.Text(&qlang.Compare{Op: qlang.Eq, Field: "name", Value: qlang.TextValue(text)})
	return strings.TrimPrefix(written, "name == "), err
}
