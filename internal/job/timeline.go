package job

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Span is a stretch of a job's life: what kept it from going on, or what it did.
type Span struct {
	Kind SpanKind `json:"kind"`
	// From and To are when it began and ended; To is 0 while it lasts, and the same
	// as From for what takes no time.
	From Time `json:"from"`
	To   Time `json:"to,omitempty"`
	// Opcode is the place of the opcode that it is about.
	Opcode int `json:"opcode"`
	// On is what was in the way: the UUID of a rule, or the name of a node, of a limit or of a
	// lock. Jobs are those that were: the ones it depends on, or that had the
	// lock; of many the first few.
	On   string `json:"on,omitempty"`
	Jobs []ID   `json:"jobs,omitempty"`
	// Nodes are those that the opcode worked with.
	Nodes []string `json:"nodes,omitempty"`
	// Text says it to a person, in the words of an explanation at that time.
	Text string `json:"text"`
}

// SpanKind says what a stretch of a job's life was.
type SpanKind string

// The kinds of spans. The first ones are stored with the job (Job.Waits), for
// nothing else tells of them; the others follow from the times of its opcodes.
const (
	HeldByRule        SpanKind = "rule"
	WaitForDependency SpanKind = "dependency"
	WaitForNode       SpanKind = "node" // its agent
	WaitForLimit      SpanKind = "limit"
	WaitForLock       SpanKind = "lock"
	Restart           SpanKind = "restart"  // of the controller
	LeftOut           SpanKind = "left-out" // more waits than are kept

	WasReceived SpanKind = "received"
	WaitForSlot SpanKind = "slot"
	Ran         SpanKind = "ran"
	TookStep    SpanKind = "step" // a part of the time that the opcode ran
	WasEnded    SpanKind = "ended"
)

// How an explanation says that a job waits for a slot, before and after it has
// its locks.
const (
	NoSlot           = "as many jobs run as max_running_jobs allows"
	NoSlotWhileReady = "has its locks and waits for a slot: " + NoSlot
)

// What is kept of a job's waits: so many, each with a text of so many bytes and
// so many jobs.
const (
	MaxWaits    = 64
	MaxWaitText = 512
	MaxWaitJobs = 8
)

// maxNodes is how many nodes of an opcode are kept.
const maxNodes = 64

// WithWait returns the job with a wait that is over.
func (j *Job) WithWait(s Span) *Job { return j.WithWaits(AddWait(j.Waits, s), j.Hold) }

// AddWait returns the waits of a job with one more, in a list of its own. One that
// goes on with the last makes it longer; beyond MaxWaits they are counted only.
func AddWait(waits []*Span, s Span) []*Span {
	s.Text = clip(s.Text, MaxWaitText)
	s.Jobs = s.Jobs[:min(len(s.Jobs), MaxWaitJobs)]
	n := len(waits)
	switch {
	case n > 0 && waits[n-1].goesOn(&s):
		longer := *waits[n-1]
		longer.To = s.To
		return oneMore(waits[:n-1], &longer)
	case n < MaxWaits:
		return oneMore(waits, &s)
	}
	return oneMore(waits[:n-1], &Span{Kind: LeftOut, From: waits[n-1].From, To: s.To, Opcode: s.Opcode,
		Text: fmt.Sprintf("%d waits are kept; what came after is left out", MaxWaits-1)})
}

// oneMore returns waits with one more, in a slice of its own.
func oneMore(waits []*Span, s *Span) []*Span {
	return append(append(make([]*Span, 0, len(waits)+1), waits...), s)
}

// goesOn tells that another wait is a part of the same.
func (s *Span) goesOn(next *Span) bool {
	return s.To == next.From && s.Kind == next.Kind && s.On == next.On && s.Opcode == next.Opcode && s.Kind != WaitForDependency
}

// WithNodes returns the job with the nodes that opcode i worked with.
func (j *Job) WithNodes(i int, nodes []string) *Job {
	if len(nodes) == 0 {
		return j
	}
	if more := len(nodes) - maxNodes; more > 0 {
		nodes = append(slices.Clone(nodes[:maxNodes]), fmt.Sprintf("and %d more", more))
	}
	return j.with(i, func(op *Op) { op.Nodes = nodes })
}

// Known is the last moment up to which the job's own times and waits tell what
// it did.
func (j *Job) Known() Time {
	at := j.Received
	for i := range j.Ops {
		at = max(at, j.Ops[i].Start, j.Ops[i].Exec, j.Ops[i].End)
	}
	if n := len(j.Waits); n > 0 {
		at = max(at, j.Waits[n-1].To)
	}
	return at
}

