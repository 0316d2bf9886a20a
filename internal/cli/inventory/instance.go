package inventory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/cli/classic"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/work"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/spf13/cobra"
)

// InstanceCommand returns the noun "instance".
func InstanceCommand(sh *shell.Shell) *cobra.Command {
	verbs := []*cobra.Command{
		lists.Command(sh, InstanceList), lists.FieldsCommand(sh, InstanceList), instanceInfo(sh),
	}
	if !sh.Classic() {
		verbs = append(verbs, explainPlacement(sh), instanceConsole(sh), instanceLog(sh))
	}
	for _, o := range instanceOperations {
		if o.Verb == "console" && !sh.Classic() {
			continue // instanceConsole asks, too
		}
		if slices.Contains(installing, o.Verb) && !sh.Classic() {
			own := o.Extra
			o.Extra = func(cmd *cobra.Command) func(map[string]any) error {
				first, then := imageOptions(cmd), own(cmd)
				return func(params map[string]any) error {
					if err := first(params); err != nil {
						return err
					}
					return then(params)
				}
			}
		}
		verbs = append(verbs, o.Command(sh))
	}
	verbs = append(verbs, itemTags(sh, "instance")...)
	return sh.Group("instance", "Create, run and inspect instances", verbs...)
}

// installing are the verbs that install an operating system.
var installing = []string{"add", "reinstall"}

