package inventory

import (
	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/spf13/cobra"
)

// GroupList is how node groups are listed.
var GroupList = lists.List{What: "group", Fields: []string{"name", "node_cnt", "pinst_cnt", "alloc_policy", "ndparams"},
	NameField: "name", Stored: true, Short: "List node groups"}

// GroupCommand returns the noun "group".
func GroupCommand(sh *shell.Shell) *cobra.Command {
	verbs := []*cobra.Command{lists.Command(sh, GroupList), lists.FieldsCommand(sh, GroupList), lists.InfoCommand(sh, classic.GroupForm, lists.Always)}
	for _, o := range []work.Operation{
		{Verb: "add", Short: "Make a node group", ID: "OP_GROUP_ADD", Target: "group_name", Letters: map[string]string{"diskparams": "D"}},
		{Verb: "modify", Short: "Change the settings of node groups", ID: "OP_GROUP_SET_PARAMS", Told: shell.Modified("node group"), Target: "group_name", Complete: "group",
			Letters: map[string]string{"diskparams": "D"}},
		{Verb: "remove", Short: "Remove empty node groups", ID: "OP_GROUP_REMOVE", Target: "group_name", Complete: "group", Unasked: true},
		{Verb: "rename", Short: "Give a node group another name", ID: "OP_GROUP_RENAME", Target: "group_name",
			Places: []string{"new_name"}, Complete: "group"},
		{Verb: "assign-nodes", Short: "Put nodes into a node group", ID: "OP_GROUP_ASSIGN_NODES", Target: "group_name", Complete: "group",
			Rest: "nodes", Letters: map[string]string{"force": "f"}},
		{Verb: "evacuate", Short: "Move the instances out of node groups", ID: "OP_GROUP_EVACUATE", Target: "group_name", Complete: "group",
			Letters: map[string]string{"iallocator": "I"}, Unasked: true, Long: evacuateGroupHelp,
			Children: &work.Children{Good: "All instances evacuated successfully.", Bad: "There were %d errors during the evacuation."}},
	} {
		o.Noun = "group"
		verbs = append(verbs, o.Command(sh))
	}
	return sh.Group("group", "Groups of nodes", append(verbs, itemTags(sh, "group")...)...)
}

const evacuateGroupHelp = `Move all that is in node groups to others: those named by --target-groups (as
well --to), or any that takes new instances. Mirrored disks are copied to the
new primary node, which takes the instance over, and to another node of its
group. With --dry-run it is told what would go where, and what cannot; if
anything cannot, nothing is moved.`
