package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/placement"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

// TestGroups: placement reads the tag of each policy, a server is in the group by it, and leaves it when the group is not there any more.
func TestGroups(t *testing.T) {
	if prefix := servertag.DefaultPrefixes()[servertag.Placed]; prefix != placement.CompanyPrefix {
		t.Fatalf("tags begin with %s, and placement reads %s", prefix, placement.CompanyPrefix)
	}
	const id = "0b1c2d3e-0000-4000-8000-123456789abc"
	policy := servertag.DefaultPolicy()
	for _, test := range []struct {
		g    server.Group
		want placement.Company
	}{
		{server.Group{Policy: server.Affinity}, placement.Company{Wish: placement.Together}},
		{server.Group{Policy: server.AntiAffinity}, placement.Company{Wish: placement.Apart, Most: 1}},
		{server.Group{Policy: server.AntiAffinity, Most: 1}, placement.Company{Wish: placement.Apart, Most: 1}},
		{server.Group{Policy: server.AntiAffinity, Most: 10000}, placement.Company{Wish: placement.AtMost, Most: 10000}},
		{server.Group{Policy: server.SoftAffinity}, placement.Company{Wish: placement.RatherTogether}},
		{server.Group{Policy: server.SoftAntiAffinity}, placement.Company{Wish: placement.RatherApart}},
	} {
		test.g.ID, test.g.Name, test.want.Group = id, "web", id
		if err := test.g.Check(); err != nil {
			t.Error(err)
		}
		tags, _, err := servertag.Set{}.Want(policy, servertag.Placed, []string{test.g.Tag()}, servertag.Asked{})
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := placement.ReadCompany(tags.Tags[0].Raw); !ok || got != test.want {
			t.Errorf("%s is read as %+v, want %+v", tags.Tags[0].Raw, got, test.want)
		}
		s := &server.Server{Tags: tags}
		if !s.In(id) || !slices.Equal(s.Groups(), []string{id}) || s.In("other") {
			t.Errorf("it is in %v", s.Groups())
		}
		if stays := s.Leave(policy, func(group string) bool { return group == id }, servertag.Asked{}); stays != s {
			t.Errorf("it left a group that is there: %+v", stays)
		}
		left := s.Leave(policy, func(string) bool { return false }, servertag.Asked{User: "drover"})
		if left.In(id) || left.Tags.Tags[0].Wanted || left.Tags.Tags[0].Asked.User != "drover" || !s.In(id) {
			t.Errorf("it left as %+v", left.Tags)
		}
		s = &server.Server{Tags: tags, Deleted: 1}
		if s.In(id) {
			t.Error("one whose instance is gone is in it")
		}
	}
}

// TestTagsOfStrangersMakeNoGroup: what an operator writes on an instance is not taken for the server's.
func TestTagsOfStrangersMakeNoGroup(t *testing.T) {
	s := &server.Server{}
	next := s.Tags.Settle(servertag.DefaultPolicy(), servertag.Sight{Instance: true, Tags: []string{"drover:placed:apart:web"}})
	if s = s.WithTags(next); len(s.Groups()) != 0 || len(s.Tags.Tags) != 0 {
		t.Errorf("it is in %v with %+v", s.Groups(), s.Tags)
	}
}

// TestCheckGroup: what is no group.
func TestCheckGroup(t *testing.T) {
	for at, groups := range map[string][]server.Group{
		"name":                {{Policy: server.Affinity}, {Name: strings.Repeat("ä", 256), Policy: server.Affinity}, {Name: "a\n", Policy: server.Affinity}, {Name: " a", Policy: server.Affinity}},
		"policy":              {{Name: "a"}, {Name: "a", Policy: "legacy"}},
		"rules":               {{Name: "a", Policy: server.Affinity, Most: 2}, {Name: "a", Policy: server.SoftAntiAffinity, Most: 1}},
		"max_server_per_host": {{Name: "a", Policy: server.AntiAffinity, Most: -1}, {Name: "a", Policy: server.AntiAffinity, Most: 10001}},
	} {
		for i := range groups {
			if f, _ := groups[i].Check().(*fault.Error); f == nil || f.Field != at { //nolint:errorlint // it is one
				t.Errorf("%+v: %v", groups[i], f)
			}
		}
	}
	if err := (&server.Group{Name: strings.Repeat("ä", 255), Policy: server.AntiAffinity, Most: 10000}).Check(); err != nil {
		t.Error(err)
	}
}
