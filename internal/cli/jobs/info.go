package jobs

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/job"
)

// jobDetails is everything that info shows of a job, by the names of the
// fields.
type jobDetails struct {
	ID       job.ID            `json:"id"`
	Status   string            `json:"status"`
	Summary  []string          `json:"summary"`
	Priority int               `json:"priority"`
	Archived bool              `json:"archived"`
	Received *shell.Pair       `json:"received_ts"`
	Started  *shell.Pair       `json:"start_ts"`
	Ended    *shell.Pair       `json:"end_ts"`
	Ops      []json.RawMessage `json:"ops"`
	OpStatus []string          `json:"opstatus"`
	OpResult []json.RawMessage `json:"opresult"`
	OpLog    [][]work.LogEntry `json:"oplog"`
	Log      []json.RawMessage `json:"-"`
	OpStart  []*shell.Pair     `json:"opstart"`
	OpExec   []*shell.Pair     `json:"opexec"`
	OpEnd    []*shell.Pair     `json:"opend"`
}

// details are the fields that info asks for, and where they go.
func (d *jobDetails) details() ([]string, []any) {
	return []string{"id", "status", "summary", "priority", "archived", "received_ts", "start_ts", "end_ts",
			"ops", "opstatus", "opresult", "oplog", "opstart", "opexec", "opend"},
		[]any{&d.ID, &d.Status, &d.Summary, &d.Priority, &d.Archived, &d.Received, &d.Started, &d.Ended,
			&d.Ops, &d.OpStatus, &d.OpResult, &d.Log, &d.OpStart, &d.OpExec, &d.OpEnd}
}

func jobInfo(sh *shell.Shell) *cobra.Command {
	steps := false
	cmd := &cobra.Command{
		Use: "info ID...", Short: "Show everything about jobs", Args: shell.AtLeast(1),
		ValidArgsFunction: lists.CompleteNames(sh, "job", true),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := shell.JobIDs(args)
			if err != nil {
				return err
			}
			if steps {
				return showSteps(cmd.Context(), sh, ids)
			}
			all, missing, err := askDetails(cmd.Context(), sh, ids)
			if err != nil {
				return err
			}
			if err := sh.Show(all, func() error {
				jobs := make([]any, len(all))
				for i, d := range all {
					jobs[i] = d.outline()
				}
				return sh.Printf("%s", classic.Outline(jobs))
			}); err != nil {
				return err
			}
			return missingJobs(cmd.Context(), sh, missing)
		},
	}
	if !sh.Classic() {
		cmd.Flags().BoolVar(&steps, "steps", false, "show what each opcode did and will do, step by step, and what is left where")
	}
	return cmd
}

func askDetails(ctx context.Context, sh *shell.Shell, ids []job.ID) (all []*jobDetails, missing []job.ID, err error) {
	names, _ := new(jobDetails).details()
	var answers [][]json.RawMessage
	if err := sh.Ask(ctx, "QueryJobs", &answers, ids, names); err != nil {
		return nil, nil, err
	}
	if len(answers) != len(ids) {
		return nil, nil, fmt.Errorf("%d jobs were asked for and %d answers came", len(ids), len(answers))
	}
	all = []*jobDetails{}
	for i, row := range answers {
		if len(row) < 2 || string(row[1]) == "null" {
			missing = append(missing, ids[i]) //nolint:gosec // there are as many rows as ids
			continue
		}
		d, err := newJobDetails(row)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, d)
	}
	return all, missing, nil
}

// missingJobs tells about jobs that do not exist. To the classic tool they are
// an answer, to us a failure.
func missingJobs(ctx context.Context, sh *shell.Shell, ids []job.ID) error {
	for _, id := range ids {
		if !sh.Classic() {
			sh.Notef("%s\n", sh.ErrorText(gone(ctx, sh, id)))
		} else if err := sh.Printf("- Job ID %d not found\n", id); err != nil {
			return err
		}
	}
	if len(ids) > 0 && !sh.Classic() {
		return shell.ErrFailed
	}
	return nil
}

// newJobDetails reads a row with the fields of details.
func newJobDetails(row []json.RawMessage) (*jobDetails, error) {
	d := &jobDetails{}
	_, places := d.details()
	if len(row) != len(places) {
		return nil, fmt.Errorf("a job has %d fields instead of %d", len(row), len(places))
	}
	for n := range places {
		if err := json.Unmarshal(row[n], places[n]); err != nil {
			return nil, err
		}
	}
	for _, text := range d.Log {
		var entries []work.LogEntry
		if err := json.Unmarshal(text, &entries); err != nil {
			return nil, err
		}
		d.OpLog = append(d.OpLog, entries)
	}
	return d, nil
}

// outline is the job as info shows it.
func (d *jobDetails) outline() classic.Record {
	ops := make([]any, len(d.Ops))
	for i := range d.Ops {
		ops[i] = d.opOutline(i)
	}
	return classic.Record{
		classic.Line("Job ID", d.ID),
		classic.Line("Status", d.Status),
		classic.Line("Received", "        "+d.sinceBefore(d.Received, nil)),
		classic.Line("Processing start", d.sinceBefore(d.Started, d.Received)),
		classic.Line("Processing end", "  "+d.sinceBefore(d.Ended, d.Started)),
		classic.Line("Total processing time", d.total()),
		classic.Line("Opcodes", ops),
	}
}

func (d *jobDetails) sinceBefore(t, before *shell.Pair) string {
	switch {
	case t == nil:
		return "unknown (None)"
	case before == nil:
		return shell.Stamp(t)
	default:
		return fmt.Sprintf("%s (delta %.6fs)", shell.Stamp(t), shell.Elapsed(before, t))
	}
}

func (d *jobDetails) total() string {
	if d.Received == nil || d.Ended == nil {
		return "N/A"
	}
	return fmt.Sprintf("%.6f seconds", shell.Elapsed(d.Received, d.Ended))
}

func (d *jobDetails) opOutline(i int) classic.Record {
	input, _ := shell.ParseJSON(string(d.Ops[i]))
	result, _ := shell.ParseJSON(string(d.OpResult[i]))
	var id any
	if op, ok := input.(map[string]any); ok {
		id = op["OP_ID"]
	}
	log := []any{}
	for _, e := range d.OpLog[i] {
		log = append(log, classic.Record{
			classic.Line("Time", e.At.Format(shell.StampLayout)),
			classic.Line("Content", fmt.Sprintf("[%d, %s, %s]", e.Serial, e.Kind, e.Text())),
		})
	}
	return classic.Record{
		classic.Line("Opcode", id),
		classic.Line("Status", d.OpStatus[i]),
		classic.Line("Processing start", shell.Stamp(d.OpStart[i])),
		classic.Line("Execution start", " "+shell.Stamp(d.OpExec[i])),
		classic.Line("Processing end", "  "+shell.Stamp(d.OpEnd[i])),
		classic.Line("Input fields", input),
		classic.Line("Result", result),
		classic.Line("Execution log", log),
	}
}

func jobExplain(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "explain ID", Short: "Tell why a job runs, waits or was refused", Args: shell.Exactly(1),
		Long: "Tell why a job runs, waits or was refused: the filter rules in order with what\n" +
			"each decides and by which part, then dependencies, locks, limits and slots, and\n" +
			"what would have to change for the job to go on.",
		ValidArgsFunction: lists.CompleteNames(sh, "job", false),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := shell.JobID(args[0])
			if err != nil {
				return err
			}
			return explainJob(cmd.Context(), sh, id)
		},
	}
}
