// Package flavor keeps the sizes that servers can be made in, which are the operator's.
//
// A cluster begins with a few, which are the program's own: each is there until the operator changes or removes it. What the operator
// says is stored, a flavor an object; so is that one of the first is gone.
//
// Invariants:
//   - A flavor that is known never changes in size: servers keep their own copy, and nothing that is done to a flavor reaches them
//     (TestASizeStays).
//   - What somebody is told is durable, with the event that tells who did it (TestFlavorsLast), and what is durable counts, whether or not who asked for it still
//     waits (TestWhoLeavesEndsNoChange).
//   - What of the first ones was removed stays away (TestTheFirstOnes).
package flavor

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// Kind is that of the objects in the store, one for each flavor that the operator made, changed or took away.
const Kind store.Kind = "flavor"

// Flavor is a size of servers, and who may choose it.
type Flavor struct {
	server.Flavor
	Description string `json:"description,omitempty"`
	// Private: it is seen and chosen by Projects alone, ids in order, and by administrators.
	Private  bool     `json:"private,omitempty"`
	Projects []string `json:"projects,omitempty"`
}

// stored is an object of the store. Removed stands in place of one of the first flavors that the operator took away.
type stored struct {
	Flavor
	Removed bool `json:"removed,omitempty"`
}

// For tells whether the users of a project may choose it.
func (f *Flavor) For(project string) bool {
	return !f.Private || slices.Contains(f.Projects, project)
}

// Limits, Nova's own but for the first.
const (
	MaxFlavors     = 1000
	maxName        = 255
	maxDescription = 65535
	maxSize        = math.MaxInt32
)

// Config is what a Service needs.
type Config struct {
	Store   store.Store
	Epoch   int64 // of the leader lease; 0 where there is none
	Picture *picture.Picture
	// Note adds an event to the transaction of the change that it tells of, and returns it with its number.
	Note func(tx *store.Tx, e audit.Event) *audit.Event
	// First are the flavors that a cluster begins with.
	First   []server.Flavor
	NewUUID func() string
	Log     *slog.Logger
}

// Service keeps flavors. It may be used from any number of goroutines.
type Service struct {
	cfg    Config
	mirror store.Mirror
	// mu is held while what is known is looked at or replaced.
	mu  sync.RWMutex
	all []Flavor // by id
}

// Open loads what there is.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	s := &Service{cfg: cfg}
	s.mirror.Read = s.load
	return s, s.load(ctx)
}

// load reads what the store has.
func (s *Service) load(ctx context.Context) error {
	known := map[string]stored{}
	for _, f := range s.cfg.First {
		known[f.ID] = stored{Flavor: Flavor{Flavor: f}}
	}
	for o, err := range s.cfg.Store.List(ctx, Kind, store.Options{}) {
		if err != nil {
			return err
		}
		var f stored
		if err := json.Unmarshal(o.Value, &f); err != nil {
			s.cfg.Log.Error("an object cannot be read and is set aside; restore it from a backup", "object", "flavor "+o.ID)
			f.Removed = true // nobody is offered what the operator did not mean
		}
		known[o.ID] = f
	}
	var all []Flavor
	for _, f := range known {
		if !f.Removed {
			all = append(all, f.Flavor)
		}
	}
	slices.SortFunc(all, func(a, b Flavor) int { return cmp.Compare(a.ID, b.ID) })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = all
	return nil
}

// All returns all flavors, by id. Nobody changes what it returns.
func (s *Service) All() []Flavor {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.all
}

// Find returns the flavor of an id; NotFound when there is none.
func (s *Service) Find(id string) (Flavor, error) {
	all := s.All()
	if i := slices.IndexFunc(all, func(f Flavor) bool { return f.ID == id }); i >= 0 {
		return all[i], nil
	}
	return Flavor{}, notFound(id)
}

func notFound(key string) error {
	return fault.New(fault.NotFound, "Flavor %s could not be found.", fault.Clip(key, 100)).At("flavor")
}

