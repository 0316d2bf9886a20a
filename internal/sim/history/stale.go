package history

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"
)

// A controller that stands by answers those who take it from a picture that may be old,
// and says how old: a weaker promise than that of the model. Each such answer shows every
// change that its revision covers, or what followed on it, and nothing that nobody asked
// for.

// staleRead is such an answer.
type staleRead struct {
	object   string
	is       string
	value    int
	revision int64
	back     int64
}

// makes is what a change makes of an object.
func makes(in Input) (is string, value int) {
	switch in.Do {
	case "put":
		return There, in.Value
	case "add":
		return There, 0
	case "submit":
		return "queued", 0
	case "cancel":
		return "canceled", 0
	default:
		return Absent, 0
	}
}

// jobStates are what becomes of a job, in this order.
var jobStates = []string{Absent, "queued", "canceled"}

// staleWrong holds what was read of controllers that may have stood by against what was
// changed.
func (r *Record) staleWrong() (all []string) {
	changes := map[string][]porcupine.Operation{}
	for _, op := range r.ops {
		if in := op.Input.(Input); in.Do != "read" {
			changes[in.Object] = append(changes[in.Object], op)
		}
	}
	for _, s := range r.stale {
		if why := s.wrong(changes[s.object]); why != "" {
			all = append(all, fmt.Sprintf("%s was read as %s %d, as of revision %d: %s", s.object, s.is, s.value, s.revision, why))
		}
	}
	return all
}

// wrong tells what is wrong with an answer, beside the changes of its object.
func (s staleRead) wrong(changes []porcupine.Operation) string {
	// after tells whether what was read may have followed on a change.
	after := func(change porcupine.Operation) bool {
		if is, _ := makes(change.Input.(Input)); KindOf(s.object) == "job" {
			return slices.Index(jobStates, s.is) >= slices.Index(jobStates, is)
		}
		return slices.ContainsFunc(changes, func(op porcupine.Operation) bool {
			is, value := makes(op.Input.(Input))
			return is == s.is && value == s.value && op.Call < s.back && op.Return >= change.Call
		})
	}
	asked := s.is == Absent
	for _, op := range changes {
		is, value := makes(op.Input.(Input))
		asked = asked || is == s.is && value == s.value && op.Call < s.back
		if out := op.Output.(Output); !out.Unknown && out.Revision > 0 && out.Revision <= s.revision && !after(op) {
			return fmt.Sprintf("revision %d shows %s", out.Revision, model.DescribeOperation(op.Input, op.Output))
		}
	}
	if !asked {
		return "nobody asked for that"
	}
	return ""
}
