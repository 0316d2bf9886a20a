package world

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/sim/check"
	"github.com/drover-project/drover/internal/sim/history"
	"github.com/drover-project/drover/internal/sim/memory"
	"github.com/drover-project/drover/internal/sim/plan"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/tagsync"
)

// users is how many clients have servers, each its own and all those of the others.
const users = 2

// serverPrefix begins the names of the instances of servers.
const serverPrefix = "snf-"

// tagNames are the names of tags of servers.
const tagNames = 3

func (w *world) serve(parts *sync.WaitGroup) {
	w.cluster.someoneElses()
	for i := range users {
		u := &user{client: w.beside("user", i)}
		parts.Go(func() { u.rounds(u.wish) })
	}
}

// user asks for servers.
type user struct {
	*client

	ids []string // of the servers that were acknowledged
	// group is one in which it makes servers; nil for none.
	group *server.Group
}

// openServers opens the engine of servers in a term.
func (t *term) openServers(ctx context.Context, s store.Store, log *slog.Logger) (err error) {
	w := t.life.w
	if !w.plan.Has(plan.Servers) {
		return nil
	}
	t.servers, err = tagsync.Open(ctx, tagsync.Config{Store: s, Epoch: t.lease.Epoch, Picture: t.shown, Backends: map[string]tagsync.Backend{"": ofCluster{w.cluster, t.life}},
		Policy: servertag.DefaultPolicy(), Images: server.DefaultImages, Prefix: serverPrefix, Now: time.Now, NewUUID: w.newUUID, Log: log})
	if err == nil {
		t.servers.Run()
	}
	return err
}

// by is a request of the user, which tells it from all others.
func (u *user) by(t *term) servertag.Asked {
	return servertag.Asked{User: u.name, Front: "compute", Request: fmt.Sprintf("%s-%v", u.name, u.w.since()), Time: t.servers.Now()}
}

// wish asks for one thing or another.
func (u *user) wish(n int) {
	if len(u.ids) == 0 || u.draw.IntN(5) == 0 {
		u.create()
		return
	}
	id := u.ids[u.draw.IntN(len(u.ids))]
	tag := fmt.Sprintf("t%d", u.draw.IntN(tagNames))
	object := "tag " + id + "/" + tag
	switch u.draw.IntN(8) {
	case 0, 1, 2:
		u.about(id, history.Input{Object: object, Do: "add"}, func(t *term) (string, error) {
			_, err := t.servers.Want(id, servertag.User, []string{tag}, u.by(t))
			return "", err
		})
	case 3, 4:
		u.about(id, history.Input{Object: object, Do: "remove"}, func(t *term) (string, error) {
			was, err := t.servers.Unwant(id, servertag.User, tag, u.by(t))
			return map[bool]string{true: history.There, false: history.Absent}[was], err
		})
	case 5:
		u.begin(id, server.Stop)
	case 6:
		u.begin(id, server.Start)
	default:
		switch n % 3 {
		case 1:
			u.rebuild(id)
		case 2:
			u.regroup()
		default:
			u.ids = slices.DeleteFunc(u.ids, func(x string) bool { return x == id })
			u.begin(id, server.Delete)
		}
	}
}

// about asks something of a server. One that is gone, or is being deleted, has no tags.
func (u *user) about(id string, in history.Input, do func(*term) (string, error)) {
	u.once(in, func(_ context.Context, t *term) (history.Output, error) {
		u.midst(t)
		is, err := do(t)
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.WrongState) {
			u.w.tellf(u.name, "%s is gone: %v", id, err)
			return history.Output{}, fault.New(fault.Unavailable, "%w", err)
		}
		return history.Output{Is: is}, err
	})
}

// midst has happen what the plan has for the midst of a change: about when it takes effect, and is not answered yet.
func (u *user) midst(t *term) {
	time.AfterFunc(u.w.streams.Between("wish/"+u.name, 300*time.Microsecond, 2500*time.Microsecond), func() { u.w.crosses(plan.Wish, t.life.process) })
}

func (u *user) create() {
	t := u.leader()
	u.midst(t)
	name := fmt.Sprintf("%s-%d", u.name, len(u.ids))
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	s, err := t.servers.Create(ctx, &tagsync.Wish{Name: name, Project: "p", User: u.name, Flavor: server.DefaultFlavors()[0], Image: t.servers.Images()[0], Group: u.group, Members: -1, Tags: []string{"made"}, Asked: u.by(t)})
	if err != nil || ctx.Err() != nil || t.life.cross(plan.Told) != nil {
		u.w.tellf(u.name, "does not know what became of server %s", name)
		return
	}
	u.w.tellf(u.name, "server %s is %s", name, s.ID)
	u.ids = append(u.ids, s.ID)
	u.w.mu.Lock()
	u.w.servers[s.ID] = &wanted{by: u.name}
	u.w.mu.Unlock()
}