// Called returns the flavor of an id or a name, as people call it; NotFound when there is none. Ids come first.
func (s *Service) Called(key string) (Flavor, error) {
	if f, err := s.Find(key); err == nil {
		return f, nil
	}
	all := s.All()
	if i := slices.IndexFunc(all, func(f Flavor) bool { return f.Name == key }); i >= 0 {
		return all[i], nil
	}
	return Flavor{}, notFound(key)
}

// Ask is how a change is asked for.
type Ask struct {
	By audit.By
	// Dry: everything is checked, and nothing is changed.
	Dry bool
}

// Add makes a flavor; without an id it gets a UUID. Exists when there is one of its id or name.
func (s *Service) Add(ctx context.Context, f Flavor, ask Ask) (Flavor, error) {
	drawn := f.ID == ""
	f.ID = cmp.Or(f.ID, s.cfg.NewUUID())
	slices.Sort(f.Projects)
	f.Projects = slices.Compact(f.Projects)
	if err := f.check(); err != nil {
		return f, err
	}
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return f, err
	}
	defer done()
	all := s.All()
	for _, other := range all {
		switch {
		case other.ID == f.ID:
			return f, fault.New(fault.Exists, "Flavor with ID %s already exists.", f.ID).At("id").WithHint("it is called %s; leave the id out, and one is made", other.Name)
		case other.Name == f.Name:
			return f, fault.New(fault.Exists, "Flavor with name %s already exists.", f.Name).At("name").WithHint("a flavor never changes in size: choose another name, or remove the one of that name first")
		}
	}
	if len(all) >= MaxFlavors {
		return f, fault.New(fault.TooLarge, "There are %d flavors, and no more are kept.", MaxFlavors).At("flavor").WithHint("remove some")
	}
	err = s.commit(audit.FlavorAdd, nil, &f, ask)
	if ask.Dry && drawn { // another one is drawn when it is made
		f.ID = ""
	}
	return f, err
}

// Edit is a change of a flavor. What is nil or empty stays.
type Edit struct {
	Description *string `json:"description,omitempty"`
	// Grant and Revoke are projects that may choose a private one from now on, and those that may no more.
	Grant  []string `json:"grant,omitempty"`
	Revoke []string `json:"revoke,omitempty"`
}

// Change changes the flavor of an id. NotFound when there is none, or a project may not choose it that is to do so no more; Exists for a
// project that may already; Conflict about projects of a flavor that all may choose.
func (s *Service) Change(ctx context.Context, id string, e Edit, ask Ask) (Flavor, error) {
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return Flavor{}, err
	}
	defer done()
	was, err := s.Find(id)
	if err != nil {
		return was, err
	}
	f, err := was.with(e)
	if err == nil {
		err = f.check()
	}
	if err != nil {
		return was, err
	}
	return f, s.commit(audit.FlavorModify, &was, &f, ask)
}

// with is the flavor as it is to be.
func (f Flavor) with(e Edit) (Flavor, error) {
	if e.Description != nil {
		f.Description = *e.Description
	}
	if len(e.Grant)+len(e.Revoke) > 0 && !f.Private {
		return f, fault.New(fault.Conflict, "Flavor %s is public: all projects may choose it.", f.ID).At("project").WithHint("which projects may is said of private flavors alone")
	}
	f.Projects = slices.Clone(f.Projects)
	for _, p := range e.Grant {
		if slices.Contains(f.Projects, p) {
			return f, fault.New(fault.Exists, "Flavor access already exists for flavor %s and project %s combination.", f.ID, fault.Clip(p, 100)).At("project")
		}
		f.Projects = append(f.Projects, p)
	}
	for _, p := range e.Revoke {
		i := slices.Index(f.Projects, p)
		if i < 0 {
			return f, fault.New(fault.NotFound, "Flavor access not found for %s / %s combination.", f.ID, fault.Clip(p, 100)).At("project")
		}
		f.Projects = slices.Delete(f.Projects, i, i+1)
	}
	slices.Sort(f.Projects)
	return f, nil
}

