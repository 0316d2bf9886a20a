package jobs

import (
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/spf13/cobra"
)

// List is how jobs are listed.
var List = lists.List{What: "job", Fields: []string{"id", "status", "summary"}, NameField: "id", Numeric: true, Stored: true,
	Table: []string{"id", "status", "wait_reason", "place", "summary"}, Brief: []string{"wait_reason", "place"},
	Short: "List jobs", Extra: jobListOptions}

func jobListOptions(cmd *cobra.Command) func([]string, qlang.Node) ([]string, qlang.Node) {
	chosen := statusOptions(cmd, "pending", "queued", "waiting", "running", "error", "finished")
	archived := cmd.Flags().Bool("archived", false, "archived jobs too")
	return func(fields []string, filter qlang.Node) ([]string, qlang.Node) {
		if byStatus := chosen(); byStatus != nil {
			filter = lists.Both(filter, byStatus)
		}
		if *archived && !slices.Contains(fields, "archived") {
			fields = append(slices.Clone(fields), "archived")
		}
		return fields, filter
	}
}

// statusSets are the options that pick jobs by their status.
var statusSets = map[string][]job.Status{
	"pending":  {job.Queued, job.Waiting, job.Canceling},
	"queued":   {job.Queued},
	"waiting":  {job.Waiting},
	"running":  {job.Running},
	"error":    {job.Error},
	"finished": {job.Success, job.Canceled, job.Error},
}

// statusOptions registers some of them; the function that it returns gives the
// filter for those that were given, nil for none.
func statusOptions(cmd *cobra.Command, names ...string) func() qlang.Node {
	for _, name := range names {
		cmd.Flags().Bool(name, false, strings.NewReplacer("are error", "failed", "are finished", "have ended").Replace("jobs that are "+name))
	}
	return func() qlang.Node {
		var words []string
		for _, name := range names {
			if given, err := cmd.Flags().GetBool(name); err == nil && given {
				for _, s := range statusSets[name] {
					words = append(words, string(s))
				}
			}
		}
		if len(words) == 0 {
			return nil
		}
		return qlang.AnyOf("status", words...)
	}
}
