package compute

import (
	"encoding/json"
	"maps"
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

// creation is the body that makes a server.
type creation struct {
	Name        string            `json:"name"`
	Description *string           `json:"description"`
	ImageRef    json.RawMessage   `json:"imageRef"`
	FlavorRef   json.RawMessage   `json:"flavorRef"`
	Metadata    map[string]string `json:"metadata"`
	Networks    json.RawMessage   `json:"networks"`
	MinCount    json.RawMessage   `json:"min_count"`
	MaxCount    json.RawMessage   `json:"max_count"`
	Zone        string            `json:"availability_zone"`
	Tags        json.RawMessage   `json:"tags"`
}

// anyZone is the zone that clients name who know no other. Any other is the name
// of a cluster.
const anyZone = "nova"

// creationKeys are the keys that the body may have. Those that are not in
// creation say what is so anyway. Any other asks for something that would not be
// done: that is said.
var creationKeys = []string{"name", "description", "imageRef", "flavorRef", "metadata", "networks", "min_count", "max_count", "tags",
	"security_groups", "availability_zone", "config_drive", "OS-DCF:diskConfig", "accessIPv4", "accessIPv6", "return_reservation_id", "project"}

// empty are the values that ask for nothing, whatever their key is.
var empty = []string{"null", `""`, "[]", "{}", "false"}

// UnmarshalJSON reads the body.
func (c *creation) UnmarshalJSON(text []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !slices.Contains(creationKeys, key) && !slices.Contains(empty, string(all[key])) {
			return fault.New(fault.Invalid, "Invalid input: '%s' asks for what is not done here", fault.Clip(key, 100)).At(key)
		}
	}
	type plain creation
	return json.Unmarshal(text, (*plain)(c))
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
	release, err := r.api.cfg.Keep(wish.Project)
	if err != nil {
		return result{}, err
	}
	s, err := r.api.cfg.Engine.Create(r.Context(), wish)
	release()
	if err != nil {
		return result{}, err
	}
	r.w.Header().Set("Location", r.link(s))
	if r.flavour == cyclades {
		return result{http.StatusAccepted, object{"server": r.full(s)}}, nil
	}
	return result{http.StatusAccepted, object{"server": object{"id": s.ID, "links": r.brief(s)["links"],
		"security_groups": []any{object{"name": "default"}}, "OS-DCF:diskConfig": "MANUAL"}}}, nil
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
	if c.Zone != "" && c.Zone != anyZone {
		if w.Backend = c.Zone; !engine.HasBackend(c.Zone) {
			return nil, fault.New(fault.Invalid, "The requested availability zone is not available: %s", fault.Clip(c.Zone, 100)).At("availability_zone")
		}
	}
	if w.Description, err = r.description(c.Description, ""); err != nil {
		return nil, err
	}
	if err := checkMetadata(c.Metadata); err != nil {
		return nil, err
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

// description is what a request says about a server, or what was said before.
func (r *request) description(said *string, before string) (string, error) {
	switch {
	case said == nil:
		return before, nil
	case !r.since(withDescription):
		return "", fault.New(fault.Invalid, "Invalid input: Additional properties are not allowed ('description' was unexpected)").At("description").
			WithHint("it is taken from microversion 2.19 on")
	case utf8.RuneCountInString(*said) > maxName || strings.ContainsFunc(*said, unicode.IsControl):
		return "", fault.New(fault.Invalid, "Invalid input for field/attribute description. It must have at most %d characters, none of them a control character", maxName).
			At("description")
	}
	return *said, nil
}

func checkMetadata(items map[string]string) error {
	if len(items) > maxMetadata {
		return fault.New(fault.Invalid, "A server has at most %d items of metadata", maxMetadata).At("metadata")
	}
	for key, value := range items {
		if key == "" || utf8.RuneCountInString(key) > maxName || utf8.RuneCountInString(value) > maxName || strings.ContainsRune(key+value, 0) {
			return fault.New(fault.Invalid, "Invalid input for field/attribute metadata. A key must have 1 to %d characters, and a value no more", maxName).At("metadata")
		}
	}
	return nil
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
	var how struct {
		Type string `json:"type"`
	}
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
