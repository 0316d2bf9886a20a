package inventory

import (
	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
)

// networkInfo shows networks: all fields under our own name, the text that
// scripts know under the classic one.
func networkInfo(sh *shell.Shell) *cobra.Command {
	cmd := lists.ItemInfo(sh, NetworkList)
	fields := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !sh.Classic() || sh.Flags.Output != "table" {
			return fields(cmd, args)
		}
		var found []classic.Network
		if err := sh.Ask(cmd.Context(), "QueryNetworks", &found, shell.NonNil(args), classic.NetworkFields, false); err != nil {
			return err
		}
		for i := range found {
			var users []classic.Interfaces
			if names := found[i].Instances; len(names) > 0 {
				if err := sh.Ask(cmd.Context(), "QueryInstances", &users, names, classic.InterfaceFields, false); err != nil {
					return err
				}
			}
			if err := sh.Printf("%s", found[i].Text(users)); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

// NetworkList is how networks are listed.
var NetworkList = lists.List{What: "network", Fields: []string{"name", "network", "gateway", "mac_prefix", "group_list", "tags"},
	NameField: "name", Stored: true, Short: "List networks"}

// NetworkCommand returns the noun "network".
func NetworkCommand(sh *shell.Shell) *cobra.Command {
	verbs := []*cobra.Command{lists.Command(sh, NetworkList), lists.FieldsCommand(sh, NetworkList), networkInfo(sh)}
	for _, o := range []work.Operation{
		{Verb: "add", Short: "Define a network", ID: "OP_NETWORK_ADD", Target: "network_name", Letters: map[string]string{"mac_prefix": "m"}},
		{Verb: "modify", Short: "Change the settings of networks", ID: "OP_NETWORK_SET_PARAMS", Target: "network_name", Complete: "network",
			Letters: map[string]string{"mac_prefix": "m"}},
		{Verb: "remove", Short: "Remove networks", ID: "OP_NETWORK_REMOVE", Target: "network_name", Complete: "network", Unasked: true, Letters: map[string]string{"force": "f"}},
		{Verb: "connect", Short: "Connect a network to a node group", ID: "OP_NETWORK_CONNECT", Target: "network_name",
			Places: []string{"group_name", "network_mode", "network_link"}, Complete: "network"},
		{Verb: "disconnect", Short: "Disconnect a network from a node group", ID: "OP_NETWORK_DISCONNECT", Target: "network_name",
			Places: []string{"group_name"}, Complete: "network"},
	} {
		o.Noun = "network"
		verbs = append(verbs, o.Command(sh))
	}
	return sh.Group("network", "Networks of the instances", append(verbs, itemTags(sh, "network")...)...)
}
