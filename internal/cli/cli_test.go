package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue/machine"
)

// screen is a shell with its output.
type screen struct {
	*shell
	out, err bytes.Buffer
}

func newScreen(input string, environment map[string]string, args ...string) *screen {
	s := &screen{}
	s.shell = newShell(Env{
		Args: append([]string{"drover"}, args...), Stdin: strings.NewReader(input), Stdout: &s.out, Stderr: &s.err,
		Getenv: func(name string) string { return environment[name] }, Now: func() time.Time { return time.Unix(1000, 0) },
	})
	return s
}

// run carries out a command line without a controller.
func runWithout(t *testing.T, args ...string) (status int, out, err string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	status = Main(t.Context(), Env{Args: args, Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
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
			"name ~~ 1": "     ^\n", "name ==": "     ^\n", "(name": "Expected", "name =~ m/[/": "unterminated character set", "not": "", "1 == name": "Expected",
		} {
			for _, args := range [][]string{{"--filter", filter}, {"-F", filter}} {
				status, out, text := runWithout(t, append([]string{"drover", noun, "list"}, args...)...)
				if filter == "not" { // a field of that name
					if status != ExitUnreachable {
						t.Errorf("%s: %d %s", filter, status, text)
					}
					continue
				}
				if status != ExitUsage || out != "" || !strings.Contains(text, want) || len(text) > 1000 {
					t.Errorf("%s list %s %.40s: status %d, %.300s", noun, args[0], filter, status, text)
				}
			}
		}
	}
}

func TestParamValues(t *testing.T) {
	for _, tc := range []struct {
		op, param, text string
		want            any
	}{
		{"OP_TEST_DELAY", "duration", "1.5", 1.5},
		{"OP_TEST_DELAY", "duration", "2", int64(2)},
		{"OP_TEST_DELAY", "duration", "soon", "soon"},
		{"OP_TEST_DELAY", "on_master", "yes", true},
		{"OP_TEST_DELAY", "on_master", "off", false},
		{"OP_TEST_DELAY", "on_nodes", "a,b", []any{"a", "b"}},
		{"OP_TEST_DELAY", "on_nodes", "", []any{}},
		{"OP_TEST_DELAY", "on_nodes", `["a,b"]`, []any{"a,b"}},
		{"OP_INSTANCE_CREATE", "beparams", "memory=512,always_failover,no_auto_balance", map[string]any{"memory": int64(512), "always_failover": true, "auto_balance": false}},
		{"OP_INSTANCE_CREATE", "hvparams", `a=x\,y,b=`, map[string]any{"a": "x,y", "b": ""}},
		{"OP_INSTANCE_CREATE", "disks", `[{"size":1}]`, []any{map[string]any{"size": json.Number("1")}}},
		{"OP_INSTANCE_CREATE", "instance_name", "1234", "1234"},
		{"OP_INSTANCE_REBOOT", "reboot_type", "hard", "hard"},
	} {
		def, _ := opcode.Lookup(tc.op)
		p, ok := def.Param(tc.param)
		if !ok {
			t.Fatalf("%s has no %s", tc.op, tc.param)
		}
		if got := paramValue(p, tc.text); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s.%s %q: got %#v, want %#v", tc.op, tc.param, tc.text, got, tc.want)
		}
	}
}

