// Package tagsync keeps the servers of the Compute API and makes their clusters
// agree with them: it writes down what users want, submits the jobs for it, and
// takes in what the clusters show. All decisions are those of packages server
// and servertag.
//
// Each server has a worker of its own, which runs when something happened that
// concerns the server: a user's request, the end of a job, a change on the
// cluster, the time for another try. It looks at everything anew each time, so a
// happening that it is not told of, or told of twice or late, changes nothing
// but the moment. Nothing polls.
//
// Invariants:
//   - Only the engine writes servers, under the leader's epoch.
//   - What a user is told is durable, with all that it rests upon, and read by that user at once.
//   - Changes of one server reach the store in the order in which they were
//     decided. Each is made upon those before it without waiting for them, so they share commits.
//   - A change and the word that something is left to do about it are one
//     object, put in one transaction: a server with changes that its cluster does
//     not show yet stands in the store's order by time (store.Put.At) at the oldest of them.
//   - Absence is a statement of the cluster, with its source (Sight.Absent): no look that failed, and nothing that only sounds like it,
//     ends a server; and none drops what users want.
//   - A job is begun in the store before it is submitted, under a key that makes
//     submitting it again harmless.
package tagsync

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
)

// The kinds of objects that the engine keeps in the store.
const (
	KindServer store.Kind = "server"
	// KindNumber has the greatest number of a server so far, under one id.
	KindNumber store.Kind = "server-number"
	// KindPast has what is kept of servers that are done with, at the time when they went.
	KindPast store.Kind = "server-past"
	// KindLock has the locks of servers, under the ids of these.
	KindLock store.Kind = "server-lock"
)

// NumberKey is where the greatest number is.
var NumberKey = store.Key{Kind: KindNumber, ID: "newest"}

// Floor is the object that keeps numbers of servers from being given again that a cluster gave
// out which was restored from a backup: new ones are greater than Number.
type Floor struct {
	Number int64 `json:"number"`
}

// FloorKey is where the Floor is, if there is one; behind the greatest number in the order of ids.
var FloorKey = store.Key{Kind: KindNumber, ID: "reserved"}

// Config is what an engine needs.
type Config struct {
	Store   store.Store
	Epoch   int64  // of the leader lease; 0 where there is none
	Life    string // of the store
	Picture *picture.Picture
	// Note adds an event to the transaction of the change that it tells of, and returns it with its number.
	Note func(tx *store.Tx, e audit.Event) *audit.Event
	// Format tells the format of the store; nil for the newest.
	Format func() int
	// Backends are the clusters by name; the one without a name is where new
	// servers go that ask for none.
	Backends map[string]Backend
	Policy   *servertag.Policy
	// Room is how much the servers of a project may take; nil for no limit.
	Room func(project string) server.Amount
	// Images tells which operating systems servers can be made from.
	Images func() server.Images
	// Prefix begins the names of instances, which end with the numbers of servers; First is the least
	// number of a new one, 0 for 1.
	Prefix  string
	First   int64
	Now     func() time.Time
	NewUUID func() string
	Log     *slog.Logger
}

// Engine keeps servers.
type Engine struct {
	cfg Config

	matching sync.Mutex // held while a server is matched to an instance

	mu      sync.Mutex
	number  int64
	workers map[string]*worker // by server
	aside   []string
	closed  bool
	running sync.WaitGroup
	ctx     context.Context // ends when the engine closes
	stop    context.CancelFunc
	// places are how many workers may run at once, by cluster: one that does not
	// answer holds up none of the others' servers.
	places map[string]chan struct{}
	groups map[string]*server.Group // by id
	// grouping lets changes of groups in one at a time.
	grouping store.Mirror
	// making are servers, by id, as they are when what was handed to the store is shown: new ones, and those that get another size. They count as such.
	making map[string]*server.Server
}

// atOnce is how many servers of a cluster are worked on at once, if that is no more
// than allAtOnce of all clusters.
const (
	atOnce    = 64
	allAtOnce = 512
)

