package queries

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

// queryExplain tells how a query would be carried out.
func queryExplain(sh *shell.Shell) *cobra.Command {
	var o lists.Options
	cmd := &cobra.Command{
		Use: "explain KIND [-o FIELDS] [--filter FILTER]", Args: shell.Exactly(1),
		Short: "Tell how a query is carried out: from an index or a scan, and what nodes are asked",
	}
	f := cmd.Flags()
	f.StringVarP(&o.Fields, "fields", "o", "", "comma-separated fields")
	f.StringVar(&o.Filter, "filter", "", "the filter")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkKind(args[0]); err != nil {
			return err
		}
		l := lists.List{What: args[0], Fields: []string{}, NameField: "name"}
		filter, err := l.Filter(sh, nil, &o)
		if err != nil {
			return err
		}
		var ex query.Explanation
		err = sh.Ask(cmd.Context(), "Query", &ex, l.What, lists.Selected(sh, l, &o), qlang.JSON(filter), map[string]bool{"explain": true})
		if err != nil {
			return err
		}
		if err := sh.Show(ex, func() error { return sh.Printf("%s", ex.Text(time.Now())) }); err != nil {
			return err
		}
		var asked listing.Answer
		if err := sh.Ask(cmd.Context(), "QueryFields", &asked, l.What, lists.Selected(sh, l, &o)); err != nil {
			return err
		}
		return lists.WarnUnknown(cmd.Context(), sh, l.What, asked.Fields, nil)
	}
	return cmd
}
