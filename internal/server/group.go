package server

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/placement"
	"github.com/drover-project/drover/internal/servertag"
)

// Group is a server group of a project: servers that are to be on nodes of their own, or on one. A server is in it by a tag (servertag.Placed), which its
// instance has, so that whatever places instances knows.
type Group struct {
	// ID is a UUID.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Project owns it; User made it. Both are ids.
	Project string `json:"project"`
	User    string `json:"user"`
	Policy  Policy `json:"policy"`
	// Most is how many of its servers may be on one node, of AntiAffinity; 0 where nobody said it, which is one.
	Most    int64    `json:"most,omitempty"`
	Created job.Time `json:"created"`
}

// Policy is what a group wants of nodes, in the words of the Compute API.
type Policy string

// The policies.
const (
	Affinity         Policy = "affinity"
	AntiAffinity     Policy = "anti-affinity"
	SoftAffinity     Policy = "soft-affinity"
	SoftAntiAffinity Policy = "soft-anti-affinity"
)

// wishes are what policies are to placement.
var wishes = map[Policy]placement.Wish{
	Affinity: placement.Together, AntiAffinity: placement.Apart, SoftAffinity: placement.RatherTogether, SoftAntiAffinity: placement.RatherApart,
}

// Policies are all of them, in order.
func Policies() []Policy { return slices.Sorted(maps.Keys(wishes)) }

// Check refuses a group that nobody can keep.
func (g *Group) Check() error {
	switch {
	case g.Name == "" || utf8.RuneCountInString(g.Name) > maxGroupName || strings.ContainsFunc(g.Name, unicode.IsControl) || strings.TrimSpace(g.Name) != g.Name:
		return fault.New(fault.Invalid, "Invalid input for field/attribute name. It must have 1 to %d characters, none of them a control character, and no blanks at its ends", maxGroupName).At("name")
	case wishes[g.Policy] == "":
		return fault.New(fault.Invalid, "Invalid input for field/attribute policy. Value: %s. '%s' is not one of %q", fault.Clip(string(g.Policy), 100), fault.Clip(string(g.Policy), 100), Policies()).At("policy")
	case g.Most != 0 && g.Policy != AntiAffinity:
		return fault.New(fault.Invalid, "Only anti-affinity policy supports rules.").At("rules")
	case g.Most < 0 || g.Most > maxOnNode:
		return fault.New(fault.Invalid, "Invalid input for field/attribute max_server_per_host. Value: %d. It must be a number from 1 to %d", g.Most, maxOnNode).At("max_server_per_host")
	}
	return nil
}

const (
	maxGroupName = 255
	maxOnNode    = 10_000
)

// Tag is the name of the tag that its servers have.
func (g *Group) Tag() string {
	c := placement.Company{Wish: wishes[g.Policy], Group: g.ID}
	if g.Most > 1 {
		c.Wish, c.Most = placement.AtMost, g.Most
	}
	return c.Tag()
}

// Encode returns the group as it is stored.
func (g *Group) Encode() ([]byte, error) {
	out, err := json.Marshal(g)
	if err != nil {
		return nil, fault.New(fault.Internal, "a server group that cannot be written: %w", err)
	}
	return out, nil
}

// DecodeGroup reads a stored group.
func DecodeGroup(text []byte) (*Group, error) {
	g := &Group{}
	if err := json.Unmarshal(text, g); err != nil {
		return nil, fault.New(fault.Internal, "a stored server group cannot be read: %w", err)
	}
	return g, nil
}

// Groups are the ids of the groups that a server is in.
func (s *Server) Groups() (ids []string) {
	for _, t := range s.Tags.Wanted(servertag.Placed) {
		if c, ok := placement.ReadCompany(placement.CompanyPrefix + t.Name); ok {
			ids = append(ids, c.Group)
		}
	}
	return ids
}

// In tells whether a server is in a group. One whose instance is gone is in none.
func (s *Server) In(group string) bool { return s.Deleted == 0 && slices.Contains(s.Groups(), group) }

// Leave takes a server out of the groups that there are not any more.
func (s *Server) Leave(p *servertag.Policy, there func(group string) bool, by servertag.Asked) *Server {
	next := s
	for _, t := range s.Tags.Wanted(servertag.Placed) {
		if c, ok := placement.ReadCompany(placement.CompanyPrefix + t.Name); ok && !there(c.Group) {
			tags, _ := next.Tags.Unwant(p, servertag.Placed, t.Name, by)
			next = next.WithTags(tags)
		}
	}
	return next
}
