package luxi

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
)

// burnins are what Ganeti's burnin tries with instances of a disk template: its phases, as it tells them. Left out is of diskless instances reinstallation,
// which Ganeti refuses. It detaches disks from what runs, which a hypervisor has to allow: those instances are of the kind kvm, which is pretended.
var burnins = map[string]struct {
	options, phases []string
}{
	"drbd": {withDisks, []string{"Creating instances", "Stopping and starting instances", "Replacing disks on the same nodes", "Changing the secondary node", "Growing disks",
		"Failing over instances", "Migrating instances", "Exporting and re-importing instances", "Reinstalling instances", "Rebooting instances",
		"Renaming the instances to their own name", "Checking confd results", "Adding and removing NICs", "Activating/deactivating disks", "Adding and detaching disks", "Attaching and removing disks", "Removing instances"}},
	"plain": {withDisks, []string{"Creating instances", "Stopping and starting instances", "Growing disks", "Skipping migration (disk template plain does not support it)",
		"Moving instances", "Exporting and re-importing instances", "Reinstalling instances", "Rebooting instances", "Renaming the instances to their own name", "Checking confd results",
		"Adding and removing NICs", "Activating/deactivating disks", "Adding and detaching disks", "Attaching and removing disks", "Removing instances"}},
	"file": {withDisks, []string{"Creating instances", "Stopping and starting instances", "Growing disks", "Skipping migration (disk template file does not support it)",
		"Moving instances", "Reinstalling instances", "Rebooting instances", "Renaming the instances to their own name", "Checking confd results", "Adding and removing NICs",
		"Activating/deactivating disks", "Adding and detaching disks", "Attaching and removing disks", "Removing instances"}},
	"diskless": {[]string{"--no-reinstall"}, []string{"Creating instances", "Stopping and starting instances", "Failing over instances", "Migrating instances", "Rebooting instances",
		"Renaming the instances to their own name", "Checking confd results", "Adding and removing NICs", "Activating/deactivating disks", "Removing instances"}},
}

var withDisks = []string{"--disk-size", "64m", "--disk-growth", "32m"}

// TestBurnin runs Ganeti's own burnin, as it is, on a cluster of three nodes.
func TestBurnin(t *testing.T) {
	root := stockRoot(t)
	env := startForStock(t, root, confdAddress(t), "--nodes", "3")
	enable := exec.CommandContext(t.Context(), testkit.Python, filepath.Join(root, "usr/share/ganeti/3.0/gnt-cluster"), "modify", "--enabled-hypervisors", "fake,kvm")
	enable.Env = env
	if out, err := enable.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for template, want := range burnins {
		t.Run(template, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			args := slices.Concat([]string{filepath.Join(root, "usr/share/ganeti/3.0/burnin"), "-p", "-o", "noop+default", "-t", template, "-H", "kvm", "--mem-size", "128",
				"--no-name-check", "--no-ip-check"}, want.options, []string{template + "-1", template + "-2"})
			cmd := exec.CommandContext(ctx, testkit.Python, args...)
			cmd.Env = env
			out, err := cmd.CombinedOutput()
			var phases []string
			for line := range strings.Lines(string(out)) {
				if phase, is := strings.CutPrefix(line, "- "); is && phase != "Testing global parameters\n" {
					phases = append(phases, strings.TrimSpace(phase))
				}
			}
			if err != nil || !slices.Equal(phases, want.phases) {
				t.Errorf("%v, through %q\n%s", err, phases, out)
			}
			t.Logf("%d phases", len(phases))
		})
	}
}
