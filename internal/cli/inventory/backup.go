package inventory

import (
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/spf13/cobra"
)

// ExportList is how exports are listed.
var ExportList = lists.List{What: "export", Fields: []string{"node", "export"}, NameField: "export", Short: "List the exports of instances"}

// BackupCommand returns the noun "backup".
func BackupCommand(sh *shell.Shell) *cobra.Command {
	verbs := []*cobra.Command{lists.Command(sh, ExportList), lists.FieldsCommand(sh, ExportList)}
	for _, o := range []work.Operation{
		{Verb: "export", Short: "Export instances to a node", ID: "OP_BACKUP_EXPORT", Target: "instance_name", Complete: "instance",
			Letters: map[string]string{"target_node": "n"},
			Destroys: func(params map[string]any, targets []string) string {
				if params["remove_instance"] != true {
					return ""
				}
				return shell.Several(targets, "instance")
			}},
		{Verb: "remove", Short: "Remove the exports of instances", ID: "OP_BACKUP_REMOVE", Target: "instance_name"},
	} {
		o.Noun = "backup"
		verbs = append(verbs, o.Command(sh))
	}
	return sh.Group("backup", "Exports of instances, and backups of the cluster's state", verbs...)
}
