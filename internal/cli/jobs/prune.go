package jobs

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
)

// pruning is what went out of the archive, or would.
type pruning struct {
	Jobs       int        `json:"jobs"`
	FirstEnded *time.Time `json:"first_ended"`
	LastEnded  *time.Time `json:"last_ended"`
	Bytes      int64      `json:"bytes"`
	Spared     int        `json:"spared"`
}

// answered is a pruning as it is answered.
type answered struct {
	pruning

	More bool `json:"more"`
}

// add adds what another request removed.
func (p *pruning) add(a *answered) {
	p.Jobs += a.Jobs
	p.Bytes += a.Bytes
	p.Spared = a.Spared
	if a.FirstEnded != nil && (p.FirstEnded == nil || a.FirstEnded.Before(*p.FirstEnded)) {
		p.FirstEnded = a.FirstEnded
	}
	if a.LastEnded != nil && (p.LastEnded == nil || a.LastEnded.After(*p.LastEnded)) {
		p.LastEnded = a.LastEnded
	}
}

// what names the jobs.
func (p *pruning) what() string {
	if p.Jobs == 0 {
		return "no job"
	}
	const form = "2006-01-02 15:04"
	from, until := p.FirstEnded.Local().Format(form), p.LastEnded.Local().Format(form)
	when := "from " + from + " to " + until
	if from == until {
		when = "at " + from
	}
	return fmt.Sprintf("%s of the archive that ended %s, about %s", shell.Counted(p.Jobs, "job"), when, ofBytes(p.Bytes))
}

// ofBytes shows a size.
func ofBytes(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	default:
		return fmt.Sprintf("%d KiB", (n+1023)>>10)
	}
}

// keeping is what is asked for.
type keeping struct {
	olderThan string
	keep      int
}

// arguments are those of the method: before when the jobs ended, in seconds, and how many are kept.
func (k *keeping) arguments(cmd *cobra.Command, now time.Time) (before, keep any, err error) {
	if !cmd.Flags().Changed("older-than") && !cmd.Flags().Changed("keep") {
		return nil, nil, shell.Usage("%s: say which jobs: --older-than AGE, --keep N, or both", cmd.CommandPath())
	}
	if cmd.Flags().Changed("keep") {
		if k.keep < 1 {
			return nil, nil, shell.Usage("--keep: the newest job of the archive stays always, so 1 at least, not %d", k.keep)
		}
		keep = k.keep
	}
	if cmd.Flags().Changed("older-than") {
		if _, err := strconv.Atoi(k.olderThan); err == nil { // elsewhere that is seconds; here somebody means days, and all would be gone
			return nil, nil, shell.Usage("--older-than: %[1]s of what? Say %[1]sd for days; s, m, h and w are the other units", k.olderThan)
		}
		seconds, err := shell.AgeOf(k.olderThan)
		if err != nil {
			return nil, nil, err
		}
		before = float64(now.UnixMicro())/1e6 - float64(max(seconds, 0))
	}
	return before, keep, nil
}

// pruneSeconds is how long one request goes on.
const pruneSeconds = 20

func archivePrune(sh *shell.Shell) *cobra.Command {
	var k keeping
	cmd := shell.Heeding(shell.Changing, &cobra.Command{
		Use: "prune [--older-than AGE] [--keep N]", Short: "Remove jobs from the archive", Args: shell.Exactly(0),
		Long: `prune removes jobs from the archive for good, with all that is known of them: those that ended
longer ago than AGE, and that are not among the N newest. drover archive export writes them
to a file before. --dry-run says how many would go, from when to when, and about how
many bytes of the store. Jobs go in portions, while others run; what was interrupted is
begun again by the same command.

The newest job of the archive stays, as do those for which others wait, at which servers or
deployments under way look, or of which events are still to be told. Ids do not come again.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			before, keep, err := k.arguments(cmd, sh.Now())
			if err != nil {
				return err
			}
			if sh.Flags.DryRun {
				return wouldPrune(cmd.Context(), sh, before, keep)
			}
			return prune(cmd, sh, before, keep)
		},
	})
	cmd.Flags().StringVar(&k.olderThan, "older-than", "", "those that ended longer ago than this age, a number with s, m, h, d or w behind it")
	cmd.Flags().IntVar(&k.keep, "keep", 0, "the newest that stay, however long ago they ended")
	return cmd
}

func wouldPrune(ctx context.Context, sh *shell.Shell, before, keep any) error {
	var a answered
	if err := sh.Ask(ctx, "PruneArchive", &a, before, keep, pruneSeconds, sh.UserTrail(), true); err != nil {
		return err
	}
	return showPruning(sh, "Would remove", &a.pruning)
}

func prune(cmd *cobra.Command, sh *shell.Shell, before, keep any) error {
	if !sh.Flags.Yes {
		var a answered
		if err := sh.Ask(cmd.Context(), "PruneArchive", &a, before, keep, pruneSeconds, sh.UserTrail(), true); err != nil {
			return err
		}
		if a.Jobs > 0 {
			if err := sh.Sure(shell.PathOf(cmd), a.what()); err != nil {
				return err
			}
		}
	}
	var p pruning
	for {
		var a answered
		if err := sh.Ask(cmd.Context(), "PruneArchive", &a, before, keep, pruneSeconds, sh.UserTrail()); err != nil {
			if p.Jobs > 0 {
				return fault.New(fault.CodeOf(err), "%s went before it was interrupted: %w", shell.Counted(p.Jobs, "job"), err)
			}
			return err
		}
		p.add(&a)
		if !a.More {
			return showPruning(sh, "Removed", &p)
		}
		if sh.Person {
			sh.Notef("%s removed so far\n", shell.Counted(p.Jobs, "job"))
		}
	}
}

func showPruning(sh *shell.Shell, did string, p *pruning) error {
	return sh.Show(p, func() error {
		if err := sh.Printf("%s %s.\n", did, p.what()); err != nil || p.Spared == 0 {
			return err
		}
		return sh.Printf("%s more %s: others still look at them.\n", shell.Counted(p.Spared, "job"), stay(p.Spared))
	})
}

func stay(n int) string {
	if n == 1 {
		return "stays"
	}
	return "stay"
}
