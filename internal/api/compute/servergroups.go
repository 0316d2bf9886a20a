package compute

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/internal/server"
)

// groupBody is a server group as it is shown, with the servers of its project that are in groups.
func (r *request) groupBody(g *server.Group, members map[string][]string) object {
	out := object{"id": g.ID, "name": g.Name, "members": append([]string{}, members[g.ID]...)}
	if r.since(withGroupOwner) {
		out["project_id"], out["user_id"] = g.Project, g.User
	}
	if !r.since(withGroupPolicy) {
		out["policies"], out["metadata"] = []any{g.Policy}, object{}
		return out
	}
	rules := object{}
	if g.Most > 0 {
		rules["max_server_per_host"] = g.Most
	}
	out["policy"], out["rules"] = g.Policy, rules
	return out
}

// listGroups lists the server groups of a project, or of all for administrators.
func listGroups(r *request) (result, error) {
	q := r.URL.Query()
	project := r.session.Project.ID
	if q.Has("all_projects") {
		switch everybody, known := truth(q.Get("all_projects")); {
		case !known && q.Get("all_projects") != "":
			return result{}, fault.New(fault.Invalid, "Invalid input for query parameters all_projects. Value: %s", fault.Clip(q.Get("all_projects"), 100)).At("all_projects")
		case known && !everybody:
		case !r.administers():
			return result{}, refused{fault.New(fault.Denied, "Policy doesn't allow os_compute_api:os-server-groups:index:all_projects to be performed."), http.StatusForbidden}
		default:
			project = ""
		}
	}
	limit, err := pageOf(q)
	if err != nil {
		return result{}, err
	}
	skip := 0
	if text := q.Get("offset"); text != "" {
		if skip, err = strconv.Atoi(text); err != nil || skip < 0 {
			return result{}, fault.New(fault.Invalid, "Invalid input for query parameters offset. Value: %s", fault.Clip(text, 100)).At("offset")
		}
	}
	all := r.api.cfg.Engine.Groups(project)
	all = all[min(skip, len(all)):]
	out, members := []any{}, map[string]map[string][]string{} // by project
	for _, g := range all[:min(limit, len(all))] {
		if members[g.Project] == nil {
			members[g.Project] = r.api.cfg.Engine.Members(g.Project)
		}
		out = append(out, r.groupBody(g, members[g.Project]))
	}
	return result{http.StatusOK, object{"server_groups": out}}, nil
}

func showGroup(r *request) (result, error) {
	g, err := r.api.cfg.Engine.Group(r.session.Project.ID, r.path[0])
	if err != nil {
		return result{}, err
	}
	return result{http.StatusOK, object{"server_group": r.groupBody(g, r.api.cfg.Engine.Members(g.Project))}}, nil
}

func deleteGroup(r *request) (result, error) {
	err := r.api.cfg.Engine.RemoveGroup(r.Context(), r.session.Project.ID, r.path[0])
	return result{status: http.StatusNoContent}, err
}

// groupWish is the body that makes a group.
type groupWish struct {
	Name string `json:"name"`
	// Policies is until 2.63, and has one; Policy and Rules are from then on.
	Policies []server.Policy `json:"policies"`
	Policy   server.Policy   `json:"policy"`
	Rules    *struct {
		Most json.RawMessage `json:"max_server_per_host"`
	} `json:"rules"`
}

func addGroup(r *request) (result, error) {
	var body struct {
		Group *groupWish `json:"server_group"`
	}
	if err := r.read(bodyOfGroup, &body); err != nil {
		return result{}, err
	}
	if body.Group == nil {
		return result{}, fault.New(fault.Invalid, "Invalid input: 'server_group' is a required property").At("server_group")
	}
	g, err := r.group(body.Group)
	if err != nil {
		return result{}, err
	}
	made, err := r.api.cfg.Engine.AddGroup(r.Context(), *g, r.quota()[quota.ServerGroups])
	if fault.Is(err, fault.Denied) {
		err = refused{err, http.StatusForbidden}
	}
	if err != nil {
		return result{}, err
	}
	return result{http.StatusOK, object{"server_group": r.groupBody(made, nil)}}, nil
}

// group reads what group is wanted.
func (r *request) group(w *groupWish) (*server.Group, error) {
	g := &server.Group{Name: w.Name, Project: r.session.Project.ID, User: r.session.User.ID, Policy: w.Policy}
	unknown, missing := "", ""
	switch late := r.since(withGroupPolicy); {
	case late && w.Policies != nil:
		unknown = "policies"
	case late && w.Policy == "":
		missing = "policy"
	case late:
	case w.Policy != "":
		unknown = "policy"
	case w.Rules != nil:
		unknown = "rules"
	case len(w.Policies) != 1:
		missing = "policies"
	default:
		g.Policy = w.Policies[0]
	}
	if unknown != "" {
		return nil, fault.New(fault.Invalid, "Invalid input: Additional properties are not allowed ('%s' was unexpected)", unknown).At(unknown).
			WithHint("a group has policies, a list of one, up to microversion 2.63, and from then on a policy and rules")
	}
	if missing != "" {
		return nil, fault.New(fault.Invalid, "Invalid input: '%s' is a required property, and says one policy", missing).At(missing)
	}
	if soft := g.Policy == server.SoftAffinity || g.Policy == server.SoftAntiAffinity; soft && !r.since(withSoftPolicies) {
		return nil, fault.New(fault.Invalid, "Invalid input for field/attribute policies. Value: %s. It is there from microversion 2.15 on", g.Policy).At("policies")
	}
	if w.Rules != nil && w.Rules.Most != nil {
		n, err := strconv.ParseInt(wordOf(w.Rules.Most), 10, 64)
		if err != nil || n < 1 {
			return nil, fault.New(fault.Invalid, "Invalid input for field/attribute max_server_per_host. Value: %s. It must be a number from 1 on", fault.Clip(wordOf(w.Rules.Most), 40)).At("max_server_per_host")
		}
		g.Most = n
	}
	return g, g.Check()
}

// hints are what is said about where a server is to be placed.
type hints struct {
	Group json.RawMessage `json:"group"`
}

// bodyOfHints are the hints that Nova's schedulers know.
var bodyOfHints = intake.Object{
	"group": done, "same_host": noHints, "different_host": noHints, "query": noHints, "target_cell": noHints, "different_cell": noHints, "build_near_host_ip": noHints, "cidr": noHints,
}

// hinted is the group that hints name; nil for none.
func (r *request) hinted(all ...hints) (*server.Group, error) {
	for _, h := range all {
		id := wordOf(h.Group)
		if h.Group == nil || id == "null" {
			continue
		}
		g, err := r.api.cfg.Engine.Group(r.session.Project.ID, id)
		if err != nil {
			return nil, fault.New(fault.Invalid, "%s", err.Error()).At("group").WithHint("openstack server group list shows those that there are")
		}
		return g, nil
	}
	return nil, nil //nolint:nilnil // none is named
}

// groupsOf are the ids of the groups that a server is in, of those that there are.
func (r *request) groupsOf(s *server.Server) []any {
	out := []any{}
	for _, id := range s.Groups() {
		if r.api.cfg.Engine.HasGroup(id) {
			out = append(out, id)
		}
	}
	return out
}