var instanceOperations = []work.Operation{
	{
		Noun: "instance", Verb: "add", Short: "Create an instance", ID: "OP_INSTANCE_CREATE", Long: instanceAddHelp,
		Target: "instance_name", Places: []string{},
		Fixed: map[string]any{"mode": "create"},
		Letters: map[string]string{"disk_template": "t", "os_type": "o", "beparams": "B", "hypervisor": "H",
			"osparams": "O", "iallocator": "I", "group_name": "g", "instance_communication": "c"},
		Names:   map[string]string{"os": "os_type"},
		Relaxed: anyName,
		Hidden: []string{"disks", "nics", "pnode", "snode", "start", "no_install",
			"source_handshake", "source_instance_name", "source_shutdown_timeout", "source_x509_ca", "src_node",
			"src_node_uuid", "src_path", "compress"},
		Extra: instanceAddOptions, Placed: true,
	},
	{
		Noun: "instance", Verb: "remove", Short: "Stop instances and remove them with their disks", ID: "OP_INSTANCE_REMOVE",
		Target: "instance_name", Complete: "instance",
		Extra: forceConfirms,
	},
	{
		Noun: "instance", Verb: "start", Aliases: []string{"startup"}, Short: "Start instances", ID: "OP_INSTANCE_STARTUP", Selects: true,
		Target: "instance_name", Complete: "instance", Letters: map[string]string{"hvparams": "H", "beparams": "B", "force": "f"},
		Names:  map[string]string{"ignore-offline": "ignore_offline_nodes", "paused": "startup_paused"},
		Before: map[string]string{"running": "it ran before"},
	},
	{
		Noun: "instance", Verb: "stop", Aliases: []string{"shutdown"}, Short: "Stop instances", ID: "OP_INSTANCE_SHUTDOWN", Selects: true,
		Target: "instance_name", Complete: "instance", Letters: map[string]string{"force": "f"},
		Names:  map[string]string{"ignore-offline": "ignore_offline_nodes", "shutdown-timeout": "timeout"},
		Before: map[string]string{"ADMIN_down": "it was stopped before"},
	},
	{
		Noun: "instance", Verb: "reboot", Short: "Reboot instances", ID: "OP_INSTANCE_REBOOT", Selects: true,
		Target: "instance_name", Complete: "instance",
		Letters: map[string]string{"reboot_type": "t"},
		Names:   map[string]string{"type": "reboot_type"},
		Extra:   rebootOptions,
	},
	{
		Noun: "instance", Verb: "modify", Short: "Change the parameters of instances", ID: "OP_INSTANCE_SET_PARAMS", Told: shell.Modified("instance"),
		Target: "instance_name", Complete: "instance",
		Letters: map[string]string{"beparams": "B", "hvparams": "H", "osparams": "O", "os_name": "o", "disk_template": "t",
			"force": "f", "iallocator": "I", "runtime_mem": "m", "instance_communication": "c", "remote_node": "n", "ext_params": "e"},
		Names:    map[string]string{"os-type": "os_name", "node": "remote_node"},
		Switches: []string{"offline"},
		Hidden:   []string{"disks", "nics"},
		Extra:    instanceModifyOptions,
		Destroys: removedDisks,
	},
	{
		Noun: "instance", Verb: "rename", Short: "Give an instance another name", ID: "OP_INSTANCE_RENAME", Relaxed: anyName,
		Target: "instance_name", Places: []string{"new_name"}, Complete: "instance", Extra: forceConfirms,
	},
	{
		Noun: "instance", Verb: "reinstall", Short: "Install the operating system of a stopped instance anew",
		ID: "OP_INSTANCE_REINSTALL", Target: "instance_name", Complete: "instance", Selects: true, Extra: forceConfirms,
		Letters: map[string]string{"os_type": "o", "osparams": "O"},
	},
	{
		Noun: "instance", Verb: "migrate", Short: "Move running instances to their other node", ID: "OP_INSTANCE_MIGRATE",
		Target: "instance_name", Complete: "instance", Letters: map[string]string{"target_node": "n"}, Extra: forceConfirms,
	},
	{
		Noun: "instance", Verb: "failover", Short: "Stop instances and start them on their other node", ID: "OP_INSTANCE_FAILOVER",
		Target: "instance_name", Complete: "instance", Letters: map[string]string{"target_node": "n"}, Extra: forceConfirms,
	},
	{
		Noun: "instance", Verb: "move", Short: "Stop instances, copy their disks to another node, and start them there", ID: "OP_INSTANCE_MOVE",
		Target: "instance_name", Complete: "instance", Letters: map[string]string{"target_node": "n"}, Extra: forceConfirms,
	},
	{
		Noun: "instance", Verb: "grow-disk", Short: "Make a disk of an instance larger", ID: "OP_INSTANCE_GROW_DISK",
		Target: "instance_name", Places: []string{"disk", "amount"}, Complete: "instance",
	},
	{
		Noun: "instance", Verb: "replace-disks", Short: "Replace the disks of mirrored instances", ID: "OP_INSTANCE_REPLACE_DISKS",
		Target: "instance_name", Complete: "instance", Letters: map[string]string{"remote_node": "n", "iallocator": "I"},
		Names: map[string]string{"new-secondary": "remote_node"}, Extra: replacementMode,
	},
	{
		Noun: "instance", Verb: "recreate-disks", Short: "Make the disks of instances anew", ID: "OP_INSTANCE_RECREATE_DISKS",
		Target: "instance_name", Complete: "instance", Unasked: true, Letters: map[string]string{"iallocator": "I"}, Extra: recreateOptions,
	},
	{
		Noun: "instance", Verb: "activate-disks", Short: "Attach the disks of stopped instances on their nodes", ID: "OP_INSTANCE_ACTIVATE_DISKS",
		Target: "instance_name", Complete: "instance", Told: classic.Activated,
	},
	{
		Noun: "instance", Verb: "deactivate-disks", Short: "Detach the disks of stopped instances", ID: "OP_INSTANCE_DEACTIVATE_DISKS",
		Target: "instance_name", Complete: "instance", Letters: map[string]string{"force": "f"},
	},
	{
		Noun: "instance", Verb: "console", Short: "Ask how to reach the console of an instance", ID: "OP_INSTANCE_CONSOLE", Shown: true, Asks: true,
		Target: "instance_name", Complete: "instance",
	},
	{
		Noun: "instance", Verb: "batch-create", Short: "Create several instances, placed together", ID: "OP_INSTANCE_MULTI_ALLOC", File: "instances",
		Letters: map[string]string{"iallocator": "I"}, Long: batchHelp,
		Children: &work.Children{Good: "All instances created successfully.", Bad: "There were %d errors during the creation."},
	},
	{
		Noun: "instance", Verb: "change-group", Short: "Move instances to another node group", ID: "OP_INSTANCE_CHANGE_GROUP",
		Target: "instance_name", Complete: "instance", Letters: map[string]string{"iallocator": "I"}, Long: changeGroupHelp,
		Children: &work.Children{Good: "Instance 'TARGET' changed group successfully.", Bad: "There were %d errors while changing group of instance 'TARGET'."},
	},
}

