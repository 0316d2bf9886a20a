package cli

import (
	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/classic"
)

// networkInfo shows networks: all fields under our own name, the text that
// scripts know under the classic one.
func networkInfo(sh *shell) *cobra.Command {
	cmd := itemInfo(sh, networkList)
	fields := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !sh.persona.classic() || sh.flags.output != "table" {
			return fields(cmd, args)
		}
		var found []classic.Network
		if err := sh.ask(cmd.Context(), "QueryNetworks", &found, nonNil(args), classic.NetworkFields, false); err != nil {
			return err
		}
		for i := range found {
			var users []classic.Interfaces
			if names := found[i].Instances; len(names) > 0 {
				if err := sh.ask(cmd.Context(), "QueryInstances", &users, names, classic.InterfaceFields, false); err != nil {
					return err
				}
			}
			if err := sh.printf("%s", found[i].Text(users)); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}
