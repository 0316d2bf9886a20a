package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/qlang"
)

// Drain returns the verb that closes the queue to new jobs, or opens it again.
func Drain(sh *shell.Shell, verb string, on bool) *cobra.Command {
	short := map[bool]string{true: "Take no new jobs; those in the queue go on", false: "Take new jobs again"}[on]
	return &cobra.Command{
		Use: verb, Short: short, Args: shell.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if sh.Flags.DryRun {
				return wouldDrain(cmd.Context(), sh, on)
			}
			return sh.Ask(cmd.Context(), "SetDrainFlag", nil, on, sh.UserTrail())
		},
	}
}

// wouldDrain says what a change of the drain flag would do.
func wouldDrain(ctx context.Context, sh *shell.Shell, on bool) error {
	q, err := LookAtQueue(ctx, sh.Ask)
	if err != nil {
		return err
	}
	text := map[bool]string{true: "The queue would take no new jobs", false: "The queue would take new jobs"}[on]
	if q.Drained == on {
		text += ", as it is already"
	}
	return sh.Show(map[string]bool{"drained": q.Drained, "would_be_drained": on}, func() error { return sh.Printf("%s\n", text) })
}

// Queue is whether the queue takes new jobs, and if it does not, who keeps it from that,
// since when and why, as far as that is remembered.
type Queue struct {
	Drained bool       `json:"drained"`
	By      string     `json:"by,omitempty"`
	Since   *time.Time `json:"since,omitempty"`
	Reason  string     `json:"reason,omitempty"`
}

// Asking is a way to ask a controller.
type Asking func(ctx context.Context, method string, result any, args ...any) error

// LookAtQueue asks whether the queue takes new jobs.
func LookAtQueue(ctx context.Context, ask Asking) (Queue, error) {
	var values []bool
	if err := ask(ctx, "QueryConfigValues", &values, []string{"drain_flag"}); err != nil {
		return Queue{}, err
	}
	if len(values) != 1 {
		return Queue{}, fmt.Errorf("the controller returned %d values instead of 1", len(values))
	}
	if !values[0] {
		return Queue{}, nil
	}
	return whoDrained(ctx, ask)
}

// whoDrained asks who closed the queue last.
func whoDrained(ctx context.Context, ask Asking) (Queue, error) {
	q := Queue{Drained: true}
	var found listing.Answer
	last := map[string]any{"sort": []string{"-id"}, "limit": 1}
	err := ask(ctx, "Query", &found, "event", []string{"who", "timestamp", "reason"}, qlang.JSON(qlang.AnyOf("what", "queue.drain")), last)
	if err != nil || len(found.Data) == 0 {
		return q, err
	}
	row := found.Data[0]
	q.By = lists.CellText(row[0])
	if at, ok := listing.Moment(listing.Field{Kind: "timestamp"}, row[1].Value); ok {
		q.Since = &at
	}
	if row[2].Status == 0 {
		q.Reason = lists.CellText(row[2])
	}
	return q, nil
}

// Text says it in a few words.
func (q Queue) Text() string {
	if !q.Drained {
		return "takes new jobs"
	}
	text := "takes no new jobs"
	if q.By != "" {
		text += ": drained by " + q.By
	}
	if q.Since != nil {
		text += " at " + q.Since.Local().Format(time.DateTime)
	}
	if q.Reason != "" {
		text += fmt.Sprintf(" (%q)", q.Reason)
	}
	return text
}

// QueueInfo returns the verb that tells whether the queue takes new jobs.
func QueueInfo(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "info", Short: "Tell whether the queue takes new jobs, and if not, who keeps it from that and why", Args: shell.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := LookAtQueue(cmd.Context(), sh.Ask)
			if err != nil {
				return err
			}
			return sh.Show(q, func() error {
				if !sh.Classic() {
					return sh.Printf("The queue %s\n", q.Text())
				}
				return sh.Printf("The drain flag is %s\n", map[bool]string{true: "set", false: "unset"}[q.Drained])
			})
		},
	}
}
