package identity

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/identity"
)

// filters are what a query may ask of the things in a list, by its keys. One that is
// not there is refused, or the list would show what was not asked for.
type filters[T any] map[string]func(thing T, text string) bool

// is filters by something that things have.
func is[T any](of func(T) string) func(T, string) bool {
	return func(thing T, text string) bool { return of(thing) == text }
}

// enabled is a filter by whether things are.
func enabled[T any](of func(T) bool) func(T, string) bool {
	return func(thing T, text string) bool { return of(thing) == truth(text) }
}

// truth reads a truth value of a query, which is true unless it says otherwise.
func truth(text string) bool {
	yes, err := strconv.ParseBool(text)
	return err != nil || yes
}

func inDefault[T any](_ T, text string) bool { return text == "default" }

// nobody is a filter by what nothing has.
func nobody[T any](T, string) bool { return false }

// anyway is one that says how much is shown, which is all.
func anyway[T any](T, string) bool { return true }

var (
	projectFilters = filters[identity.Project]{
		"name": is(func(p identity.Project) string { return p.Name }), "enabled": enabled(func(p identity.Project) bool { return p.Enabled }),
		"domain_id": inDefault[identity.Project], "parent_id": inDefault[identity.Project], "is_domain": enabled(func(identity.Project) bool { return false }),
	}
	userFilters = filters[identity.User]{
		"name": is(func(u identity.User) string { return u.Name }), "enabled": enabled(func(u identity.User) bool { return u.Enabled }),
		"domain_id": inDefault[identity.User],
	}
	roleFilters       = filters[string]{"name": is(func(s string) string { return s }), "domain_id": nobody[string]}
	domainFilters     = filters[object]{"name": is(func(object) string { return "Default" }), "enabled": enabled(func(object) bool { return true })}
	credentialFilters = filters[identity.Credential]{"name": is(func(c identity.Credential) string { return c.Name })}
	assignmentFilters = filters[assignment]{
		"user.id": is(func(a assignment) string { return a.user.ID }), "scope.project.id": is(func(a assignment) string { return a.project.ID }),
		"role.id":  is(func(a assignment) string { return a.role }),
		"group.id": nobody[assignment], "scope.domain.id": nobody[assignment], "scope.system": nobody[assignment], "scope.OS-INHERIT:inherited_to": nobody[assignment],
		"effective": anyway[assignment], "include_names": anyway[assignment], "include_subtree": anyway[assignment],
	}
)

// keep returns those of some things that a query asks for.
func (f filters[T]) keep(things []T, q url.Values) ([]T, error) {
	out := slices.Clone(things)
	for key, texts := range q {
		text := texts[len(texts)-1]
		holds, known := f[key]
		switch {
		case known:
			out = slices.DeleteFunc(out, func(thing T) bool { return !holds(thing, text) })
		case text != "":
			return nil, fault.New(fault.Invalid, "There is no filter '%s' here: nothing would be filtered by it.", fault.Clip(key, 100)).At(key)
		}
	}
	return out, nil
}

// list is the answer with a list of things, those that the query asks for.
func list[T any](r *request, key string, things []T, by filters[T], body func(T) object) (int, any, error) {
	things, err := by.keep(things, r.URL.Query())
	if err != nil {
		return 0, nil, err
	}
	out := []any{}
	for _, t := range things {
		out = append(out, body(t))
	}
	return http.StatusOK, object{key: out, "links": object{"self": r.api.base(r.Request) + "/v3/" + key, "next": nil, "previous": nil}}, nil
}

// assignment is a role that a user has in a project.
type assignment struct {
	user    identity.User
	project identity.Project
	role    string
}

func assignmentBody(a assignment) object {
	return object{"role": object{"id": a.role, "name": a.role}, "links": object{},
		"user":  object{"id": a.user.ID, "name": a.user.Name, "domain": domainRef()},
		"scope": object{"project": object{"id": a.project.ID, "name": a.project.Name, "domain": domainRef()}}}
}

// listAssignments lists which roles users have in which projects.
func listAssignments(r *request) (int, any, error) {
	var all []assignment
	projects := r.projects() // for administrators disabled ones, too: enabling them gives the roles back
	for _, u := range r.users() {
		for _, p := range projects {
			for _, role := range u.Roles[p.ID] {
				all = append(all, assignment{u, p, role})
			}
		}
	}
	return list(r, "role_assignments", all, assignmentFilters, assignmentBody)
}
