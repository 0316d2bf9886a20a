package yaqlcmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/term"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"yaql": func() {
		cmd := New()
		cmd.SilenceErrors = true
		if err := cmd.Execute(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata"})
}

// screen is a terminal that somebody types into: keys are what is left to type.
type screen struct {
	keys *strings.Reader
	out  bytes.Buffer
}

func (s *screen) Read(p []byte) (int, error)  { return s.keys.Read(p) }
func (s *screen) Write(p []byte) (int, error) { return s.out.Write(p) }

// typing reads lines from a terminal without a device behind it.
type typing struct{ *term.Terminal }

func (t typing) readLine(_ context.Context, prompt string) (string, error) {
	t.SetPrompt(prompt)
	return t.ReadLine()
}

// unlimited are the settings of a command without flags.
func unlimited() *settings { return &settings{limit: -1, memory: -1, steps: -1} }

// session types keys into a console with a document and returns all that was printed.
func session(t *testing.T, keys, document string) string {
	t.Helper()
	s := &screen{keys: strings.NewReader(keys)}
	terminal := term.NewTerminal(s, firstPrompt)
	c, err := newConsole(unlimited(), terminal)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "data.json")
	if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.load(file); err != nil {
		t.Fatal(err)
	}
	terminal.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		return c.onTab(terminal, line, pos, key)
	}
	if err := c.run(t.Context(), typing{terminal}); err != nil {
		t.Fatal(err)
	}
	return s.out.String()
}

const nodes = `{"nodes": [{"name": "n1", "status": "ready", "with space": 1}], "network": {"ip": 1, "port": 2}}`

func TestTabCompletes(t *testing.T) {
	for keys, want := range map[string]string{
		"$.nod\t.len()\r":               "$.nodes.len()",
		"$.network.p\t\r":               "$.network.port",
		"$.nodes.sta\t\r":               "$.nodes.sta",
		"$.nodes[0].stat\t\r":           "$.nodes[0].status",
		"coal\tnull, 3)\r":              "coalesce(null, 3)",
		"$.nodes.toLi\t)\r":             "$.nodes.toList()",
		"1 + ab\t-2)\r":                 "1 + abs(-2)",
		":he\t\r":                       ":help",
		"$.network.ip + $.net\t.port\r": "$.network.ip + $.network.port",
	} {
		if out := session(t, keys, nodes); !strings.Contains(out, want) {
			t.Errorf("after %q there is %q, want %q", keys, out, want)
		}
	}
	if out := session(t, "$.n\t\t\r", nodes); !strings.Contains(out, "network  nodes  norm(") {
		t.Errorf("two tabs list %q", out)
	}
	if out := session(t, "$.network.\t\r", nodes); !strings.Contains(out, "ip  port\r") {
		t.Errorf("a dot lists %q", out)
	}
	if out := session(t, "$x\t.$\t\r", nodes); !strings.Contains(out, "$x.$") {
		t.Errorf("variables complete to %q", out)
	}
}

func TestCompletionOfReceivers(t *testing.T) {
	c, err := newConsole(&settings{limit: -1, memory: -1, steps: -1}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	c.data = map[string]any{"a": int64(1)}
	for _, text := range []string{"$.a.zz", "(1 + 2).zz", "$.nothing.zz", "$..zz", "zzzz", "'a'.zz"} {
		if got, _ := c.complete(text); len(got) != 0 {
			t.Errorf("%s completes to %v", text, got)
		}
	}
}

func TestLatestResult(t *testing.T) {
	if out := session(t, "20 + 1\r$_ * 2\r", "{}"); !strings.Contains(out, "42") {
		t.Errorf("the session printed %q", out)
	}
}

func TestHistoryLasts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "history")
	h := loadHistory(file)
	for i := range maxHistory + 10 {
		h.Add(strconv.Itoa(i))
		h.Add(strconv.Itoa(i))
	}
	if err := h.save(); err != nil {
		t.Fatal(err)
	}
	again := loadHistory(file)
	if again.Len() != maxHistory || again.At(0) != strconv.Itoa(maxHistory+9) || again.At(maxHistory-1) != "10" {
		t.Errorf("%d lines are left, the latest %q", again.Len(), again.At(0))
	}
	if err := (&history{}).save(); err != nil {
		t.Errorf("nothing to save gave %v", err)
	}
}

func TestHistoryFile(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "/state")
	if got := historyFile(); got != "/state/drover/yaql-history" {
		t.Errorf("the history is in %s", got)
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "/home/me")
	if got := historyFile(); got != "/home/me/.local/state/drover/yaql-history" {
		t.Errorf("the history is in %s", got)
	}
}

func TestLinesAnswerAProgramThatWaits(t *testing.T) {
	in, questions := io.Pipe()
	answers, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- unlimited().evalLines(t.Context(), in, out) }()
	buffer := make([]byte, 100)
	for i := range 3 {
		if _, err := fmt.Fprintf(questions, "{\"id\": %d, \"expr\": \"1 + %d\"}\n", i, i); err != nil {
			t.Fatal(err)
		}
		n, err := answers.Read(buffer)
		if want := fmt.Sprintf("{\"id\":%d,\"value\":%d}\n", i, i+1); err != nil || string(buffer[:n]) != want {
			t.Fatalf("got %q, %v, want %q", buffer[:n], err, want)
		}
	}
	if err := questions.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("at the end: %v", err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error)  { return 0, errBroken }
func (broken) Write([]byte) (int, error) { return 0, errBroken }

var errBroken = errors.New("broken")

func TestBrokenStreams(t *testing.T) {
	if err := unlimited().evalLines(t.Context(), broken{}, io.Discard); !errors.Is(err, errBroken) {
		t.Errorf("a broken input gave %v", err)
	}
	if err := unlimited().evalLines(t.Context(), strings.NewReader(`{"expr":"1"}`), broken{}); !errors.Is(err, errBroken) {
		t.Errorf("a broken output gave %v", err)
	}
	cmd := New()
	cmd.SetArgs([]string{"functions"})
	cmd.SetOut(broken{})
	cmd.SetErr(io.Discard)
	if err := cmd.Execute(); !errors.Is(err, errBroken) {
		t.Errorf("a broken list gave %v", err)
	}
}

// typedLines are lines that somebody types.
type typedLines []string

func (l *typedLines) readLine(context.Context, string) (string, error) {
	if len(*l) == 0 {
		return "", io.EOF
	}
	line := (*l)[0]
	*l = (*l)[1:]
	return line, nil
}

// TestBareWordsAreCommandsForWhoTypes: on a terminal the words that everybody tries
// first do what they say; in a pipe they are expressions.
func TestBareWordsAreCommandsForWhoTypes(t *testing.T) {
	for _, typed := range []bool{true, false} {
		var out bytes.Buffer
		c, err := newConsole(unlimited(), &out)
		if err != nil {
			t.Fatal(err)
		}
		c.typed = typed
		if err := c.run(t.Context(), &typedLines{"help", "$.foo", "exit", "1 + 1"}); err != nil {
			t.Fatal(err)
		}
		helped, went := strings.Contains(out.String(), ":load FILE  "), strings.Contains(out.String(), "2\n")
		if helped != typed || went == typed {
			t.Errorf("typed %v: %s", typed, &out)
		}
		if !strings.Contains(out.String(), "There are no data") {
			t.Errorf("no word about the missing data: %s", &out)
		}
	}
}
