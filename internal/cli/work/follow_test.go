package work

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/shelltest"
)

func TestAnswersOfUnexpectedForm(t *testing.T) {
	for _, text := range []string{`5`, `[1]`, `["x",1]`, `[true]`, `[true,1,2]`} {
		var a Answer
		if err := json.Unmarshal([]byte(text), &a); err == nil {
			t.Errorf("answer %s: %v", text, a)
		}
	}
	for _, text := range []string{`5`, `[1,2]`, `["x",[1,2],"message","m"]`} {
		var e LogEntry
		if err := json.Unmarshal([]byte(text), &e); err == nil {
			t.Errorf("log entry %s: %v", text, e)
		}
	}
	if _, err := ReadEnding(1, []json.RawMessage{json.RawMessage("null")}); err == nil {
		t.Error("too few fields")
	}
}

// rows are what a terminal shows of a text: lines that are wider go on in the
// next row, and the begin of the line is that of the last row.
func rows(text string, width int) []string {
	out := []string{""}
	for len(text) > 0 {
		last := len(out) - 1
		switch {
		case strings.HasPrefix(text, EraseLine):
			out[last], text = "", text[len(EraseLine):]
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
	s := shelltest.New("", nil)
	s.Person = true
	p := newProgress(s.Shell, 267)
	p.draw(0)
	p.note("queued")
	p.why = "paused by filter rule 870c6a1a-aa16-4b87-b310-c562540b2e06 (PAUSE; gnt:user: \"für \x1b[2J\nMüller\")"
	for i := range 30 {
		p.draw(time.Duration(i) * time.Second)
	}
	shown := rows(s.Err.String(), shell.UsualWidth)
	if len(shown) != 1 || !strings.HasPrefix(shown[0], "job 267: queued, 29s: paused by filter rule 870c6a1a-aa16-") || !strings.HasSuffix(shown[0], "…") {
		t.Errorf("got %q", shown)
	}
	p.close()
	if shown := rows(s.Err.String(), shell.UsualWidth); len(shown) != 1 || shown[0] != "" || s.Out.Len() > 0 {
		t.Errorf("it left %q, %q", shown, &s.Out)
	}
}

// Where nobody watches, what holds a job up is said once, and again when it is
// something else.
func TestProgressIsNotSilent(t *testing.T) {
	s := shelltest.New("", nil)
	p := newProgress(s.Shell, 7)
	p.begun = p.begun.Add(-time.Minute)
	p.note("queued")
	for _, why := range []string{"paused by a", "paused by a", "waits for a lock\n"} {
		p.asked, p.why = time.Now(), why
		p.tick(t.Context())
	}
	if want := "job 7 is queued: paused by a\njob 7 is queued: waits for a lock\\n\n"; s.Err.String() != want {
		t.Errorf("got %q", &s.Err)
	}
	c := &shelltest.Screen{}
	c.Shell = shell.New(shell.Env{Args: []string{"gnt-job"}, Stdout: &c.Out, Stderr: &c.Err, Getenv: func(string) string { return "" }, Now: time.Now})
	p = newProgress(c.Shell, 7)
	p.begun, p.asked = p.begun.Add(-time.Minute), time.Now()
	p.note("queued")
	p.tick(t.Context())
	p.tick(t.Context())
	if c.Err.String() != "Job 7 is waiting in queue\n" {
		t.Errorf("got %q", &c.Err)
	}
}
