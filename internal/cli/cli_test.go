package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/shelltest"
)

// run carries out a command line without a controller.
func runWithout(t *testing.T, args ...string) (status int, out, err string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = Main(t.Context(), shell.Env{Args: args, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
		Getenv: func(string) string { return "" }, Now: time.Now})
	return status, stdout.String(), stderr.String()
}

// What is wrong with a filter is found before anything is sent.
func TestBadFiltersAreRefusedWithoutAController(t *testing.T) {
	deep, long := strings.Repeat("not ", 200)+"name", `name == "`+strings.Repeat("x", 10<<20)+`"`
	heavy := "name =~ m/a{1000}/i" + strings.Repeat(" or name =~ m/a{1000}/i", 100_000)
	for _, noun := range []string{"instance", "node", "job"} {
		for filter, want := range map[string]string{
			deep: "the limit is 100 levels\n  at: char 399", long: "the limit is 8388608", heavy: "expressions of the filter are too large",
			"name ~~ 1": "     ^\n", "name ==": "     ^\n", "(name": "missing here|cannot be read on|begins with", "name =~ m/[/": "unterminated character set", "not": "", "1 == name": "cannot be read on|begins with|missing here",
		} {
			for _, args := range [][]string{{"--filter", filter}, {"-F", filter}} {
				status, out, text := runWithout(t, append([]string{"drover", noun, "list"}, args...)...)
				if filter == "not" { // a field of that name
					if status != shell.ExitUnreachable {
						t.Errorf("%s: %d %s", filter, status, text)
					}
					continue
				}
				if status != shell.ExitUsage || out != "" || !matchesAny(text, want) || len(text) > 1000 {
					t.Errorf("%s list %s %.40s: status %d, %.300s", noun, args[0], filter, status, text)
				}
			}
		}
	}
}

func TestWrongCommandLines(t *testing.T) {
	for _, line := range []string{
		"job", "nosuch", "job nosuch", "job list --nosuch", "job watch", "job watch 1 2", "job watch one", "job cancel",
		"job list --output xml", "job submit", "job submit OP_NOPE", "job submit test-delay x", "instance stop", "instance add",
		"instance add a --disk x", "instance add a -s 1 --disk 0:size=1", "instance add a -s much", "instance info", "instance rename a",
		"tag list", "tag list thing x", "tag add node", "tag add cluster", "filter add {} --action PAUSE", "filter replace",
		"cluster watcher pause soon", "debug delay x", "query reason web1", "query nosuch", "nosuch --limit 3", "query nosuch --limit 3", "instance list --units q", "job wait", "job autoarchive",
	} {
		status, out, text := runWithout(t, append([]string{"drover"}, strings.Fields(line)...)...)
		if status != shell.ExitUsage {
			t.Errorf("%s: status %d, %s%s", line, status, out, text)
		}
		if line != "job" && (text == "" || out != "") {
			t.Errorf("%s: stdout %q, stderr %q", line, out, text)
		}
	}
}

