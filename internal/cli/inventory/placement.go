package inventory

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
)

// placed is how the node of an instance was chosen, and by which job.
type placed struct {
	Instance  string          `json:"instance"`
	Job       job.ID          `json:"job"`
	Status    string          `json:"status"`
	Ended     *shell.Pair     `json:"ended"`
	Placement *work.Placement `json:"placement"`
}

// explainPlacement is the verb that tells why an instance came to its node, however long ago that was.
func explainPlacement(sh *shell.Shell) *cobra.Command {
	var id string
	cmd := shell.Heeding(shell.Asking, &cobra.Command{
		Use: "explain-placement [INSTANCE]", Short: "Tell why an instance came to its node, and why not to another",
		Long: "Tell why an instance came to its node, and of each other node why it did not: as it was decided\n" +
			"by the job that created the instance, or by the job that --job names. What placement would decide\n" +
			"now: drover instance add --explain.",
	})
	cmd.Flags().StringVar(&id, "job", "", "the job that was to create it")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if id != "" {
			return shell.Exactly(0)(cmd, args)
		}
		return shell.Exactly(1)(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if id == "" {
			args[0] = wholeName(cmd.Context(), sh, args[0])
		}
		filter, what, err := whichJobs(id, args)
		if err != nil {
			return err
		}
		all, err := placements(cmd.Context(), sh, filter)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return fault.New(fault.NotFound, "no job is known that chose a node for %s", what).
				WithHint("only creations choose, and jobs of versions before do not tell; --job names one by its number")
		}
		p := all[len(all)-1]
		return sh.Show(p, func() error { return sh.Printf("%s", listing.Fold(p.text(sh), sh.Width)) })
	}
	return cmd
}

// wholeName is the name of the instance that a name is short for; the same where there is none any more, whose creation may be known all the same.
func wholeName(ctx context.Context, sh *shell.Shell, name string) string {
	var rows [][]string
	if err := sh.Ask(ctx, "QueryInstances", &rows, []string{name}, []string{"name"}, false); err != nil || len(rows) != 1 || len(rows[0]) != 1 {
		return name
	}
	return rows[0][0]
}

// whichJobs lets the job through that was named, or those that created the instance, and says of what it is about.
func whichJobs(id string, args []string) (filter qlang.Node, what string, err error) {
	if id == "" {
		return createdBy(args[0]), "instance " + args[0], nil
	}
	n, err := job.ParseID(id)
	return &qlang.Compare{Op: qlang.Eq, Field: "id", Value: qlang.IntValue(int64(n))}, "job " + id, err
}

// createdBy lets the creations of an instance through, whether its name was given in full or as its beginning before a dot.
func createdBy(name string) qlang.Node {
	short, _, _ := strings.Cut(name, ".")
	either := &qlang.Or{}
	for _, n := range []string{name, short} {
		either.Args = append(either.Args, &qlang.Contains{Field: "summary", Value: qlang.TextValue("INSTANCE_CREATE(" + n + ")")})
	}
	return either
}

// placements finds the jobs that chose a node, the newest last; archived ones, too.
func placements(ctx context.Context, sh *shell.Shell, filter qlang.Node) ([]placed, error) {
	var found listing.Answer
	fields := []string{"id", "status", "end_ts", "ops", "opplacement", "archived"}
	if err := sh.Ask(ctx, "Query", &found, "job", fields, qlang.JSON(filter)); err != nil {
		return nil, err
	}
	var out []placed
	for _, row := range found.Data {
		var p placed
		var ops []struct {
			Instance string `json:"instance_name"`
		}
		var decisions []*work.Placement
		for i, into := range []any{&p.Job, &p.Status, &p.Ended, &ops, &decisions} {
			if err := json.Unmarshal(row[i].Value, into); err != nil {
				return nil, fmt.Errorf("the field %s of a job cannot be read: %w", fields[i], err)
			}
		}
		for i, d := range decisions {
			if d != nil && i < len(ops) {
				p.Instance, p.Placement = ops[i].Instance, d
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// text tells a person all of it.
func (p placed) text(sh *shell.Shell) string {
	when := ""
	if p.Ended != nil {
		when = " (" + p.Status + " at " + time.Unix(p.Ended[0], 0).UTC().Format(time.RFC3339) + ")"
	}
	said := "came to " + p.Placement.Node + ": " + p.Placement.Why
	if p.Placement.Node == "" {
		said = "found no node: " + p.Placement.Why
	}
	return fmt.Sprintf("%s by job %d%s %s\n", sh.Paint(shell.Bold, p.Instance), p.Job, when, said) + p.Placement.Table(sh)
}
