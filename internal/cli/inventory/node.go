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
		{Verb: "evacuate", Short: "Move the instances off nodes", ID: "OP_NODE_EVACUATE", Target: "node_name", Complete: "node", Letters: map[string]string{"remote_node": "n", "iallocator": "I"},
			Names: map[string]string{"new-secondary": "remote_node"}, Extra: evacuationMode, Long: evacuateHelp,
			Children: &work.Children{Good: "All instances evacuated successfully.", Bad: "There were %d errors during the evacuation."}},
		{Verb: "migrate", Short: "Migrate the primary instances of nodes", ID: "OP_NODE_MIGRATE", Target: "node_name", Complete: "node", Letters: map[string]string{"target_node": "n", "iallocator": "I"},
			Extra: forceConfirms, Children: &work.Children{Good: "All instances migrated successfully.", Bad: "There were %d errors during the node migration."}},
		{Verb: "powercycle", Short: "Switch nodes off and on", ID: "OP_NODE_POWERCYCLE", Target: "node_name", Complete: "node", Letters: map[string]string{"force": "f"}, Told: scheduled, Aside: true},
	} {
		if o.Noun = "node"; o.Own && sh.Classic() {
			continue
		}
		verbs = append(verbs, o.Command(sh))
	}
	verbs = append(verbs, restrictedCommand(sh), nodePower(sh), nodeHealth(sh))
	verbs = append(verbs, storageCommands(sh)...)
	if !sh.Classic() {
		verbs = append(verbs, nodeOrphans(sh), nodeToken(sh))
	}
	return sh.Group("node", "Nodes of the cluster", append(verbs, itemTags(sh, "node")...)...)
}

const evacuateHelp = `Move all instances off nodes, or those that run there (--primary-only), or the
second copies of mirrored disks (--secondary-only). Placement chooses where to,
unless --remote-node names where second copies go. With --dry-run it is told
what would go where, and what cannot leave; if anything cannot, nothing is moved.`

// evacuationMode makes options of what is to leave, as the classic tool has them; everything, if none is given.
func evacuationMode(cmd *cobra.Command) func(map[string]any) error {
	force, mode := forceConfirms(cmd), modeOptions(cmd, []modeOption{
		{"primary-only", "p", "primary-only", "what runs there alone; second copies of disks stay"},
		{"secondary-only", "s", "secondary-only", "second copies of mirrored disks alone"},
	})
	return func(params map[string]any) error {
		if err := mode(params); err != nil {
			return err
		}
		switch {
		case params["mode"] != nil:
		case params["remote_node"] != nil || params["remote_node_uuid"] != nil:
			params["mode"] = "secondary-only"
		default:
			params["mode"] = "all"
		}
		return force(params)
	}
}

// modeOption is an option without a value that stands for a value of the parameter "mode".
type modeOption struct{ name, letter, mode, help string }

// modeOptions adds such options. The function that it returns sets the parameter; two of them contradict one another.
func modeOptions(cmd *cobra.Command, options []modeOption) func(map[string]any) error {
	for _, o := range options {
		cmd.Flags().BoolP(o.name, o.letter, false, o.help)
	}
	return func(params map[string]any) error {
		for _, o := range options {
			if given, _ := cmd.Flags().GetBool(o.name); !given {
				continue
			}
			if params["mode"] != nil && params["mode"] != o.mode {
				return shell.Usage("--%s contradicts mode=%v", o.name, params["mode"])
			}
			params["mode"] = o.mode
		}
		return nil
	}
}
