package debug

import (
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/spf13/cobra"
)

// LockList is how locks are listed.
var LockList = lists.List{What: "lock", Fields: []string{"name", "mode", "owner", "pending"}, NameField: "name",
	Short: "List the locks that are held or waited for"}

// LockCommand returns the noun "lock".
func LockCommand(sh *shell.Shell) *cobra.Command {
	return sh.Group("lock", "Locks that jobs hold or wait for", lists.Command(sh, LockList), lists.FieldsCommand(sh, LockList))
}
