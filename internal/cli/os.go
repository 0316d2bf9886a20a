package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
)

func osCommand(sh *shell) *cobra.Command {
	return sh.group("os", "Operating systems that nodes can install",
		heeds(asking, osList(sh), osInfo(sh), osDiagnose(sh))...)
}

// definitions asks all nodes. No job is made of it: a rule would hold that.
func (sh *shell) definitions(cmd *cobra.Command, names []string) ([]classic.OSDefinition, error) {
	found := []classic.OSDefinition{}
	return found, sh.ask(cmd.Context(), "QueryOSes", &found, nonNil(names), classic.OSFields)
}

func osList(sh *shell) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the names under which they can be installed", Args: exactly(0)}
	noHeaders := cmd.Flags().Bool("no-headers", false, "leave out the header line")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		found, err := sh.definitions(cmd, nil)
		if err != nil {
			return err
		}
		names := classic.InstallableNames(found)
		return sh.show(names, func() error {
			lines := names
			if !*noHeaders {
				lines = classic.Titled("Name", names)
			}
			return sh.printf("%s", strings.Join(append(lines, ""), "\n"))
		})
	}
	return cmd
}

func osInfo(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "info [NAME...]", Short: "Show everything about them", Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := sh.definitions(cmd, args)
			if err != nil {
				return err
			}
			for _, name := range args {
				known := slices.ContainsFunc(found, func(o classic.OSDefinition) bool { return o.Name == name })
				if !known && !sh.persona.classic() {
					return fault.New(fault.NotFound, "there is no operating system %s", name)
				}
			}
			return sh.show(found, func() error {
				for i := range found {
					if err := sh.printf("%s\n", found[i].Text()); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func osDiagnose(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use: "diagnose", Short: "Show what each node says of them", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := []classic.OSDiagnosis{}
			if err := sh.ask(cmd.Context(), "QueryOSes", &found, []string{}, classic.DiagnosisFields); err != nil {
				return err
			}
			var names map[string]string
			if !sh.persona.classic() {
				var err error
				if names, err = sh.nodeNames(cmd.Context()); err != nil {
					return err
				}
			}
			if err := sh.show(found, func() error {
				for i := range found {
					if err := sh.printf("%s\n", found[i].Text(names)); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				return err
			}
			if slices.ContainsFunc(found, func(o classic.OSDiagnosis) bool { return !o.Valid }) {
				return failed
			}
			return nil
		},
	}
}

// nodeNames are the names of all nodes by their UUIDs.
func (sh *shell) nodeNames(ctx context.Context) (map[string]string, error) {
	uuids, err := sh.column(ctx, "node", "uuid", &qlang.All{})
	if err != nil {
		return nil, err
	}
	names, err := sh.column(ctx, "node", "name", &qlang.All{})
	if err != nil || len(names) != len(uuids) {
		return nil, err // a node came or went in between: then UUIDs will do
	}
	out := make(map[string]string, len(names))
	for i, uuid := range uuids {
		out[uuid] = names[i]
	}
	return out, nil
}

func backupCommand(sh *shell) *cobra.Command {
	verbs := []*cobra.Command{listCommand(sh, exportList), fieldsCommand(sh, exportList)}
	for _, o := range []operation{
		{verb: "export", short: "Export instances to a node", id: "OP_BACKUP_EXPORT", target: "instance_name", complete: "instance",
			letters: map[string]string{"target_node": "n"}},
		{verb: "remove", short: "Remove the exports of instances", id: "OP_BACKUP_REMOVE", target: "instance_name",
			question: "Remove the exports of %s?"},
	} {
		o.noun = "backup"
		verbs = append(verbs, o.command(sh))
	}
	return sh.group("backup", "Exports of instances, and backups of the cluster's state", verbs...)
}
