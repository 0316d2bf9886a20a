package shell

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/luxiwire"
)

func TestPersonas(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"/usr/bin/drover", "job", "list"}, "job list"},
		{[]string{"/usr/sbin/gnt-job", "list", "1"}, "job list 1"},
		{[]string{"gnt-instance"}, "instance"},
		{[]string{"gnt-node", "__complete", "info", ""}, "__complete node info "},
	} {
		if got := strings.Join(PersonaOf(tc.args[0]).Arguments(tc.args[1:]), " "); got != tc.want {
			t.Errorf("%v: got %q", tc.args, got)
		}
	}
}

func TestExitStatuses(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		ctx  context.Context
		err  error
		want int
	}{
		{t.Context(), nil, 0},
		{t.Context(), errors.New("x"), 1},
		{t.Context(), fault.New(fault.NotFound, "x"), 1},
		{t.Context(), Usage("x"), 2},
		{t.Context(), fault.New(fault.Unavailable, "x"), 3},
		{t.Context(), notConfirmed("x"), 13},
		{t.Context(), &ExitError{Status: ExitUnknownField}, 14},
		{gone, fault.New(fault.Canceled, "x"), 130},
	} {
		if got := statusOf(tc.ctx, tc.err); got != tc.want {
			t.Errorf("%v: %d, want %d", tc.err, got, tc.want)
		}
	}
}

func TestErrorTexts(t *testing.T) {
	hinted := &fault.Error{Code: fault.Invalid, Message: "bad", Field: "ops[0].x", Hint: "do better", Cause: luxiwire.Prereq("wrong_input", "bad")}
	ours, classic := newScreen("", nil), newScreen("", nil)
	classic.Persona = PersonaOf("gnt-job")
	for _, tc := range []struct {
		sh   *screen
		err  error
		want string
	}{
		{ours, hinted, "drover: bad\n  at: ops[0].x\n  hint: do better"},
		{classic, hinted, "Failure: prerequisites not met for this operation:\nerror type: wrong_input, error details:\nbad"},
		{classic, &fault.Error{Cause: &luxiwire.ProtocolError{Text: "Failed to parse request: x"}},
			"Unhandled protocol error while talking to the master daemon:\nFailed to parse request: x"},
		{classic, &fault.Error{Cause: luxiwire.Generic("Queue drained")}, "Unhandled Ganeti error: Queue drained"},
		{classic, fault.New(fault.Unavailable, "nobody"), "gnt-job: nobody"},
		{classic, fault.New(fault.Invalid, "bad id"), "Failure: prerequisites not met for this operation:\nerror type: wrong_input, error details:\nbad id"},
		{classic, Usage("no such option: --x"), "gnt-job: error: no such option: --x"},
	} {
		if got := tc.sh.ErrorText(tc.err); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

func TestConfirmation(t *testing.T) {
	for _, tc := range []struct {
		input       string
		person, yes bool
		ok          bool
	}{
		{"", false, false, false}, {"", false, true, true}, {"y\n", true, false, true}, {"YES\n", true, false, true},
		{"n\n", true, false, false}, {"", true, false, false}, {"\n", true, false, false}, {"y\n", false, false, false},
	} {
		s := newScreen(tc.input, nil)
		s.Person, s.Flags.Yes = tc.person, tc.yes
		err := s.Confirm("Sure?")
		if (err == nil) != tc.ok || (err != nil && statusOf(t.Context(), err) != ExitNotConfirmed) {
			t.Errorf("%+v: %v", tc, err)
		}
		if s.out.Len() > 0 {
			t.Errorf("a question on standard output: %q", &s.out)
		}
	}
}

func TestWhereTheControllerIs(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "drover", "dev"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "drover", "dev", "ready.json"), []byte(`{"luxi":"/ready"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{"XDG_STATE_HOME": dir}
	s := newScreen("", environment)
	if got, err := s.Socket(); got != "/ready" || err != nil {
		t.Errorf("by the ready file: %q, %v", got, err)
	}
	environment["DROVER_READY_FILE"] = filepath.Join(dir, "missing.json")
	if got, err := s.Socket(); err == nil || statusOf(t.Context(), err) != ExitUnreachable {
		t.Errorf("by a ready file that is missing: %q, %v", got, err)
	}
	environment["DROVER_LUXI"] = "/env"
	if got, err := s.Socket(); got != "/env" || err != nil {
		t.Errorf("by the environment: %q, %v", got, err)
	}
	s.Flags.luxi = "/flag"
	if got, err := s.Socket(); got != "/flag" || err != nil {
		t.Errorf("by the option: %q, %v", got, err)
	}
}

func TestStructuredOutput(t *testing.T) {
	value := map[string]any{"b": []int{1, 2}, "a": "yes: no", "empty": []int{}, "text": "für <b>"}
	s := newScreen("", nil)
	s.Flags.Output = "yaml"
	if err := s.Show(value, nil); err != nil {
		t.Fatal(err)
	}
	if want := "a: 'yes: no'\nb:\n  - 1\n  - 2\nempty: []\ntext: für <b>\n"; s.out.String() != want {
		t.Errorf("got %q", &s.out)
	}
	s = newScreen("", nil)
	s.Flags.Output = "json"
	if err := s.Show("für <b>", nil); err != nil || s.out.String() != "\"für <b>\"\n" {
		t.Errorf("got %q, %v", &s.out, err)
	}
}

func TestInterruptionTellsWhatGoesOn(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, c := range []struct {
		awaited []job.ID
		want    string
	}{
		{nil, "interrupted\n"},
		{[]job.ID{7}, "interrupted; job 7 goes on (drover job watch 7)\n"},
		{[]job.ID{7, 9}, "interrupted; jobs 7, 9 go on (drover job wait 7 9)\n"},
	} {
		s := newScreen("", nil)
		s.Awaited = c.awaited
		if status := s.Report(ctx, ctx.Err()); status != ExitInterrupted || s.err.String() != c.want {
			t.Errorf("%d, %q, want %q", status, s.err.String(), c.want)
		}
	}
}

// What would do something to a terminal does not reach it.
func TestTerminalsAreSafe(t *testing.T) {
	var out bytes.Buffer
	s := New(Env{Args: []string{"drover"}, Stdout: &out, Stderr: &out, StdoutTerminal: true, StderrTerminal: true,
		Getenv: func(string) string { return "" }, Now: time.Now})
	if err := s.Printf("%s\n", "a\x1b]0;title\x07\x1b[2J\u009b1m\u202eb"); err != nil {
		t.Fatal(err)
	}
	s.Notef("%s\n", s.Paint(Red, "é\r"))
	if want := `a\x1b]0;title\x07\x1b[2J\x9b1m\u202eb` + "\n\x1b[31mé\\r\x1b[0m\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
}

// The hops of a command are in the order of time.
func TestHopsAreInOrder(t *testing.T) {
	s := newScreen("", nil, "job", "submit")
	ticks := int64(0)
	s.Now = func() time.Time { ticks++; return time.Unix(1000, ticks) }
	s.Flags.Reason, s.Verb = "why", "submit"
	trail := s.Trail("job")
	if len(trail) != 2 || trail[0].Reason != "why" || trail[1].Time < trail[0].Time {
		t.Errorf("got %v", trail)
	}
}