// placesOf shares the places out among clusters.
func placesOf(backends map[string]Backend) map[string]chan struct{} {
	places := map[string]chan struct{}{"": nil} // also for servers of clusters that are not configured any more
	for name := range backends {
		places[name] = nil
	}
	for name := range places {
		places[name] = make(chan struct{}, max(1, min(atOnce, allAtOnce/len(places))))
	}
	return places
}

// Open loads the servers and shows them. It takes requests and works on servers
// from Run on.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	e := &Engine{cfg: cfg, workers: map[string]*worker{}, making: map[string]*server.Server{}, places: placesOf(cfg.Backends)}
	e.ctx, e.stop = context.WithCancel(context.Background())
	e.grouping.Read = e.readGroups
	newest, err := cfg.Store.Get(ctx, NumberKey)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	var servers []*server.Server
	aside := map[string]bool{}
	for o, err := range cfg.Store.List(ctx, KindServer, store.Options{}) {
		if err != nil {
			return nil, err
		}
		s, err := server.Decode(o.Value)
		if err != nil {
			aside[o.ID], e.aside = true, append(e.aside, "server "+o.ID+" cannot be read and is set aside: "+err.Error())
			continue
		}
		servers = append(servers, s)
	}
	if err == nil {
		e.number = e.newestNumber(string(newest.Value), servers)
	}
	if err := e.floor(ctx); err != nil {
		return nil, err
	}
	if err := e.readGroups(ctx); err != nil {
		return nil, err
	}
	left, err := e.locks(ctx, servers, aside)
	if err != nil {
		return nil, err
	}
	return e, e.commit(left, &state.Change{Servers: servers})
}

// jump is how many numbers are passed over where nobody knows which were given.
const jump = 1_000_000

// newestNumber reads the greatest number that a server got. Numbers are never used again:
// if it cannot be read, it is far above those of the servers that there are.
func (e *Engine) newestNumber(text string, servers []*server.Server) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return n
	}
	e.aside = append(e.aside, "the number of the newest server cannot be read, numbers go on far above: "+err.Error())
	greatest := int64(0)
	for _, s := range servers {
		greatest = max(greatest, s.Number)
	}
	return greatest + jump
}

// floor keeps the numbers up to the floor from being given, and those below the first one. One that cannot be read is far
// above what is known.
func (e *Engine) floor(ctx context.Context) error {
	e.number = max(e.number, e.cfg.First-1)
	o, err := e.cfg.Store.Get(ctx, FloorKey)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var f Floor
	if err := json.Unmarshal(o.Value, &f); err != nil {
		e.aside = append(e.aside, "the floor of the numbers of servers cannot be read, numbers go on far above: "+err.Error())
		f.Number = e.number + jump
	}
	e.number = max(e.number, f.Number)
	return nil
}

// Unreadable tells of stored servers that are set aside.
func (e *Engine) Unreadable() []string { return e.aside }

// Run begins to work on servers; Close ends that.
func (e *Engine) Run() {
	for name, b := range e.cfg.Backends {
		e.running.Go(func() {
			err := b.Follow(e.ctx, func(instance server.Ref) { e.happened(name, instance) })
			if err != nil && e.ctx.Err() == nil {
				e.cfg.Log.Error("a cluster is no longer followed", "backend", name, "error", err)
			}
		})
	}
}

// Close ends the work. What was begun goes on at the next start.
func (e *Engine) Close() {
	e.mu.Lock()
	e.closed = true
	e.stop()
	for _, w := range e.workers {
		if w.alarm != nil {
			w.alarm.Stop()
		}
	}
	e.mu.Unlock()
	e.running.Wait()
}

// happened has the workers of an instance look at it, or all workers of a cluster
// at theirs.
func (e *Engine) happened(backend string, instance server.Ref) {
	servers := e.Servers()
	if instance != (server.Ref{}) {
		if s := servers.At(backend, instance.UUID); s != nil {
			e.kick(s.ID)
		}
		for s := range servers.Called(backend, instance.Name) {
			e.kick(s.ID)
		}
		return
	}
	for s := range servers.All() {
		if s.Backend == backend {
			e.kick(s.ID)
		}
	}
}

