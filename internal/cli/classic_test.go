package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
)

func TestClassicSpellings(t *testing.T) {
	for line, options := range map[string]string{
		"gnt-instance startup":   "force f all node tags pri-node-tags force-multiple backend-parameters H print-jobid debug d",
		"gnt-instance reinstall": "force f all os-parameters os-parameters-secret",
		"gnt-instance add":       "node-group g no-name-check no-ip-check communication c os-parameters-private",
		"gnt-instance modify":    "f runtime-memory m new-primary node n hotplug-if-possible e I",
		"gnt-instance show":      "static",
		"gnt-cluster modify":     "f nic-parameters N disk-parameters D drbd-usermode-helper user-shutdown m I C",
		"gnt-cluster verify":     "v g node-group verify-ssh-clutter",
		"gnt-node modify":        "f s node-parameters node-powered hypervisor-state",
		"gnt-group assign-nodes": "f",
		"gnt-network modify":     "m",
		"gnt-debug delay":        "r l",
	} {
		words := strings.Fields(line)
		cmd, _, err := classicRoot(words[0]).Find([]string{strings.TrimPrefix(words[0], "gnt-"), words[1]})
		if err != nil {
			t.Fatal(err)
		}
		_ = cmd.InheritedFlags() // makes the shared ones known to Lookup
		for option := range strings.FieldsSeq(options) {
			if cmd.Flags().Lookup(option) == nil && (len(option) > 1 || cmd.Flags().ShorthandLookup(option) == nil) {
				t.Errorf("%s has no option %s", line, option)
			}
		}
	}
	for in, want := range map[string]string{
		"list --output=id": "list --fields=id", "list --output id,status x": "list --fields id,status x", "list --output json": "list --output json",
		"info --output x": "info --output x", "list --output": "list --output",
	} {
		if got := strings.Join(shell.FieldsOf(strings.Fields(in)), " "); got != want {
			t.Errorf("%s is read as %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string][]string{"nosuch --help": {"nosuch"}, "list --help": {"list", "--help"}, "show --help": {"show", "--help"}, "--help x": {"--help", "x"}} {
		if got := shell.PersonaOf("gnt-job").WithoutHelp(classicRoot("gnt-job"), strings.Fields(in)); !slices.Equal(got, want) {
			t.Errorf("%s is read as %v, want %v", in, got, want)
		}
	}
}

func classicRoot(tool string) *cobra.Command {
	return newRoot(shell.New(shell.Env{Args: []string{tool}, Getenv: func(string) string { return "" }}), nil, nil)
}
