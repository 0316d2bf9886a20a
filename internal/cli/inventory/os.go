package inventory

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
)

// OSCommand returns the noun "os".
func OSCommand(sh *shell.Shell) *cobra.Command {
	return sh.Group("os", "Operating systems that nodes can install",
		shell.Heeds(shell.Asking, osList(sh), osInfo(sh), osDiagnose(sh))...)
}

// definitions asks all nodes. No job is made of it: a rule would hold that.
func definitions(sh *shell.Shell, cmd *cobra.Command, names []string) ([]classic.OSDefinition, error) {
	found := []classic.OSDefinition{}
	return found, sh.Ask(cmd.Context(), "QueryOSes", &found, shell.NonNil(names), classic.OSFields)
}

func osList(sh *shell.Shell) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the names under which they can be installed", Args: shell.Exactly(0)}
	noHeaders := cmd.Flags().Bool("no-headers", false, "leave out the header line")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		found, err := definitions(sh, cmd, nil)
		if err != nil {
			return err
		}
		names := classic.InstallableNames(found)
		return sh.Show(names, func() error {
			lines := names
			if !*noHeaders {
				lines = classic.Titled("Name", names)
			}
			return sh.Printf("%s", strings.Join(append(lines, ""), "\n"))
		})
	}
	return cmd
}

func osInfo(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "info [NAME...]", Short: "Show everything about operating systems", Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := definitions(sh, cmd, args)
			if err != nil {
				return err
			}
			for _, name := range args {
				known := slices.ContainsFunc(found, func(o classic.OSDefinition) bool { return o.Name == name })
				if !known && !sh.Classic() {
					return fault.New(fault.NotFound, "there is no operating system %s", name)
				}
			}
			return sh.Show(found, func() error {
				for i := range found {
					if err := sh.Printf("%s\n", found[i].Text()); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func osDiagnose(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "diagnose", Short: "Show what each node says of them", Args: shell.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := []classic.OSDiagnosis{}
			if err := sh.Ask(cmd.Context(), "QueryOSes", &found, []string{}, classic.DiagnosisFields); err != nil {
				return err
			}
			var names map[string]string
			if !sh.Classic() {
				var err error
				if names, err = nodeNames(cmd.Context(), sh); err != nil {
					return err
				}
			}
			if err := sh.Show(found, func() error {
				for i := range found {
					if err := sh.Printf("%s\n", found[i].Text(names)); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				return err
			}
			if slices.ContainsFunc(found, func(o classic.OSDiagnosis) bool { return !o.Valid }) {
				return shell.ErrFailed
			}
			return nil
		},
	}
}

// nodeNames are the names of all nodes by their UUIDs.
func nodeNames(ctx context.Context, sh *shell.Shell) (map[string]string, error) {
	uuids, err := sh.Column(ctx, "node", "uuid", &qlang.All{})
	if err != nil {
		return nil, err
	}
	names, err := sh.Column(ctx, "node", "name", &qlang.All{})
	if err != nil || len(names) != len(uuids) {
		return nil, err // a node came or went in between: then UUIDs will do
	}
	out := make(map[string]string, len(names))
	for i, uuid := range uuids {
		out[uuid] = names[i]
	}
	return out, nil
}
