package identity

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/rights"
)

// routes are all resources. "{}" stands for one segment.
var routes = []route{
	{method: "GET", path: "", needs: rights.None, serve: versions},
	{method: "GET", path: "/v3", needs: rights.None, serve: version},
	{method: "POST", path: "/v3/auth/tokens", needs: rights.None, serve: logIn},
	{method: "GET", path: "/v3/auth/tokens", needs: rights.Known, serve: showToken},
	{method: "DELETE", path: "/v3/auth/tokens", needs: rights.Known, serve: revoke},
	{method: "GET", path: "/v3/auth/catalog", needs: rights.Known, serve: catalog},
	{method: "GET", path: "/v3/auth/projects", needs: rights.Known, serve: ownProjects},
	{method: "GET", path: "/v3/auth/domains", needs: rights.Known, serve: noDomains},
	{method: "GET", path: "/v3/users/{}/projects", needs: rights.Known, serve: ownProjects},
	{method: "GET", path: "/v3/projects", needs: rights.Known, serve: listProjects},
	{method: "GET", path: "/v3/projects/{}", needs: rights.Known, serve: showProject},
	{method: "POST", path: "/v3/projects", needs: rights.Administer, serve: addProject},
	{method: "PATCH", path: "/v3/projects/{}", needs: rights.Administer, serve: editProject},
	{method: "DELETE", path: "/v3/projects/{}", needs: rights.Administer, serve: removeProject},
	{method: "GET", path: "/v3/users", needs: rights.Known, serve: listUsers},
	{method: "GET", path: "/v3/users/{}", needs: rights.Known, serve: showUser},
	{method: "POST", path: "/v3/users", needs: rights.Administer, serve: addUser},
	{method: "PATCH", path: "/v3/users/{}", needs: rights.Administer, serve: editUser},
	{method: "DELETE", path: "/v3/users/{}", needs: rights.Administer, serve: removeUser},
	{method: "POST", path: "/v3/users/{}/password", needs: rights.None, serve: changePassword},
	{method: "GET", path: "/v3/roles", needs: rights.Known, serve: listRoles},
	{method: "GET", path: "/v3/roles/{}", needs: rights.Known, serve: showRole},
	{method: "GET", path: "/v3/projects/{}/users/{}/roles", needs: rights.Administer, serve: listRolesOf},
	{method: "GET", path: "/v3/projects/{}/users/{}/roles/{}", needs: rights.Administer, serve: checkRole},
	{method: "PUT", path: "/v3/projects/{}/users/{}/roles/{}", needs: rights.Administer, serve: giveRole},
	{method: "DELETE", path: "/v3/projects/{}/users/{}/roles/{}", needs: rights.Administer, serve: takeRole},
	{method: "GET", path: "/v3/role_assignments", needs: rights.Known, serve: listAssignments},
	{method: "GET", path: "/v3/domains", needs: rights.Known, serve: listDomains},
	{method: "GET", path: "/v3/domains/{}", needs: rights.Known, serve: showDomain},
	{method: "GET", path: "/v3/users/{}/application_credentials", needs: rights.Known, serve: listCredentials},
	{method: "POST", path: "/v3/users/{}/application_credentials", needs: rights.Known, serve: addCredential},
	{method: "GET", path: "/v3/users/{}/application_credentials/{}", needs: rights.Known, serve: showCredential},
	{method: "DELETE", path: "/v3/users/{}/application_credentials/{}", needs: rights.Known, serve: removeCredential},
}

// domain is the one domain there is.
var domain = object{"id": "default", "name": "Default", "enabled": true, "description": "", "links": object{}}

func domainRef() object { return object{"id": "default", "name": "Default"} }

func (r *request) versionBody() object {
	return object{"id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
		"links":       []any{object{"rel": "self", "href": r.api.base(r.Request) + "/v3/"}},
		"media-types": []any{object{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}}}
}

func versions(r *request) (int, any, error) {
	return http.StatusMultipleChoices, object{"versions": object{"values": []any{r.versionBody()}}}, nil
}

