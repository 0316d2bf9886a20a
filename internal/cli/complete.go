package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
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
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer cancel()
		fields := nameFields[kind]
		var found listing.Answer
		if err := sh.do(ctx, "Query", &found, kind, fields, nil); err != nil {
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
