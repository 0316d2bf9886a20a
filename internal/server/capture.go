package server

import (
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/servertag"
)

// Capture is an image that is made of the server's disk. It is no task: the server stays as it is, and the image is its own (package upload).
const Capture Do = "createImage"

// Backup is an image that takes the place of older ones.
const Backup Do = "createBackup"

// MayBeCaptured refuses to make an image of a server whose disk nobody knows, or that something is being done to: WrongState.
func (s *Server) MayBeCaptured(do Do) error {
	switch status := s.Status(); {
	case len(s.Tasks) > 0:
		return fault.New(fault.WrongState, "Cannot '%s' instance %s while it is being changed: %s by %s", do, s.ID, s.Tasks[0].Do, s.Tasks[0].Asked)
	case status != Active && status != Shutoff || s.UUID == "":
		return fault.New(fault.WrongState, "Cannot '%s' instance %s while it is in vm_state %s", do, s.ID, strings.ToLower(string(status)))
	}
	return nil
}

// Captured is the server with a note of what became of an image of it, or a backup, which failed if why says so. Once more it is the same.
func (s *Server) Captured(do Do, by servertag.Asked, at job.Time, why string) *Server {
	if slices.ContainsFunc(s.Done, func(a Act) bool { return a.Do == do && a.Asked == by }) {
		return s
	}
	next := *s
	next.Serial++
	next.Done = noted(s.Done, Act{Task: Task{Serial: next.Serial, Do: do, Asked: by}, Ended: at, Failed: why})
	return &next
}
