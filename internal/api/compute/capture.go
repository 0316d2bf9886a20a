package compute

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/upload"
)

// captureAction is Nova's action that makes an image of a server. Cyclades has none.
const captureAction = string(server.Capture)

// bodyOfCapture is what may be said of an image of a server.
var bodyOfCapture = intake.Object{"name": done, "metadata": done}

// capture begins to make an image of a server.
func (r *request) capture(s *server.Server, argument json.RawMessage) (result, error) {
	if r.api.cfg.Uploads == nil {
		return result{}, refused{fault.New(fault.Unsupported, "Images are not made here"), http.StatusNotImplemented}
	}
	m, err := r.readCapture(argument)
	if err != nil {
		return result{}, err
	}
	if err := s.MayBeCaptured(); err != nil {
		return result{}, err
	}
	room, err := r.api.cfg.Engine.Disk(s)
	if err != nil {
		return result{}, err
	}
	// As Nova has it, so that clients find the images of a server; what they say themselves counts.
	for key, text := range map[string]string{"image_type": "snapshot", "instance_uuid": s.ID, "base_image_ref": s.Image.ID, "user_id": r.session.User.ID} {
		if _, said := m.Properties[key]; said {
			continue
		}
		if err := sayProperty(m, key, text); err != nil {
			return result{}, err
		}
	}
	m.Project, m.User, m.MinDisk = s.Project, r.session.User.ID, (room+gib-1)/gib
	release, err := r.api.cfg.Keep(m.Project)
	if err != nil {
		return result{}, err
	}
	defer release()
	of := upload.Capture{Server: s.ID, Instance: s.Instance, UUID: s.UUID, Asked: r.byUser()}
	made, err := r.api.cfg.Uploads.Capture(r.Context(), *m, of, r.imageTrail("image of server "+s.ID))
	if err != nil {
		return result{}, uploadError(err)
	}
	if r.since(withImageID) {
		return result{http.StatusAccepted, object{"image_id": made.ID}}, nil
	}
	r.w.Header().Set("Location", r.base()+"/image/v2/images/"+made.ID)
	return result{status: http.StatusAccepted}, nil
}

// gib is a GiB in MiB.
const gib = 1 << 10

// readCapture reads the body of the action.
func (r *request) readCapture(argument json.RawMessage) (*upload.Image, error) {
	if err := bodyOfCapture.Check(argument); err != nil {
		return nil, err
	}
	var body struct {
		Name     *string            `json:"name"`
		Metadata map[string]*string `json:"metadata"`
	}
	if err := intake.ReadOpen(argument, &body); err != nil {
		return nil, malformed(err)
	}
	if body.Name == nil || strings.TrimSpace(*body.Name) != *body.Name || *body.Name == "" {
		return nil, fault.New(fault.Invalid, "Invalid input for field/attribute name. An image needs one, of 1 to %d characters, without blanks around it", maxName).At("name")
	}
	m := &upload.Image{Name: *body.Name}
	if err := checkText("name", m.Name, maxName); err != nil {
		return nil, err
	}
	metadata, err := textsOf(body.Metadata)
	if err != nil {
		return nil, err
	}
	if err := r.checkMetadata(metadata, 0); err != nil {
		return nil, err
	}
	for key, text := range metadata {
		if err := sayProperty(m, key, text); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// captures tells who asked for the image of a server that is being made; false if there is none.
func (r *request) captures(s *server.Server) (servertag.Asked, bool) {
	if r.api.cfg.Uploads == nil {
		return servertag.Asked{}, false
	}
	return r.api.cfg.Uploads.Captures(s.ID)
}
