package job

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

// How the store keeps a job. The form is ours alone (clients see jobs through
// queries), so times are plain microseconds and zero values are left out.
//
// Most jobs are one object, the head. What makes a job large is in parts of its
// own: each opcode behind the first, and of each log what comes after its first
// entries, as many to a part. So a change costs what changed. The head says how
// many opcodes there are, an opcode how many parts its log has: a part that is
// missing is noticed.
//
// Stores of older versions have jobs whole in their heads; Decode reads both.

// logPart is how many log entries go into one object: about a page of a
// database, of which less cannot be written anyway.
const logPart = 32

// Part is one of the objects that a job is stored as.
type Part struct {
	// Name tells the parts of a job apart; it is empty for the head.
	Name  string
	Value []byte
}

func opcodeName(i int) string { return "op/" + strconv.Itoa(i) }

func logName(i, part int) string { return "log/" + strconv.Itoa(i) + "/" + strconv.Itoa(part) }

// Parts returns what is to be written for the store to have the job as it is.
// before are the values that it may have now, each of the life of this job; what
// is the same in all of them is left out. None says that it has nothing.
func (j *Job) Parts(before ...*Job) []Part {
	if !j.Divided() {
		return []Part{{Value: j.Head()}}
	}
	var out []Part
	if j.differs(before, (*Job).sameHead) {
		out = append(out, Part{Value: j.Head()})
	}
	for i := range j.Ops {
		if i > 0 && j.differs(before, func(j, b *Job) bool { return j.Ops[i].sameStored(&b.Ops[i]) }) {
			out = append(out, Part{opcodeName(i), j.Ops[i].append(nil)})
		}
		for n := 1; n < j.Ops[i].logParts(); n++ {
			if j.differs(before, func(j, b *Job) bool { return len(j.Ops[i].logOf(n)) == len(b.Ops[i].logOf(n)) }) {
				out = append(out, Part{logName(i, n), appendLog(nil, j.Ops[i].logOf(n))})
			}
		}
	}
	return out
}

// Encode returns all parts as one text, for whoever compares or prints jobs.
func (j *Job) Encode() []byte {
	var b []byte
	for _, p := range j.Parts() {
		b = append(append(b, p.Value...), '\n')
	}
	return b
}

// differs reports whether something is not the same as in each of the values
// that the store may have.
func (j *Job) differs(before []*Job, same func(j, b *Job) bool) bool {
	for _, b := range before {
		if b.whole || !same(j, b) {
			return true
		}
	}
	return len(before) == 0
}

// Divided reports whether the job has other parts than its head.
func (j *Job) Divided() bool { return len(j.Ops) > 1 || len(j.Ops) == 1 && j.Ops[0].logParts() > 1 }

func (j *Job) sameHead(b *Job) bool {
	return j.Started == b.Started && j.Ended == b.Ended && j.CancelReason == b.CancelReason && j.sameWaits(b) &&
		j.Ops[0].sameStored(&b.Ops[0])
}

// sameWaits compares the waits: they are only added, or the last one changes.
func (j *Job) sameWaits(b *Job) bool {
	n := len(j.Waits)
	return n == len(b.Waits) && (n == 0 || j.Waits[n-1].To == b.Waits[n-1].To)
}

// sameStored compares all but what is in parts of the log.
func (op *Op) sameStored(b *Op) bool {
	return op.Input == b.Input && op.Status == b.Status && op.Priority == b.Priority &&
		op.Start == b.Start && op.Exec == b.Exec && op.End == b.End && bytes.Equal(op.Result, b.Result) &&
		len(op.Nodes) == len(b.Nodes) && len(op.logOf(0)) == len(b.logOf(0)) && op.logParts() == b.logParts() && op.Stepwise == b.Stepwise
}

// logParts is the number of parts that the log has, with the one that is in the
// opcode's object.
func (op *Op) logParts() int { return (len(op.Log) + logPart - 1) / logPart }

// logOf returns the entries of a part of the log. Entries are only added, so a
// part has changed if it has become longer.
func (op *Op) logOf(part int) []LogEntry {
	from := min(part*logPart, len(op.Log))
	return op.Log[from:min(from+logPart, len(op.Log))]
}

