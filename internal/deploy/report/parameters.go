package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/yaql"
)

// Parameters tells for people the parameters of a task, each on a line of its own: texts as they are, so that a command can be copied, those of
// several lines below their name, and all else as JSON.
func Parameters(v any) string {
	m, ok := v.(yaql.Mapping)
	if !ok {
		return "parameters: " + plan.Canonical(v) + "\n"
	}
	b := &strings.Builder{}
	b.WriteString("parameters:\n")
	values, names := map[string]any{}, []string{}
	m.Range(func(k, v any) bool {
		values[fmt.Sprint(k)] = v
		names = append(names, fmt.Sprint(k))
		return true
	})
	slices.Sort(names)
	for _, name := range names {
		text, isText := values[name].(string)
		switch {
		case !isText:
			fmt.Fprintf(b, "  %s: %s\n", name, plan.Canonical(values[name]))
		case strings.Contains(strings.TrimRight(text, "\n"), "\n"):
			fmt.Fprintf(b, "  %s:\n", name)
			for line := range strings.Lines(text) {
				fmt.Fprintf(b, "    %s\n", strings.TrimRight(line, "\n"))
			}
		default:
			fmt.Fprintf(b, "  %s: %s\n", name, strings.TrimRight(text, "\n"))
		}
	}
	return b.String()
}
