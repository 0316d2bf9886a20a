package servertag

import (
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// Group is a set of tags of which a server has one at most, whoever set it.
type Group struct {
	Names []string `json:"names"`
	// Why is told to whoever asks for two of them.
	Why string `json:"why"`
}

// Policy is what an installation decides about tags.
type Policy struct {
	Prefixes Prefixes
	// Max is how many tags a server may have, by namespace. It is counted on what
	// is wanted.
	Max map[Namespace]int
	// Clashes are the groups of tags that exclude one another.
	Clashes []Group
	// Effects are what tags do beside being there; none unless an operator says so.
	Effects []Effect
}

// DefaultPolicy is what an installation has that decides nothing.
func DefaultPolicy() *Policy {
	return &Policy{
		Prefixes: DefaultPrefixes(),
		Max:      map[Namespace]int{User: 50, System: 50, Placed: 1},
		Clashes: []Group{{
			Names: []string{"high-availability", "high-performance"},
			Why:   "a server is placed either for availability or for performance",
		}},
	}
}

// check refuses names, and a name whose written form is too long for a cluster.
func (p *Policy) check(ns Namespace, names []string) error {
	for _, name := range names {
		if err := CheckName(name); err != nil {
			return err
		}
		if raw := p.Prefixes.Raw(ns, name); len(raw) > MaxRaw {
			return fault.New(fault.BadTag, "Tag '%s' is invalid. On the cluster it is written with %d characters, and %d is the limit there", shown(name), len(raw), MaxRaw).
				At("tag").WithHint("each letter beyond ASCII takes six characters or more; %d of %d are left beside the prefix", MaxRaw-len(p.Prefixes[ns]), MaxRaw)
		}
	}
	return p.together(names)
}

// together refuses names that exclude one another in one request.
func (p *Policy) together(names []string) error {
	for _, g := range p.Clashes {
		var both []string
		for _, name := range g.Names {
			if slices.Contains(names, name) {
				both = append(both, "'"+name+"'")
			}
		}
		if len(both) > 1 {
			return fault.New(fault.BadTag, "Tags %s exclude one another: %s. None was applied", strings.Join(both, " and "), g.Why).At("tags")
		}
	}
	return nil
}

// against refuses a newcomer that an existing tag excludes, also one of another
// namespace: what it does, it does to the same instance.
func (p *Policy) against(s *Set, ns Namespace, newcomer string) error {
	for _, g := range p.Clashes {
		if !slices.Contains(g.Names, newcomer) {
			continue
		}
		for i := range s.Tags {
			t := &s.Tags[i]
			if !t.Wanted || t.Name == newcomer || !slices.Contains(g.Names, t.Name) {
				continue
			}
			err := fault.New(fault.Conflict, "Tag '%s' was not applied: '%s' is on the server already and stays, and %s", newcomer, t.Name, g.Why).At("tag")
			if t.Namespace == System && ns != System {
				return err.WithHint("it was set by the operator")
			}
			return err.WithHint("remove '%s' first", t.Name)
		}
	}
	return nil
}

// maxGoing is how many tags of one namespace may be on their way out: who takes away as many as are there, again and again, while the cluster takes
// no jobs, waits for it.
const maxGoing = 200

// full refuses a set that has too many tags.
func (p *Policy) full(s *Set, ns Namespace) error {
	going := 0
	for i := range s.Tags {
		if t := &s.Tags[i]; t.Namespace == ns && !t.Wanted {
			going++
		}
	}
	if going > maxGoing {
		return fault.New(fault.Conflict, "%d tags of the server are still to be taken away on its cluster", going).At("tags").
			WithHint("wait until they are gone, and see why they are not yet: drover server show")
	}
	if most := p.Max[ns]; len(s.Wanted(ns)) > most {
		return fault.New(fault.BadTag, "The number of tags exceeded the per-server limit %d", most).At("tags")
	}
	return nil
}