// TestOptionsThatNothingReadsAreRefused: of commands that go one of two ways, each way reads options that the other does not.
func TestOptionsThatNothingReadsAreRefused(t *testing.T) {
	for line, want := range map[string]string{
		"deploy run --plan 4 --dry-run":                                      "--dry-run would have no effect",
		"deploy run --plan 4 --noop --task a":                                "--task and --noop would have no effect",
		"deploy plan prod --env f --old g":                                   "--env and --old would have no effect",
		"deploy plan prod --functions d --check-versions":                    "--functions and --check-versions would have no effect",
		"deploy plan --env f --graph g --node 1 --noop --type x":             "--node, --type and --noop would have no effect",
		"deploy plan --env f --graph g --force":                              "--force would have no effect",
		"deploy plan --env f --graph g --reason why":                         "--reason would have no effect",
		"deploy explain 1 web 1 --env nofile":                                "--env would have no effect",
		"deploy explain 1 web 1 --graph g --task t --old o":                  "--graph, --task and --old would have no effect",
		"deploy explain web 1 --env f --graph g --luxi s":                    "--luxi would have no effect",
		"job submit --describe OP_TEST_DELAY --key k --depend 1":             "--key and --depend would have no effect",
		"job submit --describe OP_TEST_DELAY --submit":                       "--submit would have no effect",
		"job submit --describe OP_TEST_DELAY duration=1":                     "takes 1 argument, got 2",
		"instance modify web1 -B memory=600 --backend-parameters memory=700": "--backend-parameters and --beparams mean the same; give one",
		"instance info web1 --all":                                           "give names, or --all",
		"node power status node1 --auto-promote=false":                       "--auto-promote would have no effect",
		"node power off node1 --yes --ignore-status --auto-promote=false":    "--auto-promote would have no effect",
	} {
		status, out, text := runWithout(t, append([]string{"drover"}, strings.Fields(line)...)...)
		if status == 0 || status == shell.ExitUnreachable || out != "" || !strings.Contains(text, want) {
			t.Errorf("%s: status %d, %s%s", line, status, out, text)
		}
	}
}

// TestWhatIsTurnedOffIsNotTakenAsGiven: --pending=false chooses no jobs.
func TestWhatIsTurnedOffIsNotTakenAsGiven(t *testing.T) {
	for _, line := range []string{"job cancel --pending=false --waiting=false", "job change-priority --priority low --queued=false --pending=false"} {
		if status, out, text := runWithout(t, append([]string{"drover"}, strings.Fields(line)...)...); status != shell.ExitUsage || !strings.Contains(text, "takes at least 1 argument") {
			t.Errorf("%s: status %d, %s%s", line, status, out, text)
		}
	}
}

func TestHelpOfEveryCommand(t *testing.T) {
	root := newRoot(shelltest.New("", nil).Shell, nil, nil)
	n := 0
	var walk func(path []string)
	walk = func(path []string) {
		status, out, text := runWithout(t, append(append([]string{"drover"}, path...), "--help")...)
		if status != 0 || text != "" || !strings.Contains(out, "Usage:") {
			t.Errorf("%v: %d %s", path, status, text)
		}
		n++
		cmd, _, err := root.Find(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cmd.Commands() {
			if c.Short == "" {
				t.Errorf("%s has no description", c.CommandPath())
			}
			walk(append(path, c.Name()))
		}
	}
	walk(nil)
	t.Logf("%d commands", n)
}

// matchesAny reports whether a text has one of several parts, with bars between; one of one part
// may have any letters.
func matchesAny(text, parts string) bool {
	return strings.Contains(text, parts) || slices.ContainsFunc(strings.Split(parts, "|"), func(part string) bool { return strings.Contains(text, part) })
}

// TestWhatRunsByItselfIsSparedTheNouns: a controller keeps no commands that nobody gives it. Help, completion and a word that is none have all.
func TestWhatRunsByItselfIsSparedTheNouns(t *testing.T) {
	for _, tc := range []struct {
		args  []string
		spare bool
	}{{[]string{"dev", "--data", "d"}, true}, {nil, false}, {[]string{"help", "dev"}, false}, {[]string{"backup", "create"}, false}, {[]string{"job", "list", "dev"}, false}} {
		dev := &cobra.Command{Use: "dev", Run: func(*cobra.Command, []string) {}}
		backup := &cobra.Command{Use: "backup"}
		backup.AddCommand(&cobra.Command{Use: "create", Run: func(*cobra.Command, []string) {}})
		root := newRoot(shelltest.New("", nil).Shell, []*cobra.Command{dev, backup}, tc.args)
		if spare := commandAt(root, "job list") == nil; spare != tc.spare || commandAt(root, "dev") == nil || commandAt(root, "backup create") == nil {
			t.Errorf("%q: spared is %v", tc.args, spare)
		}
	}
}
