package compute

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/tagsync"
)

// Limits of what a server is made with.
const (
	maxName     = 255
	maxMetadata = 128
	maxNICs     = 8
)

// creation is the body that makes a server; keys beside these are taken and
// mean nothing here.
type creation struct {
	Name        string            `json:"name"`
	Description *string           `json:"description"`
	ImageRef    json.RawMessage   `json:"imageRef"`
	FlavorRef   json.RawMessage   `json:"flavorRef"`
	Metadata    map[string]string `json:"metadata"`
	KeyName     *string           `json:"key_name"`
	Networks    json.RawMessage   `json:"networks"`
	MinCount    json.RawMessage   `json:"min_count"`
	MaxCount    json.RawMessage   `json:"max_count"`
	Tags        json.RawMessage   `json:"tags"`
}

func createServer(r *request) (result, error) {
	var body struct{ Server *creation }
	if err := r.read(&body); err != nil {
		return result{}, err
	}
	if body.Server == nil {
		return result{}, fault.New(fault.Invalid, "Invalid input: 'server' is a required property").At("server")
	}
	wish, err := r.wish(body.Server)
	if err != nil {
		return result{}, err
	}
	s, err := r.api.cfg.Engine.Create(r.Context(), wish)
	if err != nil {
		return result{}, err
	}
	r.w.Header().Set("Location", r.link(s))
	out := object{"id": s.ID, "links": r.brief(s)["links"], "security_groups": []any{object{"name": "default"}}, "OS-DCF:diskConfig": "MANUAL"}
	if r.flavour == cyclades {
		out = r.full(s)
	}
	out["adminPass"] = strings.ToLower(rand.Text()[:12])
	return result{http.StatusAccepted, object{"server": out}}, nil
}

// wish reads what is wanted.
func (r *request) wish(c *creation) (*tagsync.Wish, error) {
	if err := checkServerName(c.Name); err != nil {
		return nil, err
	}
	for _, count := range []json.RawMessage{c.MinCount, c.MaxCount} {
		if n := reference(count); n != "" && n != "1" && n != "null" {
			return nil, fault.New(fault.Invalid, "Only one server is made by one request, not %s", fault.Clip(n, 40)).At("min_count")
		}
	}
	engine := r.api.cfg.Engine
	w := &tagsync.Wish{Name: c.Name, Project: r.session.Project.ID, User: r.session.User.ID, Metadata: c.Metadata, Asked: r.asked()}
	var err error
	if w.Flavor, err = engine.Catalogue().Flavor(reference(c.FlavorRef)); err != nil {
		return nil, badReference(err)
	}
	if w.Image, err = engine.Catalogue().Image(reference(c.ImageRef)); err != nil {
		return nil, badReference(err)
	}
	if c.KeyName != nil {
		w.KeyName = fault.Clip(*c.KeyName, maxName)
	}
	if c.Description != nil && r.since(withDescription) {
		w.Description = fault.Clip(*c.Description, maxName)
	}
	if len(c.Metadata) > maxMetadata {
		return nil, fault.New(fault.Invalid, "A server has at most %d items of metadata", maxMetadata).At("metadata")
	}
	if w.NICs, err = r.nics(c.Networks); err != nil || c.Tags == nil {
		return w, err
	}
	if r.flavour == nova && !r.since(withCreateTags) {
		return nil, fault.New(fault.Invalid, "Invalid input: Additional properties are not allowed ('tags' was unexpected)").At("tags").
			WithHint("tags are taken here from microversion 2.52 on")
	}
	if w.Tags, err = readTags(c.Tags); err != nil {
		return nil, err
	}
	return w, r.room(w.Tags)
}

// reference is an id that clients write as a string or as a number, or as the
// end of a URL.
func reference(raw json.RawMessage) string {
	text := string(raw)
	if s, err := strconv.Unquote(text); err == nil {
		text = s
	}
	return text[strings.LastIndexByte(text, '/')+1:]
}

// badReference says of what a body refers to, and is not there, that the body
// is wrong.
func badReference(err error) error { return fault.New(fault.Invalid, "%s", err.Error()) }

// nics is how many interfaces a server is to have.
func (r *request) nics(networks json.RawMessage) (int, error) {
	switch text := string(networks); {
	case text == `"none"`:
		return 0, nil
	case text == `"auto"`:
		return 1, nil
	case text == "", text == "null":
		if r.since(withNetworks) {
			return 0, fault.New(fault.Invalid, "Invalid input: 'networks' is a required property").At("networks")
		}
		return 1, nil
	}
	var list []object
	if err := json.Unmarshal(networks, &list); err != nil || len(list) > maxNICs {
		return 0, fault.New(fault.Invalid, "networks must be \"auto\", \"none\" or a list of at most %d", maxNICs).At("networks")
	}
	return len(list), nil
}

func checkServerName(name string) error {
	if name == "" || utf8.RuneCountInString(name) > maxName || strings.ContainsFunc(name, unicode.IsControl) || strings.TrimSpace(name) != name {
		return fault.New(fault.Invalid, "Invalid input for field/attribute name. It must have 1 to %d characters, none of them a control character, and no blanks at its ends", maxName).At("name")
	}
	return nil
}

// actions are what may be asked of a server, by the key of the body.
var actions = map[string]server.Do{
	"os-start": server.Start, "start": server.Start, "os-stop": server.Stop, "shutdown": server.Stop,
	"reboot": server.Reboot, "delete": server.Delete, "forceDelete": server.Delete,
}

func act(r *request) (result, error) {
	s, err := r.server()
	if err != nil {
		return result{}, err
	}
	var body map[string]json.RawMessage
	if err := r.read(&body); err != nil {
		return result{}, err
	}
	if len(body) != 1 {
		return result{}, fault.New(fault.Invalid, "The body of an action must be an object with one key")
	}
	for key, argument := range body {
		do, known := actions[key]
		if !known {
			names := make([]string, 0, len(actions))
			for name := range actions {
				names = append(names, name)
			}
			slices.Sort(names)
			return result{}, fault.New(fault.Invalid, "There is no such action: %s", fault.Clip(key, 100)).WithHint("there are %s", strings.Join(names, ", "))
		}
		if do == server.Reboot {
			if do, err = rebootOf(argument); err != nil {
				return result{}, err
			}
		}
		if _, err := r.api.cfg.Engine.Begin(s.ID, do, r.asked()); err != nil {
			return result{}, err
		}
	}
	return result{status: http.StatusAccepted}, nil
}

func rebootOf(argument json.RawMessage) (server.Do, error) {
	var how struct{ Type string }
	if json.Unmarshal(argument, &how) == nil {
		switch strings.ToUpper(how.Type) {
		case "SOFT":
			return server.Reboot, nil
		case "HARD":
			return server.RebootHard, nil
		}
	}
	return "", fault.New(fault.Invalid, "reboot needs a type: SOFT or HARD").At("type")
}
