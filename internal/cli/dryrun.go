package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
)

// What --dry-run shows of commands that make no job. It is found by asking, so
// nothing can change; what others do meanwhile may make it different.

// foreseen asks for each job what a request about it would do, by its status
// and whether it is archived.
func (sh *shell) foreseen(ctx context.Context, forecast func(job.ID, job.Status, bool) job.Forecast) func(job.ID) (answer, error) {
	return func(id job.ID) (answer, error) {
		filter := &qlang.Compare{Op: qlang.Eq, Field: "id", Value: qlang.IntValue(int64(id))}
		var found listing.Answer
		if err := sh.ask(ctx, "Query", &found, "job", []string{"status", "archived"}, qlang.JSON(filter)); err != nil {
			return answer{}, err
		}
		var status job.Status
		var archived bool
		if len(found.Data) != 1 || found.Data[0][0].Status != 0 {
			return answer{false, fmt.Sprintf("Job %d not found", id)}, nil
		}
		for i, into := range []any{&status, &archived} {
			if err := json.Unmarshal(found.Data[0][i].Value, into); err != nil {
				return answer{}, err
			}
		}
		f := forecast(id, status, archived)
		return answer{f.OK, f.Message}, nil
	}
}

// wouldArchive counts the jobs that autoarchive would move.
func (sh *shell) wouldArchive(ctx context.Context, age int64) error {
	filter := qlang.AnyOf("status", words(statusSets["finished"])...)
	if age >= 0 {
		old := qlang.IntValue(sh.now().Unix() - age)
		filter = both(filter, &qlang.Compare{Op: qlang.Lt, Field: "end_ts", Value: old})
	}
	var found listing.Answer
	if err := sh.ask(ctx, "Query", &found, "job", []string{"id"}, qlang.JSON(filter)); err != nil {
		return err
	}
	n := len(found.Data)
	return sh.show(map[string]int{"would_archive": n}, func() error { return sh.printf("Would archive %s\n", counted(n, "job")) })
}

func words(list []job.Status) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// counted is a number of things: "1 job", "2 jobs".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// wouldDrain says what a change of the drain flag would do.
func (sh *shell) wouldDrain(ctx context.Context, on bool) error {
	var values []bool
	if err := sh.ask(ctx, "QueryConfigValues", &values, []string{"drain_flag"}); err != nil {
		return err
	}
	now := len(values) == 1 && values[0]
	text := map[bool]string{true: "The queue would take no new jobs", false: "The queue would take new jobs"}[on]
	if now == on {
		text += ", as it is already"
	}
	return sh.show(map[string]bool{"drained": now, "would_be_drained": on}, func() error { return sh.printf("%s\n", text) })
}

// ruleByUUID returns a rule. Without one the error is that of its deletion.
func (sh *shell) ruleByUUID(ctx context.Context, uuid string) (ruleRow, error) {
	var found []ruleRow
	if err := sh.ask(ctx, "QueryFilters", &found, []string{uuid}, ruleFields); err != nil {
		return ruleRow{}, err
	}
	if len(found) == 0 {
		return ruleRow{}, fault.New(fault.NotFound, "Filter rule with UUID %s does not exist", uuid)
	}
	return found[0], nil
}
