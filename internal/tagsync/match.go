package tagsync

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// Matched is what a match does to a server, or would do.
type Matched struct {
	Server  string `json:"server"`
	Name    string `json:"name"`
	Backend string `json:"backend,omitempty"`
	// Before and After are the instances; Before has no UUID where that is not known.
	Before Identity `json:"before"`
	After  Identity `json:"after"`
	// Marked: the instance's own tag says that it was made for the server.
	Marked bool `json:"marked"`
}

// Identity is an instance as people see it.
type Identity struct {
	Instance string `json:"instance"`
	UUID     string `json:"uuid,omitempty"`
}

// Match has a server be an instance, named by name or UUID, which an operator vouches for: from then on it is known by its UUID.
// With dry nothing is changed. Errors are those of server.Match, and Unavailable for a cluster that does not answer.
func (e *Engine) Match(ctx context.Context, id, instance string, dry bool, by audit.By) (*Matched, error) {
	e.matching.Lock() // an instance is one server's
	defer e.matching.Unlock()
	s := e.Servers().Get(id)
	if s == nil {
		return nil, errNoServer(id)
	}
	b := e.cfg.Backends[s.Backend]
	if b == nil {
		return nil, fault.New(fault.NotFound, "the cluster %s of server %s is not configured any more", s.Backend, id)
	}
	own, err := e.look(ctx, b, s)
	if err != nil {
		return nil, err
	}
	sight, err := b.Look(ctx, server.Ref{UUID: instance, Name: instance}, nil)
	if err != nil {
		return nil, err
	}
	own.Now, sight.Now = e.Now(), e.Now()
	m := &Matched{Server: s.ID, Name: s.Name, Backend: s.Backend, Before: Identity{s.Instance, s.UUID}, After: Identity{sight.Name, sight.UUID},
		Marked: slices.Contains(sight.Tags, server.Mark(s.ID))}
	match := func(s *server.Server) (*server.Server, error) {
		return s.Match(s.Own(own), sight, e.Servers().At(s.Backend, sight.UUID), func(id string) bool { return e.Servers().Get(id) != nil })
	}
	if dry {
		_, err := match(s)
		return m, err
	}
	if _, err := e.changeBeside(id, match, func(tx *store.Tx, c *state.Change) { e.note(tx, c, m, by) }); err != nil {
		return nil, err
	}
	e.kick(id)
	return m, nil
}

// note has an event tell of a match.
func (e *Engine) note(tx *store.Tx, c *state.Change, m *Matched, by audit.By) {
	event := audit.New(audit.ServerMatch, m.Server, by)
	event.Name = m.Name
	event.Before, _ = json.Marshal(m.Before) //nolint:errchkjson // texts alone
	event.After, _ = json.Marshal(m.After)   //nolint:errchkjson // the same
	c.Events = append(c.Events, e.cfg.Note(tx, event))
}
