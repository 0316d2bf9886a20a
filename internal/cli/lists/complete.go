package lists

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query/items"
)

// nameFields are the fields that name the items of a kind, and that describe
// them, in completions.
var nameFields = map[string][2]string{
	"instance": {"name", "status"}, "node": {"name", "role"}, "group": {"name", "alloc_policy"},
	"network": {"name", "network"}, "image": {"name", "format"}, "disk": {"uuid", "name"}, "job": {"id", "summary"}, "filter": {"rule", "action_text"},
	"server": {"name", "status"}, "environment": {"name", "status"}, "deployment": {"id", "status"},
}

// ParamKinds are the kinds of items that parameters name, by the names of the
// parameters; optionKinds likewise for options that are no parameter.
var (
	ParamKinds = map[string]string{
		"instance_name": "instance", "instances": "instance",
		"node_name": "node", "nodes": "node", "pnode": "node", "snode": "node", "remote_node": "node", "target_node": "node",
		"src_node": "node", "on_nodes": "node", "node_names": "node",
		"group_name": "group", "group": "group", "target_groups": "group",
		"network_name": "network", "network": "network", "image_name": "image",
		"os_type": "os", "os_name": "os", "os": "os",
	}
	OptionKinds = map[string]string{"node": "node", "image": "image"}
)

// CompleteItems offers names of items as values of the options of a command.
func CompleteItems(sh *shell.Shell, cmd *cobra.Command, params map[string]string) {
	for option, kind := range params {
		if kind == "" || cmd.Flags().Lookup(option) == nil {
			continue
		}
		_ = cmd.RegisterFlagCompletionFunc(option, completeList(sh, kind)) // the option exists
	}
}

// keyFields are the fields of items that show what objects hold, by the options that set these.
var keyFields = map[string]struct{ kind, prefix string }{
	"beparams": {"instance", "be/"}, "hvparams": {"instance", "hv/"}, "ndparams": {"node", "ndp/"},
}

// CompleteKeys offers the keys of options whose values are KEY=VALUE, with commas between.
func CompleteKeys(cmd *cobra.Command) {
	for option, of := range keyFields {
		if cmd.Flags().Lookup(option) == nil {
			continue
		}
		fields := completeFields(of.kind)
		_ = cmd.RegisterFlagCompletionFunc(option, func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			begun := typed[:strings.LastIndexAny(typed, ",:")+1]
			found, directive := fields(cmd, nil, of.prefix+typed[len(begun):])
			for i, field := range found {
				name, about, _ := strings.Cut(strings.TrimPrefix(field, of.prefix), "\t")
				found[i] = cobra.CompletionWithDesc(begun+name+"=", about)
			}
			return found, directive
		}) // the option exists
	}
}

// CompleteFilter offers the fields with which a filter of a kind of item may begin; what comes behind is the user's.
func CompleteFilter(kind string) cobra.CompletionFunc {
	fields := completeFields(kind)
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if strings.ContainsAny(typed, " (,+-") {
			return nil, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return fields(cmd, nil, typed)
	}
}

// completeList offers names of items behind those that stand there already, with
// commas between.
func completeList(sh *shell.Shell, kind string) cobra.CompletionFunc {
	names := CompleteNames(sh, kind, true)
	if kind == "os" {
		names = completeOS(sh)
	}
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		begun := typed[:strings.LastIndexAny(typed, ",:")+1]
		found, directive := names(cmd, nil, typed[len(begun):])
		for i := range found {
			found[i] = begun + found[i]
		}
		return found, directive
	}
}

// completeOS offers the names of operating systems, with their variants: what can
// be installed.
func completeOS(sh *shell.Shell) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer cancel()
		var found []classic.OSDefinition
		if err := sh.Do(ctx, "QueryOSes", &found, []string{}, classic.OSFields); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []cobra.Completion
		for _, name := range classic.InstallableNames(found) {
			if strings.HasPrefix(name, typed) {
				out = append(out, name)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteValue offers the values of KEY=VALUE: the words that a parameter takes,
// or the items that it names.
func CompleteValue(sh *shell.Shell, cmd *cobra.Command, p *opcode.Param, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, word := range p.Type.Allowed() {
		out = append(out, p.Name+"="+word)
	}
	if shell.KindOf(p) == shell.KindBool {
		out = append(out, p.Name+"=true", p.Name+"=false")
	}
	if kind := ParamKinds[p.Name]; kind != "" {
		found, _ := completeList(sh, kind)(cmd, nil, typed)
		for _, name := range found {
			out = append(out, p.Name+"="+name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeFigures offers what can be told of groups.
func completeFigures(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	begun := typed[:strings.LastIndex(typed, ",")+1]
	return []cobra.Completion{begun + "count", begun + "count(", begun + "sum(", begun + "avg(", begun + "min(", begun + "max("},
		cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// CompleteNames offers the live names of items to the shell. Without a
// controller, or with a slow one, it offers nothing.
func CompleteNames(sh *shell.Shell, kind string, many bool) cobra.CompletionFunc {
	return CompleteWhere(sh, kind, many, &qlang.All{})
}

// CompleteWhere offers those that a filter lets through.
func CompleteWhere(sh *shell.Shell, kind string, many bool, filter qlang.Node) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer cancel()
		fields := nameFields[kind]
		var found listing.Answer
		if err := sh.Do(ctx, "Query", &found, kind, fields, qlang.JSON(filter)); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []cobra.Completion
		for _, row := range found.Data {
			name := CellText(row[0])
			if strings.HasPrefix(name, typed) && !slices.Contains(args, name) {
				out = append(out, cobra.CompletionWithDesc(name, CellText(row[1])))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFields offers the fields of a kind of item, behind those that stand
// there already.
func completeFields(what string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		defs, err := items.All.Fields(what, nil)
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

// CellText is a cell as one line of text.
func CellText(cell listing.Cell) string {
	v, ok := shell.ParseJSON(string(cell.Value))
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
