package job

import (
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
)

// Brief is what stays in memory of a job that has ended: what most lists show
// and filter by. The rest is in the store. A *Job that is brief has one, and no
// opcodes (see Table); its own fields are right, but for those of a submission.
type Brief struct {
	id                       ID
	received, started, ended Time
	summary, reason          string
	status                   uint8 // its place in Statuses
	dryRun                   bool
	// texts says that summary and reason are known: those of large jobs are not kept.
	texts bool
}

// maxBriefText is the greatest size of the texts that stay in memory of a job, in
// bytes, both together.
const maxBriefText = 200

// briefOf returns what stays of a job; texts are shared with others that have
// the same.
func briefOf(j *Job, share func(string) string) Brief {
	b := Brief{id: j.ID, received: j.Received, started: j.Started, ended: j.Ended, status: uint8(place(j.Status()))} // there are seven
	b.dryRun = j.DryRun()
	if len(j.Ops) == 1 {
		summary, why := j.Ops[0].Input.Summary(), j.Ops[0].Input.Reason.Text()
		if len(summary)+len(why) <= maxBriefText {
			b.summary, b.reason, b.texts = share(summary), share(why), true
		}
	}
	return b
}

// jobsOf returns brief jobs, made together.
func jobsOf(briefs []Brief) []Job {
	out := make([]Job, len(briefs))
	for i := range briefs {
		b := &briefs[i]
		out[i] = Job{ID: b.id, Received: b.received, Started: b.started, Ended: b.ended, brief: b}
	}
	return out
}

func (b *Brief) time(c Clock) Time {
	switch c {
	case ByReceived:
		return b.received
	case ByStarted:
		return b.started
	default:
		return b.ended
	}
}

// Summary returns the short text of the one opcode of the job, without a mark;
// known is false if it is not kept.
func (b *Brief) Summary() (text string, known bool) { return b.summary, b.texts }

// Reason returns the job's reasons as Trail().Text() does; known is false if they
// are not kept.
func (b *Brief) Reason() (text string, known bool) { return b.reason, b.texts }

// Brief returns what is known of a job that is only in the store; nil if the job
// is whole.
func (j *Job) Brief() *Brief { return j.brief }

// DryRun reports whether an opcode of the job only checks.
func (j *Job) DryRun() bool {
	if j.brief != nil {
		return j.brief.dryRun
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

// weight is about how much memory a job takes, in bytes.
func (j *Job) weight() int {
	n := 512
	for i := range j.Ops {
		op := &j.Ops[i]
		n += 512 + len(op.Result) + weightOf(op.Input)
		for k := range op.Log {
			n += 64 + len(op.Log[k].Payload)
		}
	}
	return n
}

func weightOf(op *opcode.Opcode) int {
	if op == nil {
		return 0
	}
	n := weigh(op.Params) + 64*len(op.Depends)
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
		for k, x := range v {
			n += 32 + len(k) + weigh(x)
		}
	}
	return n
}

// texts lets jobs share texts that are the same: most have those of a job that
// ended shortly before.
type texts map[string]string

const maxTexts = 4096

func (t texts) share(text string) string {
	if have, ok := t[text]; ok {
		return have
	}
	if len(t) >= maxTexts {
		clear(t)
	}
	own := strings.Clone(text)
	t[own] = own
	return own
}
