package placement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// CompanyPrefix begins the tags of instances that say beside which others each is to run, or not: drover:placed:WORD:GROUP. All instances that have
// the same tag are a group.
const CompanyPrefix = "drover:placed:"

// Wish is what a group of instances wants of the nodes that they run on.
type Wish string

// The wishes. Those that begin with Rather order the nodes that can take an instance, and keep it from none.
const (
	// Apart: no two of the group on one node.
	Apart Wish = "apart"
	// AtMost: no more of the group on one node than are said (drover:placed:at-most:3:GROUP).
	AtMost Wish = "at-most"
	// Together: all of the group on one node.
	Together       Wish = "together"
	RatherApart    Wish = "rather-apart"
	RatherTogether Wish = "rather-together"
)

// Company is what a tag says of a group.
type Company struct {
	Wish Wish
	// Most is how many of the group a node may have; 0 for any number.
	Most  int64
	Group string
}

// Tag is how it is written, behind CompanyPrefix.
func (c Company) Tag() string {
	if c.Wish == AtMost {
		return fmt.Sprintf("%s:%d:%s", c.Wish, c.Most, c.Group)
	}
	return string(c.Wish) + ":" + c.Group
}

// ReadCompany reads a tag of an instance; false for one that says nothing of its company.
func ReadCompany(tag string) (c Company, ok bool) {
	text, ok := strings.CutPrefix(tag, CompanyPrefix)
	if !ok {
		return c, false
	}
	wish, group, _ := strings.Cut(text, ":")
	switch c = (Company{Wish: Wish(wish), Group: group}); c.Wish {
	case Apart:
		c.Most = 1
	case AtMost:
		most, rest, _ := strings.Cut(group, ":")
		n, err := strconv.ParseInt(most, 10, 32)
		if err != nil || n < 1 {
			return Company{}, false
		}
		c.Most, c.Group = n, rest
	case Together, RatherApart, RatherTogether:
	default:
		return Company{}, false
	}
	return c, c.Group != ""
}

// CheckTags refuses tags of an instance that begin as those of its company do, and say nothing that placement knows.
func CheckTags(tags []string) error {
	for _, tag := range tags {
		if _, ok := ReadCompany(tag); !ok && strings.HasPrefix(tag, CompanyPrefix) {
			return fault.New(fault.BadTag, "Tag %s is invalid: nothing is placed by it", fault.Clip(tag, 128)).At("tags").
				WithHint("%[1]sapart:GROUP, %[1]sat-most:N:GROUP, %[1]stogether:GROUP, %[1]srather-apart:GROUP and %[1]srather-together:GROUP are known", CompanyPrefix)
		}
	}
	return nil
}

// company is a group of the instance that is placed, as it stands on the nodes.
type company struct {
	Company

	tag string
	// on is how many of the group each node has, by UUID, those that are being made among them, and known the name of one of them.
	on    map[string]int64
	known map[string]string
}

// keep looks for the others of the instance's groups. Those on nodes that the instance leaves draw nobody back: they may be about to leave, too.
func (l *look) keep() (all []*company) {
	for _, tag := range l.Instance.Tags {
		c, ok := ReadCompany(tag)
		if !ok {
			continue
		}
		g := &company{Company: c, tag: tag, on: map[string]int64{}, known: map[string]string{}}
		for uuid := range l.Inventory.Tagged(cluster.KindInstance, tag) {
			if inst := l.Inventory.Instance(uuid); uuid != l.Instance.UUID && inst.PrimaryNode != "" && !slices.Contains(l.Leaves, inst.PrimaryNode) {
				g.add(inst.PrimaryNode, inst.Name)
			}
		}
		for node, claims := range l.claims {
			for i := range claims {
				if slices.Contains(claims[i].Tags, tag) {
					g.add(node, "")
				}
			}
		}
		all = append(all, g)
	}
	return all
}

// add counts one of the group on a node; it has no name while it is being made.
func (g *company) add(node, name string) {
	g.on[node]++
	if known := g.known[node]; name != "" && (known == "" || cluster.CompareNames(name, known) < 0) {
		g.known[node] = name
	}
}

// who is one of the group on a node, for people.
func (g *company) who(node string) string {
	if name := g.known[node]; name != "" {
		return name
	}
	return "an instance that is being made"
}

// Misplaced tells what keeps an instance from a node because of the groups that it is in, whatever else speaks for that node or against it; false for nothing.
func Misplaced(w World, inst *cluster.Instance, node *cluster.Node) (Verdict, bool) {
	c := &candidate{look: newLook(w, Request{Instance: inst}, Need{}), node: node}
	v, broken := c.crowded()
	v.Fails = Crowded
	if !broken {
		v, broken = c.alone()
		v.Fails = Alone
	}
	v.Node = node.Name
	return v, broken
}

// crowded tells of a group of which the node has as many as it may.
func (c *candidate) crowded() (Verdict, bool) {
	for _, g := range c.company {
		if on := g.on[c.node.UUID]; g.Most > 0 && on >= g.Most {
			return Verdict{Detail: fmt.Sprintf("%s, which %s has", g.tag, g.who(c.node.UUID))}, true
		}
	}
	return Verdict{}, false
}

// alone tells of a group that is to be together, and is on other nodes.
func (c *candidate) alone() (Verdict, bool) {
	for _, g := range c.company {
		if g.Wish == Together && len(g.on) > 0 && g.on[c.node.UUID] == 0 {
			node := g.first(c)
			return Verdict{Detail: fmt.Sprintf("%s, which has %s on %s", g.tag, g.who(node), c.nameOf(node))}, true
		}
	}
	return Verdict{}, false
}

// first is the node that has most of the group, among equals the first by name.
func (g *company) first(c *candidate) (best string) {
	for node, count := range g.on {
		if best == "" || count > g.on[best] || count == g.on[best] && cluster.CompareNames(c.nameOf(node), c.nameOf(best)) < 0 {
			best = node
		}
	}
	return best
}

// liking orders nodes by what the groups of the instance would rather have: the less the better.
func (c *candidate) liking() (n int64) {
	for _, g := range c.company {
		switch g.Wish {
		case RatherApart:
			n += g.on[c.node.UUID]
		case RatherTogether:
			n -= g.on[c.node.UUID]
		case Apart, AtMost, Together:
		}
	}
	return n
}

// companions says how many of the instance's groups that would rather be apart or together the node has; empty where there are no such groups.
func (c *candidate) companions() string {
	var parts []string
	for _, g := range c.company {
		if g.Wish == RatherApart || g.Wish == RatherTogether {
			parts = append(parts, fmt.Sprintf("%d of %s", g.on[c.node.UUID], g.tag))
		}
	}
	return strings.Join(parts, ", ")
}
