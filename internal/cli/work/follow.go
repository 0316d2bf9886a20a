package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/luxiwire"
)

// Answer is a pair [ok, value] as several requests return it.
type Answer struct {
	OK    bool
	Value any
}

// UnmarshalJSON reads the pair.
func (a *Answer) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	var pair []any
	if err := dec.Decode(&pair); err != nil || len(pair) != 2 {
		return fmt.Errorf("expected a pair [bool, value], got %s", data)
	}
	ok, isBool := pair[0].(bool)
	if !isBool {
		return fmt.Errorf("expected a pair [bool, value], got %s", data)
	}
	a.OK, a.Value = ok, pair[1]
	return nil
}

// LogEntry is a message of a running job: [serial, [seconds, microseconds],
// type, payload].
type LogEntry struct {
	Serial  int64
	At      time.Time
	Kind    string
	payload json.RawMessage
}

// UnmarshalJSON reads the list.
func (e *LogEntry) UnmarshalJSON(data []byte) error {
	var at [2]int64
	parts := []any{&e.Serial, &at, &e.Kind, &e.payload}
	if err := json.Unmarshal(data, &parts); err != nil || len(parts) != 4 {
		return errors.Join(fmt.Errorf("a log entry has an unexpected form: %s", data), err)
	}
	e.At = time.Unix(at[0], at[1]*1000)
	return nil
}

// MarshalJSON writes the entry as an object, with its time as lists show theirs.
func (e LogEntry) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Serial  int64           `json:"serial"`
		Time    string          `json:"time"`
		Type    string          `json:"type"`
		Message json.RawMessage `json:"message"`
	}{e.Serial, e.At.UTC().Format(time.RFC3339Nano), e.Kind, e.payload})
}

// Text is the message, or the payload as JSON when it is no text.
func (e LogEntry) Text() string {
	var s string
	if json.Unmarshal(e.payload, &s) == nil {
		return s
	}
	return string(e.payload)
}

// Line is the entry as people read it.
func (e LogEntry) Line() string { return e.At.Format(time.ANSIC) + " " + e.Text() }

// change is what WaitForJobChange returns: the fields, then new log entries.
type change struct {
	fields []json.RawMessage
	log    []LogEntry
}

// UnmarshalJSON reads the pair.
func (c *change) UnmarshalJSON(data []byte) error {
	parts := []any{&c.fields, &c.log}
	return json.Unmarshal(data, &parts)
}

// waitSeconds is how long one request waits for a change.
const waitSeconds = 60

// Follow waits until the job has ended and hands over its log entries as they
// come. A person who watches sees on one line what an idle job waits for; else
// that is a line by itself, whenever it is something new.
func Follow(ctx context.Context, sh *shell.Shell, id job.ID, onLog func(LogEntry) error) (Ending, error) {
	var previous []json.RawMessage
	var serial any // null until the first entry
	progress := newProgress(sh, id)
	defer progress.close()
	if !slices.Contains(sh.Awaited, id) {
		sh.Awaited = append(sh.Awaited, id)
	}
	for {
		var c change
		if err := wait(ctx, sh, &c, progress, id, EndingFields, previous, serial); err != nil {
			return Ending{}, err
		}
		progress.clear()
		for _, e := range c.log {
			serial = e.Serial
			if err := onLog(e); err != nil {
				return Ending{}, err
			}
		}
		end, err := ReadEnding(id, c.fields)
		if err != nil || job.Status(end.Status).Final() {
			sh.Awaited = slices.DeleteFunc(sh.Awaited, func(other job.ID) bool { return other == id })
			return end, err
		}
		previous = c.fields
		progress.note(end.Status)
	}
}

// wait asks for the next change. While it waits, the progress line is kept
// up to date.
func wait(ctx context.Context, sh *shell.Shell, c *change, p *progress, id job.ID, fields []string, previous []json.RawMessage, serial any) error {
	done := make(chan error, 1)
	go func() { done <- sh.Stay(ctx, "WaitForJobChange", c, id, fields, previous, serial, waitSeconds) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			p.tick(ctx)
		}
	}
}

// progress tells how long a job has been waited for, and why it does not begin:
// a person on one line that changes, others on a line for each news.
type progress struct {
	sh      *shell.Shell
	id      job.ID
	begun   time.Time
	status  string
	why     string
	said    string           // what the last line by itself told
	asked   time.Time        // when why was asked for
	client  *luxiwire.Client // the shell's own is busy waiting
	visible bool
}

func newProgress(sh *shell.Shell, id job.ID) *progress {
	return &progress{sh: sh, id: id, begun: time.Now(), status: "submitted"}
}

// note remembers the status to show.
func (p *progress) note(status string) { p.status, p.why = status, "" }

// patience is how long a job may wait before it is told why, and how often that
// is asked for again.
const patience = 2 * time.Second

// tick brings what is shown up to date, once a second.
func (p *progress) tick(ctx context.Context) {
	idle := job.Status(p.status) != job.Running && time.Since(p.begun) >= patience
	if idle && time.Since(p.asked) >= patience {
		p.asked = time.Now()
		p.explain(ctx)
	}
	switch {
	case p.sh.Person:
		p.draw(time.Since(p.begun))
	case idle:
		p.say()
	}
}

// draw shows the line, cut to the width of the terminal: a longer one would leave
// a row behind each time.
func (p *progress) draw(waited time.Duration) {
	line := fmt.Sprintf("job %d: %s, %s", p.id, p.status, waited.Round(time.Second))
	if p.why != "" {
		line += ": " + p.why
	}
	p.sh.Rawf("%s%s", EraseLine, listing.Cut(listing.Printable(line), p.sh.Line-1))
	p.visible = true
}

// EraseLine goes to the begin of the line and empties it.
const EraseLine = "\r\x1b[K"

// classicWaits are what the classic tools say once of a job that does not begin.
var classicWaits = map[job.Status]string{
	job.Queued: "Job %d is waiting in queue\n", job.Waiting: "Job %d is trying to acquire all necessary locks\n",
}

// say tells what is new on a line by itself.
func (p *progress) say() {
	text := fmt.Sprintf("job %d is %s", p.id, p.status)
	if p.why != "" {
		text += ": " + p.why
	}
	text = listing.Printable(text) + "\n"
	if p.sh.Classic() {
		if text = classicWaits[job.Status(p.status)]; text != "" {
			text = fmt.Sprintf(text, p.id)
		}
	}
	if text != p.said {
		p.sh.Notef("%s", text)
		p.said = text
	}
}

// explain asks why the job waits. Without an answer there is just less to show.
func (p *progress) explain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if p.client == nil {
		path, err := p.sh.Socket()
		if err != nil {
			return
		}
		if p.client, err = luxiwire.Dial(ctx, path); err != nil {
			p.client = nil
			return
		}
	}
	var x struct {
		Why string `json:"why"`
	}
	if p.client.Call(ctx, "ExplainJob", []any{p.id}, &x) == nil {
		p.why = x.Why
	}
}

func (p *progress) clear() {
	if p.visible {
		p.sh.Rawf("%s", EraseLine)
		p.visible = false
	}
}

// close ends the line.
func (p *progress) close() {
	p.clear()
	if p.client != nil {
		_ = p.client.Close() // it only asked
	}
}
