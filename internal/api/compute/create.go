package compute

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/tagsync"
)

// Limits of what a server is made with.
const (
	maxName   = 255
	maxAtOnce = 100 // servers of one request
)

// creation is the body that makes a server.
type creation struct {
	Name        string             `json:"name"`
	Description *string            `json:"description"`
	ImageRef    json.RawMessage    `json:"imageRef"`
	FlavorRef   json.RawMessage    `json:"flavorRef"`
	Metadata    map[string]*string `json:"metadata"`
	Networks    json.RawMessage    `json:"networks"`
	MinCount    json.RawMessage    `json:"min_count"`
	MaxCount    json.RawMessage    `json:"max_count"`
	Zone        string             `json:"availability_zone"`
	Tags        json.RawMessage    `json:"tags"`
	// Project may be said, if it is that of the token.
	Project string `json:"project"`
	// KeyName and UserData are what its machine is told at the first start.
	KeyName  string `json:"key_name"`
	UserData string `json:"user_data"`
	told
}

// anyZone is the zone that clients name who know no other. Any other is the name
// of a cluster.
const anyZone = server.OwnZone

func createServer(r *request) (result, error) {
	var body struct {
		Server   *creation
		Hints    hints `json:"os:scheduler_hints"`
		OldHints hints `json:"OS-SCH-HNT:scheduler_hints"`
	}
	if err := r.read(bodyOfCreation, &body); err != nil {
		return result{}, err
	}
	if body.Server == nil {
		return result{}, fault.New(fault.Invalid, "Invalid input: 'server' is a required property").At("server")
	}
	wish, err := r.wish(body.Server)
	if err != nil {
		return result{}, err
	}
	if wish.Group, err = r.hinted(body.Hints, body.OldHints); err != nil {
		return result{}, err
	}
	wish.Members = r.quota()[quota.ServerGroupMembers]
	least, most, err := countOf(body.Server)
	if err != nil {
		return result{}, err
	}
	if most > 1 && slices.ContainsFunc(wish.Nets, func(net server.Net) bool { return net.IP != "" }) {
		return result{}, fault.New(fault.Invalid, "Unable to create servers: fixed IP addresses cannot be given to more than one").At("networks")
	}
	release, err := r.api.cfg.Keep(wish.Project)
	if err != nil {
		return result{}, err
	}
	made, err := r.api.cfg.Engine.CreateMany(r.Context(), wish, least, most)
	release()
	if fault.Is(err, fault.Denied) {
		err = refused{err, http.StatusForbidden}
	}
	if err != nil {
		return result{}, err
	}
	s := made[0] // clients find the others in a list
	r.w.Header().Set("Location", r.link(s))
	if r.flavour == cyclades {
		return result{http.StatusAccepted, object{"server": r.full(s)}}, nil
	}
	return result{http.StatusAccepted, object{"server": object{"id": s.ID, "links": r.brief(s)["links"],
		"security_groups": []any{object{"name": "default"}}, "OS-DCF:diskConfig": diskConfig(s)}}}, nil
}

