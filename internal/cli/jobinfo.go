package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/classic"
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
	Received *[2]int64         `json:"received_ts"`
	Started  *[2]int64         `json:"start_ts"`
	Ended    *[2]int64         `json:"end_ts"`
	Ops      []json.RawMessage `json:"ops"`
	OpStatus []string          `json:"opstatus"`
	OpResult []json.RawMessage `json:"opresult"`
	OpLog    [][]logEntry      `json:"-"`
	Log      []json.RawMessage `json:"oplog"`
	OpStart  []*[2]int64       `json:"opstart"`
	OpExec   []*[2]int64       `json:"opexec"`
	OpEnd    []*[2]int64       `json:"opend"`
}

// details are the fields that info asks for, and where they go.
func (d *jobDetails) details() ([]string, []any) {
	return []string{"id", "status", "summary", "priority", "archived", "received_ts", "start_ts", "end_ts",
			"ops", "opstatus", "opresult", "oplog", "opstart", "opexec", "opend"},
		[]any{&d.ID, &d.Status, &d.Summary, &d.Priority, &d.Archived, &d.Received, &d.Started, &d.Ended,
			&d.Ops, &d.OpStatus, &d.OpResult, &d.Log, &d.OpStart, &d.OpExec, &d.OpEnd}
}

func jobInfo(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "info ID...", Short: "Show everything about jobs", Args: atLeast(1),
		ValidArgsFunction: sh.completeNames("job", true),
		RunE: func(cmd *cobra.Command, args []string) error {
			ids, err := jobIDs(args)
			if err != nil {
				return err
			}
			all, missing, err := sh.jobDetails(cmd.Context(), ids)
			if err != nil {
				return err
			}
			if err := sh.show(all, func() error {
				jobs := make([]any, len(all))
				for i, d := range all {
					jobs[i] = d.outline()
				}
				return sh.printf("%s", classic.Outline(jobs))
			}); err != nil {
				return err
			}
			return sh.missingJobs(missing)
		},
	}
}

func (sh *shell) jobDetails(ctx context.Context, ids []job.ID) (all []*jobDetails, missing []job.ID, err error) {
	names, _ := new(jobDetails).details()
	var answers [][]json.RawMessage
	if err := sh.ask(ctx, "QueryJobs", &answers, ids, names); err != nil {
		return nil, nil, err
	}
	all = []*jobDetails{}
	for i, row := range answers {
		if string(row[1]) == "null" {
			missing = append(missing, ids[i])
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
func (sh *shell) missingJobs(ids []job.ID) error {
	for _, id := range ids {
		text := fmt.Sprintf("Job ID %d not found\n", id)
		if !sh.persona.classic() {
			sh.notef("%s", text)
		} else if err := sh.printf("- %s", text); err != nil {
			return err
		}
	}
	if len(ids) > 0 && !sh.persona.classic() {
		return failed
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
		var entries []logEntry
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

func (d *jobDetails) sinceBefore(t, before *[2]int64) string {
	switch {
	case t == nil:
		return "unknown (None)"
	case before == nil:
		return stamp(t)
	default:
		return fmt.Sprintf("%s (delta %.6fs)", stamp(t), elapsed(before, t))
	}
}

func (d *jobDetails) total() string {
	if d.Received == nil || d.Ended == nil {
		return "N/A"
	}
	return fmt.Sprintf("%.6f seconds", elapsed(d.Received, d.Ended))
}

func elapsed(from, to *[2]int64) float64 {
	return float64(to[0]-from[0]) + float64(to[1]-from[1])/1e6
}

func (d *jobDetails) opOutline(i int) classic.Record {
	input, _ := parseJSON(string(d.Ops[i]))
	result, _ := parseJSON(string(d.OpResult[i]))
	var id any
	if op, ok := input.(map[string]any); ok {
		id = op["OP_ID"]
	}
	log := []any{}
	for _, e := range d.OpLog[i] {
		log = append(log, classic.Record{
			classic.Line("Time", e.at.Format(stampLayout)),
			classic.Line("Content", fmt.Sprintf("[%d, %s, %s]", e.serial, e.kind, e.text())),
		})
	}
	return classic.Record{
		classic.Line("Opcode", id),
		classic.Line("Status", d.OpStatus[i]),
		classic.Line("Processing start", stamp(d.OpStart[i])),
		classic.Line("Execution start", " "+stamp(d.OpExec[i])),
		classic.Line("Processing end", "  "+stamp(d.OpEnd[i])),
		classic.Line("Input fields", input),
		classic.Line("Result", result),
		classic.Line("Execution log", log),
	}
}

func jobExplain(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "explain ID", Short: "Tell why a job runs, waits or was refused", Args: exactly(1),
		Long: "Tell why a job runs, waits or was refused: the filter rules in order with what\n" +
			"each decides and by which part, then dependencies, locks, limits and slots, and\n" +
			"what would have to change for the job to go on.",
		ValidArgsFunction: sh.completeNames("job", false),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := jobID(args[0])
			if err != nil {
				return err
			}
			var text json.RawMessage
			if err := sh.ask(cmd.Context(), "ExplainJob", &text, id); err != nil {
				return err
			}
			return sh.show(text, func() error { return sh.printExplanation(text) })
		},
	}
}
