package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

// ResolveDependencies turns relative job ids into absolute ones, counted from
// the job's own id: -1 is the job before. A job that depends on itself is
// refused, since nothing could ever start it.
func ResolveDependencies(id ID, ops []*opcode.Opcode) ([]*opcode.Opcode, error) {
	out := slices.Clone(ops)
	for i, op := range ops {
		if len(op.Depends) == 0 {
			continue
		}
		deps, err := resolve(id, i, op.Depends)
		if err != nil {
			return nil, err
		}
		c := *op
		c.Depends = deps
		out[i] = &c
	}
	return out, nil
}

func resolve(id ID, index int, deps []opcode.Dependency) ([]opcode.Dependency, error) {
	out := make([]opcode.Dependency, len(deps))
	for i, d := range deps {
		field := fmt.Sprintf("ops[%d].depends[%d]", index, i)
		target := d.Job
		if target < 0 {
			target += int64(id)
		}
		if target < 1 {
			return nil, fault.New(fault.Invalid, "Invalid value for job ID ' %d': %s points before the first job", d.Job, field).At(field)
		}
		if target == int64(id) {
			return nil, fault.New(fault.Invalid, "%s: the job would depend on itself", field).At(field).
				WithHint("relative ids count from the job itself: -1 is the job before it")
		}
		out[i] = opcode.Dependency{Job: target, Statuses: d.Statuses}
	}
	return out, nil
}

// Dependencies returns the ids that any opcode of the job depends on, each
// once, in order of appearance.
func (j *Job) Dependencies() []ID {
	var out []ID
	for i := range j.Ops {
		for _, d := range j.Ops[i].Input.Depends {
			if !slices.Contains(out, ID(d.Job)) {
				out = append(out, ID(d.Job))
			}
		}
	}
	return out
}

// FindCycle looks for a circle of dependencies through the new job. The
// function tells what a job that has not ended depends on. It returns the
// circle, beginning and ending with the new job, or nil.
func FindCycle(j *Job, dependsOn func(ID) []ID) []ID {
	seen := map[ID]bool{}
	var visit func(path []ID, deps []ID) []ID
	visit = func(path []ID, deps []ID) []ID {
		for _, d := range deps {
			if d == j.ID {
				return append(path, d)
			}
			if seen[d] {
				continue
			}
			seen[d] = true
			if found := visit(append(slices.Clip(path), d), dependsOn(d)); found != nil {
				return found
			}
		}
		return nil
	}
	return visit([]ID{j.ID}, j.Dependencies())
}

// DependencyState is what a dependency has come to, from best to worst.
type DependencyState int

// What a dependency means for the job that has it.
const (
	// DependencyMet: the job may go on as far as this one is concerned.
	DependencyMet DependencyState = iota
	// DependencyPending: the other job has not ended.
	DependencyPending
	// DependencyCanceled: the other job was cancelled, and so is this one.
	DependencyCanceled
	// DependencyFailed: the other job ended otherwise than required, or there
	// is no such job; this one fails.
	DependencyFailed
)

// CheckDependency decides what one dependency means, given the other job's
// status and whether it exists. The text says why in the reference's words.
func CheckDependency(d opcode.Dependency, status Status, exists bool) (DependencyState, string) {
	switch {
	case !exists:
		return DependencyFailed, fmt.Sprintf("Dependency error: Job %d not found", d.Job)
	case !status.Final():
		return DependencyPending, fmt.Sprintf("job %d is %s", d.Job, status)
	case slices.Contains(d.Statuses, string(status)):
		return DependencyMet, fmt.Sprintf("job %d ended as %s", d.Job, status)
	case status == Canceled:
		return DependencyCanceled, fmt.Sprintf("Dependency job %d was canceled", d.Job)
	case len(d.Statuses) == 0:
		return DependencyMet, fmt.Sprintf("job %d ended as %s", d.Job, status)
	}
	return DependencyFailed, fmt.Sprintf("Dependency job %d finished with status '%s', not one of '%s' as required",
		d.Job, status, strings.Join(d.Statuses, ", "))
}