// Every parameter of every opcode takes any text without a panic, and JSON
// that its type accepts comes through.
func TestParamValueTakesAnything(t *testing.T) {
	all := opcode.All()
	rapid.Check(t, func(t *rapid.T) {
		def := rapid.SampledFrom(all).Draw(t, "opcode")
		if len(def.Params) == 0 {
			return
		}
		p := rapid.SampledFrom(def.Params).Draw(t, "param")
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"null", "[]", "{}", "1", "-1", "true", "a=b", "1e999", "{", "[1"})).Draw(t, "text")
		paramValue(&p, text)
	})
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "10g": 10240, "1.5G": 1536, "2T": 2 << 20, "512MiB": 512, "0.1": 1, "3 GB": 3072} {
		if got, ok := mebibytes(text); !ok || got != want {
			t.Errorf("%q: got %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "g", "1x", "-1", "1e30", "NaN"} {
		if got, ok := mebibytes(text); ok {
			t.Errorf("%q: got %d", text, got)
		}
	}
}

func TestAges(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "90": 90, "2m": 120, "1h": 3600, "1d": 86400, "2w": 1209600, "all": -1} {
		if got, err := ageOf(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "h", "-1", "1y", "1.5h"} {
		if _, err := ageOf(text); statusOf(t.Context(), err) != ExitUsage {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestDevices(t *testing.T) {
	got, err := numbered("--disk", []string{"1:size=2", "0:size=1g,name=a"})
	if want := []any{map[string]any{"size": "1g", "name": "a"}, map[string]any{"size": int64(2)}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range [][]string{{"x"}, {"1:size=1"}, {"0:a=b", "0:a=b"}, {"-2:a"}} {
		if _, err := numbered("--disk", bad); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	changes, err := modifications([]string{"add:size=1g", "0:remove", "1:mode=ro", "2:add,size=5", "remove"})
	want := []any{
		[]any{"add", -1, map[string]any{"size": int64(1024)}}, []any{"remove", 0, map[string]any{}},
		[]any{"modify", 1, map[string]any{"mode": "ro"}}, []any{"add", 2, map[string]any{"size": int64(5)}},
		[]any{"remove", -1, map[string]any{}},
	}
	if err != nil || !reflect.DeepEqual(changes, want) {
		t.Errorf("got %v, %v", changes, err)
	}
}

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
		if got := strings.Join(personaOf(tc.args[0]).arguments(tc.args[1:]), " "); got != tc.want {
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
		{t.Context(), usage("x"), 2},
		{t.Context(), fault.New(fault.Unavailable, "x"), 3},
		{t.Context(), notConfirmed("x"), 13},
		{t.Context(), &exitError{status: ExitUnknownField}, 14},
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
	classic.persona = personaOf("gnt-job")
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
		{classic, usage("no such option: --x"), "gnt-job: error: no such option: --x"},
	} {
		if got := tc.sh.errorText(tc.err); got != tc.want {
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
		s.person, s.flags.yes = tc.person, tc.yes
		err := s.confirm("Sure?")
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
	if got, err := s.socket(); got != "/ready" || err != nil {
		t.Errorf("by the ready file: %q, %v", got, err)
	}
	environment["DROVER_READY_FILE"] = filepath.Join(dir, "missing.json")
	if got, err := s.socket(); err == nil || statusOf(t.Context(), err) != ExitUnreachable {
		t.Errorf("by a ready file that is missing: %q, %v", got, err)
	}
	environment["DROVER_LUXI"] = "/env"
	if got, err := s.socket(); got != "/env" || err != nil {
		t.Errorf("by the environment: %q, %v", got, err)
	}
	s.flags.luxi = "/flag"
	if got, err := s.socket(); got != "/flag" || err != nil {
		t.Errorf("by the option: %q, %v", got, err)
	}
}

func TestStructuredOutput(t *testing.T) {
	value := map[string]any{"b": []int{1, 2}, "a": "yes: no", "empty": []int{}, "text": "für <b>"}
	s := newScreen("", nil)
	s.flags.output = "yaml"
	if err := s.show(value, nil); err != nil {
		t.Fatal(err)
	}
	if want := "a: 'yes: no'\nb:\n  - 1\n  - 2\nempty: []\ntext: für <b>\n"; s.out.String() != want {
		t.Errorf("got %q", &s.out)
	}
	s = newScreen("", nil)
	s.flags.output = "json"
	if err := s.show("für <b>", nil); err != nil || s.out.String() != "\"für <b>\"\n" {
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
		s.awaited = c.awaited
		if status := s.report(ctx, ctx.Err()); status != ExitInterrupted || s.err.String() != c.want {
			t.Errorf("%d, %q, want %q", status, s.err.String(), c.want)
		}
	}
}

func TestWrongCommandLines(t *testing.T) {
	for _, line := range []string{
		"job", "nosuch", "job nosuch", "job list --nosuch", "job watch", "job watch 1 2", "job watch one", "job cancel", "job cancel --kill 1",
		"job list --output xml", "job submit", "job submit OP_NOPE", "job submit test-delay x", "instance stop", "instance add",
		"instance add a --disk x", "instance add a -s 1 --disk 0:size=1", "instance add a -s much", "instance info", "instance rename a",
		"tag list", "tag list thing x", "tag add node", "tag add cluster", "filter add {} --action PAUSE", "filter replace",
		"cluster watcher pause soon", "debug delay x", "query reason web1", "query nosuch", "nosuch --limit 3", "query nosuch --limit 3", "instance list --units q", "job wait", "job autoarchive",
	} {
		status, out, text := runWithout(t, append([]string{"drover"}, strings.Fields(line)...)...)
		if status != ExitUsage {
			t.Errorf("%s: status %d, %s%s", line, status, out, text)
		}
		if line != "job" && (text == "" || out != "") {
			t.Errorf("%s: stdout %q, stderr %q", line, out, text)
		}
	}
}

func TestHelpOfEveryCommand(t *testing.T) {
	root := newRoot(newScreen("", nil).shell, nil)
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

func TestExplanationText(t *testing.T) {
	x := machine.Explanation{
		Job: 7, Status: job.Waiting, Summary: []string{"INSTANCE_STARTUP(web1)"}, Step: "in-flight",
		Why: "waits for the lock instance/web1", Change: []machine.Remedy{{Kind: job.WaitForLock, Text: "job 5 has to end"}},
		Reason: "gnt:user: rack 3", Received: 1e12, Expected: &machine.Expectation{At: 1e12 + 5e6, Text: "if all goes well"},
		Dependencies: []machine.Dependency{{Job: 3, Statuses: []string{"success"}, Status: job.Success, Met: true, Why: "job 3 ended as success"}},
		Buckets: []machine.BucketPlace{{Name: "rate limit 2 of filter rule x", Limit: 2, InFlight: []job.ID{4, 7}, Inside: true},
			{Name: "ad-hoc limit rate-limit:1:a", Limit: 1, InFlight: []job.ID{4}, Place: 3}},
		Slots: machine.Slots{Running: 2, Max: 20, Priority: -10, Ahead: 4},
		Locks: machine.Locks{Needs: []machine.Lock{{Name: "cluster/BGL", Mode: "shared"}, {Name: "instance/web1", Mode: "exclusive"}},
			Held:  []machine.Lock{{Name: "cluster/BGL", Mode: "shared"}},
			Waits: &machine.LockWait{Lock: machine.Lock{Name: "instance/web1", Mode: "exclusive"}, Holders: []lock.Owner{5}, Ahead: []lock.Owner{6}}},
	}
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	s := newScreen("", nil)
	s.now = func() time.Time { return time.Unix(1e6, 0).Add(2 * time.Second) }
	if err := s.printExplanation(text); err != nil {
		t.Fatal(err)
	}
	received, expected := moment(1e12), moment(1e12+5e6)
	want := `Job 7 INSTANCE_STARTUP(web1)
waiting: waits for the lock instance/web1
likely to go on: in about 3s (` + expected + `), if all goes well
received ` + received + `, 2s ago; priority -10
reason: gnt:user: rack 3

Filter rules
  there are none

Dependencies
  job 3 has to end as success: met, job 3 ended as success

Limits
  rate limit 2 of filter rule x: 2 of 2 in flight (jobs 4, 7); this job is one of them
  ad-hoc limit rate-limit:1:a: 1 of 1 in flight (jobs 4); this job is number 3 in the line
  slots: 2 of 20 jobs run; priority -10; 4 jobs are served before it

Locks
  cluster/BGL   shared    held
  instance/web1 exclusive waits; held by job 5, wanted before by job 6

For it to go on
  job 5 has to end
`
	if got := s.out.String(); got != want {
		t.Errorf("got:\n%s", got)
	}
	s = newScreen("", nil)
	s.colour = true
	if err := s.printExplanation(text); err != nil || !strings.Contains(s.out.String(), "\x1b[32mwaiting: ") {
		t.Errorf("no colours for a person: %q", &s.out)
	}
}

func TestAnswersOfUnexpectedForm(t *testing.T) {
	for _, text := range []string{`5`, `[1]`, `["x",1]`, `[true]`, `[true,1,2]`} {
		var a answer
		if err := json.Unmarshal([]byte(text), &a); err == nil {
			t.Errorf("answer %s: %v", text, a)
		}
	}
	for _, text := range []string{`5`, `[1,2]`, `["x",[1,2],"message","m"]`} {
		var e logEntry
		if err := json.Unmarshal([]byte(text), &e); err == nil {
			t.Errorf("log entry %s: %v", text, e)
		}
	}
	if _, err := readEnding(1, []json.RawMessage{json.RawMessage("null")}); err == nil {
		t.Error("too few fields")
	}
}

func TestVerdicts(t *testing.T) {
	for _, tc := range []struct {
		status, result, ours, classic string
	}{
		{"error", `["OpPrereqError",["no","wrong_input"]]`, "failed: no (wrong_input)",
			"Failure: prerequisites not met for this operation:\nerror type: wrong_input, error details:\nno"},
		{"error", `["OpExecError",["broken"]]`, "failed: broken", "Failure: command execution error:\nbroken"},
		{"error", `"detected death of job 1"`, "failed: detected death of job 1", "detected death of job 1"},
		{"canceled", `"Job canceled by request"`, "was canceled", "Unhandled Ganeti error: Job was canceled"},
		{"canceled", `["OpExecError",["Rejected by x"]]`, "was canceled: Rejected by x", "Unhandled Ganeti error: Job was canceled"},
	} {
		e := ending{Status: tc.status, Statuses: []string{tc.status}, Results: []json.RawMessage{json.RawMessage(tc.result)}}
		if got := e.verdict(); got != tc.ours {
			t.Errorf("%s: %q", tc.result, got)
		}
		if got := e.classicVerdict(); got != tc.classic {
			t.Errorf("%s: %q", tc.result, got)
		}
	}
	if got := fmt.Sprint(joinIDs([]job.ID{1, 2})); got != "1, 2" {
		t.Error(got)
	}
}

func TestForecastText(t *testing.T) {
	jobs := make([]jobfilter.JobForecast, 25)
	for i := range jobs {
		jobs[i] = jobfilter.JobForecast{ID: job.ID(i + 1), Status: job.Queued, Summary: []string{"TEST_DELAY(1.0)"}, Effect: jobfilter.WouldCancel, Text: "is cancelled"}
	}
	f := jobfilter.Forecast{
		Rule: &jobfilter.Rule{Action: jobfilter.Action{Kind: jobfilter.Reject}}, Place: 2, Of: 3, Jobs: jobs, Unaffected: 4,
		Headline: "it would cancel 25", Warnings: []jobfilter.Warning{{Place: "predicates[0]", Message: "odd", Hint: "mean it?"}},
		Past: jobfilter.PastForecast{Jobs: 7, From: 1e6, To: 2e6, Peak: 2, PeakAt: 15e5, Delayed: 1, TotalDelay: 1.5, MaxDelay: 1.5,
			Affected: []jobfilter.PastJob{{ID: 1, Status: job.Success, Summary: []string{"A", "B"}, Delay: 1.5}}},
	}
	s := newScreen("", nil)
	if err := s.printPreview(&f); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"it would cancel 25\nIt would be asked as number 2 of 3.\nwarning: predicates[0]: odd (mean it?)\n",
		"\n  20 queued TEST_DELAY(1.0) is cancelled\n  ... and 5 more; --output json shows all\nFor 4 other jobs in the queue nothing",
		"\nJobs that have ended: 7 jobs from 1970-01-01 00:00:01 to 1970-01-01 00:00:02\n",
		"  it would have concerned 1 of them, at most 2 at once (1970-01-01 00:00:01)\n  1 would have waited, 1.5s in all and up to 1.5s\n",
		"  1 success A,B would have waited 1.5s\n",
	} {
		if !strings.Contains(s.out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &s.out)
		}
	}
}

// rows are what a terminal shows of a text: lines that are wider go on in the
// next row, and the begin of the line is that of the last row.
func rows(text string, width int) []string {
	out := []string{""}
	for len(text) > 0 {
		last := len(out) - 1
		switch {
		case strings.HasPrefix(text, eraseLine):
			out[last], text = "", text[len(eraseLine):]
			continue
		case text[0] == '\n':
			out = append(out, "")
		case len([]rune(out[last])) == width:
			out = append(out, string([]rune(text)[:1]))
		default:
			out[last] += string([]rune(text)[:1])
		}
		text = string([]rune(text)[1:])
	}
	return out
}

// What a wait shows stays on one line of the terminal, however long the reason.
func TestProgressStaysOnOneLine(t *testing.T) {
	s := newScreen("", nil)
	s.person = true
	p := s.newProgress(267)
	p.draw(0)
	p.note("queued")
	p.why = "paused by filter rule 870c6a1a-aa16-4b87-b310-c562540b2e06 (PAUSE; gnt:user: \"für \x1b[2J\nMüller\")"
	for i := range 30 {
		p.draw(time.Duration(i) * time.Second)
	}
	shown := rows(s.err.String(), usualWidth)
	if len(shown) != 1 || !strings.HasPrefix(shown[0], "job 267: queued, 29s: paused by filter rule 870c6a1a-aa16-") || !strings.HasSuffix(shown[0], "…") {
		t.Errorf("got %q", shown)
	}
	p.close()
	if shown := rows(s.err.String(), usualWidth); len(shown) != 1 || shown[0] != "" || s.out.Len() > 0 {
		t.Errorf("it left %q, %q", shown, &s.out)
	}
}

// Where nobody watches, what holds a job up is said once, and again when it is
// something else.
func TestProgressIsNotSilent(t *testing.T) {
	s := newScreen("", nil)
	p := s.newProgress(7)
	p.begun = p.begun.Add(-time.Minute)
	p.note("queued")
	for _, why := range []string{"paused by a", "paused by a", "waits for a lock\n"} {
		p.asked, p.why = time.Now(), why
		p.tick(t.Context())
	}
	if want := "job 7 is queued: paused by a\njob 7 is queued: waits for a lock\\n\n"; s.err.String() != want {
		t.Errorf("got %q", &s.err)
	}
	c := &screen{}
	c.shell = newShell(Env{Args: []string{"gnt-job"}, Stdout: &c.out, Stderr: &c.err, Getenv: func(string) string { return "" }, Now: time.Now})
	p = c.newProgress(7)
	p.begun, p.asked = p.begun.Add(-time.Minute), time.Now()
	p.note("queued")
	p.tick(t.Context())
	p.tick(t.Context())
	if c.err.String() != "Job 7 is waiting in queue\n" {
		t.Errorf("got %q", &c.err)
	}
}

// What would do something to a terminal does not reach it.
func TestTerminalsAreSafe(t *testing.T) {
	var out bytes.Buffer
	s := newShell(Env{Args: []string{"drover"}, Stdout: &out, Stderr: &out, StdoutTerminal: true, StderrTerminal: true,
		Getenv: func(string) string { return "" }, Now: time.Now})
	if err := s.printf("%s\n", "a\x1b]0;title\x07\x1b[2J\u009b1m\u202eb"); err != nil {
		t.Fatal(err)
	}
	s.notef("%s\n", s.paint(red, "é\r"))
	if want := `a\x1b]0;title\x07\x1b[2J\x9b1m\u202eb` + "\n\x1b[31mé\\r\x1b[0m\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
}

func TestRulesFromCommandLines(t *testing.T) {
	for text, want := range map[string]string{
		"PAUSE": `"PAUSE"`, "RATE_LIMIT 3": `["RATE_LIMIT",3]`, "RATE_LIMIT  3 please": `["RATE_LIMIT",3]`, `["RATE_LIMIT", 2]`: `["RATE_LIMIT",2]`,
		"nonsense": `"nonsense"`,
	} {
		if got, err := actionJSON(text); err != nil || string(got) != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	if got, err := actionJSON("RATE_LIMIT two"); err == nil || !strings.Contains(err.Error(), "RATE_LIMIT 2") {
		t.Errorf("%s, %v", got, err)
	}
	s := newScreen(`[{"uuid": "u", "watermark": 5, "priority": 1, "reason_trail": [["a", "b", 1]], "action": "PAUSE"}, {"name": "x"}]`, nil)
	s.flags.reason = "moved"
	rules, err := s.readRules("-")
	if err != nil || len(rules) != 2 || rules[0]["uuid"] != nil || rules[1]["name"] != "x" || rules[1]["action"] != "CONTINUE" {
		t.Errorf("got %v, %v", rules, err)
	}
	if trail, ok := rules[0]["reason"].([]any); !ok || len(trail) != 2 {
		t.Errorf("the reason of the command is not in %v", rules[0]["reason"])
	}
	for _, bad := range []string{"{", "[1]", `{"colour": "red"}`, "/nonexistent"} {
		if rules, err := s.readRules(bad); err == nil {
			t.Errorf("%s: %v", bad, rules)
		}
	}
}

// The hops of a command are in the order of time.
func TestHopsAreInOrder(t *testing.T) {
	s := newScreen("", nil, "job", "submit")
	ticks := int64(0)
	s.now = func() time.Time { ticks++; return time.Unix(1000, ticks) }
	s.flags.reason, s.verb = "why", "submit"
	trail := s.trail("job")
	if len(trail) != 2 || trail[0].Reason != "why" || trail[1].Time < trail[0].Time {
		t.Errorf("got %v", trail)
	}
}