const batchHelp = `Create several instances, placed together: FILE is a list of JSON objects with the
parameters of OP_INSTANCE_CREATE (drover job submit --describe OP_INSTANCE_CREATE),
or - for standard input. Either all name their nodes, or none: then placement
chooses, each counting those before it. What fits nowhere is told, and not made.
With --dry-run it is told where each would go.`

const changeGroupHelp = `Move all that instances have to nodes of another group: of those named by
--target-groups (as well --to), or of any that takes new instances. Mirrored
disks are copied to the new primary node, which takes the instance over, and to
another node of its group. With --dry-run it is told what would go where.`

// anyName takes names that no resolver knows.
var anyName = map[string]any{"name_check": false, "ip_check": false}

const instanceAddHelp = `Create an instance.

Disks and network interfaces are given one by one, as often as needed:
  --disk 0:size=10G,name=root     the number, then its parameters
  --net 0:link=br0,mac=auto       likewise; --net -1 or --no-nics for none
  -s 10G                          one disk of that size
An image (drover image list) is installed by --image NAME, with --ssh-key FILE
and --user-data FILE for its first start.
Backend parameters: -B memory=512,vcpus=2. Hypervisor parameters:
-H fake or -H kvm:kernel_path=/boot/vmlinuz.`

// forceConfirms adds --force for scripts that know it as "do not ask".
func forceConfirms(cmd *cobra.Command) func(map[string]any) error {
	if cmd.Flags().Lookup("force") == nil {
		cmd.Flags().BoolP("force", "f", false, "do not ask for confirmation")
	}
	return func(map[string]any) error {
		if force, _ := cmd.Flags().GetBool("force"); force { // the option exists
			return cmd.Flags().Set("yes", "true")
		}
		return nil
	}
}

// replacementMode makes options of where copies are made anew, as the classic tool has them. Who names a new node, or an allocator, means another node.
func replacementMode(cmd *cobra.Command) func(map[string]any) error {
	mode := modeOptions(cmd, []modeOption{
		{"on-primary", "p", "replace_on_primary", "the copies on the primary node"},
		{"on-secondary", "s", "replace_on_secondary", "the copies on the secondary node"},
		{"auto", "a", "replace_auto", "the copies that are out of date"},
	})
	return func(params map[string]any) error {
		if params["mode"] == nil && (params["remote_node"] != nil || params["remote_node_uuid"] != nil || params["iallocator"] != nil) {
			params["mode"] = "replace_new_secondary"
		}
		return mode(params)
	}
}

// rebootOptions makes a hard reboot the default.
func rebootOptions(*cobra.Command) func(map[string]any) error {
	return func(params map[string]any) error {
		if params["reboot_type"] == nil {
			params["reboot_type"] = "hard"
		}
		return nil
	}
}

// instanceAddOptions are the options of a creation that stand for parts of
// parameters.
func instanceAddOptions(cmd *cobra.Command) func(map[string]any) error {
	f := cmd.Flags()
	disks := f.StringArray("disk", nil, "a disk, N:size=SIZE,...; may be repeated")
	nets := f.StringArray("net", nil, "a network interface, N:link=LINK,...; may be repeated")
	size := f.StringP("os-size", "s", "", "size of the only disk")
	noNICs := f.Bool("no-nics", false, "no network interface")
	nodes := f.StringP("node", "n", "", "primary node, or PRIMARY:SECONDARY")
	noStart := f.Bool("no-start", false, "do not start it afterwards")
	noInstall := f.Bool("no-install", false, "do not run the installation scripts")
	return func(params map[string]any) error {
		params["start"] = !*noStart
		if *noInstall {
			params["no_install"] = true
		}
		putNodes(params, *nodes)
		splitHypervisor(params)
		if err := addDisks(params, *disks, *size); err != nil {
			return err
		}
		return addNICs(params, *nets, *noNICs)
	}
}

