// Package work is what an opcode will do as a value: steps, one behind the other, made before anything is begun and
// kept until the opcode is over. So it can be shown before, followed while it is carried out, taken up by another
// controller where this one ended, and taken back. What a step does is the engine's (package exec); how far one came,
// what is to be done next and what may be said of it is decided here.
//
// Invariants:
//   - What is next follows from the steps and how far they came alone (TestNext, TestEverythingIsUndoneOnce).
//   - Steps are done in order, each once unless it may be repeated; when one fails those before it are taken back, the newest
//     first and the failed one itself among them, unless one behind which everything stays is done (TestEverythingIsUndoneOnce).
//   - Where one cannot be taken back of which that is needed, nothing before it is (TestWhatIsNeededHoldsTheRest in package exec).
//   - A work has at most MaxSteps steps and MaxSize bytes (TestBounds).
//   - Steps hold no secret, only the name of the parameter that has it.
package work

import (
	"encoding/json"
	"fmt"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/lock"
)

// The bounds of a work: how many steps it may have, and how many bytes as it is stored.
const (
	MaxSteps = 1000
	MaxSize  = 1 << 20
)

// Work is the steps of one opcode, in order.
type Work struct {
	Steps []Step `json:"steps"`
	// Locks were held when it was made. Who goes on with it takes these, whatever the opcode would ask for by then.
	Locks lock.Request `json:"locks,omitempty"`
	// Result is that of the opcode when all steps are done, unless one of them leaves another (Progress.Result).
	Result json.RawMessage `json:"result,omitempty"`
	// Try counts the works that were made for one opcode: when one was taken back for lack of room, the next goes elsewhere.
	Try int `json:"try,omitempty"`
	// Placement is how the node of a new instance was chosen, as package placement keeps it.
	Placement json.RawMessage `json:"placement,omitempty"`
	// Replanned: the steps establish a state, and are made anew by whoever takes over. It is not stored.
	Replanned bool `json:"-"`
}

// Step is one thing to be done.
type Step struct {
	// Verb is the key of the engine's table.
	Verb string `json:"verb"`
	// Node is the UUID of the node that gets an order; empty for a change of the inventory.
	Node string `json:"node,omitempty"`
	// Of is the UUID of the thing that is meant.
	Of   string          `json:"of,omitempty"`
	Args json.RawMessage `json:"args,omitempty"`
	// Text says for people what is done. Says are the lines that it leaves in the opcode's log when it begins, Ends those when it is
	// done, and Fails is what stands before the error when it fails.
	Text  string   `json:"text"`
	Says  []string `json:"says,omitempty"`
	Ends  []string `json:"ends,omitempty"`
	Fails string   `json:"fails,omitempty"`
	// Undo takes it back, also if it was done by half; nil for what stays.
	Undo *Step `json:"undo,omitempty"`
	// Keeps: once it is done nothing is taken back any more, whatever fails.
	Keeps bool `json:"keeps,omitempty"`
	// Needed: what is before it is taken back only when this was. It is said of a step that takes one back.
	Needed bool `json:"needed,omitempty"`
	// Left says what is left, and what to type, when it was to take something away, and failed.
	Left string `json:"left,omitempty"`
	// Tolerated: its failure is told in the log and ends nothing.
	Tolerated bool `json:"tolerated,omitempty"`
	// Anew: a repetition begins from the beginning, and may not come when a step behind it has begun. Any other step leaves, however
	// often it is repeated, what it leaves once.
	Anew bool `json:"anew,omitempty"`
}

// Progress is how far a work came.
type Progress struct {
	// Try is that of the work; the progress of another one says nothing.
	Try int `json:"try,omitempty"`
	// Done is how many steps are done. While they are taken back it is how many are left to be looked at, the failed one among them.
	Done int `json:"done"`
	// Undoing: what is done is taken back. It is not stored: who goes on with a work that was being taken back begins it again, for what
	// it was to do has not been done, and ends in the same way if it still fails.
	Undoing bool `json:"-"`
	// Result is that of the opcode, if a step left one.
	Result json.RawMessage `json:"result,omitempty"`
}

