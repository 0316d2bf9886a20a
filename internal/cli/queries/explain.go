package queries

import (
	"fmt"
	"strings"
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
		if err := sh.Show(ex, func() error { return sh.Printf("%s", explained(&ex, time.Now())) }); err != nil {
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

// explained puts an explanation in words.
func explained(ex *query.Explanation, now time.Time) string {
	var b strings.Builder
	how := map[string]string{"names": "found by their names", "index": "found by the index of " + ex.Index, "scan": "all looked at"}[ex.Access]
	fmt.Fprintf(&b, "rows:  %d considered (%s), %d left by the filter\n", ex.Considered, how, ex.Kept)
	if len(ex.Live) == 0 {
		b.WriteString("nodes: none is asked\n")
		return b.String()
	}
	fmt.Fprintf(&b, "nodes: %s comes from %s\n", strings.Join(ex.Live, ", "), shell.Counted(ex.Nodes, "node"))
	if ex.AsOf != 0 {
		age := max(0, now.Sub(time.Unix(0, ex.AsOf)))
		fmt.Fprintf(&b, "       the oldest of what they told is %.1f s old (lists ask them now with --fresh)\n", age.Seconds())
	}
	if ex.Silent > 0 {
		fmt.Fprintf(&b, "       %d of them do not answer\n", ex.Silent)
	}
	if ex.FilterLive {
		b.WriteString("       the filter is applied again to what they told\n")
	}
	return b.String()
}
