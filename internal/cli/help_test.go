package cli

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/shelltest"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/qlang"
)

// TestStatusesAreDocumented: the table of docs/cli.md is that of the program.
func TestStatusesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "| status | meaning |\n|---|---|\n"
	for _, s := range shell.Statuses {
		want += fmt.Sprintf("| %d | %s |\n", s.Code, s.Text)
	}
	if !strings.Contains(string(page), "\n"+want+"\n") {
		t.Errorf("docs/cli.md lacks this table of exit statuses:\n%s", want)
	}
	_, help, _ := runWithout(t, "drover", "--help")
	if flat := strings.Join(strings.Fields(help), " "); !strings.Contains(flat, "Exit statuses: "+shell.StatusWords()+".") {
		t.Errorf("the help has other statuses:\n%s", help)
	}
}

// TestWordsOfOthers: whoever knows another tool is led to the verb, and never from a
// word for looking to a verb that changes something.
func TestWordsOfOthers(t *testing.T) {
	for line, want := range map[string]string{
		"instance show x": "instance info", "instance stat x": "instance info", "instance create x": "instance add", "instance delete x": "instance remove",
		"instance lst": "instance list", "instance strat": "instance start", "job show 1": "job info", "job logs 1": "job watch", "job kill 1": "job cancel",
		"filter create": "filter add", "filter show": "filter info", "filter rm": "filter delete", "server rm x": "server delete", "server list-tags": "",
		"ps": "job list", "jobs": "job", "vm list": "instance", "get instances": "instance list", "describe node n": "node info", "delete vm x": "instance remove",
		"get nothing": "", "frobnicate": "", "job help lst": "job list", "help jbo": "job", "node nosuch --help": "", "logs 5": "job watch",
	} {
		status, out, text := runWithout(t, append([]string{"drover"}, strings.Fields(line)...)...)
		hint := ""
		if want != "" {
			hint = "did you mean drover " + want + "?"
		}
		if status != shell.ExitUsage || out != "" || !strings.Contains(text, hint) || want == "" && strings.Contains(text, "did you mean") {
			t.Errorf("%s: status %d, %s%s", line, status, out, text)
		}
	}
}

// TestSuggestionsForLookingOnlyLook holds that of every word for looking, below every noun.
func TestSuggestionsForLookingOnlyLook(t *testing.T) {
	does := map[string]shell.Effect{}
	for _, v := range Verbs() {
		does[v.Path] = v.Does
	}
	nouns := map[string]bool{}
	for path := range does {
		if i := strings.LastIndex(path, " "); i > 0 {
			nouns[path[:i]] = true
		}
	}
	for noun := range nouns {
		for _, word := range []string{"show", "get", "describe", "stat", "stats", "status", "ls", "log", "logs", "tail", "view", "cat", "check", "find"} {
			_, _, text := runWithout(t, append(append([]string{"drover"}, strings.Fields(noun)...), word)...)
			_, meant, found := strings.Cut(text, "did you mean drover ")
			meant, _, _ = strings.Cut(meant, "?")
			if found && does[meant] != shell.Looks {
				t.Errorf("drover %s %s suggests %s", noun, word, meant)
			}
		}
	}
}

// TestSlipsOfOptions: options have nearest names too, and truth values stand behind =.
func TestSlipsOfOptions(t *testing.T) {
	for line, want := range map[string]string{
		"job list --fliter x": "did you mean --filter?", "job list --json": "did you mean --output json?", "instance list -w": "did you mean --watch?",
		"instance list --sort-by name": "did you mean --sort?", "instance remove x --frobnicate-it": "--help lists them", "node modify n --offlin yes": "did you mean --offline?",
		"instance add x --wait-for-sync no": "write --wait-for-sync=no", "job list --archived yes": "write --archived=yes", "query fields job --stael": "--help lists them",
		"server create x": "--flavor and --image must be given", "instance list -o json": "did you mean --output json?", "filter add --priorty 1": "did you mean --priority?",
		"deploy plan": "a plan needs", "deploy plan --env x.yaml": "a plan needs", "deploy explain 2 lb-config": "give a deployment, a task and a node",
		"job change-priority 4": "give --priority", "deploy plan --grahp x": "did you mean --graph?",
		"job watch": "takes 1 argument, got 0", "job wait": "takes at least 1 argument, got 0", "cluster info x": "takes no argument, got 1", "instance rename a": "takes 2 arguments, got 1",
	} {
		status, out, text := runWithout(t, append([]string{"drover"}, strings.Fields(line)...)...)
		if status != shell.ExitUsage || out != "" || !strings.Contains(text, want) {
			t.Errorf("%s: status %d, %s%s", line, status, out, text)
		}
	}
}

// TestExamplesAreCommandLines: an example of the help is a command line that is taken,
// of the command whose help it is in.
func TestExamplesAreCommandLines(t *testing.T) {
	for path, lines := range examples {
		for _, line := range lines {
			root := newRoot(shelltest.New("", nil).Shell, nil, nil)
			words := shell.Words(line)
			cmd, rest, err := root.Find(words[1:])
			if err != nil || shell.PathOf(cmd) != path || words[0] != "drover" {
				t.Errorf("%s: %s is %v, %v", path, line, cmd, err)
				continue
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s: %v", line, err)
				continue
			}
			if args := cmd.Flags().Args(); cmd.Args != nil && cmd.Args(cmd, args) != nil {
				t.Errorf("%s: %v", line, cmd.Args(cmd, args))
			}
			if f := cmd.Flags().Lookup("filter"); f != nil && f.Changed {
				if _, err := qlang.ParseText(f.Value.String()); err != nil {
					t.Errorf("%s: %v", line, err)
				}
			}
			if f := cmd.Flags().Lookup("when"); f != nil && f.Changed {
				if _, err := jobfilter.ParseWhen(f.Value.String()); err != nil {
					t.Errorf("%s: %v", line, err)
				}
			}
		}
	}
}

// TestHelpThatCannotBeWrittenFails: a full device, as with any other output.
func TestHelpThatCannotBeWrittenFails(t *testing.T) {
	for _, args := range [][]string{{"drover", "--help"}, {"drover", "instance", "list", "--help"}, {"gnt-job", "list", "--help"}} {
		var text bytes.Buffer
		status := Main(t.Context(), shell.Env{Args: args, Stdin: strings.NewReader(""), Stdout: full{}, Stderr: &text,
			Getenv: func(string) string { return "" }, Now: time.Now})
		if status != shell.ExitFailed || !strings.Contains(text.String(), "no space left") {
			t.Errorf("%v: %d, %s", args, status, &text)
		}
	}
}

// full is a device that is full.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
