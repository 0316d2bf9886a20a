package lists

import (
	"bytes"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shell"
)

// Some lists are no queries: what they show is the result of an opcode, whose rows have columns that are chosen like those of others.

// RegisterColumns adds the options of such a list, whose rows can have these columns.
func (o *Options) RegisterColumns(cmd *cobra.Command, columns []string) {
	f := cmd.Flags()
	f.StringVarP(&o.Fields, "fields", "o", "", "comma-separated fields to show, of "+strings.Join(columns, ", ")+"; +a,b adds to the usual ones")
	f.StringVar(&o.separator, "separator", "", "put this between the columns and do not align them")
	f.BoolVar(&o.noHeaders, "no-headers", false, "leave out the header line")
	f.StringVar(&o.units, "units", "", "unit of sizes: h (fitting), m, g or t")
	// The options exist.
	_ = cmd.RegisterFlagCompletionFunc("fields", cobra.FixedCompletions(columns, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("units", cobra.FixedCompletions([]string{"h", "m", "g", "t"}, cobra.ShellCompDirectiveNoFileComp))
}

// Columns are those that are chosen, of a list that shows some without being told.
func (o *Options) Columns(sh *shell.Shell, usual []string) ([]string, error) {
	columns := slices.Clone(usual)
	if o.Fields != "" {
		more, add := strings.CutPrefix(o.Fields, "+")
		if !add {
			columns = nil
		}
		for name := range strings.SplitSeq(more, ",") {
			columns = append(columns, strings.TrimSpace(name))
		}
	}
	return columns, o.check(columns, sh.Flags.Output)
}

// ShowRows shows rows in the form that is asked for.
func ShowRows(sh *shell.Shell, what string, a *listing.Answer, o *Options) error {
	return showAnswer(sh, what, a, o)
}

// RowsText are rows as a table.
func RowsText(sh *shell.Shell, what string, a *listing.Answer, o *Options) (string, error) {
	var out bytes.Buffer
	err := listing.Write(&out, what, a, tableOptions(sh, o))
	return out.String(), err
}
