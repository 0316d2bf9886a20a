package inventory

import (
	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
)

// DiskList is how disks are listed that no instance has.
var DiskList = lists.List{What: "disk", Fields: []string{"name", "uuid", "size", "template", "nodes", "former"},
	NameField: "uuid", Stored: true, Short: "List disks that no instance has"}

const diskHelp = `Disks that no instance has: they were detached from one, and keep their data.

  drover instance modify web1 --disk 1:detach
  drover disk list
  drover instance modify web2 --disk attach:uuid=UUID
  drover disk remove UUID

An instance on the nodes that keep a disk can have it, if its disks are of the
same template, or if it has none.`

// DiskCommand returns the noun "disk".
func DiskCommand(sh *shell.Shell) *cobra.Command {
	info := lists.ItemInfo(sh, DiskList)
	info.Aliases = []string{"show"}
	remove := work.Operation{Noun: "disk", Verb: "remove", Short: "Remove disks that no instance has, with their data", ID: "OP_DISK_REMOVE", Target: "disk", Complete: "disk", Own: true}
	cmd := sh.Group("disk", "Disks that no instance has", lists.Command(sh, DiskList), lists.FieldsCommand(sh, DiskList), info, remove.Command(sh))
	cmd.Long = diskHelp
	return cmd
}
