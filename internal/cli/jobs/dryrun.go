package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
)

// What --dry-run shows of commands that make no job. It is found by asking, so
// nothing can change; what others do meanwhile may make it different.

// standing is how a job stands.
type standing struct {
	status   job.Status
	archived bool
	ended    string // how long ago, in words; empty if it has not ended
}

// standingOf asks how a job stands; the error of one that there is not is that of all
// commands.
func standingOf(ctx context.Context, sh *shell.Shell, id job.ID) (s standing, err error) {
	filter := &qlang.Compare{Op: qlang.Eq, Field: "id", Value: qlang.IntValue(int64(id))}
	var found listing.Answer
	if err := sh.Ask(ctx, "Query", &found, "job", []string{"status", "archived", "end_ts"}, qlang.JSON(filter)); err != nil {
		return s, err
	}
	if len(found.Data) != 1 || found.Data[0][0].Status != 0 {
		return s, noJob(id)
	}
	var end *shell.Pair
	for i, into := range []any{&s.status, &s.archived, &end} {
		if found.Data[0][i].Status != 0 {
			continue
		}
		if err := json.Unmarshal(found.Data[0][i].Value, into); err != nil {
			return s, err
		}
	}
	if end != nil {
		s.ended = shell.Ago(sh.Now().Sub(time.Unix(end[0], end[1]*1000)))
	}
	return s, nil
}

// refusal says why something was not done to a job: mostly, because it has ended.
func refusal(ctx context.Context, sh *shell.Shell, id job.ID, message string) string {
	s, err := standingOf(ctx, sh, id)
	switch {
	case fault.Is(err, fault.NotFound):
		return noJob(id).Error()
	case err != nil || s.ended == "":
		return message
	case s.archived:
		return fmt.Sprintf("job %d has ended: %s, %s; it is in the archive", id, s.status, s.ended)
	default:
		return fmt.Sprintf("job %d has ended: %s, %s", id, s.status, s.ended)
	}
}

// foreseen asks for each job what a request about it would do, by its status
// and whether it is archived.
func foreseen(ctx context.Context, sh *shell.Shell, forecast func(job.ID, job.Status, bool) job.Forecast) func(job.ID) (work.Answer, error) {
	return func(id job.ID) (work.Answer, error) {
		s, err := standingOf(ctx, sh, id)
		if fault.Is(err, fault.NotFound) {
			return work.Answer{Value: fmt.Sprintf("Job %d not found", id)}, nil
		}
		if err != nil {
			return work.Answer{}, err
		}
		f := forecast(id, s.status, s.archived)
		return work.Answer{OK: f.OK, Value: f.Message}, nil
	}
}

// wouldArchive counts the jobs that autoarchive would move.
func wouldArchive(ctx context.Context, sh *shell.Shell, age int64) error {
	filter := qlang.AnyOf("status", words(statusSets["finished"])...)
	if age >= 0 {
		old := qlang.IntValue(sh.Now().Unix() - age)
		filter = lists.Both(filter, &qlang.Compare{Op: qlang.Lt, Field: "end_ts", Value: old})
	}
	var found listing.Answer
	if err := sh.Ask(ctx, "Query", &found, "job", []string{"id"}, qlang.JSON(filter)); err != nil {
		return err
	}
	n := len(found.Data)
	return sh.Show(map[string]int{"would_archive": n}, func() error { return sh.Printf("Would archive %s\n", shell.Counted(n, "job")) })
}

func words(list []job.Status) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}
