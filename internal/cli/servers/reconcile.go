package servers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
)

// reconciliation is what the controller found of servers and their clusters.
type reconciliation struct {
	Looked   int  `json:"looked"`
	Drift    bool `json:"drift"`
	Fixed    bool `json:"fixed"`
	Left     bool `json:"left"`
	Findings []struct {
		Server      string `json:"server"`
		Name        string `json:"name"`
		Backend     string `json:"backend"`
		Instance    string `json:"instance"`
		Unreachable string `json:"unreachable"`
		Missing     bool   `json:"missing"`
		Unmatched   bool   `json:"unmatched"`
		Absent      string `json:"absent"`
		Differences []struct {
			Tag  string `json:"tag"`
			Raw  string `json:"raw"`
			What string `json:"what"`
			Why  string `json:"why"`
			Do   string `json:"do"`
		} `json:"differences"`
	} `json:"findings"`
}

const reconcileHelp = `Compare what users want of servers and their tags, what was seen last, and what
their clusters show, and tell per tag what differs, why, and what is done about
it. Nothing is changed without --fix.

Exit statuses: 0 all agrees, or only jobs that are under way are missing;
4 something differs and was left alone. With --fix: 0 everything that was found
was dealt with, or jobs are at it; 4 something waits for a job that is held, or for
somebody; 1 some cluster could not be asked.`

// serverReconcile compares servers with their clusters.
func serverReconcile(sh *shell.Shell) *cobra.Command {
	var fix bool
	var server string
	cmd := &cobra.Command{
		Use: "reconcile [--server ID] [--fix]", Short: "Compare servers and their tags with their clusters", Long: reconcileHelp, Args: shell.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var id any
			if server != "" {
				id = server
			}
			var text json.RawMessage
			if err := sh.Ask(cmd.Context(), "ReconcileServers", &text, id, fix); err != nil {
				return err
			}
			var r reconciliation
			if err := json.Unmarshal(text, &r); err != nil {
				return err
			}
			if err := sh.Show(text, func() error { return sh.Printf("%s", r.text()) }); err != nil {
				return err
			}
			return r.verdict(fix)
		},
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "then bring in line what differs")
	cmd.Flags().StringVar(&server, "server", "", "look at the server with this id alone")
	return cmd
}

// verdict is how the command ends.
func (r *reconciliation) verdict(fix bool) error {
	switch {
	case fix && !r.Fixed:
		return shell.ErrFailed
	case r.Drift && !fix, r.Left:
		return &shell.ExitError{Status: shell.ExitWouldChange}
	}
	return nil
}

// text tells it for a person.
func (r *reconciliation) text() string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s (%s, %s on cluster %s)\n", f.Server, f.Name, f.Instance, cmp.Or(f.Backend, "own"))
		switch {
		case f.Unreachable != "":
			fmt.Fprintf(&b, "  the cluster cannot be asked: %s\n", f.Unreachable)
		case f.Unmatched:
			b.WriteString("  an instance of its name is there, and nobody can tell whether it is the server's: drover server match\n")
		case f.Missing:
			fmt.Fprintf(&b, "  the instance is not there any more: %s; the server becomes DELETED, and keeps what its user wants\n", f.Absent)
		}
		for _, d := range f.Differences {
			fmt.Fprintf(&b, "  %-11s  %s: %s; %s\n", d.What, cmp.Or(d.Tag, d.Raw), d.Why, d.Do)
		}
	}
	verdict := "all of them agree with their clusters"
	switch len(r.Findings) {
	case 0:
	case 1:
		verdict = "1 of them differs from its cluster"
	default:
		verdict = fmt.Sprintf("%d of them differ from their clusters", len(r.Findings))
	}
	switch {
	case r.Left:
		verdict += ", and something was left alone: drover server reconcile tells what"
	case !r.Drift && len(r.Findings) > 0:
		verdict += ", and jobs are at it"
	case r.Fixed && len(r.Findings) == 1:
		verdict += ", and was dealt with"
	case r.Fixed && len(r.Findings) > 0:
		verdict += ", and were dealt with"
	}
	fmt.Fprintf(&b, "%s looked at; %s\n", shell.Counted(r.Looked, "server"), verdict)
	return b.String()
}
