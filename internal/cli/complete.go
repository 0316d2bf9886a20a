package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

// nameFields are the fields that name the items of a kind, and that describe
// them, in completions.
var nameFields = map[string][2]string{
	"instance": {"name", "status"}, "node": {"name", "role"}, "group": {"name", "alloc_policy"},
	"network": {"name", "network"}, "job": {"id", "summary"}, "filter": {"uuid", "action"},
}

// completeNames offers the live names of items to the shell. Without a
// controller, or with a slow one, it offers nothing.
func (sh *shell) completeNames(kind string, many bool) cobra.CompletionFunc {
	return sh.completeWhere(kind, many, &qlang.All{})
}

// completeWhere offers those that a filter lets through.
func (sh *shell) completeWhere(kind string, many bool, filter qlang.Node) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer cancel()
		fields := nameFields[kind]
		var found listing.Answer
		if err := sh.do(ctx, "Query", &found, kind, fields, qlang.JSON(filter)); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []cobra.Completion
		for _, row := range found.Data {
			name := cellText(row[0])
			if strings.HasPrefix(name, typed) && !slices.Contains(args, name) {
				out = append(out, cobra.CompletionWithDesc(name, cellText(row[1])))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFields offers the fields of a kind of item, behind those that stand
// there already.
func completeFields(what string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		defs, err := query.Fields(what, nil)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		begun := ""
		if i := strings.LastIndexAny(typed, ",+-"); i >= 0 {
			begun = typed[:i+1]
		}
		out := make([]cobra.Completion, 0, len(defs))
		for _, d := range defs {
			if strings.HasPrefix(begun+d.Name, typed) {
				out = append(out, cobra.CompletionWithDesc(begun+d.Name, d.Doc))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// cellText is a cell as one line of text.
func cellText(cell listing.Cell) string {
	v, ok := parseJSON(string(cell.Value))
	if !ok || v == nil {
		return ""
	}
	if list, isList := v.([]any); isList {
		parts := make([]string, len(list))
		for i, item := range list {
			parts[i] = fmt.Sprint(item)
		}
		return strings.Join(parts, ",")
	}
	return fmt.Sprint(v)
}
