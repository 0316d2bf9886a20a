package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/job"
)

// ArchiveCommand returns the noun "archive".
func ArchiveCommand(sh *shell.Shell) *cobra.Command {
	return sh.Group("archive", "Jobs that ended long ago", archiveExport(sh), archivePrune(sh))
}

func archiveExport(sh *shell.Shell) *cobra.Command {
	olderThan := ""
	cmd := &cobra.Command{
		Use: "export", Short: "Write the jobs of the archive, each as a line of JSON", Args: shell.Exactly(0),
		Long: `export writes all that is known of the jobs of the archive, in the order of their ids:
each is one line, with what drover job info --output json shows of it. With --output
json or yaml it is one list.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			before := sh.Now()
			if olderThan != "" {
				seconds, err := shell.AgeOf(olderThan)
				if err != nil {
					return err
				}
				before = before.Add(-time.Duration(max(seconds, 0)) * time.Second)
			}
			if sh.Structured() {
				all := []*jobDetails{}
				err := eachArchived(cmd.Context(), sh, before, func(d *jobDetails) error {
					all = append(all, d)
					return nil
				})
				if err != nil {
					return err
				}
				return sh.Show(all, func() error { return nil })
			}
			return eachArchived(cmd.Context(), sh, before, func(d *jobDetails) error { return writeLine(sh, d) })
		},
	}
	cmd.Flags().StringVar(&olderThan, "older-than", "", "only jobs that ended longer ago than this age, a number with s, m, h, d or w behind it")
	return cmd
}

// writeLine writes a value as one line of JSON.
func writeLine(sh *shell.Shell, value any) error {
	var line bytes.Buffer
	out := json.NewEncoder(&line)
	out.SetEscapeHTML(false)
	if err := out.Encode(value); err != nil {
		return err
	}
	return sh.Printf("%s", line.String())
}

// exportBatch is how many jobs are asked for at a time.
const exportBatch = 200

// eachArchived gives a function the jobs of the archive that ended before a moment, by id.
func eachArchived(ctx context.Context, sh *shell.Shell, before time.Time, do func(*jobDetails) error) error {
	newest, err := newestArchived(ctx, sh)
	if err != nil {
		return err
	}
	for first := job.ID(1); first <= newest; first += exportBatch {
		ids := make([]job.ID, 0, exportBatch)
		for id := first; id <= newest && id < first+exportBatch; id++ {
			ids = append(ids, id)
		}
		all, _, err := askDetails(ctx, sh, ids)
		if err != nil {
			return err
		}
		for _, d := range all {
			if !d.Archived || d.Ended == nil || !time.Unix(d.Ended[0], d.Ended[1]*1000).Before(before) {
				continue
			}
			if err := do(d); err != nil {
				return err
			}
		}
	}
	return nil
}

// newestArchived is the greatest id in the archive, 0 if that is empty.
func newestArchived(ctx context.Context, sh *shell.Shell) (newest job.ID, err error) {
	var found listing.Answer
	err = sh.Ask(ctx, "Query", &found, "job", []string{"id", "archived"}, []any{"?", "archived"}, map[string]any{"sort": []string{"-id"}, "limit": 1})
	if err != nil || len(found.Data) == 0 {
		return 0, err
	}
	return newest, json.Unmarshal(found.Data[0][0].Value, &newest)
}