func version(r *request) (int, any, error) {
	return http.StatusOK, object{"version": r.versionBody()}, nil
}

// reference names a user or a project, or a domain.
type reference struct {
	ID     string     `json:"id"`
	Name   string     `json:"name"`
	Domain *reference `json:"domain"`
}

// key is the id, or else the name; nobody's for one of another domain than ours.
func (p reference) key() string {
	if d := p.Domain; d != nil && d.ID != domain["id"] && d.Name != domain["name"] {
		return "\x00"
	}
	return cmp.Or(p.ID, p.Name)
}

// authRequest is the body of a login.
type authRequest struct {
	Auth struct {
		Identity struct {
			Methods  []string `json:"methods"`
			Password struct {
				User struct {
					reference
					Password string `json:"password"`
				} `json:"user"`
			} `json:"password"`
			Token struct {
				ID string `json:"id"`
			} `json:"token"`
			ApplicationCredential struct {
				reference
				Secret string    `json:"secret"`
				User   reference `json:"user"`
			} `json:"application_credential"`
		} `json:"identity"`
		Scope scope `json:"scope"`
	} `json:"auth"`
}

// scope is what a login asks to work in.
type scope struct {
	project         string
	unscoped, other bool
}

// UnmarshalJSON reads an object with a project, or "unscoped". Nobody has a role in
// anything else.
func (s *scope) UnmarshalJSON(text []byte) error {
	if string(text) == `"unscoped"` {
		s.unscoped = true
		return nil
	}
	var body struct {
		Project *reference `json:"project"`
	}
	if err := intake.ReadOpen(text, &body); err != nil {
		return err
	}
	if body.Project != nil {
		s.project = body.Project.key()
	}
	s.other = body.Project == nil && string(text) != "null" && string(text) != "{}"
	return nil
}

func logIn(r *request) (int, any, error) {
	var body authRequest
	if err := r.read(bodyOfLogin, &body); err != nil {
		return 0, nil, err
	}
	id := &body.Auth.Identity
	login := identity.Login{Project: body.Auth.Scope.project, Unscoped: body.Auth.Scope.unscoped}
	switch {
	case len(id.Methods) > 1: // one of them would not be looked at
		return 0, nil, fault.New(fault.Invalid, "identity.methods must name one method").At("methods")
	case slices.Contains(id.Methods, "password"):
		login.User, login.Password = id.Password.User.key(), id.Password.User.Password
	case slices.Contains(id.Methods, "application_credential"):
		c := &id.ApplicationCredential
		login.Credential, login.Secret, login.User = c.key(), c.Secret, c.User.key()
	case slices.Contains(id.Methods, "token"):
		if _, err := r.api.cfg.Accounts.Session(id.Token.ID); err != nil {
			r.api.slow(r)
			return 0, nil, errNoToken()
		}
		login.Token = id.Token.ID
	default:
		return 0, nil, fault.New(fault.Invalid, "identity.methods must name password, application_credential or token").At("methods")
	}
	session, token, err := r.api.logIn(r.Context(), &login, body.Auth.Scope.other)
	if err != nil {
		if fault.Is(err, fault.Denied) {
			r.api.slow(r)
		}
		return 0, nil, err
	}
	r.header.Set("X-Subject-Token", token)
	return http.StatusCreated, object{"token": r.tokenBody(session)}, nil
}

// logIn lets somebody in, but for a domain or a system: nobody has a role there.
func (a *API) logIn(ctx context.Context, login *identity.Login, elsewhere bool) (*identity.Session, string, error) {
	if elsewhere {
		return nil, "", identity.ErrDenied()
	}
	return a.cfg.Accounts.Log(ctx, *login)
}

// Keystone writes times with a zone, but for that at which an application credential
// ends; clients read them so.
const (
	timeFormat     = "2006-01-02T15:04:05.000000Z"
	timeWithNoZone = "2006-01-02T15:04:05.000000"
)

