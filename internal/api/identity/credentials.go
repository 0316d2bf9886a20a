package identity

import (
	"net/http"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/identity"
)

// own refuses to touch credentials of others.
func (r *request) own() error {
	if !r.owns(r.path[0]) {
		return fault.New(fault.NotFound, "Could not find user: %s.", r.path[0])
	}
	return nil
}

// person refuses what a session of an application credential may not do: a secret that
// got away would outlive its credential by another, or end those of the user's services.
func (r *request) person() error {
	if slices.Contains(r.session.Methods, "application_credential") {
		return fault.New(fault.WrongState, "An application credential makes and removes none: its user does, with a password.")
	}
	return nil
}

func credentialBody(c identity.Credential) object {
	out := object{"id": c.ID, "name": c.Name, "description": c.Description, "project_id": c.Project, "roles": roleBodies(c.Roles), "unrestricted": false,
		"expires_at": nil, "links": object{}}
	if !c.Expires.IsZero() {
		out["expires_at"] = c.Expires.UTC().Format(timeWithNoZone)
	}
	return out
}

func listCredentials(r *request) (int, any, error) {
	if err := r.own(); err != nil {
		return 0, nil, err
	}
	return list(r, "application_credentials", r.api.cfg.Accounts.Credentials(r.session.User.ID), credentialFilters, credentialBody)
}

func showCredential(r *request) (int, any, error) {
	if err := r.own(); err != nil {
		return 0, nil, err
	}
	return show(r, "application_credential", r.api.cfg.Accounts.Credentials(r.session.User.ID), func(c identity.Credential) string { return c.ID }, credentialBody)
}

func addCredential(r *request) (int, any, error) {
	var body struct {
		Credential struct {
			Name, Description, Secret string
			Roles                     []reference
			Expires                   string `json:"expires_at"`
		} `json:"application_credential"`
	}
	if err := r.own(); err != nil {
		return 0, nil, err
	}
	if err := r.read(bodyOfCredential, &body); err != nil {
		return 0, nil, err
	}
	if err := r.person(); err != nil {
		return 0, nil, err
	}
	in := &body.Credential
	if r.session.Project == nil {
		return 0, nil, fault.New(fault.WrongState, "An application credential is made by a user with a password, for a project.")
	}
	c := identity.Credential{Name: in.Name, Description: in.Description, User: r.session.User.ID, Project: r.session.Project.ID}
	for _, role := range in.Roles {
		c.Roles = append(c.Roles, role.key())
	}
	if in.Expires != "" {
		var err error
		if c.Expires, err = time.Parse("2006-01-02T15:04:05.999999", in.Expires); err != nil {
			if c.Expires, err = time.Parse(time.RFC3339, in.Expires); err != nil {
				return 0, nil, fault.New(fault.Invalid, "expires_at must be a time in ISO 8601").At("expires_at")
			}
		}
	}
	c, secret, err := r.api.cfg.Accounts.AddCredential(r.Context(), c, in.Secret)
	out := credentialBody(c)
	out["secret"] = secret
	return http.StatusCreated, object{"application_credential": out}, err
}

func removeCredential(r *request) (int, any, error) {
	if err := r.own(); err != nil {
		return 0, nil, err
	}
	if err := r.person(); err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, r.api.cfg.Accounts.RemoveCredential(r.Context(), r.session.User.ID, r.path[1])
}
