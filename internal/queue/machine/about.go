package machine

import (
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
)

// About lists the jobs that have not ended and name a thing that the opcode names, too:
// what holds of it now may be different when they have. A name and its beginning up to
// the first dot are one.
func (m *Machine) About(op *opcode.Opcode) []job.ID {
	names := map[string]bool{}
	for _, name := range op.Names() {
		names[label(name)] = true
	}
	var out []job.ID
	m.jobs.Scan(func(id job.ID, e *entry) bool {
		if len(names) > 0 && slices.ContainsFunc(e.job.Ops, func(o job.Op) bool {
			return slices.ContainsFunc(o.Input.Names(), func(name string) bool { return names[label(name)] })
		}) {
			out = append(out, id)
		}
		return true
	})
	return out
}

func label(name string) string {
	short, _, _ := strings.Cut(strings.ToLower(name), ".")
	return short
}