// recreateOptions are the options that say which disks are made anew, as what, and where.
func recreateOptions(cmd *cobra.Command) func(map[string]any) error {
	disks := cmd.Flags().StringArray("disk", nil, "a disk, N or N:size=SIZE,mode=MODE; may be repeated; all without it")
	nodes := cmd.Flags().StringP("node", "n", "", "the node that gets the disks, or PRIMARY:SECONDARY")
	return func(params map[string]any) error {
		if *nodes != "" {
			params["nodes"] = strings.Split(*nodes, ":")
		}
		var list []any
		for _, text := range *disks {
			number, rest, _ := strings.Cut(text, ":")
			n, err := strconv.Atoi(number)
			if err != nil || n < 0 {
				return shell.Usage("--disk wants the number of a disk, or N:size=SIZE, got %q", text)
			}
			changes := shell.TextsValue(rest)
			if err := sizeInMiB(changes); err != nil {
				return err
			}
			list = append(list, []any{n, changes})
		}
		if len(list) > 0 {
			params["disks"] = list
		}
		return nil
	}
}

// putNodes reads PRIMARY:SECONDARY into two parameters.
func putNodes(params map[string]any, nodes string) {
	primary, secondary, two := strings.Cut(nodes, ":")
	if primary != "" {
		params["pnode"] = primary
	}
	if two {
		params["snode"] = secondary
	}
}

// splitHypervisor reads -H kvm:kernel_path=... into two parameters.
func splitHypervisor(params map[string]any) {
	text, ok := params["hypervisor"].(string)
	name, rest, found := strings.Cut(text, ":")
	if ok && found {
		params["hypervisor"], params["hvparams"] = name, shell.TextsValue(rest)
	}
}

func addDisks(params map[string]any, disks []string, size string) error {
	if size != "" && len(disks) > 0 {
		return shell.Usage("-s and --disk exclude each other")
	}
	if size != "" {
		disks = []string{"0:size=" + size}
	}
	list, err := numbered("--disk", disks, shell.ObjectValue)
	if err != nil {
		return err
	}
	for _, disk := range list {
		if err := sizeInMiB(disk); err != nil {
			return err
		}
	}
	if len(list) == 0 && params["disk_template"] == nil {
		params["disk_template"] = "diskless"
	}
	params["disks"] = list
	return nil
}

// sizeInMiB turns a disk's size with a unit into mebibytes.
func sizeInMiB(disk any) error {
	d, ok := disk.(map[string]any)
	text, isText := d["size"].(string)
	if !ok || !isText {
		return nil
	}
	n, ok := cluster.Mebibytes(text)
	if !ok {
		return shell.Usage("the size of a disk must be a number with a unit m, g or t, got %q", text)
	}
	d["size"] = n
	return nil
}

func addNICs(params map[string]any, nets []string, none bool) error {
	if none || slices.Contains(nets, "-1") {
		params["nics"] = []any{}
		return nil
	}
	list, err := numbered("--net", nets, texts)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		list = []any{map[string]any{}}
	}
	params["nics"] = list
	return nil
}

// texts reads an object whose values are all texts: an interface has no numbers, so a VLAN .100 is no tenth.
func texts(text string) any {
	values, _ := shell.TextsValue(text).(map[string]any)
	out := make(map[string]any, len(values))
	for key, value := range values {
		out[key] = fmt.Sprint(value)
	}
	return out
}

// numbered reads N:key=value,... options into a list, ordered by the numbers,
// which count from 0 without gaps; read reads what is behind the number.
func numbered(option string, texts []string, read func(string) any) ([]any, error) {
	type entry struct {
		n     int
		value any
	}
	entries := make([]entry, len(texts))
	for i, text := range texts {
		number, rest, _ := strings.Cut(text, ":")
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return nil, shell.Usage("%s must be N:KEY=VALUE,..., got %q", option, text)
		}
		entries[i] = entry{n, read(rest)}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.n, b.n) })
	out := make([]any, len(entries))
	for i, e := range entries {
		if e.n != i {
			return nil, shell.Usage("%s: the numbers must be 0 to %d, each once", option, len(entries)-1)
		}
		out[i] = e.value
	}
	return out, nil
}