// wanted is a server that was acknowledged.
type wanted struct {
	by string
	// deleted: somebody asked for its end.
	deleted bool
	// rebuilds are the requests for it to be rebuilt that were acknowledged.
	rebuilds []string
}

// begin has something done to a server; it may be refused.
func (u *user) begin(id string, do server.Do) {
	if do == server.Delete {
		u.w.mu.Lock()
		u.w.servers[id].deleted = true
		u.w.mu.Unlock()
	}
	t := u.leader()
	u.midst(t)
	_, err := t.servers.Begin(id, do, u.by(t))
	u.w.tellf(u.name, "%s %s: %v", do, id, fault.CodeOf(err))
}

// rebuild asks for a rebuild of a server, and keeps in mind that it was taken.
func (u *user) rebuild(id string) {
	t := u.leader()
	u.midst(t)
	by := u.by(t)
	_, err := t.servers.Rebuild(id, server.Renewal{Image: t.servers.Images()[0]}, by, func(s *server.Server) (*server.Server, error) { return s, nil })
	u.w.tellf(u.name, "rebuild %s (%s): %v", id, by.Request, fault.CodeOf(err))
	if err != nil || t.life.cross(plan.Told) != nil {
		return
	}
	u.w.mu.Lock()
	defer u.w.mu.Unlock()
	u.w.servers[id].rebuilds = append(u.w.servers[id].rebuilds, by.Request)
}

// regroup makes a group of servers, or removes the one that there is.
func (u *user) regroup() {
	t := u.leader()
	u.midst(t)
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	if u.group != nil {
		err := t.servers.RemoveGroup(ctx, "p", u.group.ID)
		u.w.tellf(u.name, "removes group %s: %v", u.group.ID, fault.CodeOf(err))
		u.group = nil
		return
	}
	g, err := t.servers.AddGroup(ctx, server.Group{Name: u.name, Project: "p", User: u.name, Policy: server.AntiAffinity}, -1)
	u.w.tellf(u.name, "makes group %+v: %v", g, fault.CodeOf(err))
	if err == nil {
		u.group = g
	}
}

// wished takes in what is stored of servers. What users want of one stays as long as its record does, be its instance there or not.
func (w *world) wished(c memory.Committed) {
	for _, x := range c.Writes {
		if x.Key.Kind != tagsync.KindServer {
			continue
		}
		s, err := server.Decode(x.Value)
		if x.Deleted || err != nil {
			w.wishes.Gone(x.Key.ID)
			continue
		}
		now := check.Wishes{Generation: s.Tags.Generation, Newest: [2]int64{s.Serial, s.Tags.Serial}, Jobs: map[string]bool{}}
		for _, tag := range s.Tags.Wanted(servertag.User) {
			now.Tags += tag.Raw + " "
		}
		for _, task := range s.Tasks {
			now.Jobs[fmt.Sprintf("task %d, %s by %s", task.Serial, task.Do, task.Asked)] = task.Job != 0
		}
		for i := range s.Tags.Jobs {
			now.Jobs[fmt.Sprintf("tags %d", s.Tags.Jobs[i].Serial)] = s.Tags.Jobs[i].ID != 0
		}
		w.wishes.Stored(x.Key.ID, now)
	}
}

// serversUndone tells of a server that is not as it is wanted yet. The tags of one that could
// not be made come to nothing; one whose instance was denied finds it again.
func (t *term) serversUndone() string {
	for s := range t.servers.Servers().All() {
		if s.Deleted != 0 && t.life.w.cluster.has(s.UUID) {
			return fmt.Sprintf("server %s is said to be gone (%s), and its instance is there", s.ID, s.Gone)
		}
		if len(s.Tasks) > 0 || (s.Status() != server.Failed || s.Broken != nil) && s.PendingTags() != 0 || len(s.Tags.Jobs) > 0 {
			return fmt.Sprintf("server %s is %s, with %d tasks, %d jobs, and its tags are %+v", s.ID, s.Status(), len(s.Tasks), len(s.Tags.Jobs), s.Tags.Tags)
		}
	}
	return ""
}