// Head returns the first object of a job: the job with its first opcode.
func (j *Job) Head() []byte {
	b := make([]byte, 0, 640)
	b = append(b, `{"id":`...)
	b = strconv.AppendInt(b, int64(j.ID), 10)
	b = appendTime(b, "received", j.Received)
	b = appendTime(b, "started", j.Started)
	b = appendTime(b, "ended", j.Ended)
	if j.Key != "" {
		b = append(append(b, `,"key":`...), quote(j.Key)...)
	}
	if j.CancelReason != "" {
		b = append(append(b, `,"cancel":`...), quote(j.CancelReason)...)
	}
	if len(j.Ops) > 1 {
		b = strconv.AppendInt(append(b, `,"of":`...), int64(len(j.Ops)), 10)
	}
	if len(j.Waits) > 0 {
		b = append(append(b, `,"waits":`...), mustJSON(j.Waits)...)
	}
	b = append(b, `,"ops":[`...)
	if len(j.Ops) > 0 {
		b = j.Ops[0].append(b)
	}
	return append(b, "]}"...)
}

// append writes the opcode with the first part of its log.
func (op *Op) append(b []byte) []byte {
	b = op.Input.ForStore().AppendJSON(append(b, `{"input":`...))
	b = append(append(append(b, `,"status":"`...), op.Status...), '"')
	b = append(b, `,"priority":`...)
	b = strconv.AppendInt(b, int64(op.Priority), 10)
	b = appendTime(b, "start", op.Start)
	b = appendTime(b, "exec", op.Exec)
	b = appendTime(b, "end", op.End)
	if len(op.Nodes) > 0 {
		b = append(append(b, `,"nodes":`...), mustJSON(op.Nodes)...)
	}
	if op.Stepwise {
		b = append(b, `,"stepwise":true`...)
	}
	if op.End != 0 && len(op.Steps) > 0 { // until then they are kept as the work that they are
		b = append(append(b, `,"steps":`...), mustJSON(storedSteps(op.Steps))...)
	}
	if op.End != 0 && op.Placement != nil { // until then it is kept with the work
		b = append(append(b, `,"placement":`...), op.Placement...)
	}
	if op.Result != nil {
		b = append(append(b, `,"result":`...), op.Result...)
	}
	if len(op.Log) > 0 {
		b = appendLog(append(b, `,"log":`...), op.logOf(0))
	}
	if n := op.logParts(); n > 1 {
		b = strconv.AppendInt(append(b, `,"logs":`...), int64(n), 10)
	}
	return append(b, '}')
}

func appendLog(b []byte, log []LogEntry) []byte {
	b = append(b, '[')
	for i, e := range log {
		if i > 0 {
			b = append(b, ',')
		}
		b = e.append(b)
	}
	return append(b, ']')
}

func (e LogEntry) append(b []byte) []byte {
	b = strconv.AppendInt(append(b, '['), e.Serial, 10)
	b = strconv.AppendInt(append(b, ','), int64(e.Time), 10)
	b = append(append(b, ','), quote(e.Type)...)
	return append(append(append(b, ','), e.Payload...), ']')
}