// instanceModifyOptions are changes of disks and interfaces.
func instanceModifyOptions(cmd *cobra.Command) func(map[string]any) error {
	f := cmd.Flags()
	disks := f.StringArray("disk", nil, "change a disk: N:KEY=VALUE,..., N:remove, add:size=SIZE,..., N:detach, or attach:uuid=UUID; may be repeated")
	nets := f.StringArray("net", nil, "change a network interface, likewise; may be repeated")
	online := f.Bool("online", false, "mark the instance as online again")
	return func(params map[string]any) error {
		if *online {
			params["offline"] = false
		}
		for _, list := range []struct {
			name    string
			changes []string
			read    func(string) any
		}{{"disks", *disks, shell.ObjectValue}, {"nics", *nets, texts}} {
			if len(list.changes) == 0 {
				continue
			}
			changes, err := modifications(list.changes, list.read)
			if err != nil {
				return err
			}
			params[list.name] = changes
		}
		return nil
	}
}

// removedDisks says which disks a modification removes.
func removedDisks(params map[string]any, targets []string) string {
	changes, _ := params["disks"].([]any)
	var disks []string
	for _, c := range changes {
		if change, ok := c.([]any); ok && len(change) > 1 && change[0] == "remove" {
			disks = append(disks, fmt.Sprintf("disk %v", change[1]))
		}
	}
	if len(disks) == 0 {
		return ""
	}
	return strings.ReplaceAll(strings.Join(disks, " and "), "disk -1", "the last disk") + " of " + shell.Several(targets, "instance")
}

// changeWords are what can be done to a disk or an interface.
var changeWords = []string{"add", "remove", "attach", "detach", "modify"}

// modifications reads add:..., N:add,..., N:remove and N:key=value. A comma behind a word is as good as a colon. Read reads the values.
func modifications(texts []string, read func(string) any) ([]any, error) {
	out := make([]any, len(texts))
	for i, text := range texts {
		where, rest, _ := strings.Cut(text, ":")
		if word, values, _ := strings.Cut(text, ","); slices.Contains(changeWords, word) {
			where, rest = word, values
		}
		action, params, _ := strings.Cut(rest, ",")
		values := read(rest)
		var what any = where
		if n, err := strconv.Atoi(where); err == nil {
			what = n
		}
		if slices.Contains(changeWords, action) {
			values = read(params)
		}
		if err := sizeInMiB(values); err != nil {
			return nil, err
		}
		switch {
		case slices.Contains(changeWords, action):
			out[i] = []any{action, what, values}
		case slices.Contains(changeWords, where):
			out[i] = []any{where, -1, values}
		default:
			out[i] = []any{"modify", what, values}
		}
	}
	return out, nil
}

// InstanceList is how instances are listed.
var InstanceList = lists.List{What: "instance", Fields: []string{"name", "hypervisor", "os", "pnode", "status", "oper_ram"},
	NameField: "name", Stored: true, Short: "List instances"}

func instanceInfo(sh *shell.Shell) *cobra.Command {
	var all bool
	cmd := lists.InfoCommand(sh, classic.InstanceForm,
		func(*cobra.Command) bool { return all })
	cmd.Flags().BoolVar(&all, "all", false, "all instances")
	static := cmd.Flags().BoolP("static", "s", false, "under the classic name: ask no node")
	ours := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if sh.Classic() && (len(args) > 0 || all) {
			return classicInfo(sh, cmd, args, *static)
		}
		if all && len(args) > 0 {
			return shell.Usage("give names, or --all, not both; got %q", args[0])
		}
		return ours(cmd, args)
	}
	return cmd
}

// classicInfo shows instances as the classic tool does: by a job that asks
// their nodes too.
func classicInfo(sh *shell.Shell, cmd *cobra.Command, names []string, static bool) error {
	op, err := work.NewOp(sh, "instance", "OP_INSTANCE_QUERY_DATA",
		map[string]any{"instances": shell.NonNil(names), "static": static, "use_locking": !static})
	if err != nil {
		return err
	}
	var text json.RawMessage
	if err := work.Result(cmd.Context(), sh, op, &text); err != nil {
		return err
	}
	return sh.Show(text, func() error {
		v, _ := shell.ParseJSON(string(text))
		found, _ := v.(map[string]any)
		items := []any{}
		for _, name := range slices.SortedFunc(maps.Keys(found), cluster.CompareNames) {
			one, _ := found[name].(map[string]any)
			items = append(items, classic.InstanceData(one))
		}
		return sh.Printf("%s", classic.Outline(items))
	})
}
