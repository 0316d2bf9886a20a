package jobs

import (
	"fmt"
	"strconv"
	"strings"
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
	return fmt.Sprintf("%s of the archive that ended %s, about %s", shell.Counted(p.Jobs, "job"), span(*p.FirstEnded, *p.LastEnded), ofBytes(p.Bytes))
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

// eventPruning is which events went, or would.
type eventPruning struct {
	Events int        `json:"events"`
	First  *time.Time `json:"first"`
	Last   *time.Time `json:"last"`
	Bytes  int64      `json:"bytes"`
	More   bool       `json:"more"`
}

// what names the events.
func (p *eventPruning) what() string {
	if p.Events == 0 {
		return "no event"
	}
	return fmt.Sprintf("%s %s, about %s", shell.Counted(p.Events, "event"), span(*p.First, *p.Last), ofBytes(p.Bytes))
}

// deploymentPruning is which deployments went, or would.
type deploymentPruning struct {
	Deployments []struct {
		ID   int64 `json:"id"`
		Over int64 `json:"over"`
	} `json:"deployments"`
	Spared int  `json:"spared"`
	More   bool `json:"more"`
}

// what names the deployments.
func (p *deploymentPruning) what() string {
	n := len(p.Deployments)
	if n == 0 {
		return "no deployment"
	}
	first, last := p.Deployments[0].Over, p.Deployments[0].Over
	for _, d := range p.Deployments {
		first, last = min(first, d.Over), max(last, d.Over)
	}
	return fmt.Sprintf("%s of %s", shell.Counted(n, "deployment"), strings.TrimPrefix(span(time.Unix(0, first), time.Unix(0, last)), "at "))
}

// span is from when to when something was.
func span(first, last time.Time) string {
	const form = "2006-01-02 15:04"
	from, until := first.Local().Format(form), last.Local().Format(form)
	if from == until {
		return "at " + from
	}
	return "from " + from + " to " + until
}

// keeping is what is asked for.
type keeping struct {
	olderThan string
	keep      int
	// events and deployments are the ages at which those go.
	events, deployments string
}

// ofJobs tells whether jobs are to go, ofEvents whether events are, and ofDeployments whether deployments are.
func (k *keeping) ofJobs(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("older-than") || cmd.Flags().Changed("keep")
}

func (k *keeping) ofEvents(cmd *cobra.Command) bool { return cmd.Flags().Changed("events-older-than") }

func (k *keeping) ofDeployments(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("deployments-older-than")
}

// asks tells whether anything is to go.
func (k *keeping) asks(cmd *cobra.Command) bool {
	return k.ofJobs(cmd) || k.ofEvents(cmd) || k.ofDeployments(cmd)
}

// ago is the moment an age ago, in seconds, of an option.
func ago(option, age string, now time.Time) (float64, error) {
	if _, err := strconv.Atoi(age); err == nil { // elsewhere that is seconds; here somebody means days, and all would be gone
		return 0, shell.Usage("--%[1]s: %[2]s of what? Say %[2]sd for days; s, m, h and w are the other units", option, age)
	}
	seconds, err := shell.AgeOf(age)
	return float64(now.UnixMicro())/1e6 - float64(max(seconds, 0)), err
}

// arguments are those of the method: before when the jobs ended, in seconds, and how many are kept.
func (k *keeping) arguments(cmd *cobra.Command, now time.Time) (before, keep any, err error) {
	if cmd.Flags().Changed("keep") {
		if k.keep < 1 {
			return nil, nil, shell.Usage("--keep: the newest job of the archive stays always, so 1 at least, not %d", k.keep)
		}
		keep = k.keep
	}
	if cmd.Flags().Changed("older-than") {
		if before, err = ago("older-than", k.olderThan, now); err != nil {
			return nil, nil, err
		}
	}
	return before, keep, nil
}

// pruneSeconds is how long one request goes on.
const pruneSeconds = 20

func archivePrune(sh *shell.Shell) *cobra.Command {
	var k keeping
	cmd := shell.Heeding(shell.Changing, &cobra.Command{
		Use: "prune [--older-than AGE] [--keep N] [--events-older-than AGE] [--deployments-older-than AGE]", Short: "Remove jobs from the archive, old events and deployments", Args: shell.Exactly(0),
		Long: `prune removes jobs from the archive for good, with all that is known of them: those that ended
longer ago than AGE, and that are not among the N newest. drover archive export writes them
to a file before. --dry-run says how many would go, from when to when, and about how
many bytes of the store. Jobs go in portions, while others run; what was interrupted is
begun again by the same command.

The newest job of the archive stays, as do those for which others wait, at which servers or
deployments under way look, or of which events are still to be told. Ids do not come again.

With --events-older-than it removes what was noted of things done that are no jobs (drover
query event); the newest event stays.

With --deployments-older-than it removes deployments, and plans that nobody began, with what
became of each task. Those stay by which something is decided: the latest of each environment,
and those in which tasks last succeeded. drover deploy delete removes single ones.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !k.asks(cmd) {
				return shell.Usage("%s: say which jobs: --older-than AGE, --keep N, or both; which events: --events-older-than AGE; and which deployments: --deployments-older-than AGE", cmd.CommandPath())
			}
			before, keep, err := k.arguments(cmd, sh.Now())
			if err != nil {
				return err
			}
			p := &pruner{cmd: cmd, sh: sh, before: before, keep: keep, jobs: k.ofJobs(cmd)}
			if k.ofEvents(cmd) {
				if p.events, err = moment("events-older-than", k.events, sh.Now()); err != nil {
					return err
				}
			}
			if k.ofDeployments(cmd) {
				if p.deployments, err = moment("deployments-older-than", k.deployments, sh.Now()); err != nil {
					return err
				}
			}
			return p.run()
		},
	})
	cmd.Flags().StringVar(&k.olderThan, "older-than", "", "those that ended longer ago than this age, a number with s, m, h, d or w behind it")
	cmd.Flags().IntVar(&k.keep, "keep", 0, "the newest that stay, however long ago they ended")
	cmd.Flags().StringVar(&k.events, "events-older-than", "", "events of longer ago than this age")
	cmd.Flags().StringVar(&k.deployments, "deployments-older-than", "", "deployments and plans to which nothing happened for longer than this age")
	return cmd
}

// pruner carries out what was asked for.
type pruner struct {
	cmd          *cobra.Command
	sh           *shell.Shell
	before, keep any
	jobs         bool
	// events and deployments are the moments before which those go; nil for none.
	events, deployments *float64
}

// moment is what ago returns.
func moment(option, age string, now time.Time) (*float64, error) {
	at, err := ago(option, age, now)
	return &at, err
}

// outcome is what went, or would, of all that was asked for.
type outcome struct {
	*pruning

	Events      *eventPruning      `json:"events,omitempty"`
	Deployments *deploymentPruning `json:"deployments,omitempty"`
}

// run removes what was asked for, or says what it would remove; who is not sure is asked once for all.
func (p *pruner) run() error {
	out := outcome{}
	did := "Removed"
	if p.sh.Flags.DryRun || !p.sh.Flags.Yes {
		var err error
		if out, err = p.foresee(); err != nil {
			return err
		}
	}
	if p.sh.Flags.DryRun {
		did = "Would remove"
	} else {
		if what := out.going(); what != "" && !p.sh.Flags.Yes {
			if err := p.sh.Sure(shell.PathOf(p.cmd), what); err != nil {
				return err
			}
		}
		var err error
		if out, err = p.remove(); err != nil {
			return err
		}
	}
	return p.sh.ShowTimes(out, []string{"over"}, func() error { return out.print(p.sh, did) })
}

// going names what goes; nothing if nothing does.
func (o outcome) going() string {
	var out []string
	if o.pruning != nil && o.Jobs > 0 {
		out = append(out, o.pruning.what())
	}
	if o.Events != nil && o.Events.Events > 0 {
		out = append(out, o.Events.what())
	}
	if o.Deployments != nil && len(o.Deployments.Deployments) > 0 {
		out = append(out, o.Deployments.what())
	}
	return strings.Join(out, ", and ")
}

func (o outcome) print(sh *shell.Shell, did string) error {
	if o.pruning != nil {
		if err := sh.Printf("%s %s.\n", did, o.pruning.what()); err != nil {
			return err
		}
		if o.Spared > 0 {
			if err := sh.Printf("%s more %s: others still look at them.\n", shell.Counted(o.Spared, "job"), stay(o.Spared)); err != nil {
				return err
			}
		}
	}
	if o.Events != nil {
		if err := sh.Printf("%s %s.\n", did, o.Events.what()); err != nil {
			return err
		}
	}
	if o.Deployments == nil {
		return nil
	}
	if err := sh.Printf("%s %s.\n", did, o.Deployments.what()); err != nil || o.Deployments.Spared == 0 {
		return err
	}
	return sh.Printf("%s more %s: something is decided by them.\n", shell.Counted(o.Deployments.Spared, "deployment"), stay(o.Deployments.Spared))
}

// foresee asks what would go.
func (p *pruner) foresee() (out outcome, err error) {
	if p.jobs {
		var a answered
		if err := p.sh.Ask(p.cmd.Context(), "PruneArchive", &a, p.before, p.keep, pruneSeconds, p.sh.UserTrail(), true); err != nil {
			return out, err
		}
		out.pruning = &a.pruning
	}
	if p.events != nil {
		out.Events = &eventPruning{}
		if err := p.sh.Ask(p.cmd.Context(), "PruneEvents", out.Events, *p.events, pruneSeconds, p.sh.UserTrail(), true); err != nil {
			return out, err
		}
	}
	if p.deployments != nil {
		out.Deployments = &deploymentPruning{}
		err = p.sh.Ask(p.cmd.Context(), "PruneDeployments", out.Deployments, *p.deployments, pruneSeconds, p.sh.UserTrail(), true)
	}
	return out, err
}

// remove has it done, a request after the other.
func (p *pruner) remove() (out outcome, err error) {
	if p.jobs {
		out.pruning = &pruning{}
		if err := p.portions("job", func() (went int, more bool, err error) {
			var a answered
			err = p.sh.Ask(p.cmd.Context(), "PruneArchive", &a, p.before, p.keep, pruneSeconds, p.sh.UserTrail())
			out.add(&a)
			return a.Jobs, a.More, err
		}); err != nil {
			return out, err
		}
	}
	if p.events != nil {
		out.Events = &eventPruning{}
		if err := p.portions("event", func() (went int, more bool, err error) {
			var a eventPruning
			err = p.sh.Ask(p.cmd.Context(), "PruneEvents", &a, *p.events, pruneSeconds, p.sh.UserTrail())
			out.Events.add(&a)
			return a.Events, a.More, err
		}); err != nil {
			return out, err
		}
	}
	if p.deployments != nil {
		out.Deployments = &deploymentPruning{}
		return out, p.portions("deployment", func() (went int, more bool, err error) {
			var a deploymentPruning
			err = p.sh.Ask(p.cmd.Context(), "PruneDeployments", &a, *p.deployments, pruneSeconds, p.sh.UserTrail())
			out.Deployments.add(&a)
			return len(a.Deployments), a.More, err
		})
	}
	return out, nil
}

// portions asks until nothing is left, and tells a person how far it is. An error says what went before.
func (p *pruner) portions(thing string, ask func() (went int, more bool, err error)) error {
	for all, again := 0, true; again; {
		went, more, err := ask()
		if err != nil {
			return interrupted(all, thing, err)
		}
		all += went
		if again = more; again && p.sh.Person {
			p.sh.Notef("%s removed so far\n", shell.Counted(all, thing))
		}
	}
	return nil
}

// add adds what another request removed.
func (p *deploymentPruning) add(a *deploymentPruning) {
	p.Deployments = append(p.Deployments, a.Deployments...)
	p.Spared = a.Spared
}

// add adds what another request removed.
func (p *eventPruning) add(a *eventPruning) {
	if p.Events == 0 {
		p.First = a.First
	}
	if a.Events > 0 {
		p.Last = a.Last
	}
	p.Events, p.Bytes, p.More = p.Events+a.Events, p.Bytes+a.Bytes, a.More
}

// interrupted says what went before an error.
func interrupted(n int, what string, err error) error {
	if n == 0 {
		return err
	}
	return fault.New(fault.CodeOf(err), "%s went before it was interrupted: %w", shell.Counted(n, what), err)
}

func stay(n int) string {
	if n == 1 {
		return "stays"
	}
	return "stay"
}