// Remove takes the flavor of an id away. Servers that were made in it keep their size. NotFound when there is none.
func (s *Service) Remove(ctx context.Context, id string, ask Ask) (Flavor, error) {
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return Flavor{}, err
	}
	defer done()
	was, err := s.Find(id)
	if err != nil {
		return was, err
	}
	return was, s.commit(audit.FlavorRemove, &was, nil, ask)
}

// commit makes a change durable, with its event, and shows it. The caller has the change.
func (s *Service) commit(verb audit.Verb, before, after *Flavor, ask Ask) error {
	if ask.Dry {
		return nil
	}
	of := cmp.Or(after, before)
	tx := store.Tx{Epoch: s.cfg.Epoch}
	key := store.Key{Kind: Kind, ID: of.ID}
	isFirst := slices.ContainsFunc(s.cfg.First, func(f server.Flavor) bool { return f.ID == of.ID })
	if after == nil && !isFirst {
		tx.Delete = append(tx.Delete, key)
	} else {
		tx.Put = append(tx.Put, store.Put{Key: key, Value: encode(stored{Flavor: *of, Removed: after == nil})})
	}
	event := audit.New(verb, of.ID, ask.By)
	event.Name = of.Name
	if before != nil {
		event.Before = encode(before)
	}
	if after != nil {
		event.After = encode(after)
	}
	c := &state.Change{Events: []*audit.Event{s.cfg.Note(&tx, event)}}
	durable := make(chan error, 1)
	s.cfg.Store.Enqueue(tx, func(revision store.Revision, err error) {
		if err == nil {
			c.Revision = int64(revision)
			s.cfg.Picture.Committed(c)
		}
		durable <- err
	})
	if err := <-durable; err != nil { // who asked may have left: what is stored counts even so
		s.mirror.Became(err)
		return err
	}
	s.cfg.Picture.Publish()
	s.show(before, after)
	return nil
}

// show puts a change among what is known.
func (s *Service) show(before, after *Flavor) {
	all := slices.Clone(s.All())
	if before != nil {
		all = slices.DeleteFunc(all, func(f Flavor) bool { return f.ID == before.ID })
	}
	if after != nil {
		i, _ := slices.BinarySearchFunc(all, after.ID, func(f Flavor, id string) int { return cmp.Compare(f.ID, id) })
		all = slices.Insert(all, i, *after)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = all
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fault.New(fault.Internal, "a flavor that cannot be written: %w", err))
	}
	return text
}

// check refuses what no flavor may be, in the words that clients know.
func (f *Flavor) check() error {
	if err := checkText("name", f.Name, 1, maxName, unicode.IsPrint); err != nil {
		return err
	}
	if err := checkText("id", f.ID, 1, maxName, isOfID); err != nil {
		return err
	}
	if utf8.RuneCountInString(f.Description) > maxDescription || strings.ContainsFunc(f.Description, unicode.IsControl) {
		return fault.New(fault.Invalid, "Invalid input for field/attribute description. It must have at most %d characters, none of them a control character", maxDescription).At("description")
	}
	for _, size := range []struct {
		key         string
		value, less int64
	}{{"vcpus", f.VCPUs, 1}, {"ram", f.RAM, 1}, {"disk", f.Disk, 0}} {
		if size.value < size.less || size.value > maxSize {
			return fault.New(fault.Invalid, "Invalid input for field/attribute %s. Value: %d. It must be a number from %d to %d", size.key, size.value, size.less, maxSize).At(size.key)
		}
	}
	if len(f.Projects) > 0 && !f.Private {
		return fault.New(fault.Invalid, "A flavor that all projects may choose cannot be given to some").At("projects").WithHint("make it private")
	}
	return nil
}

// isOfID tells which characters ids of flavors may have, as in Nova.
func isOfID(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(". _-", r)
}

func checkText(key, text string, least, most int, may func(rune) bool) error {
	n := utf8.RuneCountInString(text)
	if n < least || n > most || strings.TrimSpace(text) != text || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !may(r) }) {
		return fault.New(fault.Invalid, "Invalid input for field/attribute %s. Value: %s. It must have %d to %d characters of those that it may have, and no blanks at its ends",
			key, fault.Clip(text, 100), least, most).At(key)
	}
	return nil
}
