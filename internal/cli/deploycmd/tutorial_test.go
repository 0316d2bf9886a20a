package deploycmd

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
)

// TestTutorial does what docs/deployments.md says, in an empty directory, and compares what it shows.
func TestTutorial(t *testing.T) {
	page := filepath.Join(testkit.Root(t), "docs", "deployments.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	commands := 0
	shown := regexp.MustCompile("(?s)```(yaml|console)(?: (\\S+))?\n(.*?)```").ReplaceAllStringFunc(string(text), func(block string) string {
		head, body, _ := strings.Cut(strings.TrimSuffix(block, "```"), "\n")
		if file, ok := strings.CutPrefix(head, "```yaml "); ok {
			if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
			return block
		}
		out := &strings.Builder{}
		for line := range strings.Lines(body) {
			if command, ok := strings.CutPrefix(line, "$ drover deploy "); ok {
				commands++
				out.WriteString(line + output(t, strings.Fields(command)))
			}
		}
		return head + "\n" + out.String() + "```"
	})
	if commands < 3 {
		t.Errorf("the page shows only %d commands", commands)
	}
	if shown == string(text) {
		return
	}
	if *update {
		if err := os.WriteFile(page, []byte(shown), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("the commands of docs/deployments.md print something else now; run with -update and look at the difference")
}

func output(t *testing.T, args []string) string {
	t.Helper()
	cmd := New()
	b := &bytes.Buffer{}
	cmd.SetOut(b)
	cmd.SetErr(b)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
