package lists

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shell"
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