// format is that of the store now.
func (e *Engine) format() int {
	if e.cfg.Format == nil {
		return format.Newest
	}
	return e.cfg.Format()
}

// Servers returns all servers as they are now.
func (e *Engine) Servers() *server.Table { return e.cfg.Picture.Load().Servers }

// Taken is what the servers of a project take together.
func (e *Engine) Taken(project string) server.Amount { return server.Taken(e.Servers().Of(project)) }

// Owns is how many servers a project owns, with those that are on their way into the store, whether or not anybody waits for them.
func (e *Engine) Owns(project string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for range e.of(project) {
		n++
	}
	return n
}

// Policy returns the rules about tags.
func (e *Engine) Policy() *servertag.Policy { return e.cfg.Policy }

// HasBackend reports whether there is a cluster of a name.
func (e *Engine) HasBackend(name string) bool { return e.cfg.Backends[name] != nil }

// Backends are the names of the clusters, in order; Drover's own has none.
func (e *Engine) Backends() []string { return slices.Sorted(maps.Keys(e.cfg.Backends)) }

// Now is the time as the engine has it.
func (e *Engine) Now() job.Time { return job.At(e.cfg.Now()) }

// Wish is a server that a user wants.
type Wish struct {
	Name, Description      string
	Metadata               map[string]string
	Told                   server.Told
	Project, User, Backend string
	Flavor                 server.Flavor
	Image                  server.Image
	NICs                   int
	Nets                   []server.Net
	Guest                  *server.Guest
	// Group is the server group that it is to be in, nil for none, and Members how many that may have; below zero any number.
	Group   *server.Group
	Members int64
	Tags    []string
	Asked   servertag.Asked
}

// Create writes down a server that is to be made. Its tags are checked like
// any others.
func (e *Engine) Create(ctx context.Context, w *Wish) (*server.Server, error) {
	made, err := e.CreateMany(ctx, w, 1, 1)
	if err != nil {
		return nil, err
	}
	return made[0], nil
}

// CreateMany writes down servers that are to be made, as many as their project has room for: at most the one number, and if there is no room
// for the other, none (Denied). The names of several end with -1, -2 and so on.
func (e *Engine) CreateMany(ctx context.Context, w *Wish, least, most int) ([]*server.Server, error) {
	tags, _, err := servertag.Set{}.Want(e.cfg.Policy, servertag.User, w.Tags, w.Asked)
	if err != nil {
		return nil, err
	}
	if e.cfg.Backends[w.Backend] == nil {
		return nil, fault.New(fault.NotFound, "there is no cluster %q for servers", w.Backend).At("backend")
	}
	if now := e.format(); now < format.Guests && (len(w.Nets) > 0 || w.Guest != nil) {
		return nil, fault.New(fault.WrongState, "networks, keys and user data of servers need format %d of the store, which has %d", format.Guests, now).At("server").
			WithHint("it is raised when all controllers know it: drover cluster format info")
	}
	if w.Group != nil {
		if w.Backend != "" {
			return nil, fault.New(fault.Invalid, "Servers of the availability zone %s can be in no group", w.Backend).At("group").
				WithHint("that cluster places its instances itself; leave the zone out")
		}
		if tags, _, err = tags.Want(e.cfg.Policy, servertag.Placed, []string{w.Group.Tag()}, w.Asked); err != nil {
			return nil, err
		}
	}
	asked := w.Asked
	asked.ID = w.User
	made := make([]*server.Server, most)
	for i := range made {
		s := &server.Server{
			ID: e.cfg.NewUUID(), Name: w.Name, Description: w.Description, Metadata: w.Metadata, Told: w.Told,
			Project: w.Project, User: w.User, Backend: w.Backend, Flavor: w.Flavor, Image: w.Image, NICs: w.NICs, Nets: w.Nets, Guest: w.Guest, Created: w.Asked.Time, Tags: tags,
		}
		if most > 1 {
			s.Name += "-" + strconv.Itoa(i+1)
		}
		if made[i], err = s.Begin(server.Create, asked); err != nil {
			return nil, err
		}
	}
	durable := make(chan error, 1)
	if made, err = e.enqueueNew(w, made, least, durable); err != nil {
		return nil, err
	}
	select {
	case err = <-durable:
	case <-ctx.Done():
		e.beside(func() {
			select {
			case err := <-durable:
				e.created(made, err)
			case <-e.ctx.Done(): // no stop waits for a store that does not answer
			}
		})
		return nil, context.Cause(ctx)
	}
	if fault.Is(err, fault.Unavailable) {
		e.beside(func() { e.created(made, err) })
		return nil, err
	}
	if e.created(made, err); err != nil {
		return nil, err
	}
	return made, nil
}

