package rollout

import (
	"maps"
	"slices"

	"github.com/drover-project/drover/internal/deploy/secret"
)

// veil hides the secrets of all parts that were read and of further values, each seen from the root of a state; secret are
// those that the usual rules and some more say.
func (r *stateReader) veil(own []string, values ...any) (*secret.Veil, error) {
	rules, err := secret.NewRules(own)
	if err != nil {
		return nil, err
	}
	for _, p := range r.known {
		values = append(values, p.Data())
	}
	found := map[string]bool{}
	for _, v := range values {
		rules.Collect(nil, v, func(text string) { found[text] = true })
	}
	return secret.NewVeil(rules, slices.Collect(maps.Keys(found))), nil
}

// hidden are the texts that are not told of a run.
func (r *run) hidden() *secret.Values {
	r.once.Do(func() { r.values = secret.NewValues(r.course.Hidden) })
	return r.values
}