func appendTime(b []byte, name string, t Time) []byte {
	if t == 0 {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":`...)
	return strconv.AppendInt(b, int64(t), 10)
}

// stored mirrors the form that Head writes.
type stored struct {
	ID           ID         `json:"id"`
	Received     Time       `json:"received"`
	Started      Time       `json:"started"`
	Ended        Time       `json:"ended"`
	Key          string     `json:"key"`
	CancelReason string     `json:"cancel"`
	Of           int        `json:"of"`
	Waits        []*Span    `json:"waits"`
	Ops          []storedOp `json:"ops"`
}

type storedOp struct {
	Input    json.RawMessage `json:"input"`
	Status   Status          `json:"status"`
	Priority int             `json:"priority"`
	Start    Time            `json:"start"`
	Exec     Time            `json:"exec"`
	End      Time            `json:"end"`
	Nodes    []string        `json:"nodes"`
	Result   json.RawMessage `json:"result"`
	Log      []LogEntry      `json:"log"`
	Logs     int             `json:"logs"`
	Stepwise bool            `json:"stepwise"`
	Steps    []storedStep    `json:"steps"`
	// Placement is kept as it is.
	Placement json.RawMessage `json:"placement"`
}

// storedStep is a step as it is stored.
type storedStep struct {
	Verb  string    `json:"verb"`
	Node  string    `json:"node,omitempty"`
	Of    string    `json:"of,omitempty"`
	State StepState `json:"state"`
	From  Time      `json:"from,omitempty"`
	To    Time      `json:"to,omitempty"`
	Text  string    `json:"text"`
}

func storedSteps(steps []Step) []storedStep {
	out := make([]storedStep, len(steps))
	for i, s := range steps {
		out[i] = storedStep{s.Verb, s.Node, s.Of, s.State, s.From, s.To, s.Text}
	}
	return out
}

func readSteps(stored []storedStep) []Step {
	if len(stored) == 0 {
		return nil
	}
	out := make([]Step, len(stored))
	for i, s := range stored {
		out[i] = Step{Verb: s.Verb, Node: s.Node, Of: s.Of, Text: s.Text, State: s.State, From: s.From, To: s.To}
	}
	return out
}

// UnmarshalJSON reads the form [serial, microseconds, type, payload].
func (e *LogEntry) UnmarshalJSON(data []byte) error {
	fields := []any{&e.Serial, &e.Time, &e.Type, &e.Payload}
	want := len(fields)
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	if len(fields) != want {
		return fault.New(fault.Internal, "a stored log entry has %d parts", len(fields))
	}
	return nil
}

// Decode reads a stored job: its head, and if there are other parts those, by
// name, which rest reads. What is wrong with the job, as a part that is not there
// (fault.NotFound), is a *DamageError; any other error of rest is returned as it is.
func Decode(id ID, head []byte, rest func(name string) ([]byte, error)) (*Job, error) {
	var s stored
	if err := json.Unmarshal(head, &s); err != nil {
		return nil, &DamageError{id, err}
	}
	whole := s.Of == 0
	if err := s.complete(id, rest); err != nil {
		return nil, err
	}
	j := &Job{ID: s.ID, Received: s.Received, Started: s.Started, Ended: s.Ended, Key: s.Key,
		CancelReason: s.CancelReason, Waits: s.Waits, Ops: make([]Op, len(s.Ops))}
	for i := range s.Ops {
		o := &s.Ops[i]
		in, err := opcode.Parse(o.Input, opcode.Options{})
		if err != nil {
			return nil, &DamageError{id, fault.New(fault.Internal, "its opcode %d: %w", i, err)}
		}
		j.Ops[i] = Op{Input: in, Status: o.Status, Result: o.Result, Log: o.Log, Priority: o.Priority,
			Start: o.Start, Exec: o.Exec, End: o.End, Nodes: o.Nodes, Stepwise: o.Stepwise, Steps: readSteps(o.Steps), Placement: o.Placement}
	}
	j.whole = whole && j.Divided() && s.Ops[0].Logs == 0
	return j, nil
}

// KeyOf returns the submission key of a stored job, empty if it has none.
func KeyOf(head []byte) (string, error) {
	var s struct {
		Key string `json:"key"`
	}
	err := json.Unmarshal(head, &s)
	return s.Key, err
}

// Outline returns the submission key of a stored job, empty if it has none, and whether the job has other parts than its head.
func Outline(head []byte) (key string, divided bool, err error) {
	var s struct {
		Key string `json:"key"`
		Of  int    `json:"of"`
		Ops []struct {
			Logs int `json:"logs"`
		} `json:"ops"`
	}
	err = json.Unmarshal(head, &s)
	divided = s.Of > 1
	for i := range s.Ops {
		divided = divided || s.Ops[i].Logs > 1
	}
	return s.Key, divided, err
}

// complete adds what is in other parts to what the head has.
func (s *stored) complete(id ID, rest func(name string) ([]byte, error)) error {
	read := func(name string, into any) error {
		value, err := rest(name)
		if err == nil {
			err = json.Unmarshal(value, into)
		} else if !fault.Is(err, fault.NotFound) {
			return err
		}
		if err != nil {
			return &DamageError{id, fault.New(fault.Internal, "its part %s: %w", name, err)}
		}
		return nil
	}
	for i := len(s.Ops); i < s.Of; i++ {
		var op storedOp
		if err := read(opcodeName(i), &op); err != nil {
			return err
		}
		s.Ops = append(s.Ops, op)
	}
	for i := range s.Ops {
		for n := 1; n < s.Ops[i].Logs; n++ {
			var log []LogEntry
			if err := read(logName(i, n), &log); err != nil {
				return err
			}
			s.Ops[i].Log = append(s.Ops[i].Log, log...)
		}
	}
	return nil
}
