package compute

import (
	"encoding/json"
	"net/http"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

// locking are the actions that lock servers. Like those of consoles they are no tasks: what they ask for is so when they are answered.
var locking = map[string]func(*request, *server.Server, json.RawMessage) (result, error){"lock": (*request).lock, "unlock": (*request).unlock}

// byUser tells who asks, with the id of the user.
func (r *request) byUser() servertag.Asked {
	by := r.asked()
	by.ID = r.session.User.ID
	return by
}

// lock keeps users from having something done to a server. An administrator's lock is the operator's: a token is for one project, so
// nothing else tells them apart.
func (r *request) lock(s *server.Server, argument json.RawMessage) (result, error) {
	takes := none
	if r.since(withLockReason) {
		takes = intake.Object{"locked_reason": done}
	}
	if err := (intake.Key{Done: true, In: takes}).Check("lock", argument); err != nil {
		return result{}, err
	}
	var body struct {
		Reason *string `json:"locked_reason"`
	}
	if err := intake.ReadOpen(argument, &body); err != nil {
		return result{}, malformed(err)
	}
	l := server.Lock{Operator: r.administers(), Asked: r.byUser()}
	if body.Reason != nil {
		if l.Reason = *body.Reason; l.Reason == "" {
			return result{}, fault.New(fault.Invalid, "Invalid input for field/attribute locked_reason. Value: . '' is too short").At("locked_reason")
		}
	}
	_, err := r.api.cfg.Engine.Lock(s.ID, l)
	return result{status: http.StatusAccepted}, err
}

// unlock lets users have something done to a server again.
func (r *request) unlock(s *server.Server, argument json.RawMessage) (result, error) {
	if err := (intake.Key{Done: true, In: none}).Check("unlock", argument); err != nil {
		return result{}, err
	}
	_, err := r.api.cfg.Engine.Unlock(s.ID, r.administers(), r.byUser())
	if fault.Is(err, fault.Denied) {
		err = refused{err, http.StatusForbidden}
	}
	return result{status: http.StatusAccepted}, err
}

// lockReason is what was said about the lock of a server; null for nothing.
func lockReason(s *server.Server) any {
	if s.Lock == nil {
		return nil
	}
	return orNull(s.Lock.Reason)
}
