package placement_test

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/placement"
)

// TestCompany: what each wish makes of the same nodes, and what is said of them.
func TestCompany(t *testing.T) {
	for name, test := range map[string]struct {
		tags []string
		want string
	}{
		"apart": {[]string{"apart:g"}, `node3: most free memory, 7192 MiB, of 1 candidates
1 node3 : 7192 MiB of memory are free, 6192 would be left
0 node1 apart: it has as many as may be on one node of drover:placed:apart:g, which i2 has
0 node2 apart: it has as many as may be on one node of drover:placed:apart:g, which i1 has
`},
		"at most two": {[]string{"at-most:2:g"}, `node3: most free memory, 7192 MiB, of 2 candidates
1 node3 : 7192 MiB of memory are free, 6192 would be left
2 node2 : 7092 MiB of memory are free, 6092 would be left
0 node1 apart: it has as many as may be on one node of drover:placed:at-most:2:g, which i2 has
`},
		"together": {[]string{"together:g"}, `node2: most free memory, 7092 MiB, of 2 candidates
1 node2 : 7092 MiB of memory are free, 6092 would be left
2 node1 : 5992 MiB of memory are free, 4992 would be left
0 node3 together: the instance is to be with those of drover:placed:together:g, which has i2 on node1
`},
		"rather apart": {[]string{"rather-apart:g"}, `node3: 0 of drover:placed:rather-apart:g there, most free memory, 7192 MiB, of 3 candidates
1 node3 : 7192 MiB of memory are free, 6192 would be left; 0 of drover:placed:rather-apart:g there
2 node2 : 7092 MiB of memory are free, 6092 would be left; 1 of drover:placed:rather-apart:g there
3 node1 : 5992 MiB of memory are free, 4992 would be left; 2 of drover:placed:rather-apart:g there
`},
		"rather together": {[]string{"rather-together:g"}, `node1: 2 of drover:placed:rather-together:g there, most free memory, 5992 MiB, of 3 candidates
1 node1 : 5992 MiB of memory are free, 4992 would be left; 2 of drover:placed:rather-together:g there
2 node2 : 7092 MiB of memory are free, 6092 would be left; 1 of drover:placed:rather-together:g there
3 node3 : 7192 MiB of memory are free, 6192 would be left; 0 of drover:placed:rather-together:g there
`},
		"of a group that nobody else is in": {[]string{"apart:h", "together:h"}, `node3: most free memory, 7192 MiB, of 3 candidates
1 node3 : 7192 MiB of memory are free, 6192 would be left
2 node2 : 7092 MiB of memory are free, 6092 would be left
3 node1 : 5992 MiB of memory are free, 4992 would be left
`},
	} {
		s := newSite()
		var tags []string
		for _, tag := range test.tags {
			tags = append(tags, placement.CompanyPrefix+tag)
		}
		others := cluster.NewTags(tags...)
		if wish, other := strings.CutSuffix(tags[0], "h"); other {
			others = cluster.NewTags(wish + "g")
		}
		s.node("node1", "g1")
		s.node("node2", "g1")
		s.node("node3", "g1")
		for i, at := range []string{"node2", "node1", "node1"} {
			s.instance([]string{"i1", "i2", "i10"}[i], at, "", 1100).Tags = others
		}
		s.instance("stranger", "node3", "", 1000, "drover:placed:apart:x")
		r := placement.Request{Instance: instance("new", 1000, 0, 1)}
		r.Instance.Tags = cluster.NewTags(tags...)
		if got := told(placement.Decide(s.world(), r)); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

// TestCompanyThatIsBeingMade: those that are on their way count, and are told so.
func TestCompanyThatIsBeingMade(t *testing.T) {
	for wish, want := range map[string]string{
		"apart:g":    "node2 node1:it has as many as may be on one node of drover:placed:apart:g, which an instance that is being made has",
		"together:g": "node1 node2:the instance is to be with those of drover:placed:together:g, which has an instance that is being made on node1",
	} {
		s := newSite()
		s.node("node1", "g1")
		s.node("node2", "g1")
		tag := placement.CompanyPrefix + wish
		s.Claims = []placement.Claim{{Instance: "other", Node: "uuid of node1", Need: placement.Need{Memory: 100}, Tags: []string{tag}},
			{Instance: "uuid of new", Node: "uuid of node2", Tags: []string{tag}}}
		r := placement.Request{Instance: instance("new", 1000, 0, 1)}
		r.Instance.Tags = cluster.NewTags(tag)
		d := placement.Decide(s.world(), r)
		if got := d.Node + " " + d.Nodes[1].Node + ":" + d.Nodes[1].Text(); got != want {
			t.Errorf("%s: %s\nwant %s", wish, got, want)
		}
	}
}

// TestAGroupLeavesANodeTogether: what is still on the node that is left draws nobody back, and the second goes where the first went. What leaves is not its own company.
func TestAGroupLeavesANodeTogether(t *testing.T) {
	s := newSite()
	const tag = placement.CompanyPrefix + "together:g"
	for _, name := range []string{"node1", "node2", "node3"} {
		s.node(name, "g1")
	}
	a, b := s.instance("a", "node1", "", 4000, tag), s.instance("b", "node1", "", 1000, tag)
	leaves := []string{"uuid of node1"}
	d := placement.DecideAll(s.world(), []placement.Request{{Instance: a, Leaves: leaves}, {Instance: b, Leaves: leaves}})
	if d[0].Node != "node2" || d[1].Node != "node2" {
		t.Errorf("the first:\n%s\nthe second:\n%s", told(d[0]), told(d[1]))
	}
	apart := s.instance("c", "node3", "", 1000, placement.CompanyPrefix+"apart:g")
	if d := placement.Decide(s.world(), placement.Request{Instance: apart, Node: "uuid of node3"}); d.Node != "node3" {
		t.Errorf("an instance beside itself:\n%s", told(d))
	}
}

// TestReadCompany: what is written is read; what is not so is nobody's company.
func TestReadCompany(t *testing.T) {
	for _, c := range []placement.Company{{Wish: placement.Apart, Most: 1, Group: "g:h"}, {Wish: placement.AtMost, Most: 3, Group: "g"}, {Wish: placement.Together, Group: "g"},
		{Wish: placement.RatherApart, Group: "g"}, {Wish: placement.RatherTogether, Group: "g"}} {
		if got, ok := placement.ReadCompany(placement.CompanyPrefix + c.Tag()); !ok || got != c {
			t.Errorf("%+v is read as %+v, %t", c, got, ok)
		}
	}
	for _, tag := range []string{"apart:g", "drover:placed:", "drover:placed:apart", "drover:placed:apart:", "drover:placed:beside:g", "drover:placed:at-most:g", "drover:placed:at-most:0:g",
		"drover:placed:at-most:-1:g", "drover:placed:at-most:3:", "drover:placed:at-most:x:g", "drover:placed:at-most:99999999999:g"} {
		if got, ok := placement.ReadCompany(tag); ok {
			t.Errorf("%s is read as %+v", tag, got)
		}
		if err := placement.CheckTags([]string{"x", tag}); (err == nil) != (tag == "apart:g") {
			t.Errorf("%s: %v", tag, err)
		}
	}
	if err := placement.CheckTags([]string{"x", "drover:placed:apart:g", "drover:offered"}); err != nil {
		t.Error(err)
	}
}
