package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/luxiwire"
)

// answer is a pair [ok, value] as several requests return it.
type answer struct {
	ok    bool
	value any
}

// UnmarshalJSON reads the pair.
func (a *answer) UnmarshalJSON(data []byte) error {
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
	a.ok, a.value = ok, pair[1]
	return nil
}

// logEntry is a message of a running job: [serial, [seconds, microseconds],
// type, payload].
type logEntry struct {
	serial  int64
	at      time.Time
	kind    string
	payload json.RawMessage
}

// UnmarshalJSON reads the list.
func (e *logEntry) UnmarshalJSON(data []byte) error {
	var at [2]int64
	parts := []any{&e.serial, &at, &e.kind, &e.payload}
	if err := json.Unmarshal(data, &parts); err != nil || len(parts) != 4 {
		return errors.Join(fmt.Errorf("a log entry has an unexpected form: %s", data), err)
	}
	e.at = time.Unix(at[0], at[1]*1000)
	return nil
}

// text is the message, or the payload as JSON when it is no text.
func (e logEntry) text() string {
	var s string
	if json.Unmarshal(e.payload, &s) == nil {
		return s
	}
	return string(e.payload)
}

// line is the entry as people read it.
func (e logEntry) line() string { return e.at.Format(time.ANSIC) + " " + e.text() }

// ending is how a job ended.
type ending struct {
	ID       job.ID
	Status   string
	Statuses []string
	Results  []json.RawMessage
	Took     time.Duration // from when it was received to its end
}

// change is what WaitForJobChange returns: the fields, then new log entries.
type change struct {
	fields []json.RawMessage
	log    []logEntry
}

// UnmarshalJSON reads the pair.
func (c *change) UnmarshalJSON(data []byte) error {
	parts := []any{&c.fields, &c.log}
	return json.Unmarshal(data, &parts)
}

// waitSeconds is how long one request waits for a change.
const waitSeconds = 60

// follow waits until the job has ended and hands over its log entries as they
// come. A person who watches sees on one line what an idle job waits for; else
// that is a line by itself, whenever it is something new.
func (sh *shell) follow(ctx context.Context, id job.ID, onLog func(logEntry) error) (ending, error) {
	var previous []json.RawMessage
	var serial any // null until the first entry
	progress := sh.newProgress(id)
	defer progress.close()
	if !slices.Contains(sh.awaited, id) {
		sh.awaited = append(sh.awaited, id)
	}
	for {
		var c change
		if err := sh.wait(ctx, &c, progress, id, endingFields, previous, serial); err != nil {
			return ending{}, err
		}
		progress.clear()
		for _, e := range c.log {
			serial = e.serial
			if err := onLog(e); err != nil {
				return ending{}, err
			}
		}
		end, err := readEnding(id, c.fields)
		if err != nil || job.Status(end.Status).Final() {
			sh.awaited = slices.DeleteFunc(sh.awaited, func(other job.ID) bool { return other == id })
			return end, err
		}
		previous = c.fields
		progress.note(end.Status)
	}
}

// wait asks for the next change. While it waits, the progress line is kept
// up to date.
func (sh *shell) wait(ctx context.Context, c *change, p *progress, id job.ID, fields []string, previous []json.RawMessage, serial any) error {
	done := make(chan error, 1)
	go func() { done <- sh.stay(ctx, "WaitForJobChange", c, id, fields, previous, serial, waitSeconds) }()
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

// endingFields are the fields of a job that readEnding reads, in its order; a job that begins is news, too.
var endingFields = []string{"status", "start_ts", "opstatus", "opresult", "received_ts", "end_ts"}

func readEnding(id job.ID, fields []json.RawMessage) (ending, error) {
	end := ending{ID: id}
	var received, ended *[2]int64
	into := []any{&end.Status, new(any), &end.Statuses, &end.Results, &received, &ended}
	if len(fields) != len(into) {
		return end, fault.New(fault.Internal, "the controller returned %d fields of job %d instead of %d", len(fields), id, len(into))
	}
	if string(fields[0]) == "null" {
		return end, fault.New(fault.NotFound, "Job %d not found", id)
	}
	var err error
	for i, value := range into {
		err = errors.Join(err, json.Unmarshal(fields[i], value))
	}
	if received != nil && ended != nil {
		end.Took = time.Duration(elapsed(received, ended) * float64(time.Second))
	}
	return end, err
}

// result is what the job's opcode returned; of several opcodes, the list of it.
func (e ending) result() any {
	if len(e.Results) == 1 {
		return e.Results[0]
	}
	return e.Results
}

// failure is the text of the first opcode that did not succeed, in our words
// or in the classic ones.
func (e ending) failure(classic bool) string {
	for i, status := range e.Statuses {
		if status == string(job.Success) || i >= len(e.Results) {
			continue
		}
		return resultText(e.Results[i], classic)
	}
	return ""
}

// verdict says how a job that did not succeed ended.
func (e ending) verdict() string {
	text := e.failure(false)
	if e.Status == string(job.Canceled) {
		if text == "" || text == "null" || text == "Job canceled by request" {
			return "was canceled"
		}
		return "was canceled: " + text
	}
	return "failed: " + text
}

// classicVerdict says it in the classic way.
func (e ending) classicVerdict() string {
	if e.Status == string(job.Canceled) {
		return "Unhandled Ganeti error: Job was canceled"
	}
	return e.failure(true)
}

// resultText words an opcode's result as a failure.
func resultText(result json.RawMessage, classic bool) string {
	var pair luxiwire.Error
	var text string
	switch {
	case json.Unmarshal(result, &pair) == nil && classic:
		return classicPair(pair.Class, pair.Args)
	case json.Unmarshal(result, &pair) == nil && len(pair.Args) > 1:
		return fmt.Sprintf("%s (%v)", pair.Error(), pair.Args[1])
	case json.Unmarshal(result, &pair) == nil:
		return pair.Error()
	case json.Unmarshal(result, &text) == nil:
		return text
	default:
		return string(result)
	}
}

// progress tells how long a job has been waited for, and why it does not begin:
// a person on one line that changes, others on a line for each news.
type progress struct {
	sh      *shell
	id      job.ID
	begun   time.Time
	status  string
	why     string
	said    string           // what the last line by itself told
	asked   time.Time        // when why was asked for
	client  *luxiwire.Client // the shell's own is busy waiting
	visible bool
}

func (sh *shell) newProgress(id job.ID) *progress {
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
	case p.sh.person:
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
	p.sh.rawf("%s%s", eraseLine, listing.Cut(listing.Printable(line), p.sh.line-1))
	p.visible = true
}

// eraseLine goes to the begin of the line and empties it.
const eraseLine = "\r\x1b[K"

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
	if p.sh.persona.classic() {
		if text = classicWaits[job.Status(p.status)]; text != "" {
			text = fmt.Sprintf(text, p.id)
		}
	}
	if text != p.said {
		p.sh.notef("%s", text)
		p.said = text
	}
}

// explain asks why the job waits. Without an answer there is just less to show.
func (p *progress) explain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if p.client == nil {
		path, err := p.sh.socket()
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
		p.sh.rawf("%s", eraseLine)
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
