package cli

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
)

// infoCommand shows items in full. Without names it shows all of them, where
// all allows that.
func infoCommand(sh *shell, f classic.Form, all func(cmd *cobra.Command) bool) *cobra.Command {
	return &cobra.Command{
		Use: "info [NAME...]", Short: "Show everything about them", Args: cobra.ArbitraryArgs,
		ValidArgsFunction: sh.completeNames(f.Kind, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !all(cmd) {
				return usage("%s: give names, or --all", cmd.CommandPath())
			}
			return sh.describe(cmd.Context(), f, args)
		},
	}
}

func always(*cobra.Command) bool { return true }

func (sh *shell) describe(ctx context.Context, f classic.Form, names []string) error {
	filter, err := qlang.FromArguments(names, qlang.ArgOptions{NameField: "name"})
	if err != nil {
		return sh.badFilter(err)
	}
	var found listing.Answer
	if err := sh.ask(ctx, "Query", &found, f.Kind, f.Fields, qlang.JSON(filter)); err != nil {
		return err
	}
	data, err := objects(&found)
	if err != nil {
		return err
	}
	return sh.show(data, func() error {
		items := make([]any, len(found.Data))
		for i, row := range found.Data {
			items[i] = f.Show(newCells(f.Fields, row))
		}
		return sh.printf("%s", classic.Outline(items))
	})
}

// newCells are the values of a row, less those that are missing.
func newCells(fields []string, row []listing.Cell) classic.Cells {
	out := classic.Cells{}
	for i, cell := range row {
		if cell.Status == 0 {
			out[fields[i]], _ = parseJSON(string(cell.Value))
		}
	}
	return out
}

func clusterInfo(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "info", Short: "Show the settings of the cluster", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var text json.RawMessage
			if err := sh.ask(cmd.Context(), "QueryClusterInfo", &text); err != nil {
				return err
			}
			return sh.show(text, func() error {
				v, _ := parseJSON(string(text))
				info, _ := v.(map[string]any)
				return sh.printf("%s", classic.Outline(classic.Cluster(info)))
			})
		},
	}
}

func instanceInfo(sh *shell) *cobra.Command {
	var all bool
	cmd := infoCommand(sh, classic.InstanceForm,
		func(*cobra.Command) bool { return all })
	cmd.Flags().BoolVar(&all, "all", false, "all instances")
	static := cmd.Flags().BoolP("static", "s", false, "under the classic name: ask no node")
	ours := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if sh.persona.classic() && (len(args) > 0 || all) {
			return sh.classicInfo(cmd, args, *static)
		}
		return ours(cmd, args)
	}
	return cmd
}

// classicInfo shows instances as the classic tool does: by a job that asks
// their nodes too.
func (sh *shell) classicInfo(cmd *cobra.Command, names []string, static bool) error {
	op, err := sh.newOp("instance", "OP_INSTANCE_QUERY_DATA",
		map[string]any{"instances": nonNil(names), "static": static, "use_locking": !static})
	if err != nil {
		return err
	}
	var text json.RawMessage
	if err := sh.result(cmd.Context(), op, &text); err != nil {
		return err
	}
	return sh.show(text, func() error {
		v, _ := parseJSON(string(text))
		found, _ := v.(map[string]any)
		items := []any{}
		for _, name := range slices.SortedFunc(maps.Keys(found), cluster.CompareNames) {
			one, _ := found[name].(map[string]any)
			items = append(items, classic.InstanceData(one))
		}
		return sh.printf("%s", classic.Outline(items))
	})
}
