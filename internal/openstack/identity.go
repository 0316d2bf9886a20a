package openstack

import (
	"context"
	"net/http"
	"net/url"
	"slices"
)

// User is a user of the Identity API.
type User struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Enabled bool   `json:"enabled"`
	Project string `json:"default_project_id,omitempty"`
}

// Project is a project of the Identity API.
type Project struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Enabled     bool   `json:"enabled"`
}

const identity = "identity"

// Users lists the users that the caller may know of.
func (c *Client) Users(ctx context.Context) ([]User, error) {
	var out struct{ Users []User }
	_, err := c.Do(ctx, http.MethodGet, identity, []string{"users"}, nil, nil, &out)
	return out.Users, err
}

// Projects lists the projects that the caller may know of.
func (c *Client) Projects(ctx context.Context) ([]Project, error) {
	var out struct{ Projects []Project }
	_, err := c.Do(ctx, http.MethodGet, identity, []string{"projects"}, nil, nil, &out)
	return out.Projects, err
}

// UserName is the name of the user with an id; empty where the cloud does not tell.
func (c *Client) UserName(ctx context.Context, id string) string {
	return c.nameOf(id, func() (out []thing, err error) {
		users, err := c.Users(ctx)
		for _, u := range users {
			out = append(out, thing{u.ID, u.Name})
		}
		return out, err
	})
}

// ProjectName is the name of the project with an id; empty where the cloud does not tell.
func (c *Client) ProjectName(ctx context.Context, id string) string {
	return c.nameOf(id, func() (out []thing, err error) {
		projects, err := c.Projects(ctx)
		for _, p := range projects {
			out = append(out, thing{p.ID, p.Name})
		}
		return out, err
	})
}

// nameOf looks for an id among what the client is itself, and else among what there is.
func (c *Client) nameOf(id string, list func() ([]thing, error)) string {
	is := func(n thing) bool { return n.ID == id }
	if i := slices.IndexFunc(c.self, is); i >= 0 {
		return c.self[i].Name
	}
	all, err := list()
	if i := slices.IndexFunc(all, is); err == nil && i >= 0 {
		return all[i].Name
	}
	return ""
}

// FindUser finds a user by id or name.
func (c *Client) FindUser(ctx context.Context, key string) (User, error) {
	all, err := c.Users(ctx)
	if err != nil {
		return User{}, err
	}
	return one("user", key, all, func(u User) string { return u.ID }, func(u User) string { return u.Name })
}

// FindProject finds a project by id or name.
func (c *Client) FindProject(ctx context.Context, key string) (Project, error) {
	all, err := c.Projects(ctx)
	if err != nil {
		return Project{}, err
	}
	return one("project", key, all, func(p Project) string { return p.ID }, func(p Project) string { return p.Name })
}

// AddUser makes a user.
func (c *Client) AddUser(ctx context.Context, name, password string) (User, error) {
	var out struct{ User User }
	_, err := c.Do(ctx, http.MethodPost, identity, []string{"users"}, nil, object{"user": object{"name": name, "password": password}}, &out)
	return out.User, err
}

// EditUser changes a user: password, enabled, default_project_id.
func (c *Client) EditUser(ctx context.Context, id string, change map[string]any) (User, error) {
	var out struct{ User User }
	_, err := c.Do(ctx, http.MethodPatch, identity, []string{"users", id}, nil, object{"user": change}, &out)
	return out.User, err
}

// RemoveUser removes a user.
func (c *Client) RemoveUser(ctx context.Context, id string) error {
	_, err := c.Do(ctx, http.MethodDelete, identity, []string{"users", id}, nil, nil, nil)
	return err
}

// AddProject makes a project.
func (c *Client) AddProject(ctx context.Context, name, description string) (Project, error) {
	var out struct{ Project Project }
	_, err := c.Do(ctx, http.MethodPost, identity, []string{"projects"}, nil, object{"project": object{"name": name, "description": description}}, &out)
	return out.Project, err
}

// RemoveProject removes a project.
func (c *Client) RemoveProject(ctx context.Context, id string) error {
	_, err := c.Do(ctx, http.MethodDelete, identity, []string{"projects", id}, nil, nil, nil)
	return err
}

// SetRole gives a user a role in a project, or takes it away.
func (c *Client) SetRole(ctx context.Context, user, project, role string, has bool) error {
	method := http.MethodPut
	if !has {
		method = http.MethodDelete
	}
	_, err := c.Do(ctx, method, identity, []string{"projects", project, "users", user, "roles", role}, nil, nil, nil)
	return err
}

// Role is a role that a user has in a project.
type Role struct {
	Role    string
	Project string // its id
}

// Roles lists the roles of a user.
func (c *Client) Roles(ctx context.Context, user string) ([]Role, error) {
	var out struct {
		Assignments []struct {
			Role  struct{ ID string }
			Scope struct{ Project struct{ ID string } }
		} `json:"role_assignments"`
	}
	_, err := c.Do(ctx, http.MethodGet, identity, []string{"role_assignments"}, url.Values{"user.id": {user}}, nil, &out)
	roles := []Role{}
	for _, a := range out.Assignments {
		roles = append(roles, Role{Role: a.Role.ID, Project: a.Scope.Project.ID})
	}
	return roles, err
}
