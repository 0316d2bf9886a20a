package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func instanceCommand(sh *shell) *cobra.Command {
	verbs := []*cobra.Command{
		listCommand(sh, instanceList), fieldsCommand(sh, instanceList), instanceInfo(sh),
	}
	for _, o := range instanceOperations {
		verbs = append(verbs, o.command(sh))
	}
	verbs = append(verbs, itemTags(sh, "instance")...)
	return sh.group("instance", "Create, run and inspect instances", verbs...)
}

var instanceOperations = []operation{
	{
		noun: "instance", verb: "add", short: "Create an instance", id: "OP_INSTANCE_CREATE", long: instanceAddHelp,
		target: "instance_name", places: []string{},
		fixed: map[string]any{"mode": "create"},
		letters: map[string]string{"disk_template": "t", "os_type": "o", "beparams": "B", "hypervisor": "H",
			"osparams": "O", "iallocator": "I", "group_name": "g", "instance_communication": "c"},
		names:   map[string]string{"os": "os_type"},
		relaxed: anyName,
		hidden: []string{"disks", "nics", "pnode", "snode", "start", "no_install",
			"source_handshake", "source_instance_name", "source_shutdown_timeout", "source_x509_ca", "src_node",
			"src_node_uuid", "src_path", "compress"},
		extra: instanceAddOptions,
	},
	{
		noun: "instance", verb: "remove", short: "Stop instances and remove them with their disks", id: "OP_INSTANCE_REMOVE",
		target: "instance_name", complete: "instance",
		question: "Remove %s and all their data?",
		extra:    forceConfirms,
	},
	{
		noun: "instance", verb: "start", aliases: []string{"startup"}, short: "Start instances", id: "OP_INSTANCE_STARTUP", selects: true,
		target: "instance_name", complete: "instance", letters: map[string]string{"hvparams": "H", "beparams": "B", "force": "f"},
		names: map[string]string{"ignore-offline": "ignore_offline_nodes", "paused": "startup_paused"},
	},
	{
		noun: "instance", verb: "stop", aliases: []string{"shutdown"}, short: "Stop instances", id: "OP_INSTANCE_SHUTDOWN", selects: true,
		target: "instance_name", complete: "instance", letters: map[string]string{"force": "f"},
		names: map[string]string{"ignore-offline": "ignore_offline_nodes", "shutdown-timeout": "timeout"},
	},
	{
		noun: "instance", verb: "reboot", short: "Reboot instances", id: "OP_INSTANCE_REBOOT", selects: true,
		target: "instance_name", complete: "instance",
		letters: map[string]string{"reboot_type": "t"},
		names:   map[string]string{"type": "reboot_type"},
		extra:   rebootOptions,
	},
	{
		noun: "instance", verb: "modify", short: "Change the parameters of instances", id: "OP_INSTANCE_SET_PARAMS", told: modified("instance"),
		target: "instance_name", complete: "instance",
		letters: map[string]string{"beparams": "B", "hvparams": "H", "osparams": "O", "os_name": "o", "disk_template": "t",
			"force": "f", "iallocator": "I", "runtime_mem": "m", "instance_communication": "c", "remote_node": "n", "ext_params": "e"},
		names:    map[string]string{"os-type": "os_name", "node": "remote_node"},
		switches: []string{"offline"},
		hidden:   []string{"disks", "nics"},
		extra:    instanceModifyOptions,
	},
	{
		noun: "instance", verb: "rename", short: "Give an instance another name", id: "OP_INSTANCE_RENAME", relaxed: anyName,
		target: "instance_name", places: []string{"new_name"}, complete: "instance", extra: forceConfirms,
	},
	{
		noun: "instance", verb: "reinstall", short: "Install the operating system of a stopped instance anew",
		id: "OP_INSTANCE_REINSTALL", target: "instance_name", complete: "instance", selects: true, extra: forceConfirms,
		letters:  map[string]string{"os_type": "o", "osparams": "O"},
		question: "Install %s anew? All data on their disks are lost.",
	},
	{
		noun: "instance", verb: "migrate", short: "Move running instances to their other node", id: "OP_INSTANCE_MIGRATE",
		target: "instance_name", complete: "instance", letters: map[string]string{"target_node": "n"},
		question: "Migrate %s?", extra: forceConfirms,
	},
	{
		noun: "instance", verb: "failover", short: "Stop instances and start them on their other node", id: "OP_INSTANCE_FAILOVER",
		target: "instance_name", complete: "instance", letters: map[string]string{"target_node": "n"},
		question: "Fail %s over? They stop on the way.", extra: forceConfirms,
	},
	{
		noun: "instance", verb: "move", short: "Copy a stopped instance to another node", id: "OP_INSTANCE_MOVE",
		target: "instance_name", complete: "instance", letters: map[string]string{"target_node": "n"},
		question: "Move %s?",
	},
	{
		noun: "instance", verb: "grow-disk", short: "Make a disk of an instance larger", id: "OP_INSTANCE_GROW_DISK",
		target: "instance_name", places: []string{"disk", "amount"}, complete: "instance",
	},
	{
		noun: "instance", verb: "replace-disks", short: "Replace the disks of mirrored instances", id: "OP_INSTANCE_REPLACE_DISKS",
		target: "instance_name", complete: "instance",
	},
	{
		noun: "instance", verb: "recreate-disks", short: "Make the disks of instances anew", id: "OP_INSTANCE_RECREATE_DISKS",
		target: "instance_name", complete: "instance",
	},
	{
		noun: "instance", verb: "activate-disks", short: "Attach the disks of stopped instances on their nodes", id: "OP_INSTANCE_ACTIVATE_DISKS",
		target: "instance_name", complete: "instance",
	},
	{
		noun: "instance", verb: "deactivate-disks", short: "Detach the disks of stopped instances", id: "OP_INSTANCE_DEACTIVATE_DISKS",
		target: "instance_name", complete: "instance", letters: map[string]string{"force": "f"},
	},
	{
		noun: "instance", verb: "console", short: "Ask how to reach the console of an instance", id: "OP_INSTANCE_CONSOLE", shown: true,
		target: "instance_name", complete: "instance",
	},
	{
		noun: "instance", verb: "change-group", short: "Move instances to another node group", id: "OP_INSTANCE_CHANGE_GROUP",
		target: "instance_name", complete: "instance", letters: map[string]string{"iallocator": "I"},
	},
}

