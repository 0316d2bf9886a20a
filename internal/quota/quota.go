// Package quota keeps how much projects may have over the Compute API: servers, what they take, and what goes with them.
//
// Which limit holds for a project is the first of these that says one: its own, the default that the operator has set, that of the table
// (Resources). Limits are only kept and told here; who makes something holds them.
//
// Invariants:
//   - What somebody is told is durable, with the event that tells who did it (TestQuotasLast), and what is durable counts, whether or not who asked
//     for it still waits (TestWhoLeavesEndsNoChange).
//   - No limit is set while a program may lead that would not hold it (TestALimitIsHeldByWhoeverLeads).
package quota

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
)

// Kind is that of the objects in the store, one for each project that has limits of its own, and one for the default.
const Kind store.Kind = "quota"

// Default is what stands in place of a project for those that say nothing.
const Default = "default"

// Unlimited is the limit of what has none.
const Unlimited = -1

// The resources that are held. The others of the table are of what there is not here, so they hold by themselves.
const (
	Instances = "instances"
	Cores     = "cores"
	RAM       = "ram"
	KeyPairs  = "key_pairs"
	Metadata  = "metadata_items"
	Images    = "images"
	ImageGiB  = "image_gigabytes"
	// ServerGroups are groups of servers, ServerGroupMembers the servers of each.
	ServerGroups       = "server_groups"
	ServerGroupMembers = "server_group_members"
)

// Resource is something of which there can be a limit, under Nova's name.
type Resource struct {
	Name string
	// Limit is the one where nobody says another.
	Limit int64
	// Most is the greatest limit that can be said, where there has to be one; 0 for none.
	Most int64
	// Not: there is no such thing here.
	Not bool
	// Own: Nova has no such limit, so its calls do not tell of it.
	Own bool
	// What is a word for people.
	What string
}

// resources are all of them.
var resources = [...]Resource{
	{Name: Instances, Limit: Unlimited, What: "servers"},
	{Name: Cores, Limit: Unlimited, What: "processors of all servers"},
	{Name: RAM, Limit: Unlimited, What: "memory of all servers, in MiB"},
	{Name: KeyPairs, Limit: 100, Most: 1000, What: "key pairs of each user"},
	{Name: Metadata, Limit: 128, Most: 256, What: "items of metadata of each server"},
	{Name: Images, Limit: 100, Own: true, What: "images that its users uploaded"},
	{Name: ImageGiB, Limit: Unlimited, Own: true, What: "their files, in GiB"},
	{Name: ServerGroups, Limit: 10, Most: 1000, What: "groups of servers"},
	{Name: ServerGroupMembers, Limit: 10, What: "servers of each group"},
	{Name: "fixed_ips", Limit: Unlimited, Not: true},
	{Name: "floating_ips", Not: true},
	{Name: "security_groups", Not: true},
	{Name: "security_group_rules", Not: true},
	{Name: "injected_files", Not: true},
	{Name: "injected_file_content_bytes", Not: true},
	{Name: "injected_file_path_bytes", Not: true},
}

// Resources are all that there are, those that are held first.
func Resources() []Resource { return resources[:] }

// Limits are limits by the names of resources.
type Limits map[string]int64

// Servers are those of what servers take.
func (l Limits) Servers() server.Amount {
	return server.Amount{Instances: l[Instances], Cores: l[Cores], RAM: l[RAM]}
}

// Images are those of images: how many, and how many bytes they have.
func (l Limits) Images() (images, bytes int64) {
	if images, bytes = l[Images], l[ImageGiB]; bytes != Unlimited {
		bytes *= gib
	}
	return images, bytes
}

const gib = 1 << 30

// UsedByImages adds what images take, as limits are said: what is begun of a GiB counts as one.
func (l Limits) UsedByImages(images, bytes int64) Limits {
	l[Images], l[ImageGiB] = images, (bytes+gib-1)/gib
	return l
}

// Used is what servers take, as limits are said.
func Used(a server.Amount) Limits {
	return Limits{Instances: a.Instances, Cores: a.Cores, RAM: a.RAM}
}