func (r *request) tokenBody(s *identity.Session) object {
	out := object{
		"methods": s.Methods, "user": object{"id": s.User.ID, "name": s.User.Name, "domain": domainRef(), "password_expires_at": nil},
		"audit_ids": []string{s.AuditID}, "issued_at": s.Issued.Format(timeFormat), "expires_at": s.Expires.Format(timeFormat),
	}
	if s.Project != nil {
		out["project"] = object{"id": s.Project.ID, "name": s.Project.Name, "domain": domainRef()}
		out["is_domain"], out["roles"], out["catalog"] = false, roleBodies(s.Roles), r.catalog()
	}
	return out
}

func (r *request) catalog() []any {
	out := []any{}
	for _, s := range r.api.cfg.Catalog(r.Request) {
		var endpoints []any
		for _, face := range []string{"public", "internal", "admin"} {
			endpoints = append(endpoints, object{"id": s.Type + "-" + face, "interface": face, "region": r.api.cfg.Region, "region_id": r.api.cfg.Region, "url": s.URL})
		}
		out = append(out, object{"id": s.Type, "type": s.Type, "name": s.Name, "endpoints": endpoints})
	}
	return out
}

func errNoToken() error { return fault.New(fault.NotFound, "Could not find token.") }

// subject is the session of the token that the request is about. Who may not
// administer may ask about sessions of their own.
func (r *request) subject() (*identity.Session, string, error) {
	text := r.Header.Get("X-Subject-Token")
	s, err := r.api.cfg.Accounts.Session(text)
	if err != nil || !r.administers() && !r.owns(s.User.ID) {
		return nil, "", errNoToken()
	}
	return s, text, nil
}

func showToken(r *request) (int, any, error) {
	s, text, err := r.subject()
	if err != nil {
		return 0, nil, err
	}
	r.header.Set("X-Subject-Token", text)
	return http.StatusOK, object{"token": r.tokenBody(s)}, nil
}

func revoke(r *request) (int, any, error) {
	_, text, err := r.subject()
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, r.api.cfg.Accounts.Revoke(r.Context(), text)
}

func catalog(r *request) (int, any, error) {
	return http.StatusOK, object{"catalog": r.catalog(), "links": object{}}, nil
}

func projectBody(p identity.Project) object {
	return object{"id": p.ID, "name": p.Name, "description": p.Description, "enabled": p.Enabled, "domain_id": "default",
		"parent_id": "default", "is_domain": false, "tags": []any{}, "options": object{}, "links": object{}}
}

func userBody(u identity.User) object {
	out := object{"id": u.ID, "name": u.Name, "enabled": u.Enabled, "domain_id": "default", "password_expires_at": nil, "options": object{}, "links": object{}}
	for key, text := range map[string]string{"default_project_id": u.Project, "email": u.Email, "description": u.Description} {
		if text != "" {
			out[key] = text
		}
	}
	return out
}

func roleBodies(roles []string) []any {
	out := []any{}
	for _, role := range roles {
		out = append(out, object{"id": role, "name": role, "domain_id": nil, "options": object{}, "links": object{}})
	}
	return out
}

// administers tells whether who asks keeps accounts, and so may know of all.
func (r *request) administers() bool {
	return r.account.May(rights.Administer, rights.Of{}) == rights.Allowed
}

// owns tells whether who asks is a user, by its id.
func (r *request) owns(user string) bool {
	return r.account.May(rights.Known, rights.Of{User: user}) == rights.Allowed
}

// projects are those that the session may know of.
func (r *request) projects() []identity.Project {
	if r.administers() {
		return r.api.cfg.Accounts.Projects()
	}
	return r.api.cfg.Accounts.ProjectsOf(r.session.User)
}

func ownProjects(r *request) (int, any, error) {
	u := r.session.User
	switch {
	case len(r.path) == 0 || r.owns(r.path[0]):
	case r.administers():
		var err error
		if u, err = r.api.cfg.Accounts.User(r.path[0]); err != nil {
			return 0, nil, err
		}
	default:
		return 0, nil, errNotFound()
	}
	return list(r, "projects", r.api.cfg.Accounts.ProjectsOf(u), projectFilters, projectBody)
}

func listProjects(r *request) (int, any, error) {
	return list(r, "projects", r.projects(), projectFilters, projectBody)
}

