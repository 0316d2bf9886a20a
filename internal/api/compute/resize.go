package compute

import (
	"encoding/json"
	"net/http"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

// resizing are Nova's actions about the size of a server. Cyclades has another one of the first name, which nobody confirms.
var resizing = map[string]func(*request, *server.Server, json.RawMessage) (result, error){
	"resize": (*request).resize, "confirmResize": (*request).confirmResize, "revertResize": (*request).revertResize,
}

// resize begins to give a server another size.
func (r *request) resize(s *server.Server, argument json.RawMessage) (result, error) {
	if err := (intake.Key{Done: true, In: intake.Object{"flavorRef": done, "OS-DCF:diskConfig": done}}).Check("resize", argument); err != nil {
		return result{}, err
	}
	var body struct {
		FlavorRef *string `json:"flavorRef"`
		Disk      *string `json:"OS-DCF:diskConfig"`
	}
	if err := intake.ReadOpen(argument, &body); err != nil {
		return result{}, malformed(err)
	}
	if body.FlavorRef == nil || *body.FlavorRef == "" {
		return result{}, fault.New(fault.Invalid, "Invalid input: 'flavorRef' is a required property").At("flavorRef")
	}
	size, err := r.flavor(*body.FlavorRef)
	if err != nil {
		return result{}, badReference(err)
	}
	operator := r.administers()
	_, err = r.api.cfg.Engine.Resize(s.ID, size.Flavor, r.byUser(), func(s *server.Server) (*server.Server, error) {
		if err := s.Unlocked(operator); err != nil {
			return nil, err
		}
		next := *s
		var err error
		next.Told, err = told{Disk: body.Disk}.over(s.Told)
		return &next, err
	})
	if fault.Is(err, fault.Denied) { // there is no room
		err = refused{err, http.StatusForbidden}
	}
	return result{status: http.StatusAccepted}, err
}

// confirmResize has a server keep its new size. Nova answers it with another status than all other actions.
func (r *request) confirmResize(s *server.Server, argument json.RawMessage) (result, error) {
	return result{status: http.StatusNoContent}, r.settleSize(s, "confirmResize", argument, (*server.Server).ConfirmResize)
}

// revertResize gives a server the size that it had before.
func (r *request) revertResize(s *server.Server, argument json.RawMessage) (result, error) {
	return result{status: http.StatusAccepted}, r.settleSize(s, "revertResize", argument, (*server.Server).RevertResize)
}

// settleSize ends that a server has two sizes.
func (r *request) settleSize(s *server.Server, key string, argument json.RawMessage, settle func(*server.Server, servertag.Asked) (*server.Server, error)) error {
	if err := (intake.Key{Done: true, In: none}).Check(key, argument); err != nil {
		return err
	}
	by, operator := r.byUser(), r.administers()
	_, err := r.api.cfg.Engine.Change(s.ID, func(s *server.Server) (*server.Server, error) {
		if err := s.Unlocked(operator); err != nil {
			return nil, err
		}
		return settle(s, by)
	})
	return err
}
