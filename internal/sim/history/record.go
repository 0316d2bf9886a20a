// Package history records what clients of a group asked and were told, and checks it
// against a model: each object behaves as if there were one controller that never fails.
// It serves the histories of real controllers (test/history) and the simulated ones.
//
// Invariants:
//   - What was answered took effect between its question and its answer, in one order of
//     all that was asked of an object (linearizability).
//   - What was not answered took effect after it was asked, or never.
//   - An answer that may be old shows all that its revision covers, and nothing that
//     nobody asked for.
package history

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// never is when what is not known returns.
const never = math.MaxInt64

// Record is safe for concurrent use. Times are since its beginning.
type Record struct {
	mu    sync.Mutex
	ops   []porcupine.Operation
	stale []staleRead
}

// Told adds what a client asked at a time and was told at another. An answer that is
// unknown may come to pass at any time; an unknown one to a reader told nobody anything.
func (r *Record) Told(client int, in Input, call, back time.Duration, out Output) {
	if out.Unknown && in.Do == "read" {
		return
	}
	op := porcupine.Operation{ClientId: client, Input: in, Call: int64(call), Output: out, Return: int64(back)}
	if out.Unknown {
		op.Return = never
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, op)
}

// ToldOld adds what a reader was told at a time, as of the revision of the answer, which
// may be older than what others were told.
func (r *Record) ToldOld(object string, back time.Duration, out Output) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stale = append(r.stale, staleRead{object, out.Is, out.Value, out.Revision, int64(back)})
}

// Verdict is what there is to say of a record.
type Verdict struct {
	// Result says whether the answers agree, or that it could not be found out in time.
	Result porcupine.CheckResult
	// Wrong says what was asked of an object whose answers do not agree, and StaleWrong
	// which old answers are wrong, and why; empty if all is right.
	Wrong      string
	StaleWrong []string
	// Answers, Lost and Stale count what was answered, what was not, and old answers.
	Answers, Lost, Stale int
}

// Check judges what is recorded, within a time for the answers.
func (r *Record) Check(patience time.Duration) Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := Verdict{Result: porcupine.CheckOperationsTimeout(model, r.ops, patience), StaleWrong: r.staleWrong(), Stale: len(r.stale)}
	if v.Result == porcupine.Illegal {
		v.Wrong = r.wrong(patience)
	}
	for _, op := range r.ops {
		if op.Output.(Output).Unknown {
			v.Lost++
		} else {
			v.Answers++
		}
	}
	return v
}

// wrong tells the operations on the first object whose history is not right.
func (r *Record) wrong(patience time.Duration) string {
	var text strings.Builder
	for _, part := range model.Partition(r.ops) {
		if porcupine.CheckOperationsTimeout(model, part, patience) != porcupine.Illegal {
			continue
		}
		slices.SortStableFunc(part, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		for _, op := range part {
			fmt.Fprintf(&text, "  client %d, %v to %v: %s\n", op.ClientId, time.Duration(op.Call), time.Duration(op.Return), model.DescribeOperation(op.Input, op.Output))
		}
		break
	}
	return text.String()
}
