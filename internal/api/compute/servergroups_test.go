package compute_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/internal/server"
)

// groupOf makes a server group, and returns its id.
func (r *rig) groupOf(wish string, headers ...string) string {
	r.Helper()
	a := r.ask(http.MethodPost, nova+"/os-server-groups", `{"server_group":`+wish+`}`, headers...)
	if a.status != http.StatusOK {
		r.Fatalf("%s: %d %s", wish, a.status, a.text)
	}
	id, _ := a.read(r)["server_group"].(map[string]any)["id"].(string)
	return id
}

// in asks for a server in a group.
func (r *rig) in(group string, more map[string]any) answer {
	r.Helper()
	body := r.creationOf(more)
	return r.ask(http.MethodPost, nova+"/servers", strings.TrimSuffix(body, "}")+`,"os:scheduler_hints":{"group":"`+group+`"}}`)
}

const at263, at264 = "2.63", "2.64"

// TestServerGroups: they are shown as each microversion has them, servers come into them, and the instance is told by its tags.
func TestServerGroups(t *testing.T) {
	r := newRig(t)
	apart := r.groupOf(`{"name":"web","policy":"anti-affinity","rules":{"max_server_per_host":3}}`)
	soft := r.groupOf(`{"name":"web","policies":["soft-affinity"]}`, "X-Openstack-Nova-Api-Version", at263)
	s := r.settled(func() string {
		id, _ := r.in(apart, nil).read(r)["server"].(map[string]any)["id"].(string)
		return id
	}())
	if op := r.cloud.newest(); op == nil || !slices.Equal(op.Strings("tags"), []string{"drover:placed:at-most:3:" + apart}) {
		t.Errorf("the instance is made by %+v", op)
	}
	who := `"project_id":"` + r.home.ID + `","user_id":"` + s.User + `"`
	for _, test := range []struct{ path, version, want string }{
		{"/" + apart, newest, `{"server_group":{"id":"` + apart + `","members":["` + s.ID + `"],"name":"web","policy":"anti-affinity",` + strings.Replace(who, `","`, `","rules":{"max_server_per_host":3},"`, 1) + `}}`},
		{"/" + soft, at264, `{"server_group":{"id":"` + soft + `","members":[],"name":"web","policy":"soft-affinity",` + strings.Replace(who, `","`, `","rules":{},"`, 1) + `}}`},
		{"/" + soft, at263, `{"server_group":{"id":"` + soft + `","members":[],"metadata":{},"name":"web","policies":["soft-affinity"],` + who + `}}`},
		{"/" + soft, "2.12", `{"server_group":{"id":"` + soft + `","members":[],"metadata":{},"name":"web","policies":["soft-affinity"]}}`},
		{"?limit=1&offset=1", "2.12", `{"server_groups":[{"id":"` + soft + `","members":[],"metadata":{},"name":"web","policies":["soft-affinity"]}]}`},
		{"?offset=7", newest, `{"server_groups":[]}`},
	} {
		a := r.ask(http.MethodGet, nova+"/os-server-groups"+test.path, "", "X-Openstack-Nova-Api-Version", test.version)
		if got := a.text; a.status != http.StatusOK || sorted(got) != sorted(test.want) {
			t.Errorf("%s at %s: %d %s\nwant %s", test.path, test.version, a.status, got, test.want)
		}
	}
	if a := r.ask(http.MethodGet, at(nova, s), ""); !strings.Contains(a.text, `"server_groups":["`+apart+`"]`) {
		t.Errorf("the server is shown as %s", a.text)
	}
	if a := r.ask(http.MethodGet, at(nova, s), "", "X-Openstack-Nova-Api-Version", "2.70"); strings.Contains(a.text, "server_groups") {
		t.Errorf("before it was there the server is shown as %s", a.text)
	}
	if a := r.ask(http.MethodGet, nova+"/limits", ""); !strings.Contains(a.text, `"totalServerGroupsUsed":2`) {
		t.Errorf("the limits are %s", a.text)
	}
	_, theirs := r.join("bob", "theirs", "member")
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		r.explained(method+" another project's", r.ask(method, nova+"/os-server-groups/"+apart, "", "X-Auth-Token", theirs), http.StatusNotFound)
	}
	r.explained("a server in another project's", r.ask(http.MethodPost, nova+"/servers", strings.TrimSuffix(r.creationOf(nil), "}")+`,"os:scheduler_hints":{"group":"`+apart+`"}}`, "X-Auth-Token", theirs), http.StatusBadRequest)
	r.explained("all projects'", r.ask(http.MethodGet, nova+"/os-server-groups?all_projects=True", "", "X-Auth-Token", theirs), http.StatusForbidden)
	if a := r.ask(http.MethodGet, nova+"/os-server-groups?all_projects=0", "", "X-Auth-Token", theirs); a.text != `{"server_groups":[]}` {
		t.Errorf("their own are %s", a.text)
	}
	if a := r.asRoot(http.MethodGet, nova+"/os-server-groups?all_projects", ""); strings.Count(a.text, `"id"`) != 2 {
		t.Errorf("an administrator sees %s", a.text)
	}

	if a := r.ask(http.MethodDelete, nova+"/os-server-groups/"+apart, ""); a.status != http.StatusNoContent {
		t.Errorf("removed: %d %s", a.status, a.text)
	}
	if a := r.ask(http.MethodGet, at(nova, s), ""); !strings.Contains(a.text, `"server_groups":[]`) {
		t.Errorf("behind that the server is shown as %s", a.text)
	}
	r.explained("shown behind that", r.ask(http.MethodGet, nova+"/os-server-groups/"+apart, ""), http.StatusNotFound)
	r.explained("removed again", r.ask(http.MethodDelete, nova+"/os-server-groups/"+apart, ""), http.StatusNotFound)
	r.explained("joined behind that", r.in(apart, nil), http.StatusBadRequest)
}

