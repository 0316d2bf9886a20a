package job

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

// What a job may grow to. What a client sends beyond it is refused with an error
// that names the limit; what an opcode leaves beyond it is clipped and says so,
// for the work was done. All of them together keep each stored object of a job
// far below store.MaxValue.
const (
	// MaxOpcodes is how many opcodes a submission may have, over all its jobs.
	MaxOpcodes = 10_000
	// MaxDependencies is how many dependencies a submission may have, over all its
	// jobs and opcodes.
	MaxDependencies = 20_000
	// MaxInput is the greatest size of the opcodes of one job as JSON, in bytes.
	MaxInput = 16 << 20
	// MaxResult is the greatest size of an opcode's result as JSON, in bytes. A
	// greater one is left out; the result then says so.
	MaxResult = 32 << 20
	// MaxText is the greatest size of an error's text and of a log message, in
	// bytes. Of a longer one the beginning is kept.
	MaxText = 32 << 10
	// MaxLogPayload is the greatest size of a log entry's payload as JSON, in bytes:
	// MaxText with every character escaped. A greater one is left out.
	MaxLogPayload = 6*MaxText + 64
	// MaxLog is how many log entries an opcode may leave; the last one says that
	// there were more.
	MaxLog = 20_000
)

// Clip returns the text cut to MaxText bytes at the boundary of a character,
// with a note of what was left out.
func Clip(text string) string { return clip(text, MaxText) }

func clip(text string, size int) string {
	if len(text) <= size {
		return text
	}
	end := size - 64 // room for the note
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s ... (%d more bytes were left out)", text[:end], len(text)-end)
}

// clipResult keeps a result within MaxResult.
func clipResult(result json.RawMessage) json.RawMessage {
	if len(result) <= MaxResult {
		return result
	}
	return quote(fmt.Sprintf("the opcode succeeded; its result of %d bytes was left out, for it is above the limit of %d", len(result), MaxResult))
}

// clipPayload keeps the payload of a log entry within MaxLogPayload. Messages
// keep their beginning.
func clipPayload(payload json.RawMessage) json.RawMessage {
	if len(payload) <= MaxText {
		return payload
	}
	var text string
	if json.Unmarshal(payload, &text) == nil {
		return quote(Clip(text))
	}
	if len(payload) <= MaxLogPayload {
		return payload
	}
	return quote(fmt.Sprintf("an entry of %d bytes was left out, for it is above the limit of %d", len(payload), MaxLogPayload))
}

// maxSentence is the size up to which Stripped keeps what an opcode left.
const maxSentence = 1 << 10

// Stripped returns the job as it is for a store that does not take it: what its
// opcodes left keeps its place, but of results and log entries longer than a
// sentence only a note is left.
func (j *Job) Stripped() *Job {
	c := *j
	c.Ops = slices.Clone(j.Ops)
	for i := range c.Ops {
		op := &c.Ops[i]
		if len(op.Result) > maxSentence {
			op.Result = quote(fmt.Sprintf("a result of %d bytes was left out: it could not be stored", len(op.Result)))
			if op.Status == Error {
				op.Result = EncodeText("the opcode failed; why could not be stored")
			}
		}
		op.Log, op.Steps, op.Placement = slices.Clone(op.Log), nil, nil
		for k := range op.Log {
			if e := &op.Log[k]; len(e.Payload) > maxSentence {
				e.Type, e.Payload = LogMessage, quote(fmt.Sprintf("an entry of %d bytes was left out: it could not be stored", len(e.Payload)))
			}
		}
	}
	return &c
}

// CheckInput refuses what makes no job: opcodes that nothing carries out
// (fault.Unsupported), and such as are too large for one job (fault.TooLarge). None
// at all are a job that succeeds at once, as in the reference.
func CheckInput(ops []*opcode.Opcode) error {
	text := make([]byte, 0, 512) // enough for most
	size := 0
	for i, op := range ops {
		if err := op.CheckSupported(); err != nil {
			return err
		}
		text = op.AppendJSON(text[:0])
		if size += len(text); size > MaxInput {
			return fault.New(fault.TooLarge, "the opcodes of a job may have at most %d bytes in all; opcode %d goes beyond", MaxInput, i).
				At(fmt.Sprintf("ops[%d]", i))
		}
	}
	return nil
}
