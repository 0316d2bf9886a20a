package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/shelltest"
)

// commands are those that talk to a controller, by how they are called.
func commands(t *testing.T) map[string]*cobra.Command {
	t.Helper()
	sh := shelltest.New("", nil).Shell
	sh.Verbs = Verbs()
	found := map[string]*cobra.Command{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if !c.HasSubCommands() {
			found[shell.PathOf(c)] = c
		}
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(newRoot(sh, nil, nil))
	return found
}

// TestEveryVerbIsInTheTable: whoever adds a verb says what it does to what there is, and
// what destroys or disturbs has a question.
func TestEveryVerbIsInTheTable(t *testing.T) {
	there, rows := commands(t), map[string]int{}
	for _, v := range Verbs() {
		rows[v.Path]++
		switch cmd := there[v.Path]; {
		case cmd == nil:
			t.Errorf("the table has %q, which is no command", v.Path)
		case (v.Question == "") != (v.Does < shell.Disturbs):
			t.Errorf("%s: what destroys or disturbs asks, and nothing else does", v.Path)
		case v.Question != "" && !strings.HasPrefix(v.Example, v.Path):
			t.Errorf("%s: its example is %q", v.Path, v.Example)
		case v.Question != "" && !shell.HeedsOption(cmd, "yes"):
			t.Errorf("%s asks, and takes no --yes", v.Path)
		case v.Does == shell.Looks && shell.HeedsOption(cmd, "dry-run") && !strings.HasPrefix(v.Path, "debug") && !looksByJob[v.Path]:
			t.Errorf("%s only looks, and takes --dry-run", v.Path)
		}
	}
	for path := range there {
		if rows[path] != 1 {
			t.Errorf("%q is %d times in the table of verbs", path, rows[path])
		}
	}
}

// looksByJob are verbs that look by a job, whose options they take.
var looksByJob = map[string]bool{"cluster verify": true}
