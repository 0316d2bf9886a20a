package job

import (
	"bytes"
	"slices"

	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
)

// Brief is what stays in memory of a job that has ended: what most lists show
// and filter by. The rest is in the store. A *Job that is brief has one, and no
// opcodes (see Table); its own fields are right, but for those of a submission.
type Brief struct {
	entry *entry
	texts string // of its shelf
}

// entry is a job as a shelf has it. There are many of them, so it is small, and has
// no pointers that the garbage collector would follow.
type entry struct {
	id                       ID
	received, started, ended Time
	summary, reason          cut
	status                   uint8 // its place in Statuses
	flags                    uint8
}

// Flags of an entry.
const (
	dryRun    = 1 << iota
	withTexts // summary and reason are kept: those of large jobs are not
)

// cut is where a text is among those of a shelf.
type cut struct {
	at uint16
	n  uint8
}

func (c cut) of(texts string) string { return texts[c.at : int(c.at)+int(c.n)] }

// maxBriefText is the greatest size of the texts that stay in memory of a job, in
// bytes, both together. Those of a whole shelf have places that a cut can tell.
const maxBriefText = 200

// entryOf returns what stays of a job, and its texts, as far as they are kept.
func entryOf(j *Job) (e entry, summary, why string) {
	e = entry{id: j.ID, received: j.Received, started: j.Started, ended: j.Ended, status: uint8(place(j.Status()))} // there are seven
	if j.DryRun() {
		e.flags |= dryRun
	}
	if len(j.Ops) != 1 {
		return e, "", ""
	}
	summary, why = j.Ops[0].Input.Summary(), j.Ops[0].Input.Reason.Text()
	if len(summary)+len(why) > maxBriefText {
		return e, "", ""
	}
	e.flags |= withTexts
	return e, summary, why
}

// keep adds a text to those of a shelf, unless it is among them.
func keep(texts []byte, text string) ([]byte, cut) {
	at := bytes.Index(texts, []byte(text))
	if at < 0 {
		at, texts = len(texts), append(texts, text...)
	}
	return texts, cut{uint16(at), uint8(len(text))} // below shelfSize * maxBriefText
}

// jobsOf returns brief jobs of a shelf, made together.
func jobsOf(entries []entry, texts string) []Job {
	out, briefs := make([]Job, len(entries)), make([]Brief, len(entries))
	for i := range entries {
		e := &entries[i]
		briefs[i] = Brief{e, texts}
		out[i] = Job{ID: e.id, Received: e.received, Started: e.started, Ended: e.ended, brief: &briefs[i]}
	}
	return out
}

func (e *entry) time(c Clock) Time {
	switch c {
	case ByReceived:
		return e.received
	case ByStarted:
		return e.started
	default:
		return e.ended
	}
}

// Summary returns the short text of the one opcode of the job, without a mark;
// known is false if it is not kept.
func (b *Brief) Summary() (text string, known bool) { return b.text(b.entry.summary) }

// Reason returns the job's reasons as Trail().Text() does; known is false if they
// are not kept.
func (b *Brief) Reason() (text string, known bool) { return b.text(b.entry.reason) }

func (b *Brief) text(c cut) (string, bool) { return c.of(b.texts), b.entry.flags&withTexts != 0 }

// Brief returns what is known of a job that is only in the store; nil if the job
// is whole.
func (j *Job) Brief() *Brief { return j.brief }

// DryRun reports whether an opcode of the job only checks.
func (j *Job) DryRun() bool {
	if j.brief != nil {
		return j.brief.entry.flags&dryRun != 0
	}
	return slices.ContainsFunc(j.Ops, func(op Op) bool { return op.Input.DryRun })
}

// Trail holds the entries of the trails of all opcodes, each once, in the order
// of the opcodes. Those of one submission mostly have the same.
func (j *Job) Trail() reason.Trail {
	if len(j.Ops) == 0 {
		return reason.Trail{}
	}
	out := j.Ops[0].Input.Reason
	for i := 1; i < len(j.Ops); i++ {
		for _, e := range j.Ops[i].Input.Reason {
			if !slices.Contains(out, e) {
				out = append(slices.Clip(out), e)
			}
		}
	}
	return out
}

// Weigh is about how much memory a job of these opcodes takes while it waits, in
// bytes.
func Weigh(ops []*opcode.Opcode) int {
	n := weightOfJob
	for _, op := range ops {
		n += weightOf(op)
	}
	return n
}

// What a job and each of its opcodes take without what is in them.
const weightOfJob, weightOfOp = 512, 512

// weight is about how much memory a job takes, in bytes.
func (j *Job) weight() int {
	n := weightOfJob
	for i := range j.Ops {
		op := &j.Ops[i]
		n += len(op.Result) + weightOf(op.Input)
		for k := range op.Log {
			n += 64 + len(op.Log[k].Payload)
		}
	}
	return n
}

func weightOf(op *opcode.Opcode) int {
	if op == nil {
		return weightOfOp
	}
	n := weightOfOp + weigh(op.Params) + 64*len(op.Depends)
	if op.Comment != nil {
		n += len(*op.Comment)
	}
	for _, e := range op.Reason {
		n += 64 + len(e.Source) + len(e.Reason)
	}
	return n
}

// weigh is about how much memory a value of JSON takes.
func weigh(v any) int {
	n := 16
	switch v := v.(type) {
	case string:
		n += len(v)
	case []any:
		for _, x := range v {
			n += weigh(x)
		}
	case map[string]any:
		n += 48 + 36*max(len(v), 8) // a map of one value is made for eight
		for k, x := range v {
			n += len(k) + weigh(x)
		}
	}
	return n
}