// Of returns the progress as it counts for a work: that of another try is none.
func (p Progress) Of(w *Work) Progress {
	if w != nil && p.Try != w.Try {
		return Progress{Try: w.Try}
	}
	return p
}

// Next is the step that is to be done next, or taken back; nil if nothing is left to do.
func (w *Work) Next(p Progress) *Step {
	if !p.Undoing {
		if p.Done >= len(w.Steps) {
			return nil
		}
		return &w.Steps[p.Done]
	}
	for i := p.Done - 1; i >= 0; i-- {
		if w.Steps[i].Undo != nil {
			return &w.Steps[i]
		}
	}
	return nil
}

// Index is the place of a step of the work.
func (w *Work) Index(s *Step) int {
	for i := range w.Steps {
		if s == &w.Steps[i] {
			return i
		}
	}
	return -1
}

// Stays reports whether nothing is taken back when the next step fails: there is nothing to take back, or a step is done behind which
// everything stays.
func (w *Work) Stays(p Progress) bool {
	undo := false
	for i := range w.Steps[:min(p.Done+1, len(w.Steps))] {
		undo = undo || w.Steps[i].Undo != nil
		if w.Steps[i].Keeps && i < p.Done {
			return true
		}
	}
	return !undo
}

// Fail is the progress when the next step has failed, or is not to be done any more: it is taken back, with those before it.
func (p Progress) Fail() Progress {
	p.Done, p.Undoing = p.Done+1, true
	return p
}

// Undone is the progress when the step with that place was taken back.
func (p Progress) Undone(i int) Progress {
	p.Done = i
	return p
}

// Sealed reports whether it has to be durable how far the work came before its next step begins: a step before it, behind
// what was noted, may not be repeated then.
func (w *Work) Sealed(p Progress, noted int) bool {
	for i := noted; i < p.Done && i < len(w.Steps); i++ {
		if w.Steps[i].Anew {
			return true
		}
	}
	return false
}

// Where says how far it came, for people.
func (w *Work) Where(p Progress) string {
	s := w.Next(p)
	if s == nil {
		return fmt.Sprintf("all of its %d steps are done", len(w.Steps))
	}
	return fmt.Sprintf("with step %d of %d, %s", w.Index(s)+1, len(w.Steps), s.Text)
}

// Shown are the steps as jobs have them, with no times yet; name returns the name of a node.
func (w *Work) Shown(p Progress, name func(uuid string) string) []job.Step {
	out := make([]job.Step, len(w.Steps))
	for i := range w.Steps {
		s := &w.Steps[i]
		out[i] = job.Step{Verb: s.Verb, Of: s.Of, Text: s.Text, State: job.StepPlanned}
		if s.Node != "" {
			out[i].Node = name(s.Node)
		}
		if i < p.Done && !p.Undoing {
			out[i].State = job.StepDone
		}
	}
	return out
}

// Encode returns the work as it is stored; TooLarge if it is beyond the bounds.
func (w *Work) Encode() ([]byte, error) {
	if len(w.Steps) > MaxSteps {
		return nil, fault.New(fault.TooLarge, "the opcode would take %d steps, and may take %d", len(w.Steps), MaxSteps)
	}
	text, err := json.Marshal(w)
	if err != nil {
		return nil, fault.New(fault.Internal, "the steps of an opcode cannot be written: %w", err)
	}
	if len(text) > MaxSize {
		return nil, fault.New(fault.TooLarge, "the steps of the opcode take %d bytes, and may take %d", len(text), MaxSize)
	}
	return text, nil
}

// Decode reads a stored work.
func Decode(text []byte) (*Work, error) {
	w := new(Work)
	if err := json.Unmarshal(text, w); err != nil {
		return nil, fault.New(fault.WrongState, "the stored steps of an opcode cannot be read: %w", err)
	}
	if len(w.Steps) == 0 {
		return nil, fault.New(fault.WrongState, "the stored work of an opcode has no steps")
	}
	return w, nil
}
