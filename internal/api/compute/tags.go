package compute

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

// tagged is the server of a request about tags. Nova has them since 2.26. Some
// clients name no version at all on these calls, and are served. Tags may be
// written while a server is being built: they go to the cluster when it is there.
func (r *request) tagged() (*server.Server, error) {
	if r.flavour == nova && r.said && !r.since(withTags) {
		return nil, errNoRoute
	}
	s, err := r.server()
	if err != nil || r.Method == http.MethodGet {
		return s, err
	}
	switch status := s.Status(); {
	case r.flavour == cyclades && status == server.Gone:
		return nil, fault.New(fault.Invalid, "Server has been deleted.")
	case r.flavour == nova && (status == server.Gone || status == server.Failed):
		return nil, fault.New(fault.WrongState, "Cannot 'update tags' instance %s while it is in vm_state %s", s.ID, vmStates[status].vm)
	}
	return s, nil
}

// tagsBody lists tags; Cyclades' flavour tells the status of each.
func (r *request) tagsBody(s *server.Server) object {
	out := object{"tags": s.Tags.Names(servertag.User)}
	if r.flavour == cyclades {
		statuses := []string{}
		for _, t := range s.Tags.Wanted(servertag.User) {
			statuses = append(statuses, string(t.Status()))
		}
		out["statuses"] = statuses
	}
	return out
}

func listTags(r *request) (result, error) {
	s, err := r.tagged()
	if err != nil {
		return result{}, err
	}
	return result{http.StatusOK, r.tagsBody(s)}, nil
}

func replaceTags(r *request) (result, error) {
	s, err := r.tagged()
	if err != nil {
		return result{}, err
	}
	var body map[string]json.RawMessage
	if err := r.read(bodyOfTags, &body); err != nil {
		return result{}, err
	}
	names, err := onlyTags(body)
	if err != nil {
		return result{}, err
	}
	if err := r.room(names); err != nil {
		return result{}, err
	}
	if s, err = r.api.cfg.Engine.Replace(s.ID, servertag.User, names, r.asked()); err != nil {
		return result{}, err
	}
	return result{http.StatusOK, r.tagsBody(s)}, nil
}

// onlyTags reads an object with the key tags and no other.
func onlyTags(body map[string]json.RawMessage) ([]string, error) {
	text, ok := body["tags"]
	if !ok {
		return nil, fault.New(fault.Invalid, "Invalid input: 'tags' is a required property").At("tags")
	}
	for key := range body {
		if key != "tags" {
			return nil, fault.New(fault.Invalid, "Invalid input: Additional properties are not allowed ('%s' was unexpected)", fault.Clip(key, 100)).At(key)
		}
	}
	return readTags(text)
}

// readTags reads a list of strings.
func readTags(text []byte) ([]string, error) {
	var raw []*string
	if err := json.Unmarshal(text, &raw); err != nil || raw == nil {
		return nil, fault.New(fault.Invalid, "Invalid input for field/attribute tags. It must be a list of strings").At("tags")
	}
	names := make([]string, len(raw))
	for i, name := range raw {
		if name == nil {
			return nil, fault.New(fault.Invalid, "Invalid input for field/attribute %d. Value: None. None is not of type 'string'", i).At("tags")
		}
		names[i] = *name
	}
	return names, nil
}

// room refuses a list that is too long by itself, also by repetitions.
func (r *request) room(names []string) error {
	if most := r.api.cfg.Engine.Policy().Max[servertag.User]; len(names) > most {
		return fault.New(fault.BadTag, "The number of tags exceeded the per-server limit %d", most).At("tags")
	}
	return nil
}

func deleteTags(r *request) (result, error) {
	s, err := r.tagged()
	if err != nil {
		return result{}, err
	}
	_, err = r.api.cfg.Engine.Replace(s.ID, servertag.User, nil, r.asked())
	return result{status: http.StatusNoContent}, err
}

func checkTag(r *request) (result, error) {
	s, err := r.tagged()
	if err != nil {
		return result{}, err
	}
	t := s.Tags.Find(servertag.User, r.path[1])
	if t == nil || !t.Wanted {
		return result{}, noTag("Server", s, r.path[1])
	}
	r.w.Header().Set("Tag-Status", string(t.Status()))
	return result{status: http.StatusNoContent}, nil
}

func noTag(what string, s *server.Server, name string) error {
	return fault.New(fault.NotFound, "%s %s has no tag '%s'", what, s.ID, fault.Clip(name, 4*servertag.MaxName))
}

func addTag(r *request) (result, error) {
	s, err := r.tagged()
	if err == nil {
		err = r.noBody()
	}
	if err != nil {
		return result{}, err
	}
	created, err := r.api.cfg.Engine.Want(s.ID, servertag.User, r.path[1:], r.asked())
	if err != nil || len(created) == 0 {
		return result{status: http.StatusNoContent}, err
	}
	r.w.Header().Set("Location", r.link(s)+"/tags/"+url.PathEscape(r.path[1]))
	return result{status: http.StatusCreated}, nil
}

// noBody refuses a body where Nova has none; Cyclades does not look at it.
func (r *request) noBody() error {
	text, err := r.body()
	if err != nil || r.flavour == cyclades {
		return err
	}
	if text = bytes.TrimSpace(text); len(text) > 0 && string(text) != "null" {
		return fault.New(fault.Invalid, "Invalid input: a tag is added without a body").At("body")
	}
	return nil
}

func deleteTag(r *request) (result, error) {
	s, err := r.tagged()
	if err != nil {
		return result{}, err
	}
	was, err := r.api.cfg.Engine.Unwant(s.ID, servertag.User, r.path[1], r.asked())
	if err == nil && !was {
		err = noTag("Instance", s, r.path[1])
	}
	return result{status: http.StatusNoContent}, err
}

// lifeOfTag tells all that is known of a tag: who asked for it, by which
// request, which jobs it had, what the cluster said, and what it waits for. Also of
// one that is to be gone and is there still.
func lifeOfTag(r *request) (result, error) {
	s, err := r.server()
	if err != nil {
		return result{}, err
	}
	t := s.Tags.Find(servertag.User, r.path[1])
	if t == nil {
		return result{}, noTag("Server", s, r.path[1])
	}
	events := []any{}
	for _, e := range t.Life {
		events = append(events, object{"time": stamp(e.Time), "what": e.What, "job": e.Job, "text": e.Text})
	}
	out := object{"name": t.Name, "raw": t.Raw, "status": t.Status(), "wanted": t.Wanted, "generation": t.Generation, "tries": t.Tries, "events": events,
		"asked": object{"user": t.Asked.User, "front": t.Asked.Front, "request": t.Asked.Request, "time": stamp(t.Asked.Time)}}
	if t.Failure != nil {
		out["failure"] = t.Failure.Text
	}
	if j := s.Tags.Changing(t.Raw); j != nil {
		out["job"] = j.ID
		if j.ID != 0 && s.Backend == "" {
			out["waits"] = r.api.cfg.Waits(r.Context(), j.ID)
		}
	}
	return result{http.StatusOK, object{"tag": out}}, nil
}