// sorted has the characters of a text in order: keys of objects come in one that says nothing.
func sorted(text string) string {
	letters := strings.Split(text, "")
	slices.Sort(letters)
	return strings.Join(letters, "")
}

// TestServerGroupsAreRefused: what no group can be, and what the microversion does not know.
func TestServerGroupsAreRefused(t *testing.T) {
	r := newRig(t)
	for _, test := range []struct{ version, body, says string }{
		{newest, `{}`, "server_group"}, {newest, `{"server_group":{"name":"a"}}`, "policy"}, {newest, `{"server_group":{"policy":"affinity"}}`, "name"},
		{newest, `{"server_group":{"name":"a","policy":"legacy"}}`, "legacy"}, {newest, `{"server_group":{"name":" a","policy":"affinity"}}`, "name"},
		{newest, `{"server_group":{"name":"` + strings.Repeat("a", 256) + `","policy":"affinity"}}`, "name"},
		{newest, `{"server_group":{"name":"a","policies":["affinity"]}}`, "policies"}, {newest, `{"server_group":{"name":"a","policy":"affinity","more":1}}`, "more"},
		{newest, `{"server_group":{"name":"a","policy":"affinity","rules":{"max_server_per_host":2}}}`, "Only anti-affinity policy supports rules."},
		{newest, `{"server_group":{"name":"a","policy":"anti-affinity","rules":{"max_server_per_host":0}}}`, "max_server_per_host"},
		{newest, `{"server_group":{"name":"a","policy":"anti-affinity","rules":{"max_server_per_host":"many"}}}`, "max_server_per_host"},
		{newest, `{"server_group":{"name":"a","policy":"anti-affinity","rules":{"max_server_per_host":10001}}}`, "max_server_per_host"},
		{newest, `{"server_group":{"name":"a","policy":"anti-affinity","rules":{"least":1}}}`, "least"},
		{at263, `{"server_group":{"name":"a","policy":"affinity"}}`, "policy"}, {at263, `{"server_group":{"name":"a","policies":["affinity"],"rules":{}}}`, "rules"},
		{at263, `{"server_group":{"name":"a","policies":[]}}`, "policies"}, {at263, `{"server_group":{"name":"a","policies":["affinity","anti-affinity"]}}`, "policies"},
		{"2.14", `{"server_group":{"name":"a","policies":["soft-affinity"]}}`, "2.15"},
	} {
		a := r.ask(http.MethodPost, nova+"/os-server-groups", test.body, "X-Openstack-Nova-Api-Version", test.version)
		if r.explained(test.body, a, http.StatusBadRequest); !strings.Contains(a.text, test.says) {
			t.Errorf("%s: %s", test.body, a.text)
		}
	}
	group := r.groupOf(`{"name":"a","policy":"affinity"}`)
	for hints, says := range map[string]string{`{"group":"nosuch"}`: "nosuch", `{"group":7}`: "Instance group 7", `{"group":"` + group + `","same_host":"x"}`: "same_host", `{"nosuch":1}`: "nosuch", `7`: "scheduler_hints"} {
		a := r.ask(http.MethodPost, nova+"/servers", strings.TrimSuffix(r.creationOf(nil), "}")+`,"os:scheduler_hints":`+hints+`}`)
		if r.explained(hints, a, http.StatusBadRequest); !strings.Contains(a.text, says) {
			t.Errorf("%s: %s", hints, a.text)
		}
	}
	r.explained("on a further cluster", r.in(group, map[string]any{"availability_zone": "far"}), http.StatusBadRequest)
	for query, says := range map[string]string{"offset=-1": "offset", "limit=x": "limit", "all_projects=perhaps": "all_projects", "marker=x": "marker"} {
		a := r.ask(http.MethodGet, nova+"/os-server-groups?"+query, "")
		if r.explained(query, a, http.StatusBadRequest); !strings.Contains(a.text, says) {
			t.Errorf("%s: %s", query, a.text)
		}
	}
	if n := r.engine.Servers().Len(); n != 0 {
		t.Errorf("there are %d servers", n)
	}
}

