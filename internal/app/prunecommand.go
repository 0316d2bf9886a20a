package app

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/image"
)

// pruneBackups returns `drover backup prune`.
func pruneBackups() *cobra.Command {
	var keep int
	var sure bool
	cmd := &cobra.Command{
		Use:   "prune [DIR] --keep N",
		Short: "Remove all but the newest backups of a directory",
		Long: `prune removes the backups of one cluster in DIR, but for the N newest ones that are
whole: those are read to their ends. A directory with those of two is refused. One among them that is not whole does not count:
it is left where it is, and named, and the exit status tells of it. What is no backup
is left alone. Without --yes it says what it would do; without DIR it is the directory that
the setting backups of ` + defaultConfig + ` names.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			form, err := formOf(cmd)
			if err != nil {
				return err
			}
			if keep < 1 {
				return fault.New(fault.Invalid, "keep: at least one backup is to stay, got %d", keep).At("keep")
			}
			where, err := backupsAt(args, defaultConfig)
			if err != nil {
				return err
			}
			p, err := image.Prune(where, keep, store.Kind(cluster.KindCluster))
			if err != nil {
				return err
			}
			if sure {
				for _, f := range p.Remove {
					if err := os.Remove(f.Path); err != nil {
						return fault.New(fault.Environment, "cannot remove a backup: %w", err)
					}
				}
			}
			return tellPruning(cmd, &p, sure, form)
		},
	}
	cmd.Flags().IntVar(&keep, "keep", 0, "how many backups stay")
	cmd.Flags().BoolVar(&sure, "yes", false, "do it")
	return cmd
}

// tellPruning tells what became of backups, or would have; its error is that some are not whole.
func tellPruning(cmd *cobra.Command, p *image.Pruning, did bool, form string) error {
	text := &strings.Builder{}
	is := map[bool]string{true: "removed", false: "would be removed"}[did]
	for _, f := range p.Remove {
		fmt.Fprintf(text, "%s, made %s, %s\n", f.Path, f.Made.Format(time.RFC3339), is)
	}
	fmt.Fprintf(text, "%d %s, %d kept\n", len(p.Remove), is, len(p.Keep))
	if !did && len(p.Remove) > 0 {
		text.WriteString("nothing was changed: say --yes\n")
	}
	broken := slices.Sorted(maps.Keys(p.Broken))
	out := text.String()
	if form != "table" {
		data, err := json.MarshalIndent(map[string]any{"removed": did, "remove": paths(p.Remove), "keep": paths(p.Keep), "broken": append([]string{}, broken...)}, "", "  ")
		if err != nil {
			return err
		}
		if out, err = inForm(data, form); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(cmd.OutOrStdout(), out); err != nil || len(broken) == 0 {
		return err
	}
	return fault.New(fault.WrongState, "%s: %w", broken[0], p.Broken[broken[0]]).
		WithHint("%d backup(s) there are not whole, and were left: %s", len(broken), fault.Clip(strings.Join(broken, ", "), 500))
}

func paths(of []image.Found) []string {
	out := make([]string, len(of))
	for i, f := range of {
		out[i] = f.Path
	}
	return out
}
