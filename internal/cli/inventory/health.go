package inventory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/screen"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/health"
)

// healthEvery is how long it rests between two looks.
const healthEvery = 2 * time.Second

var errNotWell = &shell.ExitError{Status: shell.ExitNotWell}

func clusterHealth(sh *shell.Shell) *cobra.Command {
	watch := false
	cmd := &cobra.Command{
		Use: "health", Short: "Tell how the cluster is, and what to do about what is not well", Args: shell.Exactly(0),
		Long: `health asks all controllers how they are, and the one that leads about the rest: the
store, the queue, nodes, events, servers. Problems come first, each with what helps,
then what else is to be known. The exit status is 6 if there is a problem. Any
controller answers, also while none leads.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ask := func(ctx context.Context) (r health.Report, err error) { return r, sh.Ask(ctx, "QueryHealth", &r) }
			if watch {
				if sh.Structured() {
					return shell.Usage("--watch is for a terminal, and takes no --output")
				}
				return watchHealth(cmd.Context(), sh, ask)
			}
			r, err := ask(cmd.Context())
			if err != nil {
				return err
			}
			err = sh.Show(r, func() error {
				return sh.Printf("%s", strings.Join(healthLines(&r, cmp.Or(sh.Width, shell.UsualWidth), sh.Paint), "\n")+"\n")
			})
			return cmp.Or(err, wellOrNot(&r))
		},
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "keep showing it, as it changes (q ends that)")
	return cmd
}

// wellOrNot ends the program with the status that says how the cluster is.
func wellOrNot(r *health.Report) error {
	if r.Well {
		return nil
	}
	return errNotWell
}

var stateColours = map[health.State]string{health.Problem: shell.Red, health.Note: shell.Yellow, health.OK: shell.Green}

// healthLines are a report for people, in lines of a width.
func healthLines(r *health.Report, width int, paint func(colour, text string) string) []string {
	const states, parts = 8, 13
	indent := strings.Repeat(" ", states+parts)
	out := []string{verdict(r), ""}
	for _, l := range r.Lines {
		head := paint(stateColours[l.State], fmt.Sprintf("%-*s", states, l.State)) + fmt.Sprintf("%-*s", parts, l.Part)
		say := func(text string) {
			for _, line := range listing.Wrap(text, max(width-states-parts, 1)) {
				out, head = append(out, head+line), indent
			}
		}
		say(l.What)
		if l.Why != "" {
			say("why: " + strings.Join(strings.Fields(l.Why), " ")) // of an error of several lines
		}
		if !l.Since.IsZero() {
			say("since: " + l.Since.Local().Format(time.DateTime) + ", " + shell.Ago(r.Time.Sub(l.Since)))
		}
		if l.Do != "" {
			say("do: " + l.Do)
		}
	}
	return out
}

// verdict says it in one line.
func verdict(r *health.Report) string {
	count := map[health.State]int{}
	for _, l := range r.Lines {
		count[l.State]++
	}
	text := "All is well"
	if !r.Well {
		text = "Not well: " + shell.Counted(count[health.Problem], "problem")
	}
	if n := count[health.Note]; n > 0 {
		text += ", " + shell.Counted(n, "note")
	}
	return text + "."
}

// watchHealth shows it on a terminal until it is left. How it was last is the exit status.
func watchHealth(ctx context.Context, sh *shell.Shell, ask func(context.Context) (health.Report, error)) error {
	terminal, err := screen.Of(sh, "without --watch it is shown once")
	if err != nil {
		return err
	}
	page := &healthPage{ask: ask, paint: sh.Paint}
	if err := screen.Show(ctx, terminal, page); err != nil {
		return err
	}
	return wellOrNot(&page.last)
}

// healthPage is a report that is asked for again and again.
type healthPage struct {
	ask   func(context.Context) (health.Report, error)
	paint func(colour, text string) string
	last  health.Report // without lines before the first answer
	// lost is why there was no newer answer.
	lost error
}

// Next implements screen.Page.
func (p *healthPage) Next() (ask func(context.Context) (any, error), rest time.Duration) {
	return func(ctx context.Context) (any, error) { return p.ask(ctx) }, healthEvery
}

// Take implements screen.Page. While a controller that once answered does not, it is asked on.
func (p *healthPage) Take(answer any, err error) error {
	if p.lost = err; err != nil && len(p.last.Lines) == 0 {
		return err
	}
	if r, ok := answer.(health.Report); ok && err == nil {
		p.last = r
	}
	return nil
}

// Key implements screen.Page.
func (*healthPage) Key(name string, _ screen.Size) screen.Action {
	switch {
	case slices.Contains([]string{"q", "esc"}, name):
		return screen.Leave
	case name == "r" || name == "space":
		return screen.Again
	}
	return screen.Stay
}

// Lines implements screen.Page.
func (p *healthPage) Lines(size screen.Size) []string {
	if len(p.last.Lines) == 0 {
		return []string{"Asking ..."}
	}
	head := p.last.Time.Local().Format(time.DateTime) + "   q: leave"
	if p.lost != nil {
		head = p.paint(shell.Red, "no answer since "+p.last.Time.Local().Format(time.DateTime)+": "+p.lost.Error())
	}
	return append([]string{head}, healthLines(&p.last, size.Width, p.paint)...)
}
