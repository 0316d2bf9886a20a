package inventory

import (
	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/spf13/cobra"
)

// NodeList is how nodes are listed.
var NodeList = lists.List{What: "node", Fields: []string{"name", "dtotal", "dfree", "mtotal", "mnode", "mfree", "pinst_cnt", "sinst_cnt"},
	NameField: "name", Stored: true, Short: "List nodes"}

// NodeCommand returns the noun "node".
func NodeCommand(sh *shell.Shell) *cobra.Command {
	verbs := []*cobra.Command{lists.Command(sh, NodeList), lists.FieldsCommand(sh, NodeList), lists.InfoCommand(sh, classic.NodeForm, lists.Always)}
	for _, o := range []work.Operation{
		{Verb: "add", Short: "Add a node to the cluster", ID: "OP_NODE_ADD", Target: "node_name",
			Letters: map[string]string{"secondary_ip": "s", "group": "g"}},
		{Verb: "modify", Short: "Change the settings of nodes", ID: "OP_NODE_SET_PARAMS", Told: shell.Modified("node"), Target: "node_name", Complete: "node",
			Letters: map[string]string{"master_candidate": "C", "offline": "O", "drained": "D", "force": "f", "secondary_ip": "s"}},
		{Verb: "drain", Short: "Let nodes take no new instances; those on them go on", ID: "OP_NODE_SET_PARAMS", Target: "node_name", Complete: "node",
			Fixed: map[string]any{"drained": true, "auto_promote": true}, Plain: true, Own: true},
		{Verb: "undrain", Short: "Let nodes take new instances again", ID: "OP_NODE_SET_PARAMS", Target: "node_name", Complete: "node",
			Fixed: map[string]any{"drained": false}, Plain: true, Own: true},
		{Verb: "offline", Short: "Mark nodes as away: they are asked and told nothing, and take no new instances", ID: "OP_NODE_SET_PARAMS", Target: "node_name",
			Complete: "node", Fixed: map[string]any{"offline": true, "auto_promote": true}, Plain: true, Own: true},
		{Verb: "online", Short: "Mark nodes as back", ID: "OP_NODE_SET_PARAMS", Target: "node_name", Complete: "node",
			Fixed: map[string]any{"offline": false}, Plain: true, Own: true},
		{Verb: "clear-orphans", Short: "Remove from a node what jobs have left there; strangers stay", ID: "OP_NODE_CLEAR_ORPHANS", Target: "node_name", Complete: "node",
			Rest: "uuids", Own: true, Shown: true, Beforehand: leftovers,
			Destroys: func(params map[string]any, targets []string) string {
				uuids, _ := params["uuids"].([]any)
				if len(uuids) == 0 {
					return "all that jobs have left on " + targets[0]
				}
				return shell.Counted(len(uuids), "leftover") + " on " + targets[0]
			}},
		{Verb: "remove", Short: "Remove nodes from the cluster", ID: "OP_NODE_REMOVE", Target: "node_name", Complete: "node"},
		{Verb: "evacuate", Short: "Move the instances off nodes", ID: "OP_NODE_EVACUATE", Target: "node_name", Complete: "node", Letters: map[string]string{"remote_node": "n", "iallocator": "I"}},
		{Verb: "migrate", Short: "Migrate the primary instances of nodes", ID: "OP_NODE_MIGRATE", Target: "node_name", Complete: "node", Letters: map[string]string{"target_node": "n", "iallocator": "I"}},
		{Verb: "powercycle", Short: "Switch nodes off and on", ID: "OP_NODE_POWERCYCLE", Target: "node_name", Complete: "node", Letters: map[string]string{"force": "f"}},
	} {
		if o.Noun = "node"; o.Own && sh.Classic() {
			continue
		}
		verbs = append(verbs, o.Command(sh))
	}
	if !sh.Classic() {
		verbs = append(verbs, nodeOrphans(sh), nodeToken(sh))
	}
	return sh.Group("node", "Nodes of the cluster", append(verbs, itemTags(sh, "node")...)...)
}