// check refuses limits of what nobody knows, and those that are none.
func (l Limits) check() error {
	if len(l) == 0 {
		return fault.New(fault.Invalid, "no limit is said").At("quota_set").WithHint("limits are of %s", strings.Join(names(), ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(l)) {
		i := slices.IndexFunc(resources[:], func(r Resource) bool { return r.Name == name })
		if i < 0 {
			return fault.New(fault.Invalid, "There is no limit of %s", fault.Clip(name, 100)).At(name).WithHint("limits are of %s", strings.Join(names(), ", "))
		}
		least, most := int64(Unlimited), int64(math.MaxInt32)
		if resources[i].Most != 0 {
			least, most = 0, resources[i].Most
		}
		if l[name] < least || l[name] > most {
			return fault.New(fault.Invalid, "Invalid input for field/attribute %s. Value: %d. It must be a number from %d to %d", name, l[name], least, most).At(name)
		}
	}
	return nil
}

// names are those of all resources.
func names() (out []string) {
	for _, r := range resources {
		out = append(out, r.Name)
	}
	return out
}

// Set are the limits that are said for a project, or as the default.
type Set struct {
	Project string `json:"project"`
	Limits  Limits `json:"limits"`
}

// Config is what a Service needs.
type Config struct {
	Store   store.Store
	Epoch   int64 // of the leader lease; 0 where there is none
	Picture *picture.Picture
	// Note adds an event to the transaction of the change that it tells of, and returns it with its number.
	Note func(tx *store.Tx, e audit.Event) *audit.Event
	// Format tells the format of the store; nil for the newest.
	Format func() int
	// Used tells what a project has.
	Used func(project string) Limits
	Log  *slog.Logger
}

// Service keeps limits. It may be used from any number of goroutines.
type Service struct {
	cfg    Config
	mirror store.Mirror
	// mu is held while what is known is looked at or replaced.
	mu   sync.RWMutex
	sets map[string]Limits // by project
}

// Open loads what there is.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	s := &Service{cfg: cfg}
	s.mirror.Read = s.load
	return s, s.load(ctx)
}

// load reads what the store has.
func (s *Service) load(ctx context.Context) error {
	sets := map[string]Limits{}
	for o, err := range s.cfg.Store.List(ctx, Kind, store.Options{}) {
		if err != nil {
			return err
		}
		var set Set
		if err := json.Unmarshal(o.Value, &set); err != nil {
			s.cfg.Log.Error("an object cannot be read and is set aside; restore it from a backup", "object", "quota "+o.ID)
			continue
		}
		sets[o.ID] = set.Limits
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sets = sets
	return nil
}

// Of returns the limits that hold for a project, of all resources; for Default those of projects that have none of their own.
func (s *Service) Of(project string) Limits {
	out := Limits{}
	for _, r := range resources {
		out[r.Name] = r.Limit
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	maps.Copy(out, s.sets[Default])
	maps.Copy(out, s.sets[project])
	return out
}

// Used tells what a project has of what is counted.
func (s *Service) Used(project string) Limits { return s.cfg.Used(project) }

// All returns what is said, the default first, then by project.
func (s *Service) All() []Set {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]Set, 0, len(s.sets))
	for project, limits := range s.sets {
		out = append(out, Set{project, limits})
	}
	place := func(s Set) string { return strings.TrimPrefix(s.Project, Default) } // of the default, before all others
	slices.SortFunc(out, func(a, b Set) int { return cmp.Compare(place(a), place(b)) })
	return out
}

// Ask is how a change is asked for.
type Ask struct {
	By audit.By
	// Dry: everything is checked, and nothing is changed.
	Dry bool
	// Force: also below what the project has by now.
	Force bool
}

// Set sets limits of a project, or of the default; those that are not among them stay. Conflict below what the project has, unless that is forced.
func (s *Service) Set(ctx context.Context, project string, limits Limits, ask Ask) (Limits, error) {
	if err := limits.check(); err != nil {
		return nil, err
	}
	if now := s.format(); now < format.Guests {
		return nil, fault.New(fault.WrongState, "limits of projects need format %d of the store, which has %d", format.Guests, now).WithHint("it is raised when all controllers know it: drover cluster format info")
	}
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if !ask.Force && project != Default {
		if err := below(limits, s.cfg.Used(project)); err != nil {
			return nil, err
		}
	}
	s.mu.RLock()
	before := s.sets[project]
	s.mu.RUnlock()
	after := maps.Clone(before)
	if after == nil {
		after = Limits{}
	}
	maps.Copy(after, limits)
	if maps.Equal(before, after) {
		return s.Of(project), nil
	}
	err = s.commit(audit.QuotaSet, project, before, after, ask)
	out := s.Of(project)
	if ask.Dry {
		maps.Copy(out, limits)
	}
	return out, err
}

// below refuses limits that are below what is used.
func below(limits, used Limits) error {
	for _, r := range resources {
		limit, said := limits[r.Name]
		if said && limit != Unlimited && limit < used[r.Name] {
			return fault.New(fault.Conflict, "Quota limit %d for %s must be greater than or equal to already used and reserved %d.", limit, r.Name, used[r.Name]).At(r.Name).
				WithHint("with force (--force) it is set even so: nothing is taken away, and nothing more is made")
		}
	}
	return nil
}

// Unset takes the limits of a project away, or those that were set as the default: what is behind them holds again. NotFound when there are none.
func (s *Service) Unset(ctx context.Context, project string, ask Ask) (Limits, error) {
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	s.mu.RLock()
	before, said := s.sets[project]
	s.mu.RUnlock()
	if !said {
		return nil, fault.New(fault.NotFound, "Project %s has no limits of its own.", fault.Clip(project, 100)).At("project").WithHint("drover manage quota list")
	}
	err = s.commit(audit.QuotaUnset, project, before, nil, ask)
	return s.Of(project), err
}

// format is that of the store now.
func (s *Service) format() int {
	if s.cfg.Format == nil {
		return format.Newest
	}
	return s.cfg.Format()
}

// commit makes a change durable, with its event, and has it count, whether or not who asked for it still waits. The caller has the change.
func (s *Service) commit(verb audit.Verb, project string, before, after Limits, ask Ask) error {
	if ask.Dry {
		return nil
	}
	tx := store.Tx{Epoch: s.cfg.Epoch}
	key := store.Key{Kind: Kind, ID: project}
	event := audit.New(verb, project, ask.By)
	if before != nil {
		event.Before = encode(before)
	}
	if after == nil {
		tx.Delete = append(tx.Delete, key)
	} else {
		event.After = encode(after)
		tx.Put = append(tx.Put, store.Put{Key: key, Value: encode(Set{project, after})})
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
	if err := <-durable; err != nil {
		s.mirror.Became(err)
		return err
	}
	s.cfg.Picture.Publish()
	s.mu.Lock()
	defer s.mu.Unlock()
	if after == nil {
		delete(s.sets, project)
	} else {
		s.sets[project] = after
	}
	return nil
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fault.New(fault.Internal, "limits that cannot be written: %w", err))
	}
	return text
}
