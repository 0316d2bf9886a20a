package server

import (
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/servertag"
)

// A server is resized in two steps, as Nova's users know it: its instance gets memory and processors of another size and begins anew with them, and then its
// user confirms that, or has the size of before again. Until then nothing is done to its disk, which cannot shrink: it grows when the resize is confirmed.

// What is done to sizes.
const (
	Resize Do = "resize"
	Revert Do = "revert-resize"
	// Confirm needs no job unless the disk grows.
	Confirm Do = "confirm-resize"
	// Restart has what runs begin anew with the size that it has been given. It belongs to the task before it.
	Restart Do = "restart"
)

// The statuses of a server with two sizes.
const (
	Resizing  Status = "RESIZE"
	Resized   Status = "VERIFY_RESIZE"
	Reverting Status = "REVERT_RESIZE"
)

// sizing is the status by what becomes of sizes; empty if nothing does.
func (s *Server) sizing() Status {
	doing := s.Doing()
	switch {
	case doing != nil && (doing.Do == Resize || doing.Do == Restart && s.Before != nil):
		return Resizing
	case doing != nil && (doing.Do == Revert || doing.Do == Restart):
		return Reverting
	case s.Before != nil:
		return Resized
	}
	return ""
}

// Resize begins to give the server another size. Invalid for a size that it has, or whose disk is no larger one; WrongState for a server that is in no state for it.
func (s *Server) Resize(to Flavor, by servertag.Asked) (*Server, error) {
	switch {
	case to.ID == s.Flavor.ID:
		return nil, fault.New(fault.Invalid, "When resizing, instances must change flavor!").At("flavorRef")
	case to.Disk < s.Flavor.Disk:
		return nil, fault.New(fault.Invalid, "Unable to resize disk down: the server has %d GiB, and flavor %s has %d GiB", s.Flavor.Disk, to.ID, to.Disk).At("flavorRef").
			WithHint("choose a flavor with a disk of at least %d GiB", s.Flavor.Disk)
	case s.Flavor.Disk == 0 && to.Disk > 0:
		return nil, fault.New(fault.Invalid, "Unable to resize disk: the server has none, and flavor %s has %d GiB", to.ID, to.Disk).At("flavorRef").
			WithHint("choose a flavor without a disk, or make another server")
	}
	next, err := s.Begin(Resize, by)
	if err != nil {
		return nil, err
	}
	return next.sizedBy(to), nil
}

// ConfirmResize has the server keep the size that it was given. WrongState if it was given none.
func (s *Server) ConfirmResize(by servertag.Asked) (*Server, error) {
	next, err := s.Begin(Confirm, by)
	if err != nil || s.Flavor.Disk > s.Before.Disk {
		return next, err
	}
	task := next.Tasks[len(next.Tasks)-1] // there is nothing to do
	next.Tasks, next.Before = next.Tasks[:len(next.Tasks)-1], nil
	next.Done = noted(s.Done, Act{Task: task, Ended: by.Time})
	return next, nil
}

// RevertResize begins to give the server the size that it had before. WrongState if it has only one.
func (s *Server) RevertResize(by servertag.Asked) (*Server, error) {
	next, err := s.Begin(Revert, by)
	if err != nil {
		return nil, err
	}
	return next.sizedBy(*s.Before), nil
}

// sizedBy has the newest task bring another size, and what runs begin anew behind it.
func (s *Server) sizedBy(to Flavor) *Server {
	task := &s.Tasks[len(s.Tasks)-1] // the caller has just made it
	task.Flavor = &to
	if !s.Stopped {
		s.Serial++
		s.Tasks = append(s.Tasks, Task{Serial: s.Serial, Do: Restart, Asked: task.Asked})
	}
	return s
}

// settleSize takes in that a task is over, of those of which sizes become others.
func (s *Server) settleSize(task *Task, ok bool) {
	switch {
	case !ok:
		s.Tasks = withoutRestart(s.Tasks)
	case task.Do == Resize && task.Flavor != nil:
		before := s.Flavor
		s.Before, s.Flavor = &before, *task.Flavor
	case task.Do == Revert && task.Flavor != nil:
		s.Before, s.Flavor = nil, *task.Flavor
	case task.Do == Confirm:
		s.Before = nil
	}
}

// withoutRestart returns the tasks that are left behind one that failed: nothing begins anew with a size that it did not get.
func withoutRestart(tasks []Task) []Task {
	if len(tasks) > 0 && tasks[0].Do == Restart {
		return tasks[1:]
	}
	return tasks
}

// restarted returns acts with what became of a restart, which is the end of the resize before it.
func restarted(acts []Act, ended job.Time, failed string) []Act {
	i := lastSized(acts)
	if i < 0 {
		return acts
	}
	next := slices.Clone(acts)
	next[i].Ended, next[i].Failed = ended, failed
	return next
}

// lastSized is the place of the newest act that a restart belongs to, -1 for none. Others may have come behind it: a lock is for no idle server alone.
func lastSized(acts []Act) int {
	for i, a := range slices.Backward(acts) {
		if a.Do == Resize || a.Do == Revert {
			return i
		}
	}
	return -1
}

// Takes is what the server takes of what its project may have: with two sizes, or on the way to another, the larger of each part.
func (s *Server) Takes() Amount {
	out := amountOf(s.Flavor, 1)
	sizes := []*Flavor{s.Before}
	for i := range s.Tasks {
		sizes = append(sizes, s.Tasks[i].Flavor)
	}
	for _, f := range sizes {
		if f != nil {
			out.Cores, out.RAM = max(out.Cores, f.VCPUs), max(out.RAM, f.RAM)
		}
	}
	return out
}