// created takes in what became of servers that were written down. Where nobody can tell the store is asked until it answers: what
// it has is made, and not left to whoever leads next.
func (e *Engine) created(servers []*server.Server, err error) {
	defer e.shown(servers)
	switch {
	case err == nil:
		e.cfg.Picture.Publish()
	case !fault.Is(err, fault.Unavailable):
		return
	}
	for _, s := range servers {
		for tries := 1; err != nil && e.refresh(s.ID) != nil; tries++ {
			select {
			case <-e.ctx.Done():
				return
			case <-time.After(pauses().After(tries)):
			}
		}
		e.kick(s.ID)
	}
}

// shown forgets that servers are on their way: they are there, or will never be.
func (e *Engine) shown(servers []*server.Server) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range servers {
		if s != nil {
			delete(e.making, s.ID)
		}
	}
}

// beside has something done beside the workers, unless the engine closes.
func (e *Engine) beside(do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.running.Go(do)
	}
}

// of yields the servers of a project, as they are when what is on its way is shown. The caller holds mu.
func (e *Engine) of(project string) iter.Seq[*server.Server] {
	there := e.Servers()
	return func(yield func(*server.Server) bool) {
		for s := range there.Of(project) {
			if !yield(cmp.Or(e.making[s.ID], s)) {
				return
			}
		}
		for id, s := range e.making {
			if s.Project == project && there.Get(id) == nil && !yield(s) {
				return
			}
		}
	}
}

// enqueueNew numbers servers of one project and size and hands them to the store, as many as there is room for, with numbers whose
// instances are nobody's yet. Numbers reach the store in their order, so that the
// greatest is written last.
func (e *Engine) enqueueNew(w *Wish, servers []*server.Server, least int, durable chan<- error) ([]*server.Server, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cfg.Room != nil {
		n, err := e.cfg.Room(servers[0].Project).Admit(e.of(servers[0].Project), servers[0].Flavor, least, len(servers))
		if err != nil {
			return nil, err
		}
		servers = servers[:n]
	}
	if err := e.join(w, len(servers)); err != nil {
		return nil, err
	}
	number, tx := e.number, store.Tx{}
	for _, s := range servers {
		for s.Instance == "" || e.cfg.Backends[s.Backend].Has(s.Instance) {
			number++
			s.Number, s.Instance = number, server.InstanceName(e.cfg.Prefix, number)
		}
		put, err := putOf(s)
		if err != nil {
			return nil, err
		}
		tx.Put = append(tx.Put, put)
	}
	e.number = number
	for _, s := range servers {
		e.making[s.ID] = s
	}
	tx.Put = append(tx.Put, store.Put{Key: NumberKey, Value: []byte(strconv.FormatInt(number, 10))})
	e.enqueue(tx, &state.Change{Servers: servers}, func(err error) { durable <- err })
	return servers, nil
}

func key(id string) store.Key { return store.Key{Kind: KindServer, ID: id} }

// putOf writes a server, at the time of the oldest change that is left to do.
func putOf(s *server.Server) (store.Put, error) {
	value, err := s.Encode()
	at := s.PendingTags()
	if task := s.Doing(); task != nil && (at == 0 || task.Asked.Time < at) {
		at = task.Asked.Time
	}
	return store.Put{Key: key(s.ID), At: int64(at), Value: value}, err
}

// commit makes a transaction durable and shows what it changed.
func (e *Engine) commit(tx store.Tx, c *state.Change) error {
	durable := make(chan error, 1)
	e.enqueue(tx, c, func(err error) { durable <- err })
	err := <-durable
	if err == nil {
		e.cfg.Picture.Publish()
	}
	return err
}

