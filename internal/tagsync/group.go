package tagsync

import (
	"cmp"
	"context"
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
)

// KindGroup has the server groups of projects, by id.
const KindGroup store.Kind = "server-group"

func groupKey(id string) store.Key { return store.Key{Kind: KindGroup, ID: id} }

// readGroups reads the server groups that are stored.
func (e *Engine) readGroups(ctx context.Context) error {
	groups := map[string]*server.Group{}
	for o, err := range e.cfg.Store.List(ctx, KindGroup, store.Options{}) {
		if err != nil {
			return err
		}
		g, err := server.DecodeGroup(o.Value)
		if err != nil { // its servers keep their tags: nobody has removed it
			e.cfg.Log.Error("an object cannot be read and is set aside; restore it from a backup", "object", "server group "+o.ID)
			g = &server.Group{ID: o.ID}
		}
		groups[o.ID] = g
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.groups = groups
	return nil
}

// Groups are the server groups of a project, or of all if none is named, the oldest first.
func (e *Engine) Groups(project string) (out []*server.Group) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, g := range e.groups {
		if g.Name != "" && (project == "" || g.Project == project) {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b *server.Group) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// errNoGroup is what is found of a group that a project does not have.
func errNoGroup(id string) *fault.Error {
	return fault.New(fault.NotFound, "Instance group %s could not be found.", fault.Clip(id, 100)).At("group")
}

// Group finds a server group of a project; NotFound when it has none of the id.
func (e *Engine) Group(project, id string) (*server.Group, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if g := e.groups[id]; g != nil && g.Name != "" && g.Project == project {
		return g, nil
	}
	return nil, errNoGroup(id)
}

// HasGroup tells whether there is a group, whoever owns it.
func (e *Engine) HasGroup(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.groups[id] != nil
}

// Members are the ids of the servers of a project that are in groups, by these, the oldest first, with those that are on their way into the store.
func (e *Engine) Members(project string) map[string][]string {
	e.mu.Lock()
	grouped := e.grouped(project)
	e.mu.Unlock()
	slices.SortFunc(grouped, func(a, b *server.Server) int { return cmp.Compare(a.Number, b.Number) })
	ids := map[string][]string{}
	for _, s := range grouped {
		for _, group := range s.Groups() {
			ids[group] = append(ids[group], s.ID)
		}
	}
	return ids
}

// grouped are the servers of a project that are in a group. The caller holds mu.
func (e *Engine) grouped(project string) (all []*server.Server) {
	for s := range e.of(project) {
		if s.Deleted == 0 && len(s.Groups()) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// AddGroup writes down a new server group. Denied when its project has as many as it may have; a limit below zero is none.
func (e *Engine) AddGroup(ctx context.Context, g server.Group, most int64) (*server.Group, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	if now := e.format(); now < format.Groups {
		return nil, fault.New(fault.WrongState, "groups of servers need format %d of the store, which has %d", format.Groups, now).At("server_group").
			WithHint("it is raised when all controllers know it: drover cluster format info")
	}
	done, err := e.grouping.Change(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if has := int64(len(e.Groups(g.Project))); most >= 0 && has >= most {
		return nil, fault.New(fault.Denied, "Quota exceeded, too many server groups.").At("server_group").WithHint("the project has %d, and may have %d", has, most)
	}
	g.ID, g.Created = e.cfg.NewUUID(), e.Now()
	value, err := g.Encode()
	if err != nil {
		return nil, err
	}
	tx := store.Tx{Epoch: e.cfg.Epoch, Put: []store.Put{{Key: groupKey(g.ID), Value: value}}}
	err = e.grouping.Commit(ctx, e.cfg.Store, tx, func() { e.setGroup(g.ID, &g) })
	return &g, err
}

// RemoveGroup removes a server group of a project. Its servers stay, and are in it no more; so is one that joins it at that moment.
func (e *Engine) RemoveGroup(ctx context.Context, project, id string) error {
	done, err := e.grouping.Change(ctx)
	if err != nil {
		return err
	}
	var g *server.Group
	defer func() {
		done() // behind which it is known whether the group is there
		if g != nil {
			for _, member := range e.Members(project)[id] {
				e.kick(member)
			}
		}
	}()
	if g, err = e.Group(project, id); err != nil {
		return err
	}
	return e.grouping.Commit(ctx, e.cfg.Store, store.Tx{Epoch: e.cfg.Epoch, Delete: []store.Key{groupKey(id)}}, func() { e.setGroup(id, nil) })
}

func (e *Engine) setGroup(id string, g *server.Group) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if g == nil {
		delete(e.groups, id)
		return
	}
	e.groups[id] = g
}

// join refuses servers that are to be made in a group which is not there any more, or has no room for them. The caller holds mu.
func (e *Engine) join(w *Wish, count int) error {
	if w.Group == nil {
		return nil
	}
	g := e.groups[w.Group.ID]
	if g == nil {
		return fault.New(fault.Invalid, "%s", errNoGroup(w.Group.ID).Error()).At("group")
	}
	has := int64(0)
	for _, s := range e.grouped(g.Project) {
		if s.In(g.ID) {
			has++
		}
	}
	if w.Members >= 0 && has+int64(count) > w.Members {
		return fault.New(fault.Denied, "Quota exceeded, too many servers in group").At("group").WithHint("it has %d, and may have %d", has, w.Members)
	}
	return nil
}

// leaving takes a server out of groups that were removed.
func (e *Engine) leaving(s *server.Server) *server.Server {
	return s.Leave(e.cfg.Policy, e.HasGroup, servertag.Asked{User: "drover", Front: "controller", Time: e.Now()})
}