// wish reads what is wanted.
func (r *request) wish(c *creation) (*tagsync.Wish, error) {
	if err := checkServerName(c.Name); err != nil {
		return nil, err
	}
	engine := r.api.cfg.Engine
	w := &tagsync.Wish{Name: c.Name, Project: r.session.Project.ID, User: r.session.User.ID, Asked: r.asked()}
	size, err := r.flavor(reference(c.FlavorRef))
	if err != nil {
		return nil, badReference(err)
	}
	w.Flavor = size.Flavor
	if w.Image, err = r.bootImage(reference(c.ImageRef)); err != nil {
		return nil, badReference(err)
	}
	if c.Zone != "" && c.Zone != anyZone {
		if w.Backend = c.Zone; !engine.HasBackend(c.Zone) {
			return nil, fault.New(fault.Invalid, "The requested availability zone is not available: %s", fault.Clip(c.Zone, 100)).At("availability_zone")
		}
	}
	if err := w.Image.Fits(w.Backend, w.Flavor); err != nil {
		return nil, err
	}
	if c.Project != "" && c.Project != w.Project {
		return nil, fault.New(fault.Invalid, "A server is made in the project of the token, %s, not in %s", w.Project, fault.Clip(c.Project, 100)).At("project")
	}
	if w.Description, err = r.description(c.Description, ""); err != nil {
		return nil, err
	}
	if w.Told, err = c.over(server.Told{}); err != nil {
		return nil, err
	}
	if w.Metadata, err = textsOf(c.Metadata); err != nil {
		return nil, err
	}
	if err := r.checkMetadata(w.Metadata, 0); err != nil {
		return nil, err
	}
	if w.Guest, err = r.guest(c, &w.Image); err != nil {
		return nil, err
	}
	if w.NICs, w.Nets, err = r.nics(c.Networks, w.Backend); err != nil || c.Tags == nil {
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

// countOf is how many servers are to be made at least, and at most.
func countOf(c *creation) (least, most int, err error) {
	if least, err = readCount("min_count", c.MinCount, 1); err != nil {
		return 0, 0, err
	}
	if most, err = readCount("max_count", c.MaxCount, least); err != nil {
		return 0, 0, err
	}
	if least > most {
		return 0, 0, fault.New(fault.Invalid, "min_count must be <= max_count").At("min_count")
	}
	if most > 1 {
		return least, most, checkServerName(c.Name + "-" + strconv.Itoa(most))
	}
	return least, most, nil
}

// readCount reads a number of servers, or returns another if the request says none.
func readCount(key string, raw json.RawMessage, otherwise int) (int, error) {
	text := reference(raw)
	if text == "" || text == "null" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxAtOnce {
		return 0, fault.New(fault.Invalid, "Invalid input for field/attribute %s. Value: %s. It must be a number from 1 to %d", key, fault.Clip(text, 40), maxAtOnce).At(key)
	}
	return n, nil
}

// reference is an id that clients write as a string or as a number, or as the
// end of a URL.
func reference(raw json.RawMessage) string {
	text := wordOf(raw)
	return text[strings.LastIndexByte(text, '/')+1:]
}

// wordOf is what clients write as a string or as a number.
func wordOf(raw json.RawMessage) string {
	var s *string
	if json.Unmarshal(raw, &s) == nil && s != nil {
		return *s
	}
	return string(raw)
}

// badReference says of what a body refers to, and is not there, that the body
// is wrong.
func badReference(err error) error { return fault.New(fault.Invalid, "%s", err.Error()) }

// nics is how many interfaces a server is to have, and the networks that they are to be in, if those were chosen.
func (r *request) nics(networks json.RawMessage, backend string) (int, []server.Net, error) {
	var wish any
	if networks != nil {
		if err := json.Unmarshal(networks, &wish); err != nil {
			return 0, nil, err
		}
	}
	list, isList := wish.([]any)
	switch {
	case wish == "none", isList && len(list) == 0:
		return 0, nil, nil
	case wish == "auto", wish == nil && !r.since(withNetworks):
		return 1, nil, nil
	case isList:
		nets, err := r.wishedNets(list, backend)
		return len(nets), nets, err
	case wish == nil:
		return 0, nil, fault.New(fault.Invalid, "Invalid input: 'networks' is a required property").At("networks")
	}
	return 0, nil, fault.New(fault.Invalid, "Invalid input for field/attribute networks. It must be a list, \"auto\" or \"none\"").At("networks").
		WithHint("\"auto\" is one interface with the cluster's own settings, \"none\" is none")
}

// clearable reads a text that null takes away; nil if nothing is said.
func clearable(key string, raw json.RawMessage) (*string, error) {
	if raw == nil {
		return nil, nil //nolint:nilnil // nothing is said
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, fault.New(fault.Invalid, "Invalid input for field/attribute %s. It must be a text", key).At(key)
	}
	return &text, nil
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

// checkMetadata refuses items that are too long, and more than there may be, but for as many as the server had before: what is over a limit
// that was set later stays, and becomes less one by one.
func (r *request) checkMetadata(items map[string]string, before int) error {
	if most := r.quota()[quota.Metadata]; int64(len(items)) > most && len(items) > before {
		return r.tooMany(fault.New(fault.Denied, "Maximum number of metadata items exceeds %d", most).At("metadata"))
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