// enqueue hands a transaction to the store, and what it changes to the picture
// when it is durable. Then done is called, which must be quick.
func (e *Engine) enqueue(tx store.Tx, c *state.Change, done func(error)) {
	tx.Epoch = e.cfg.Epoch
	e.cfg.Store.Enqueue(tx, func(revision store.Revision, err error) {
		if err == nil {
			c.Revision = int64(revision)
			e.cfg.Picture.Committed(c)
		}
		done(err)
	})
}

// Resize begins to give a server another size, if its project has room for it. In the same change first is done to it, which may refuse that.
func (e *Engine) Resize(id string, to server.Flavor, by servertag.Asked, first func(*server.Server) (*server.Server, error)) (*server.Server, error) {
	if now := e.format(); now < format.Sizes {
		return nil, fault.New(fault.WrongState, "other sizes of servers need format %d of the store, which has %d", format.Sizes, now).At("resize").
			WithHint("it is raised when all controllers know it: drover cluster format info")
	}
	var sized *server.Server
	now, err := e.Change(id, func(s *server.Server) (*server.Server, error) {
		next, err := first(s)
		if err == nil {
			next, err = next.Resize(to, by)
		}
		if err == nil {
			err = e.hasRoom(s, next, to)
		}
		if err != nil {
			return nil, err
		}
		sized = next
		return next, nil
	})
	switch {
	case sized == nil:
	case fault.Is(err, fault.Unavailable): // it may be there: until that is known its room is taken
		e.beside(func() { e.created([]*server.Server{sized}, err) })
	default:
		e.shown([]*server.Server{sized})
	}
	return now, err
}

// hasRoom refuses a size for which the project of a server has no room. From then on the server counts as it will be.
func (e *Engine) hasRoom(s, next *server.Server, to server.Flavor) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cfg.Room != nil {
		if err := e.cfg.Room(s.Project).Grow(e.of(s.Project), s, to); err != nil {
			return err
		}
	}
	e.making[s.ID] = next
	return nil
}

// errNoServer is what is found of a server that is not there.
func errNoServer(id string) error {
	return fault.New(fault.NotFound, "Instance %s could not be found.", fault.Clip(id, 100))
}

// Change lets f change a server, after all changes before it, and makes the
// result durable. What f returns is put in place; nil removes the server, and
// the server itself leaves it as it is. Then its worker looks at it. NotFound when
// there is none.
func (e *Engine) Change(id string, f func(*server.Server) (*server.Server, error)) (*server.Server, error) {
	s, err := e.change(id, f)
	if err == nil || fault.Is(err, fault.Unavailable) { // what may have taken effect is shown, too, and done
		e.kick(id)
	}
	return s, err
}

// change is Change for the worker itself. A change is made upon those before it
// without waiting until they are durable, but nothing is told before.
func (e *Engine) change(id string, f func(*server.Server) (*server.Server, error)) (*server.Server, error) {
	return e.changeBeside(id, f, nil)
}

// changeBeside is change with something else in the same transaction, if anything changes.
func (e *Engine) changeBeside(id string, f func(*server.Server) (*server.Server, error), beside func(*store.Tx, *state.Change)) (*server.Server, error) {
	s, last, err := e.decide(id, f, beside)
	if last == nil {
		return s, err
	}
	<-last.durable
	if last.err != nil {
		return s, last.err
	}
	e.cfg.Picture.Publish()
	if s == nil && err == nil {
		e.forget(id)
	}
	return s, err
}

