package compute

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/upload"
)

// capturing are Nova's actions that make images of servers, by their keys: what may be said of each. Cyclades has none.
var capturing = map[string]intake.Object{
	string(server.Capture): {"name": done, "metadata": done},
	string(server.Backup):  {"name": done, "metadata": done, "backup_type": done, "rotation": done},
}

// CaptureOf is what is done to a server of which an image is made.
func CaptureOf(of *upload.Capture) server.Do {
	if of.Backup != nil {
		return server.Backup
	}
	return server.Capture
}

// captureStates are the words for the state of a server of which an image is made.
var captureStates = map[server.Do]string{server.Capture: "image_snapshot", server.Backup: "image_backup"}

// capture begins to make an image of a server.
func (r *request) capture(s *server.Server, key string, argument json.RawMessage) (result, error) {
	if r.api.cfg.Uploads == nil {
		return result{}, refused{fault.New(fault.Unsupported, "Images are not made here"), http.StatusNotImplemented}
	}
	m, turns, err := r.readCapture(capturing[key], argument)
	if err != nil {
		return result{}, err
	}
	if err := s.MayBeCaptured(server.Do(key)); err != nil {
		return result{}, err
	}
	room, err := r.api.cfg.Engine.Disk(s)
	if err != nil {
		return result{}, err
	}
	// As Nova has it, so that clients find the images of a server; what they say themselves counts, but of backups, which take turns by it.
	marks := map[string]string{upload.TypeProperty: "snapshot", upload.ServerProperty: s.ID, "base_image_ref": s.Image.ID, "user_id": r.session.User.ID}
	if turns != nil {
		marks[upload.TypeProperty], marks[upload.BackupProperty] = upload.IsBackup, turns.Type
	}
	for key, text := range marks {
		if _, said := m.Properties[key]; said && turns == nil {
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
	of := upload.Capture{Server: s.ID, Instance: s.Instance, UUID: s.UUID, Asked: r.byUser(), Backup: turns}
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

// readCapture reads the body of an action that makes an image; of a backup also how it takes turns with others.
func (r *request) readCapture(takes intake.Object, argument json.RawMessage) (*upload.Image, *upload.Backup, error) {
	if err := takes.Check(argument); err != nil {
		return nil, nil, err
	}
	var body struct {
		Name     *string            `json:"name"`
		Metadata map[string]*string `json:"metadata"`
		Type     *string            `json:"backup_type"`
		Rotation json.RawMessage    `json:"rotation"`
	}
	if err := intake.ReadOpen(argument, &body); err != nil {
		return nil, nil, malformed(err)
	}
	m, err := r.readImageOf(body.Name, body.Metadata)
	if _, backup := takes["rotation"]; err != nil || !backup {
		return m, nil, err
	}
	if body.Type == nil {
		return nil, nil, fault.New(fault.Invalid, "Invalid input for field/attribute backup_type. A backup needs one").At("backup_type").WithHint("what those are called that take turns: daily, for one")
	}
	keep, err := strconv.Atoi(wordOf(body.Rotation))
	if err != nil || keep < 0 {
		return nil, nil, fault.New(fault.Invalid, "Invalid input for field/attribute rotation. Value: %s. It must be a number from 0 on", fault.Clip(string(body.Rotation), 40)).At("rotation").
			WithHint("how many backups of that type stay")
	}
	return m, &upload.Backup{Type: *body.Type, Keep: keep}, nil
}

// readImageOf reads what is said of an image of a server.
func (r *request) readImageOf(name *string, said map[string]*string) (*upload.Image, error) {
	if name == nil || strings.TrimSpace(*name) != *name || *name == "" {
		return nil, fault.New(fault.Invalid, "Invalid input for field/attribute name. An image needs one, of 1 to %d characters, without blanks around it", maxName).At("name")
	}
	m := &upload.Image{Name: *name}
	if err := checkText("name", m.Name, maxName); err != nil {
		return nil, err
	}
	metadata, err := textsOf(said)
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

// captures tells what image of a server is being made; nil if there is none.
func (r *request) captures(s *server.Server) *upload.Capture {
	if r.api.cfg.Uploads == nil {
		return nil
	}
	return r.api.cfg.Uploads.Captures(s.ID)
}
