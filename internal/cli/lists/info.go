package lists

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/qlang"
)

// InfoCommand shows items in full. Without names it shows all of them, where
// all allows that.
func InfoCommand(sh *shell.Shell, f classic.Form, all func(cmd *cobra.Command) bool) *cobra.Command {
	return &cobra.Command{
		Use: "info [NAME...]", Short: "Show everything about " + f.Kind + "s", Args: cobra.ArbitraryArgs,
		ValidArgsFunction: CompleteNames(sh, f.Kind, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !all(cmd) {
				return shell.Usage("%s: give names, or --all", cmd.CommandPath())
			}
			return describe(cmd.Context(), sh, f, args)
		},
	}
}

// Always is for InfoCommand: without names all items are shown.
func Always(*cobra.Command) bool { return true }

func describe(ctx context.Context, sh *shell.Shell, f classic.Form, names []string) error {
	filter, err := qlang.FromArguments(names, qlang.ArgOptions{NameField: "name"})
	if err != nil {
		return BadFilter(sh, err)
	}
	var found listing.Answer
	if err := sh.Ask(ctx, "Query", &found, f.Kind, f.Fields, qlang.JSON(filter)); err != nil {
		return err
	}
	data, err := Objects(&found)
	if err != nil {
		return err
	}
	return sh.Show(data, func() error {
		items := make([]any, len(found.Data))
		for i, row := range found.Data {
			items[i] = f.Show(newCells(f.Fields, row))
		}
		return sh.Printf("%s", classic.Outline(items))
	})
}

// newCells are the values of a row, less those that are missing.
func newCells(fields []string, row []listing.Cell) classic.Cells {
	out := classic.Cells{}
	for i, cell := range row {
		if cell.Status == 0 {
			out[fields[i]], _ = shell.ParseJSON(string(cell.Value))
		}
	}
	return out
}

// ItemInfo shows all fields of items.
func ItemInfo(sh *shell.Shell, l List) *cobra.Command {
	return &cobra.Command{
		Use: "info [NAME...]", Short: "Show everything about " + l.What + "s", Args: cobra.ArbitraryArgs,
		ValidArgsFunction: CompleteNames(sh, l.What, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := qlang.FromArguments(args, qlang.ArgOptions{NameField: l.NameField})
			if err != nil {
				return err
			}
			var defs, found listing.Answer
			if err := sh.Ask(cmd.Context(), "QueryFields", &defs, l.What, nil); err != nil {
				return err
			}
			names := make([]string, len(defs.Fields))
			for i, d := range defs.Fields {
				names[i] = d.Name
			}
			if err := sh.Ask(cmd.Context(), "Query", &found, l.What, names, qlang.JSON(filter)); err != nil {
				return err
			}
			data, err := Objects(&found)
			if err != nil {
				return err
			}
			return sh.Show(data, func() error { return printItems(sh, &found) })
		},
	}
}

// printItems shows rows as outlines, without the fields that have no value.
func printItems(sh *shell.Shell, a *listing.Answer) error {
	items := make([]any, len(a.Data))
	for i, row := range a.Data {
		item := classic.Record{}
		for n, cell := range row {
			if cell.Status != 0 {
				continue
			}
			v, _ := shell.ParseJSON(string(cell.Value))
			item = append(item, classic.Line(a.Fields[n].Name, v))
		}
		items[i] = item
	}
	return sh.Printf("%s", classic.Outline(items))
}
