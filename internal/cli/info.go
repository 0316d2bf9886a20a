package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/qlang"
)

// description says how info shows one kind of item.
type description struct {
	what   string
	fields []string
	show   func(cells) record
}

// infoCommand shows items in full. Without names it shows all of them, where
// all allows that.
func infoCommand(sh *shell, d description, all func(cmd *cobra.Command) bool) *cobra.Command {
	return &cobra.Command{
		Use: "info [NAME...]", Short: "Show everything about them", Args: cobra.ArbitraryArgs,
		ValidArgsFunction: sh.completeNames(d.what, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !all(cmd) {
				return usage("%s: give names, or --all", cmd.CommandPath())
			}
			return sh.describe(cmd.Context(), d, args)
		},
	}
}

func always(*cobra.Command) bool { return true }

func (sh *shell) describe(ctx context.Context, d description, names []string) error {
	filter, err := qlang.FromArguments(names, qlang.ArgOptions{NameField: "name"})
	if err != nil {
		return sh.badFilter(err)
	}
	var found listing.Answer
	if err := sh.ask(ctx, "Query", &found, d.what, d.fields, qlang.JSON(filter)); err != nil {
		return err
	}
	data, err := objects(&found)
	if err != nil {
		return err
	}
	return sh.show(data, func() error {
		items := make([]any, len(found.Data))
		for i, row := range found.Data {
			items[i] = d.show(newCells(d.fields, row))
		}
		return sh.printf("%s", outline(items))
	})
}

// cells are the values of one item by field; those that are missing are not
// there.
type cells map[string]any

func newCells(fields []string, row []listing.Cell) cells {
	out := cells{}
	for i, cell := range row {
		if cell.Status == 0 {
			out[fields[i]], _ = parseJSON(string(cell.Value))
		}
	}
	return out
}

func (c cells) list(field string) []any {
	list, _ := c[field].([]any)
	return list
}

func (c cells) object(field string) map[string]any {
	m, _ := c[field].(map[string]any)
	return m
}

func (c cells) time(field string) string {
	n, ok := c[field].(json.Number)
	if !ok {
		return "N/A"
	}
	seconds, err := n.Float64()
	if err != nil {
		return n.String()
	}
	return time.Unix(int64(seconds), 0).Format(time.DateTime)
}

// params shows each parameter: its own value, or the default in parentheses.
func (c cells) params(own, filled string) record {
	set, all := c.object(own), c.object(filled)
	out := record{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var value any = fmt.Sprintf("default (%s)", pythonText(all[name]))
		if v, ok := set[name]; ok {
			value = v
		}
		out = append(out, entry{name, value})
	}
	return out
}

// at returns one entry of a field that lists a value for each device.
func (c cells) at(field string, i int) any {
	if list := c.list(field); i < len(list) {
		return list[i]
	}
	return nil
}

var nodeDescription = description{
	what: "node",
	fields: []string{"name", "pip", "sip", "master_candidate", "drained", "offline", "master_capable", "vm_capable",
		"pinst_list", "sinst_list", "custom_ndparams", "ndparams", "group", "role", "tags", "uuid"},
	show: func(c cells) record {
		return record{
			{"Node name", c["name"]},
			{"primary ip", c["pip"]},
			{"secondary ip", c["sip"]},
			{"master candidate", c["master_candidate"]},
			{"drained", c["drained"]},
			{"offline", c["offline"]},
			{"master_capable", c["master_capable"]},
			{"vm_capable", c["vm_capable"]},
			{"primary for instances", c.list("pinst_list")},
			{"secondary for instances", c.list("sinst_list")},
			{"node parameters", c.params("custom_ndparams", "ndparams")},
		}
	},
}