// anyName takes names that no resolver knows.
var anyName = map[string]any{"name_check": false, "ip_check": false}

const instanceAddHelp = `Create an instance.

Disks and network interfaces are given one by one, as often as needed:
  --disk 0:size=10G,name=root     the number, then its parameters
  --net 0:link=br0,mac=auto       likewise; --net -1 or --no-nics for none
  -s 10G                          one disk of that size
Backend parameters: -B memory=512,vcpus=2. Hypervisor parameters:
-H fake or -H kvm:kernel_path=/boot/vmlinuz.`

// forceConfirms adds --force for scripts that know it as "do not ask".
func forceConfirms(cmd *cobra.Command) func(map[string]any) error {
	if cmd.Flags().Lookup("force") == nil {
		cmd.Flags().BoolP("force", "f", false, "do not ask for confirmation")
	}
	return func(map[string]any) error {
		if cmd.Flags().Changed("force") {
			return cmd.Flags().Set("yes", "true")
		}
		return nil
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
		primary, secondary, two := strings.Cut(*nodes, ":")
		if primary != "" {
			params["pnode"] = primary
		}
		if two {
			params["snode"] = secondary
		}
		splitHypervisor(params)
		if err := addDisks(params, *disks, *size); err != nil {
			return err
		}
		return addNICs(params, *nets, *noNICs)
	}
}

// splitHypervisor reads -H kvm:kernel_path=... into two parameters.
func splitHypervisor(params map[string]any) {
	text, ok := params["hypervisor"].(string)
	name, rest, found := strings.Cut(text, ":")
	if ok && found {
		params["hypervisor"], params["hvparams"] = name, objectValue(rest)
	}
}

func addDisks(params map[string]any, disks []string, size string) error {
	if size != "" && len(disks) > 0 {
		return usage("-s and --disk exclude each other")
	}
	if size != "" {
		disks = []string{"0:size=" + size}
	}
	list, err := numbered("--disk", disks)
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
	n, ok := mebibytes(text)
	if !ok {
		return usage("the size of a disk must be a number with a unit m, g or t, got %q", text)
	}
	d["size"] = n
	return nil
}

func addNICs(params map[string]any, nets []string, none bool) error {
	if none || slices.Contains(nets, "-1") {
		params["nics"] = []any{}
		return nil
	}
	list, err := numbered("--net", nets)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		list = []any{map[string]any{}}
	}
	for i, nic := range list {
		list[i] = allText(nic)
	}
	params["nics"] = list
	return nil
}

// allText turns the values of an object into texts: an interface has no
// numbers.
func allText(object any) any {
	values, _ := object.(map[string]any)
	out := make(map[string]any, len(values))
	for key, value := range values {
		out[key] = fmt.Sprint(value)
	}
	return out
}

// numbered reads N:key=value,... options into a list, ordered by the numbers,
// which count from 0 without gaps.
func numbered(option string, texts []string) ([]any, error) {
	type entry struct {
		n     int
		value any
	}
	entries := make([]entry, len(texts))
	for i, text := range texts {
		number, rest, _ := strings.Cut(text, ":")
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return nil, usage("%s must be N:KEY=VALUE,..., got %q", option, text)
		}
		entries[i] = entry{n, objectValue(rest)}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.n, b.n) })
	out := make([]any, len(entries))
	for i, e := range entries {
		if e.n != i {
			return nil, usage("%s: the numbers must be 0 to %d, each once", option, len(entries)-1)
		}
		out[i] = e.value
	}
	return out, nil
}

// instanceModifyOptions are changes of disks and interfaces.
func instanceModifyOptions(cmd *cobra.Command) func(map[string]any) error {
	f := cmd.Flags()
	disks := f.StringArray("disk", nil, "change a disk: N:KEY=VALUE,..., N:remove, or add:size=SIZE,...; may be repeated")
	nets := f.StringArray("net", nil, "change a network interface, likewise; may be repeated")
	online := f.Bool("online", false, "mark the instance as online again")
	return func(params map[string]any) error {
		if *online {
			params["offline"] = false
		}
		for name, texts := range map[string][]string{"disks": *disks, "nics": *nets} {
			if len(texts) == 0 {
				continue
			}
			changes, err := modifications(texts)
			if err != nil {
				return err
			}
			params[name] = changes
		}
		return nil
	}
}

// changeWords are what can be done to a disk or an interface.
var changeWords = []string{"add", "remove", "attach", "detach", "modify"}

// modifications reads add:..., N:add,..., N:remove and N:key=value.
func modifications(texts []string) ([]any, error) {
	out := make([]any, len(texts))
	for i, text := range texts {
		where, rest, _ := strings.Cut(text, ":")
		action, params, _ := strings.Cut(rest, ",")
		values := objectValue(rest)
		var what any = where
		if n, err := strconv.Atoi(where); err == nil {
			what = n
		}
		if slices.Contains(changeWords, action) {
			values = objectValue(params)
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