// Began is when opcode i began to run first, of one that goes on behind a restart of the controller; 0 of others, and if so many waits
// came before that it was left out.
func (j *Job) Began(i int) Time {
	start := j.Ops[i].Start
	for _, w := range j.Waits {
		if w.Kind == Restart && w.Opcode == i && start != 0 && w.From >= start { // of a restart before it waited, it asked for its locks anew
			return w.From
		}
	}
	return 0
}

// Timeline tells the life of the job until now, or to its end: what it waited
// for, from when to when, when and where it ran. What nothing else accounts for
// between two opcodes was a wait for a slot. What lasts is told by who knows it.
func (j *Job) Timeline(lasting ...Span) []Span {
	t := timeline{at: j.Received}
	for _, w := range j.Waits {
		t.waits = append(t.waits, *w)
	}
	t.waits = append(t.waits, lasting...)
	t.add(Span{Kind: WasReceived, From: j.Received, To: j.Received, Text: "received"})
	for i := range j.Ops {
		op := &j.Ops[i]
		if op.Start != 0 {
			t.wait(op.Start, i, NoSlot)
		}
		if op.Exec == 0 {
			t.wait(op.End, i, words(op))
			break
		}
		t.wait(op.Exec, i, NoSlotWhileReady)
		t.add(Span{Kind: Ran, From: op.Exec, To: op.End, Opcode: i, Nodes: op.Nodes, Text: ran(op)})
		for k := range op.Steps {
			t.step(i, &op.Steps[k])
		}
		t.at = op.End
	}
	if j.Ended != 0 {
		t.add(Span{Kind: WasEnded, From: j.Ended, To: j.Ended, Opcode: max(0, len(j.Ops)-1), Text: j.Ending()})
	}
	return t.spans
}

func words(op *Op) string {
	if op.Start != 0 {
		return NoSlotWhileReady
	}
	return NoSlot
}

// ran says what an opcode did.
func ran(op *Op) string {
	text := op.Summary()
	if len(op.Nodes) > 0 {
		text += " on " + strings.Join(op.Nodes, ", ")
	}
	if op.Status.Final() {
		return text + ": " + string(op.Status)
	}
	return text
}

// step tells one of the things that an opcode did, within the time that it ran. Of what a controller before did no times are known.
func (t *timeline) step(op int, s *Step) {
	if s.From == 0 {
		return
	}
	span := Span{Kind: TookStep, From: s.From, To: s.To, Opcode: op, Text: s.Text}
	if s.Node != "" {
		span.Nodes, span.Text = []string{s.Node}, span.Text+" on "+s.Node
	}
	if s.State != StepDone && s.State != StepRunning {
		span.Text += ": " + string(s.State)
	}
	t.add(span)
}

// timeline is one that is being told: up to a moment, with the waits to come.
type timeline struct {
	spans []Span
	waits []Span
	at    Time
}

func (t *timeline) add(s Span) { t.spans = append(t.spans, s) }

// wait tells the waits of an opcode that began before a moment, 0 for all there
// are; gaps between them were waits for a slot.
func (t *timeline) wait(until Time, op int, slot string) {
	for len(t.waits) > 0 && (until == 0 || t.waits[0].From < until) {
		w := t.waits[0]
		t.waits = t.waits[1:]
		t.gap(w.From, op, slot)
		t.add(w)
		t.at = max(t.at, w.To)
	}
	t.gap(until, op, slot)
}

func (t *timeline) gap(until Time, op int, slot string) {
	if until > t.at {
		t.add(Span{Kind: WaitForSlot, From: t.at, To: until, Opcode: op, Text: slot})
		t.at = until
	}
}

// Waited is how long the job waited in all until it ended, or until now as far
// as its timeline tells, in microseconds.
func (j *Job) Waited() Time {
	var all Time
	for _, s := range j.Timeline() {
		if s.Waiting() && s.To > s.From {
			all += s.To - s.From
		}
	}
	return all
}

// Waiting reports whether the span is one in which something kept the job from
// going on.
func (s *Span) Waiting() bool {
	return s.Kind != WasReceived && s.Kind != Ran && s.Kind != TookStep && s.Kind != WasEnded
}

// Encode returns the span as JSON.
func (s *Span) Encode() json.RawMessage { return mustJSON(s) }

// Ending says how a job ended, with the reason it left.
func (j *Job) Ending() string {
	text := fmt.Sprintf("the job ended as %s", j.Status())
	for i := range j.Ops {
		_, why, failed := DecodeError(j.Ops[i].Result)
		switch {
		case failed && len(j.Ops) == 1:
			return text + ": " + why
		case failed:
			return fmt.Sprintf("%s: opcode %d: %s", text, i, why)
		}
	}
	return text
}
