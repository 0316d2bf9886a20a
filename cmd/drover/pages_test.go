package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cli"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/testkit"
)

// operatorPages are those whose commands somebody types in a hurry.
var operatorPages = []string{"runbook.md", "operations.md", "messages.md", "metrics.md", "nodes.md", "machines.md", "placement.md", "reliability.md", "waiting.md", "security.md", "limits.md", "power.md"}

var (
	codeSpan = regexp.MustCompile("`(drover [^`]+)`")
	codeLine = regexp.MustCompile(`(?m)^    (drover .*)$`)
	// behind is what may follow a command in a line: what is done with what it prints, and what is said of it.
	behind   = regexp.MustCompile(`\s+(\||>|<|#|&&|&|;).*`)
	which    = regexp.MustCompile(`^drover --luxi \S+ `)
	usage    = regexp.MustCompile(`(?m)^Usage:\n  (drover.*)$`)
	argument = regexp.MustCompile(`^(\[|[A-Z]|-)`)
)

// commandsOf are the commands of this program that a page has, each once.
func commandsOf(t *testing.T, page string) (lines, spans []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	found := func(by *regexp.Regexp) (all []string) {
		for _, m := range by.FindAllStringSubmatch(string(text), -1) {
			command := strings.TrimSpace(which.ReplaceAllString(behind.ReplaceAllString(m[1], ""), "drover "))
			if !slices.Contains(all, command) {
				all = append(all, command)
			}
		}
		return all
	}
	return found(codeLine), found(codeSpan)
}

// TestPagesSayWhatThereIs: each command of the operators' pages is one that there is, with options that there are. None is carried out.
func TestPagesSayWhatThereIs(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, page := range operatorPages {
		lines, spans := commandsOf(t, page)
		for _, command := range slices.Concat(lines, spans) {
			if seen[command] || strings.ContainsAny(command, "…|") || strings.Contains(command, "...") {
				continue // a form, of which there are several
			}
			seen[command] = true
			thereIs(t, page, command)
		}
	}
	if len(seen) < 80 {
		t.Errorf("only %d commands were found", len(seen))
	}
}

// thereIs holds that a command is one that there is, with options that there are. It is not carried out.
func thereIs(t *testing.T, page, command string) {
	t.Helper()
	out, status := helpOf(t, command)
	if status != shell.ExitOK {
		t.Errorf("%s: %s: it ends with %d\n%s", page, command, status, out)
		return
	}
	m := usage.FindStringSubmatch(out)
	if m == nil {
		t.Errorf("%s: %s: its help has no usage:\n%s", page, command, out)
		return
	}
	if path := pathIn(m[1]); path+" " != command[:min(len(path)+1, len(command))] && path != command || strings.Contains(m[1], "[command]") && !named(command, path) {
		t.Errorf("%s: %s: there is only %s", page, command, m[1])
	}
}

// TestTheWebPageSaysWhatThereIs: each command that the web page shows beside what it shows or does is one that there is. What the page puts into one is a number here, or an item.
func TestTheWebPageSaysWhatThereIs(t *testing.T) {
	t.Parallel()
	n := 0
	for _, dir := range []string{"web", "internal/api/web"} {
		err := filepath.WalkDir(filepath.Join(testkit.Root(t), dir), func(path string, _ os.DirEntry, err error) error {
			if ext := filepath.Ext(path); err != nil || ext != ".tsx" && ext != ".ts" && ext != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, command := range commandsIn(string(text)) {
				thereIs(t, filepath.Base(path), command)
				n++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if n < 70 {
		t.Errorf("only %d commands were found", n)
	}
}

var (
	// literal is where a text begins that is a command; a hint goes on behind one with words.
	literal  = regexp.MustCompile("(WithHint\\()?([\"`'])(drover )")
	putIn    = regexp.MustCompile(`\$\w+|%[a-z]`)
	operator = regexp.MustCompile(`^\s*\+`)
)

// commandsIn are the commands in the source of the page, or of what serves it.
func commandsIn(source string) (all []string) {
	for _, at := range literal.FindAllStringSubmatchIndex(source, -1) {
		if at[2] >= 0 {
			continue
		}
		command, rest := quotedIn(source[at[6]:], source[at[4]])
		if operator.MatchString(rest) && strings.HasSuffix(command, " ") {
			command += "job" // a word of its own, which may be that of an item
		}
		all = append(all, strings.TrimSpace(putIn.ReplaceAllString(command, "1")))
	}
	return all
}

// quotedIn is a text up to the quote that ends it, with 1 for what is put in, and what comes behind.
func quotedIn(source string, quote byte) (text, rest string) {
	var out strings.Builder
	for i := 0; i < len(source); i++ {
		switch {
		case source[i] == '\\' && quote != '`':
			i++
			out.WriteByte(source[i])
		case quote == '`' && strings.HasPrefix(source[i:], "${"):
			out.WriteByte('1')
			for depth := 0; i < len(source); i++ {
				if source[i] == '{' {
					depth++
				} else if source[i] == '}' {
					if depth--; depth == 0 {
						break
					}
				}
			}
		case source[i] == quote:
			return out.String(), source[i+1:]
		default:
			out.WriteByte(source[i])
		}
	}
	return out.String(), ""
}

// helpOf is what the program says when it is asked for help on a command, with all that the command has.
func helpOf(t *testing.T, command string) (text string, status int) {
	t.Helper()
	var out bytes.Buffer
	status = cli.Main(t.Context(), cli.Env{
		Args: append(wordsOf(command), "--help"), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }, Now: time.Now,
		Extra: extraCommands(),
	})
	return out.String(), status
}

// wordsOf are the words of a command as a shell takes it apart, without what it would put in.
func wordsOf(command string) (words []string) {
	var word strings.Builder
	begun, quote := false, rune(0)
	for _, r := range command {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && r == ' ':
			if begun {
				words = append(words, word.String())
			}
			begun = false
			word.Reset()
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}

// pathIn is the command itself in how it is used: without options and arguments.
func pathIn(usage string) string {
	words := strings.Fields(usage)
	if i := slices.IndexFunc(words, argument.MatchString); i >= 0 {
		words = words[:i]
	}
	return strings.Join(words, " ")
}

// named tells whether a command is no more than the name of a noun, or of the program.
func named(command, path string) bool {
	rest := strings.TrimSpace(strings.TrimPrefix(command, path))
	return rest == "" || strings.HasPrefix(rest, "-")
}

// ofOthers are commands of the runbook that are about a database, which has a test of its own (TestADatabaseThatWasPutBackGoesOnLater).
const ofOthers = "drover store advance "

// TestRunbook carries out what the runbook has one look with, on a cluster.
func TestRunbook(t *testing.T) {
	lines, _ := commandsOf(t, "runbook.md")
	onCluster(t, 3)
	said(t, "drover debug delay 0.001")
	for _, command := range lines {
		if strings.HasPrefix(command, ofOthers) {
			continue
		}
		// The number of a job stands for one that there is.
		out, err := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(command, " 4711", " 1")).CombinedOutput()
		exit, failed := errors.AsType[*exec.ExitError](err)
		if err != nil && (!failed || exit.ExitCode() != shell.ExitNotWell) {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	if len(lines) < 8 {
		t.Errorf("the runbook has only %q", lines)
	}
}