// serversStored holds what a leader shows of servers to what is stored.
func (t *term) serversStored() {
	w := t.life.w
	s := w.db.Open(memory.Handle{Name: "servers"})
	defer func() { _ = s.Close() }() // it never fails
	stored := 0
	for o, err := range s.List(context.Background(), tagsync.KindServer, store.Options{}) {
		var is []byte
		shown := t.servers.Servers().Get(o.ID)
		if err == nil && shown != nil {
			is, err = shown.Encode()
		}
		if stored++; err != nil || !bytes.Equal(is, o.Value) {
			w.verdict.Breakf(check.PictureStored, "the leader shows server %s as %s, and stored is %s (%v)", o.ID, is, o.Value, err)
		}
	}
	if shown := t.servers.Servers().Len(); shown != stored {
		w.verdict.Breakf(check.PictureStored, "the leader shows %d servers, and %d are stored", shown, stored)
	}
}

// rebuilt holds what a server tells of its rebuilds against what its users were told, and against its cluster.
func (t *term) rebuilt(s *server.Server) {
	w := t.life.w
	for _, request := range w.servers[s.ID].known() {
		i := slices.IndexFunc(s.Done, func(a server.Act) bool { return a.Do == server.Rebuild && a.Asked.Request == request })
		if i < 0 {
			w.verdict.Breakf(check.RebuiltOnce, "the rebuild of server %s that %s asked for was acknowledged, and nothing is told of it: %+v", s.ID, request, s.Done)
			continue
		}
		var j *remoteJob
		for asked, job := range w.cluster.rebuilds {
			if strings.HasSuffix(asked, ", request "+request) {
				j = job
			}
		}
		failed := s.Done[i].Failed
		switch {
		case failed == "" && (j == nil || !j.outcome.OK):
			w.verdict.Breakf(check.RebuiltOnce, "server %s was rebuilt as %s asked, it says, and its cluster has %+v", s.ID, request, j)
		case failed != "":
			w.Reached.Add("a rebuild is told as failed")
		default:
			w.Reached.Add("a server is rebuilt")
		}
	}
}

// known are the rebuilds that were acknowledged; none of a server of which nobody was told.
func (s *wanted) known() []string {
	if s == nil {
		return nil
	}
	return s.rebuilds
}

// serversAgree holds servers against their cluster.
func (t *term) serversAgree() {
	w := t.life.w
	t.serversStored()
	owned := map[string]bool{}
	for s := range t.servers.Servers().All() {
		if s.Status() == server.Failed && s.Broken == nil || s.Deleted != 0 {
			w.Reached.Add("servers: " + string(s.Status()))
			continue
		}
		owned[s.Instance] = true
		i := w.cluster.instances[s.Instance]
		if i == nil || i.uuid != s.UUID {
			w.verdict.Breakf(check.OnItsNode, "server %s is %s, and on the cluster there is %+v", s.ID, s.Instance, i)
			continue
		}
		names := s.Tags.Names(servertag.User)
		grouped := s.Tags.Wanted(servertag.Placed)
		for _, group := range s.Groups() {
			if w.Reached.Add("a server is in a group at the end"); !t.servers.HasGroup(group) {
				w.verdict.Breakf(check.InGroups, "server %s is in the group %s, which there is not", s.ID, group)
			}
		}
		for _, tag := range grouped {
			if !i.tags[tag.Raw] {
				w.verdict.Breakf(check.InGroups, "%s of server %s is not on its instance, which has %v", tag.Raw, s.ID, i.tags)
			}
		}
		t.rebuilt(s)
		for _, name := range names {
			if raw := s.Tags.Find(servertag.User, name).Raw; !i.tags[raw] {
				w.verdict.Breakf(check.TagsWanted, "%s of server %s is not on its instance, which has %v", raw, s.ID, i.tags)
			}
		}
		if len(names)+len(grouped) != len(i.tags) {
			w.verdict.Breakf(check.TagsWanted, "server %s is to have %v and to be in %v, and its instance has %v", s.ID, names, s.Groups(), i.tags)
		}
	}
	for id, s := range w.servers {
		if t.servers.Servers().Get(id) == nil && !s.deleted {
			w.verdict.Breakf(check.Acknowledged, "server %s of %s is not there", id, s.by)
		}
	}
	for name, i := range w.cluster.instances {
		if was, foreign := w.cluster.foreign[name]; !owned[name] && (!foreign || was.uuid != i.uuid) {
			w.verdict.Breakf(check.NothingLeft, "the instance %s is nobody's", name)
		}
	}
	for name, was := range w.cluster.foreign {
		if i := w.cluster.instances[name]; i == nil || !reflect.DeepEqual(*i, was) {
			w.verdict.Breakf(check.LeftAlone, "there was an instance %s of somebody else, %+v, and now it is %+v", name, was, i)
		}
	}
}