// TestLimitsOfServerGroups: of groups, and of servers in one, those of one request among them.
func TestLimitsOfServerGroups(t *testing.T) {
	r := newRig(t)
	_, err := r.quotas.Set(t.Context(), r.home.ID, quota.Limits{quota.ServerGroups: 1, quota.ServerGroupMembers: 2}, quota.Ask{By: audit.By{}})
	r.check(err)
	group := r.groupOf(`{"name":"a","policy":"affinity"}`)
	r.explained("one more", r.ask(http.MethodPost, nova+"/os-server-groups", `{"server_group":{"name":"b","policy":"affinity"}}`), http.StatusForbidden)
	r.explained("three at once", r.in(group, map[string]any{"min_count": 3}), http.StatusForbidden)
	if a := r.in(group, map[string]any{"min_count": 2}); a.status != http.StatusAccepted {
		t.Errorf("two: %d %s", a.status, a.text)
	}
	r.explained("one more in it", r.in(group, nil), http.StatusForbidden)
	if a := r.asRoot(http.MethodPut, nova+"/os-quota-sets/"+r.home.ID, `{"quota_set":{"server_groups":0}}`); a.status != http.StatusBadRequest {
		t.Errorf("a limit below what there is: %d %s", a.status, a.text)
	}
	for s := range r.engine.Servers().All() {
		r.settled(s.ID)
		r.ask(http.MethodDelete, at(nova, s), "")
		r.settled(s.ID)
	}
	if a := r.in(group, nil); a.status != http.StatusAccepted {
		t.Errorf("where those before it are gone: %d %s", a.status, a.text)
	}
}

