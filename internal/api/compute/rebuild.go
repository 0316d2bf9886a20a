package compute

import (
	"encoding/json"
	"net/http"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/server"
)

// rebuildAction is Nova's action that installs a server anew. Cyclades has none.
const rebuildAction = "rebuild"

// bodyOfRebuild is what may be said of a rebuild, at some microversion.
var bodyOfRebuild = intake.Object{
	"imageRef": done, "name": done, "description": done, "metadata": done, "accessIPv4": done, "accessIPv6": done, "OS-DCF:diskConfig": done, "key_name": done, "user_data": done,
	"preserve_ephemeral":         {So: []string{`"False"`, `"false"`}, Why: "a server has one disk, which is installed anew"},
	"adminPass":                  {Why: "leave it out: no password is set in the instance"},
	"personality":                noFiles,
	"trusted_image_certificates": {Why: "images have no signatures"},
	"hostname":                   {Why: "the instance is named by the cluster"},
}

// rebuildSince are the microversions that brought parts of it; personality went with withoutFiles.
var rebuildSince = map[string]int{
	"description": withDescription, "key_name": withRebuildKey, "user_data": withRebuildData, "trusted_image_certificates": withCertificates, "hostname": withHostname,
}

// rebuilding is the body of a rebuild.
type rebuilding struct {
	ImageRef    json.RawMessage    `json:"imageRef"`
	Name        *string            `json:"name"`
	Metadata    map[string]*string `json:"metadata"`
	Description json.RawMessage    `json:"description"`
	KeyName     json.RawMessage    `json:"key_name"`
	UserData    json.RawMessage    `json:"user_data"`
	told
}

// rebuild begins to install a server anew.
func (r *request) rebuild(s *server.Server, argument json.RawMessage) (result, error) {
	body, err := r.readRebuild(argument)
	if err != nil {
		return result{}, err
	}
	wish, err := r.renewal(body)
	if err != nil {
		return result{}, err
	}
	metadata, err := textsOf(body.Metadata)
	if err != nil {
		return result{}, err
	}
	said, err := clearable("description", body.Description)
	if err != nil {
		return result{}, err
	}
	operator := r.administers()
	s, err = r.api.cfg.Engine.Rebuild(s.ID, wish, r.byUser(), func(s *server.Server) (*server.Server, error) {
		if err := s.Unlocked(operator); err != nil {
			return nil, err
		}
		next := *s
		var err error
		if next.Told, err = body.over(s.Told); err != nil {
			return nil, err
		}
		if next.Description, err = r.description(said, s.Description); err != nil {
			return nil, err
		}
		if body.Name != nil {
			next.Name = *body.Name
		}
		if body.Metadata != nil {
			next.Metadata = metadata
			err = r.checkMetadata(metadata, len(s.Metadata))
		}
		return &next, err
	})
	if err != nil {
		return result{}, err
	}
	r.w.Header().Set("Location", r.link(s))
	return result{http.StatusAccepted, object{"server": r.rebuilt(s)}}, nil
}

// readRebuild reads the body of a rebuild at the version of a request.
func (r *request) readRebuild(argument json.RawMessage) (*rebuilding, error) {
	if err := bodyOfRebuild.Check(argument); err != nil {
		return nil, err
	}
	var keys map[string]json.RawMessage
	body := &rebuilding{}
	if err := intake.ReadOpen(argument, &keys); err != nil {
		return nil, malformed(err)
	}
	if err := intake.ReadOpen(argument, body); err != nil {
		return nil, malformed(err)
	}
	for key := range keys {
		if r.minor < rebuildSince[key] {
			return nil, fault.New(fault.Invalid, "Invalid input: Additional properties are not allowed ('%s' was unexpected)", key).At(key).WithHint("it is taken from microversion 2.%d on", rebuildSince[key])
		}
		if key == "personality" && r.since(withoutFiles) {
			return nil, fault.New(fault.Invalid, "Invalid input: Additional properties are not allowed ('%s' was unexpected)", key).At(key)
		}
	}
	if body.Name != nil {
		return body, checkServerName(*body.Name)
	}
	return body, nil
}

// renewal is what a body of a rebuild wants of the disk, and has the machine told.
func (r *request) renewal(body *rebuilding) (server.Renewal, error) {
	var w server.Renewal
	if text := wordOf(body.ImageRef); text == "" || text == "null" {
		return w, fault.New(fault.Invalid, "Invalid input: 'imageRef' is a required property").At("imageRef")
	}
	var err error
	if w.Image, err = r.bootImage(reference(body.ImageRef)); err != nil {
		return w, badReference(err)
	}
	switch name, err := clearable("key_name", body.KeyName); {
	case err != nil:
		return w, err
	case name == nil:
	case string(body.KeyName) == "null": // takes it away
		w.Key = &server.Key{}
	default:
		pair, err := r.keyPair(*name)
		if err != nil {
			return w, err
		}
		w.Key = &pair
	}
	if w.UserData, err = clearable("user_data", body.UserData); err != nil || w.UserData == nil {
		return w, err
	}
	*w.UserData, err = userDataOf(*w.UserData)
	return w, err
}

// rebuilt is a server in the answer to a rebuild: with fewer keys before 2.75, and from 2.57 on with the user data, which are told to nobody.
func (r *request) rebuilt(s *server.Server) object {
	out := r.single(s)
	for key := range out {
		if !r.since(strictly) && !inChange(key) && !(key == "key_name" && r.since(withRebuildKey)) {
			delete(out, key)
		}
	}
	if r.since(withRebuildData) {
		out["user_data"] = nil
	}
	return out
}