// decide lets f change a server and hands the result to the store. It returns
// the change that what is returned rests upon: that one, or the last before it if
// f changed nothing; nil if everything is durable.
func (e *Engine) decide(id string, f func(*server.Server) (*server.Server, error), beside func(*store.Tx, *state.Change)) (*server.Server, *pending, error) {
	w := e.workerOf(id)
	w.changing.Lock()
	defer w.changing.Unlock()
	if w.last.failed() { // only the store knows what became of it
		if err := e.refresh(id); err != nil {
			return nil, nil, err
		}
		w.last = nil
	}
	old := e.Servers().Get(id)
	if w.last != nil {
		old = w.last.server
	}
	if old == nil {
		if w.last == nil {
			e.forget(id)
		}
		return nil, w.last, errNoServer(id)
	}
	next, err := f(old)
	if err != nil || next == old {
		return old, w.last, err
	}
	tx, c := store.Tx{Delete: []store.Key{key(id)}}, &state.Change{ServersRemoved: []string{id}}
	if next != nil {
		put, err := putOf(next)
		if err != nil {
			return old, w.last, err
		}
		tx, c = store.Tx{Put: []store.Put{put}}, &state.Change{Servers: []*server.Server{next}}
	}
	if err := withLock(&tx, old, next); err != nil {
		return old, w.last, err
	}
	if beside != nil {
		beside(&tx, c)
	}
	w.last = &pending{server: next, durable: make(chan struct{})}
	e.enqueue(tx, c, w.last.settle)
	return next, w.last, nil
}

// refresh reads a server anew, after a change whose outcome only the store knows.
func (e *Engine) refresh(id string) error {
	s, err := e.stored(id)
	switch {
	case fault.Is(err, fault.NotFound):
		return e.commit(store.Tx{}, &state.Change{ServersRemoved: []string{id}})
	case err != nil && e.ctx.Err() != nil:
		return fault.New(fault.Unavailable, "the controller is stopping").WithHint("ask again when it runs, or another leads")
	case err != nil:
		return err
	}
	return e.commit(store.Tx{}, &state.Change{Servers: []*server.Server{s}})
}

// stored reads a server with its lock from the store.
func (e *Engine) stored(id string) (*server.Server, error) {
	o, err := e.cfg.Store.Get(e.ctx, key(id))
	if err != nil {
		return nil, err
	}
	s, err := server.Decode(o.Value)
	if err != nil {
		return nil, err
	}
	s.Lock, err = e.lockOf(id)
	return s, err
}

// Begin has something done to a server.
func (e *Engine) Begin(id string, do server.Do, by servertag.Asked) (*server.Server, error) {
	return e.Change(id, func(s *server.Server) (*server.Server, error) { return s.Begin(do, by) })
}

// Want adds tags, and returns those that were not wanted before.
func (e *Engine) Want(id string, ns servertag.Namespace, names []string, by servertag.Asked) (created []string, err error) {
	_, err = e.tags(id, func(set servertag.Set) (next servertag.Set, err error) {
		next, created, err = set.Want(e.cfg.Policy, ns, names, by)
		return next, err
	})
	return created, err
}

// Unwant removes a tag; false if the server does not have it.
func (e *Engine) Unwant(id string, ns servertag.Namespace, name string, by servertag.Asked) (was bool, err error) {
	_, err = e.tags(id, func(set servertag.Set) (next servertag.Set, err error) {
		next, was = set.Unwant(e.cfg.Policy, ns, name, by)
		return next, nil
	})
	return was, err
}

// Replace makes the names all tags of a namespace, and returns the server with
// them.
func (e *Engine) Replace(id string, ns servertag.Namespace, names []string, by servertag.Asked) (*server.Server, error) {
	return e.tags(id, func(set servertag.Set) (servertag.Set, error) { return set.Replace(e.cfg.Policy, ns, names, by) })
}

func (e *Engine) tags(id string, f func(servertag.Set) (servertag.Set, error)) (*server.Server, error) {
	return e.Change(id, func(s *server.Server) (*server.Server, error) {
		if s.Deleted != 0 {
			return s, fault.New(fault.WrongState, "Server has been deleted.")
		}
		next, err := f(s.Tags)
		if err != nil || next.Same(&s.Tags) {
			return s, err
		}
		return s.WithTags(next), nil
	})
}

// keyOf is the submission key of the n-th job of a kind about a server.
func keyOf(s *server.Server, kind string, serial int64) string {
	return "server/" + s.ID + "/" + kind + "/" + strconv.FormatInt(serial, 10)
}
