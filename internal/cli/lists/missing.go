package lists

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
)

// ParseFilter reads a filter that was typed. In drover's own commands a value that
// is missing meets no test of it, so that nothing is chosen, and still less changed,
// for what it does not have. Under a classic name it is read as the reference
// reads it.
func ParseFilter(sh *shell.Shell, text string) (qlang.Node, error) {
	n, err := qlang.ParseText(text)
	switch {
	case err != nil:
		return nil, BadFilter(sh, err)
	case sh.Classic():
		return n, nil
	default:
		return qlang.Strict(n), nil
	}
}

// TellMissing says of how many of the items within a filter another filter does not
// hold, and its negation neither, because they lack a value that it tests. Whoever
// expected them learns how to ask for them.
func TellMissing(ctx context.Context, sh *shell.Shell, kind, text string, within qlang.Node) error {
	n, err := qlang.ParseText(text)
	if err != nil || sh.Classic() {
		return err
	}
	var found listing.Answer
	undecided := &qlang.And{Args: []qlang.Node{&qlang.Not{Arg: qlang.Strict(n)}, &qlang.Not{Arg: qlang.Strict(&qlang.Not{Arg: n})}}}
	count := map[string]any{"group_by": []string{}, "figures": []string{"count"}}
	if err := sh.Ask(ctx, "Query", &found, kind, []string{}, qlang.JSON(Both(within, undecided)), count); err != nil {
		return err
	}
	if len(found.Data) == 0 {
		return nil
	}
	var out int
	if err := json.Unmarshal(found.Data[0][0].Value, &out); err != nil || out == 0 {
		return err
	}
	have := "have"
	if out == 1 {
		have = "has"
	}
	fields := testedFields(n)
	sh.Notef("left out: %s %s no value of %s; to mean them, write %q\n", shell.Counted(out, kind), have, strings.Join(fields, " or "),
		fmt.Sprintf("%s is missing", fields[0]))
	return nil
}

// testedFields are the fields that a filter tests, but for those which it only asks
// whether they are missing.
func testedFields(n qlang.Node) []string {
	var out []string
	for _, f := range qlang.Fields(n) {
		tested := false
		qlang.Walk(n, func(_ string, n qlang.Node) bool {
			name, leaf := qlang.Field(n)
			_, asks := n.(*qlang.Missing)
			tested = tested || leaf && name == f && !asks
			return true
		})
		if tested {
			out = append(out, f)
		}
	}
	return out
}

// tellNearest tells, of a list that a filter left empty, which values there are nearest to
// those that the filter asks for and nothing has.
func (o *Options) tellNearest(ctx context.Context, sh *shell.Shell, what string) {
	if sh.Structured() || sh.Classic() || sh.Flags.Stale {
		return
	}
	n, err := qlang.ParseText(o.typed())
	if err != nil {
		return
	}
	qlang.Walk(n, func(_ string, n qlang.Node) bool {
		if c, ok := n.(*qlang.Compare); ok && c.Op == qlang.Eq && c.Value.Text != "" {
			if near := nearestValue(ctx, sh, what, c.Field, c.Value.Text); near != "" {
				sh.Notef("  hint: no %s has the %s %q; did you mean %q?\n", what, c.Field, c.Value.Text, near)
			}
		}
		return true
	})
}

// nearestValue is the value of a field that was probably meant; empty if there is none
// near, or one item has the value itself, or could have it.
func nearestValue(ctx context.Context, sh *shell.Shell, what, field, value string) string {
	var found listing.Answer
	groups := map[string]any{"group_by": []string{field}, "figures": []string{"count"}}
	if sh.Ask(ctx, "Query", &found, what, []string{}, qlang.JSON(&qlang.All{}), groups) != nil {
		return "" // it was only for a hint
	}
	values := possible(what, field)
	for _, row := range found.Data {
		values = append(values, CellText(row[0]))
	}
	if slices.Contains(values, value) {
		return ""
	}
	return qlang.Suggest(value, slices.Values(values))
}

// possible are the values that a field may have, of one that has no others, whether or not
// anything has them now: who looks for jobs that run finds none where none does.
func possible(what, field string) []string {
	var out []string
	switch what + " " + field {
	case "job status":
		for _, s := range job.Statuses {
			out = append(out, string(s))
		}
	case "event what":
		for v := range audit.Verbs() {
			out = append(out, string(v))
		}
	}
	return out
}

// typed is the filter as it was typed; empty if there is none.
func (o *Options) typed() string {
	if o.Filter == "" && qlang.IsFilter(o.names, o.force) {
		return o.names[0]
	}
	return o.Filter
}