// show is the answer about the one of some things whose id ends the path.
func show[T any](r *request, what string, things []T, id func(T) string, body func(T) object) (int, any, error) {
	for _, t := range things {
		if id(t) == r.path[len(r.path)-1] {
			return http.StatusOK, object{what: body(t)}, nil
		}
	}
	return 0, nil, fault.New(fault.NotFound, "Could not find %s: %s.", what, r.path[len(r.path)-1])
}

func showProject(r *request) (int, any, error) {
	return show(r, "project", r.projects(), func(p identity.Project) string { return p.ID }, projectBody)
}

// text is one that null takes away; said is nil if a request says nothing of it.
type text struct {
	said *string
	null bool
}

// UnmarshalJSON reads a string, or null.
func (t *text) UnmarshalJSON(raw []byte) error {
	t.said, t.null = new(""), string(raw) == "null"
	return json.Unmarshal(raw, t.said)
}

// projectRequest is the body that makes or changes a project.
type projectRequest struct {
	Project struct {
		ID, Name    *string
		Description text
		Enabled     *bool
	}
}

func (b *projectRequest) edit() identity.ProjectEdit {
	p := &b.Project
	return identity.ProjectEdit{Name: p.Name, Description: p.Description.said, Enabled: p.Enabled}
}

func addProject(r *request) (int, any, error) {
	var body projectRequest
	if err := r.read(bodyOfProject, &body); err != nil {
		return 0, nil, err
	}
	p, err := r.api.cfg.Accounts.AddProject(r.Context(), body.edit())
	return http.StatusCreated, object{"project": projectBody(p)}, err
}

func editProject(r *request) (int, any, error) {
	var body projectRequest
	if err := r.read(bodyOfProjectEdit, &body); err != nil {
		return 0, nil, err
	}
	if err := r.same(body.Project.ID); err != nil {
		return 0, nil, err
	}
	if _, err := r.api.cfg.Accounts.Project(r.path[0]); err != nil {
		return 0, nil, err
	}
	p, err := r.api.cfg.Accounts.EditProject(r.Context(), r.path[0], body.edit())
	return http.StatusOK, object{"project": projectBody(p)}, err
}

func removeProject(r *request) (int, any, error) {
	if _, err := r.api.cfg.Accounts.Project(r.path[0]); err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, r.api.cfg.Accounts.RemoveProject(r.Context(), r.path[0])
}

// users are those that the session may know of.
func (r *request) users() []identity.User {
	if r.administers() {
		return r.api.cfg.Accounts.Users()
	}
	return []identity.User{r.session.User}
}

func listUsers(r *request) (int, any, error) {
	return list(r, "users", r.users(), userFilters, userBody)
}

func showUser(r *request) (int, any, error) {
	return show(r, "user", r.users(), func(u identity.User) string { return u.ID }, userBody)
}

// userRequest is the body that makes or changes a user.
type userRequest struct {
	User struct {
		ID, Name, Email       *string
		Password, Description text
		Project               text `json:"default_project_id"`
		Enabled               *bool
	}
}

func (b *userRequest) edit() identity.UserEdit {
	u := &b.User
	if u.Password.null { // who has none gets none
		u.Password.said = nil
	}
	return identity.UserEdit{Name: u.Name, Password: u.Password.said, Email: u.Email, Description: u.Description.said, Project: u.Project.said, Enabled: u.Enabled}
}

func addUser(r *request) (int, any, error) {
	var body userRequest
	if err := r.read(bodyOfUser, &body); err != nil {
		return 0, nil, err
	}
	u, err := r.api.cfg.Accounts.AddUser(r.Context(), body.edit())
	return http.StatusCreated, object{"user": userBody(u)}, err
}

