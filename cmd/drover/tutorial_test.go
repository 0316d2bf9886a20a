package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
)

var update = flag.Bool("update", false, "write what the commands of the tutorial print into its page")

// block is a block of the page that holds a file, or commands and what they print.
var block = regexp.MustCompile("(?s)```(yaml|console)(?: (\\S+))?\n(.*?)```")

// jobNumber is the number of a job, which depends on what else the cluster had to do, and how long it took.
var jobNumber = regexp.MustCompile(`job \d+(, took [0-9.]+(ms|s))?`)

// onCluster has the commands of a test talk to a cluster with so many nodes, from an empty directory.
func onCluster(t *testing.T, nodes int) {
	t.Helper()
	dir, stop, err := cluster(nodes)
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DROVER_LUXI", filepath.Join(dir, "luxi.sock"))
	t.Chdir(t.TempDir())
}

// TestTutorial does what docs/deployments.md says, from an empty directory to a rollout on four nodes, and compares what is
// printed.
func TestTutorial(t *testing.T) {
	page := filepath.Join(testkit.Root(t), "docs", "deployments.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	onCluster(t, 4)
	commands := 0
	shown := block.ReplaceAllStringFunc(string(text), func(block string) string {
		head, body, _ := strings.Cut(strings.TrimSuffix(block, "```"), "\n")
		if file, ok := strings.CutPrefix(head, "```yaml "); ok {
			if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
			return block
		}
		out := &strings.Builder{}
		for line := range strings.Lines(body) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				commands++
				out.WriteString(line + said(t, command))
			}
		}
		return head + "\n" + out.String() + "```"
	})
	if commands < 10 {
		t.Errorf("the page shows only %d commands", commands)
	}
	if jobNumber.ReplaceAllString(shown, "job N") == jobNumber.ReplaceAllString(string(text), "job N") {
		return
	}
	if *update {
		if err := os.WriteFile(page, []byte(shown), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("the commands of docs/deployments.md print something else now; run with -update and look at the difference:\n%s", shown)
}

// said is what a command prints for a program that reads it.
func said(t *testing.T, command string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}
