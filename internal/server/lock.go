package server

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/servertag"
)

// Lock is what keeps users from having something done to a server that could not be taken back.
type Lock struct {
	// Operator: one put it there, and only one takes it away.
	Operator bool `json:"operator,omitempty"`
	// Reason is what was said about it; empty for nothing.
	Reason string          `json:"reason,omitempty"`
	Asked  servertag.Asked `json:"asked"`
}

// What is done to locks. It needs no job, so it is over when it was asked for.
const (
	Locking   Do = "lock"
	Unlocking Do = "unlock"
)

// maxReason is how long the reason of a lock may be.
const maxReason = 255

// Unlocked refuses what users may not have done to a locked server: WrongState. An operator may.
func (s *Server) Unlocked(operator bool) error {
	if s.Lock == nil || operator {
		return nil
	}
	err := fault.New(fault.WrongState, "Instance %s is locked", s.ID)
	switch {
	case s.Lock.Operator && s.Lock.Reason != "":
		return err.WithHint("an operator locked it: %s", s.Lock.Reason)
	case s.Lock.Operator:
		return err.WithHint("an operator locked it, and takes the lock away")
	}
	return err.WithHint("unlock it first")
}

// Locked is the server with a lock. A user's lock changes none that there is; an operator's takes its place.
func (s *Server) Locked(l Lock) (*Server, error) {
	if utf8.RuneCountInString(l.Reason) > maxReason || strings.ContainsFunc(l.Reason, unicode.IsControl) {
		return nil, fault.New(fault.Invalid, "Invalid input for field/attribute locked_reason. It must have 1 to %d characters, none of them a control character", maxReason).At("locked_reason")
	}
	if s.Lock != nil && (!l.Operator || s.Lock.Operator && s.Lock.Reason == l.Reason) {
		return s, nil
	}
	return s.lockedAs(&l, Locking, l.Asked), nil
}

// Unlock is the server without a lock. Denied for an operator's, unless an operator asks.
func (s *Server) Unlock(operator bool, by servertag.Asked) (*Server, error) {
	switch {
	case s.Lock == nil:
		return s, nil
	case s.Lock.Operator && !operator:
		return nil, fault.New(fault.Denied, "Policy doesn't allow os_compute_api:os-lock-server:unlock:unlock_override to be performed.").
			WithHint("an operator locked the server, and takes the lock away")
	}
	return s.lockedAs(nil, Unlocking, by), nil
}

// lockedAs puts another lock in place, or none, and notes who did it.
func (s *Server) lockedAs(l *Lock, do Do, by servertag.Asked) *Server {
	next := *s
	next.Lock, next.Updated = l, by.Time
	next.Serial++
	next.Done = noted(s.Done, Act{Task: Task{Serial: next.Serial, Do: do, Asked: by}, Ended: by.Time})
	return &next
}

// Encode returns the lock as it is stored.
func (l *Lock) Encode() ([]byte, error) {
	out, err := json.Marshal(l)
	if err != nil {
		return nil, fault.New(fault.Internal, "a lock that cannot be written: %w", err)
	}
	return out, nil
}

// DecodeLock reads a stored lock.
func DecodeLock(text []byte) (*Lock, error) {
	l := &Lock{}
	if err := json.Unmarshal(text, l); err != nil {
		return nil, fault.New(fault.Internal, "a stored lock cannot be read: %w", err)
	}
	return l, nil
}