// ofServerGroups asks for a group, or for those that there are, by one field.
func (r *rig) ofServerGroups(f *field) {
	if strings.HasSuffix(f.Action, " query") {
		if r.group == "" {
			r.group = r.groupOf(`{"name":"any","policy":"soft-affinity"}`)
		}
		values := map[string][2]string{"limit": {"1", "0"}, "offset": {"0", "1"}, "all_projects": {"1", "perhaps"}}[f.Field]
		for i, value := range values {
			a := r.asRoot(http.MethodGet, nova+"/os-server-groups?all_projects=1&"+f.Field+"="+value, "", "X-Openstack-Nova-Api-Version", f.latest())
			if f.Field == "all_projects" {
				a = r.asRoot(http.MethodGet, nova+"/os-server-groups?"+f.Field+"="+value, "", "X-Openstack-Nova-Api-Version", f.latest())
			}
			if found := strings.Contains(a.text, `"any"`); found != (i == 0) {
				r.Errorf("by %s: %d %s", value, a.status, a.text)
			}
		}
		return
	}
	old := `{"server_group":{"name":"x1","policies":["anti-affinity"]}}`
	body := map[string][2]string{
		"server_group": {old, `"x1"`}, "server_group.name": {old, `"x1"`}, "server_group.policies": {old, `"policies":["anti-affinity"]`}, "server_group.policies[]": {old, `"policies":["anti-affinity"]`},
		"server_group.policy":                    {`{"server_group":{"name":"x1","policy":"affinity"}}`, `"policy":"affinity"`},
		"server_group.rules":                     {`{"server_group":{"name":"x1","policy":"anti-affinity","rules":{"max_server_per_host":3}}}`, `"rules":{"max_server_per_host":3}`},
		"server_group.rules.max_server_per_host": {`{"server_group":{"name":"x1","policy":"anti-affinity","rules":{"max_server_per_host":"3"}}}`, `"rules":{"max_server_per_host":3}`},
	}[f.Field]
	shown := body[1]
	versions := []string{f.Since, f.latest()}
	if body[0] == old {
		versions = []string{"2.1", at263}
	}
	for _, version := range versions {
		a := r.ask(http.MethodPost, nova+"/os-server-groups", body[0], "X-Openstack-Nova-Api-Version", version)
		if a.status != http.StatusOK || !strings.Contains(a.text, shown) {
			r.Errorf("at %s: %d %s", version, a.status, a.text)
		}
	}
	if f.Since != "2.1" {
		r.explained("before it was there", r.ask(http.MethodPost, nova+"/os-server-groups", body[0], "X-Openstack-Nova-Api-Version", before(f.Since)), http.StatusBadRequest)
	}
	if f.Until != "" {
		r.explained("after it was there", r.ask(http.MethodPost, nova+"/os-server-groups", body[0], "X-Openstack-Nova-Api-Version", at264), http.StatusBadRequest)
	}
	for _, g := range r.engine.Groups("") {
		if g.Name == "x1" {
			r.check(r.engine.RemoveGroup(r.Context(), g.Project, g.ID))
		}
	}
}

// TestAGroupThatIsBeingRemovedTakesNobodyIn: who comes at the same moment is refused, or is in it and out of it again.
func TestAGroupThatIsBeingRemovedTakesNobodyIn(t *testing.T) {
	r := newRig(t)
	for i := range 10 {
		group := r.groupOf(fmt.Sprintf(`{"name":"g%d","policy":"affinity"}`, i))
		removed := make(chan error, 1)
		go func() { removed <- r.engine.RemoveGroup(r.Context(), r.home.ID, group) }()
		a := r.in(group, nil)
		r.check(<-removed)
		if a.status == http.StatusBadRequest {
			continue
		}
		id, _ := a.read(r)["server"].(map[string]any)["id"].(string)
		r.until(id, "has left the group", func(s *server.Server) bool {
			return s != nil && len(s.Groups()) == 0 && s.Tags.OldestPending() == 0 && len(s.Tasks) == 0
		})
		for _, tag := range r.cloud.tagsOf(r.engine.Servers().Get(id).Instance) {
			t.Errorf("the instance is left with %s", tag)
		}
	}
}
