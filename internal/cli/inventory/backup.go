package inventory

import (
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/spf13/cobra"
)

// ExportList is how exports are listed.
var ExportList = lists.List{What: "export", Fields: []string{"node", "export"}, NameField: "export", Short: "List the exports of instances"}

const importHelp = `What the export says counts where no option says something else: disks, network cards, tags, the
hypervisor, parameters. The export is looked for on all nodes under the name of the instance, or the one that
--src-dir says; --src-node names the node that has it. A card has the MAC address that it had: --net 0:mac=auto
gives it another. With --identify-defaults parameters that are as the cluster's follow those from now on.`

// importOptions are the options of an import that stand for more than one parameter.
func importOptions(cmd *cobra.Command) func(map[string]any) error {
	f := cmd.Flags()
	disks := f.StringArray("disk", nil, "a disk in place of those of the export, N:size=SIZE,...; may be repeated")
	nets := f.StringArray("net", nil, "a network interface in place of those of the export, N:mac=auto,...; may be repeated")
	nodes := f.StringP("node", "n", "", "primary node, or PRIMARY:SECONDARY")
	return func(params map[string]any) error {
		putNodes(params, *nodes)
		splitHypervisor(params)
		params["disks"], params["nics"] = []any{}, []any{}
		if len(*disks) > 0 {
			if err := addDisks(params, *disks, ""); err != nil {
				return err
			}
		}
		if len(*nets) == 0 {
			return nil
		}
		return addNICs(params, *nets, false)
	}
}

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
		{Verb: "import", Short: "Make an instance of an export", ID: "OP_INSTANCE_CREATE", Target: "instance_name", Places: []string{}, Long: importHelp,
			Fixed: map[string]any{"mode": "import"}, Relaxed: map[string]any{"name_check": false, "ip_check": false, "start": false},
			Letters: map[string]string{"disk_template": "t", "beparams": "B", "hypervisor": "H", "osparams": "O", "iallocator": "I", "group_name": "g"},
			Names:   map[string]string{"src-dir": "src_path"},
			Hidden: []string{"disks", "nics", "pnode", "snode", "os_type", "no_install", "force_variant", "source_handshake", "source_instance_name",
				"source_shutdown_timeout", "source_x509_ca", "compress", "instance_communication"},
			Extra: importOptions, Placed: true},
		{Verb: "remove", Short: "Remove the exports of instances", ID: "OP_BACKUP_REMOVE", Target: "instance_name"},
	} {
		o.Noun = "backup"
		verbs = append(verbs, o.Command(sh))
	}
	return sh.Group("backup", "Exports of instances, and backups of the cluster's state", verbs...)
}