func editUser(r *request) (int, any, error) {
	var body userRequest
	if err := r.read(bodyOfUserEdit, &body); err != nil {
		return 0, nil, err
	}
	if err := r.same(body.User.ID); err != nil {
		return 0, nil, err
	}
	if body.User.Password.null {
		return 0, nil, fault.New(fault.Invalid, "a password is replaced, and not taken away").At("password").WithHint("disable the user")
	}
	if _, err := r.api.cfg.Accounts.User(r.path[0]); err != nil {
		return 0, nil, err
	}
	u, err := r.api.cfg.Accounts.EditUser(r.Context(), r.path[0], body.edit())
	return http.StatusOK, object{"user": userBody(u)}, err
}

func removeUser(r *request) (int, any, error) {
	if _, err := r.api.cfg.Accounts.User(r.path[0]); err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, r.api.cfg.Accounts.RemoveUser(r.Context(), r.path[0])
}

// changePassword gives a user another password. Who knows the old one is the user: as
// in a login, nobody needs a token. All sessions end.
func changePassword(r *request) (int, any, error) {
	var body struct {
		User struct {
			Old string `json:"original_password"`
			New string `json:"password"`
		}
	}
	if err := r.read(bodyOfPassword, &body); err != nil {
		return 0, nil, err
	}
	err := identity.ErrDenied()
	if _, unknown := r.api.cfg.Accounts.User(r.path[0]); unknown == nil {
		err = r.api.cfg.Accounts.ChangePassword(r.Context(), r.path[0], body.User.Old, body.User.New)
	}
	if fault.Is(err, fault.Denied) {
		r.api.slow(r)
	}
	return http.StatusNoContent, nil, err
}

func listRoles(r *request) (int, any, error) {
	return list(r, "roles", identity.Roles, roleFilters, roleBody)
}

func roleBody(role string) object { return roleBodies([]string{role})[0].(object) }

func showRole(r *request) (int, any, error) {
	if !slices.Contains(identity.Roles, r.path[0]) {
		return 0, nil, fault.New(fault.NotFound, "Could not find role: %s.", r.path[0])
	}
	return http.StatusOK, object{"role": roleBody(r.path[0])}, nil
}

// rolesOf are the roles of a user in a project, both of which the path names by their ids.
func (r *request) rolesOf() ([]string, error) {
	p, err := r.api.cfg.Accounts.Project(r.path[0])
	if err != nil {
		return nil, err
	}
	u, err := r.api.cfg.Accounts.User(r.path[1])
	return u.Roles[p.ID], err
}

func listRolesOf(r *request) (int, any, error) {
	roles, err := r.rolesOf()
	if err != nil {
		return 0, nil, err
	}
	return list(r, "roles", roles, roleFilters, roleBody)
}

// checkRole tells whether a user has a role: clients ask before they give or take one,
// and do neither where the answer says that there is nothing to do.
func checkRole(r *request) (int, any, error) {
	roles, err := r.rolesOf()
	if err == nil && !slices.Contains(roles, r.path[2]) {
		err = fault.New(fault.NotFound, "Could not find role assignment with role: %s.", fault.Clip(r.path[2], 200))
	}
	return http.StatusNoContent, nil, err
}

func giveRole(r *request) (int, any, error) { return r.setRole(true) }

func takeRole(r *request) (int, any, error) { return r.setRole(false) }

func (r *request) setRole(has bool) (int, any, error) {
	if _, err := r.rolesOf(); err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, r.api.cfg.Accounts.SetRole(r.Context(), r.path[1], r.path[0], r.path[2], has)
}

func listDomains(r *request) (int, any, error) {
	return list(r, "domains", []object{domain}, domainFilters, func(d object) object { return d })
}

// noDomains are those in which the user has a role.
func noDomains(r *request) (int, any, error) {
	return list(r, "domains", nil, domainFilters, func(d object) object { return d })
}

func showDomain(r *request) (int, any, error) {
	if r.path[0] != "default" {
		return 0, nil, fault.New(fault.NotFound, "Could not find domain: %s.", r.path[0])
	}
	return http.StatusOK, object{"domain": domain}, nil
}

// same refuses to change the id of what the path names; clients that send back the
// whole of what they got say it.
func (r *request) same(id *string) error {
	if id != nil && *id != r.path[0] {
		return fault.New(fault.Invalid, "Cannot change ID").At("id")
	}
	return nil
}
