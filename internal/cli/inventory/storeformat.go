package inventory

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
)

// storeFormat is the format of the store, and what can be done about it.
type storeFormat struct {
	Format int  `json:"format"`
	Next   int  `json:"next"`
	Newest int  `json:"newest"`
	Auto   bool `json:"auto"`
	// Program is that of the leader.
	Program *formats `json:"program"`
	Holds   []struct {
		Name  string    `json:"name"`
		Why   string    `json:"why"`
		Until time.Time `json:"until"`
	} `json:"holds"`
	Brings []struct {
		Format int    `json:"format"`
		Brings string `json:"brings"`
	} `json:"brings"`
	Copy string `json:"copy,omitempty"`
}

func askFormat(sh *shell.Shell, cmd *cobra.Command) (f storeFormat, err error) {
	return f, sh.Ask(cmd.Context(), "QueryFormat", &f)
}

// brought are lines of what formats brought, from one on.
func (f storeFormat) brought(from int) string {
	text := &strings.Builder{}
	for _, b := range f.Brings {
		if b.Format >= from {
			fmt.Fprintf(text, "  %d: %s\n", b.Format, b.Brings)
		}
	}
	return text.String()
}

// held are lines of who keeps the store from a newer format.
func (f storeFormat) held() string {
	text := &strings.Builder{}
	for _, h := range f.Holds {
		fmt.Fprintf(text, "  %s: %s;\n    it counts until %s unless it is stopped, or heard again\n", h.Name, h.Why, h.Until.Local().Format("2006-01-02 15:04"))
	}
	return text.String()
}

// prospect says what can be done.
func (f storeFormat) prospect() string {
	text := ""
	switch {
	case f.Next > f.Format && f.Auto:
		text = fmt.Sprintf("It is about to be raised to %d.\n", f.Next)
	case f.Next > f.Format:
		text = fmt.Sprintf("It can be raised to %d: drover cluster format raise\n", f.Next)
	case len(f.Holds) == 0:
		text = "It is the newest that the leader's program knows.\n"
	}
	if len(f.Holds) > 0 {
		text += fmt.Sprintf("Format %d has to wait for\n%s", f.Next+1, f.held())
	}
	return text
}

func clusterFormat(sh *shell.Shell) *cobra.Command {
	return sh.Group("format", "The format of the store, which controllers raise together",
		&cobra.Command{
			Use: "info", Short: "Show the format of the store, and who keeps it from a newer one", Args: shell.Exactly(0),
			RunE: func(cmd *cobra.Command, _ []string) error {
				f, err := askFormat(sh, cmd)
				if err != nil {
					return err
				}
				return sh.Show(f, func() error {
					return sh.Printf("The store has format %d of those that the leader's program knows:\n%s%s", f.Format, f.brought(f.Format), f.prospect())
				})
			},
		}, shell.Heeding(shell.Changing, formatRaise(sh)))
}

func formatRaise(sh *shell.Shell) *cobra.Command {
	noCopy := false
	cmd := &cobra.Command{
		Use: "raise", Short: "Let the store have the newest format that all controllers can keep", Args: shell.Exactly(0),
		Long: `raise is for clusters whose controllers do not do it by themselves (auto-finalize =
false). From then on controllers whose programs do not know the format cannot lead,
and there is no way back but a backup. Of a store in a controller's data directory a
copy is made there first. With --dry-run it says what would be raised, and who keeps
the store from it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := askFormat(sh, cmd)
			if err != nil {
				return err
			}
			if sh.Flags.DryRun {
				return sh.Show(f, func() error { return sh.Printf("%s", f.wouldRaise()) })
			}
			if f.Next == f.Format && len(f.Holds) == 0 {
				return sh.Show(f, func() error { return sh.Printf("%s", f.nothingNewer()) })
			}
			if err := sh.Sure(shell.PathOf(cmd)); err != nil {
				return err
			}
			args := []any{sh.UserTrail()}
			if noCopy { // which programs of before do not know
				args = append(args, true)
			}
			f = storeFormat{}
			if err := sh.Ask(cmd.Context(), "RaiseFormat", &f, args...); err != nil {
				return err
			}
			return sh.Show(f, func() error { return sh.Printf("%s", f.raised()) })
		},
	}
	cmd.Flags().BoolVar(&noCopy, "no-copy", false, "make no copy of an embedded store first")
	return cmd
}

// raised says what a raise has done.
func (f storeFormat) raised() string {
	if f.Next == f.Format {
		return f.nothingNewer()
	}
	text := fmt.Sprintf("The format of the store was raised from %d to %d.\n", f.Format, f.Next)
	if f.Copy != "" {
		text += fmt.Sprintf("The store of before is in %s.\n", f.Copy)
	}
	return text
}

func (f storeFormat) nothingNewer() string {
	return fmt.Sprintf("The store has format %d already, the newest that the leader's program knows.\n", f.Format)
}

// wouldRaise says what raise would do.
func (f storeFormat) wouldRaise() string {
	if f.Next > f.Format {
		text := fmt.Sprintf("The format of the store would be raised from %d to %d:\n%s", f.Format, f.Next, f.brought(f.Format+1))
		if len(f.Holds) > 0 {
			text += fmt.Sprintf("Format %d would have to wait for\n%s", f.Next+1, f.held())
		}
		return text
	}
	text := fmt.Sprintf("The format of the store would stay %d.\n", f.Format)
	return text + f.prospect()
}
