package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shell"
)

var rootHelp = `Drover accepts jobs, decides when each may run, runs them on the nodes,
remembers why, and answers questions about all of it.

Commands talk to a controller through its LUXI socket: --luxi PATH, or the
environment variable DROVER_LUXI, or that of the ` + "`drover dev`" + ` cluster that
runs on this machine.

Begin with:
  drover job list                       what runs and what waits
  drover why JOB|INSTANCE               why it does, or does not
  drover top                            all of it, as it changes
  drover instance list                  and node, group, network, server, ...
  drover query --help                   any field of anything, and how filters are written

Exit statuses: ` + listing.Fold(shell.StatusWords(), helpWidth) + "."

// helpWidth is the width of help texts.
const helpWidth = 78

// addHelp makes help of what there is not a wrong command line, and leaves options
// without effect out of it.
func addHelp(root *cobra.Command, sh *shell.Shell) {
	if !sh.Classic() {
		addExamples(root)
	}
	write := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 && words[0] != "help" && !sh.Classic() {
			sh.Wrong = sh.NeedsCommand(cmd, words)
			return
		}
		shell.HideUnheeded(cmd)
		var page strings.Builder // the framework tells of no error of writing
		root.SetOut(&page)
		write(cmd, args)
		root.SetOut(sh.Out)
		text := page.String()
		if sh.Classic() {
			text = strings.ReplaceAll(text, "drover "+sh.Persona.Noun, sh.Persona.Name)
		}
		sh.Wrong = sh.Printf("%s", text)
	})
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND...]", Short: "Tell about a command",
		RunE: func(_ *cobra.Command, args []string) error { return sh.Help(root, args) },
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			cmd := root
			for _, word := range args {
				if cmd = commandAt(cmd, word); cmd == nil {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
			}
			var out []cobra.Completion
			for _, c := range cmd.Commands() {
				out = append(out, cobra.CompletionWithDesc(c.Name(), c.Short))
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		},
	})
}

// examples are command lines for the help of everyday commands, by how they are called.
var examples = map[string][]string{
	"job list":            {"drover job list --running", `drover job list --filter 'reason =~ m/OPS-77/' --sort -id --limit 20`, "drover job list --pending --watch"},
	"job submit":          {"drover job submit instance-reboot instance_name=web1 --reason 'new kernel'", "drover job submit --describe OP_INSTANCE_CREATE", "drover job submit jobs.json"},
	"job watch":           {"drover job watch 4711"},
	"job wait":            {"drover job wait 4711 4712"},
	"job explain":         {"drover job explain 4711"},
	"job info":            {"drover job info 4711", "drover job info 4711 --output json"},
	"job cancel":          {"drover job cancel 4711", `drover job cancel --filter 'reason =~ m/OPS-77/' --dry-run`},
	"job change-priority": {"drover job change-priority --priority high 4711"},
	"job archive":         {"drover job archive 4711"},
	"job autoarchive":     {"drover job autoarchive 30d"},
	"job drain":           {"drover job drain --reason 'new disks, ask Ada'"},
	"filter list":         {"drover filter list", "drover filter list --output json"},
	"filter add":          {`drover filter add --action PAUSE --when 'opcode: OP_ID == "OP_INSTANCE_CREATE"' --reason 'storage maintenance' --until 2h`, `drover filter add --action 'RATE_LIMIT 2' --when 'opcode: OP_ID =~ m/^OP_INSTANCE_(STARTUP|REBOOT)$/'`, "drover filter add rules.json"},
	"filter test":         {`drover filter test --action REJECT --when 'jobid: id > "watermark"' --days 7`, "drover filter test rules.json --replace lab"},
	"filter modify":       {"drover filter modify lab --until 2h"},
	"filter delete":       {"drover filter delete lab"},
	"instance list":       {"drover instance list", `drover instance list -o name,status,be/memory --filter '"db" in tags'`, "drover instance list --group-by pnode --figures 'count,sum(be/memory)'"},
	"instance add":        {"drover instance add web1 --os noop", "drover instance add db1 --os noop --disk-template file --disk 0:size=10G -B memory=4G,vcpus=2 --node node1"},
	"instance info":       {"drover instance info web1"},

	"instance explain-placement": {"drover instance explain-placement web1", "drover instance explain-placement --job 4711"},

	"instance modify":   {"drover instance modify web1 -B memory=1G", "drover instance modify web1 --disk add:size=10G", "drover instance modify web1 --offline=yes"},
	"instance remove":   {"drover instance remove web1", `drover instance remove --filter '"scratch" in tags' --dry-run`},
	"instance start":    {"drover instance start web1 web2", `drover instance start --filter 'pnode == "node1"' --yes`},
	"instance stop":     {"drover instance stop web1", "drover instance stop 'web*'"},
	"instance reboot":   {"drover instance reboot web1"},
	"instance add-tags": {"drover instance add-tags web1 rack:3", "drover instance add-tags --all backup:nightly --yes"},
	"node list":         {"drover node list", "drover node list -o name,mfree,pinst_cnt --sort -mfree"},
	"node modify":       {"drover node modify node3 --master-candidate yes"},
	"server list":       {"drover server list", "drover server list --tags env:prod"},
	"server create":     {"drover server create shop --flavor 4 --image noop --tag env:prod --wait"},
	"server tag add":    {"drover server tag add shop env:prod"},
	"query event":       {`drover query event --filter 'what =~ m/filter/'`},
	"query reason":      {`drover query reason --filter 'reason =~ m/OPS-77/'`},
	"query fields":      {"drover query fields instance", "drover query fields job wait_reason"},
	"query parse":       {`drover query parse 'name =~ m/^web/ and not status == "running"'`},
	"cluster verify":    {"drover cluster verify"},
	"manage user add":   {"drover manage user add bob --project lab"},
	"deploy run":        {"drover deploy run shop"},
	"deploy plan":       {"drover deploy plan shop", "drover deploy plan --env env.yaml --graph tasks.yaml --old old.yaml"},
	"deploy env put":    {"drover deploy env put shop env.yaml"},
}

// addExamples gives commands their examples.
func addExamples(root *cobra.Command) {
	for path, lines := range examples {
		if cmd := commandAt(root, path); cmd != nil {
			cmd.Example = "  " + strings.Join(lines, "\n  ")
		}
	}
}
