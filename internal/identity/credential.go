package identity

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// Credential is an application credential: it logs its user in to one project,
// with a secret of its own.
type Credential struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	User        string `json:"user"`
	Project     string `json:"project"`
	Secret      string `json:"secret"`
	// Roles are those that its sessions have, as far as the user has them too.
	Roles   []string  `json:"roles,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
}

// over reports whether the credential is good no more.
func (c *Credential) over(now time.Time) bool { return !c.Expires.IsZero() && !now.Before(c.Expires) }

// Credentials returns the application credentials of a user, by name.
func (s *Service) Credentials(user string) []Credential {
	return all(s, s.creds, func(c *Credential) bool { return c.User == user }, func(c Credential) string { return c.Name })
}

// maxCredentials is how many application credentials a user may have.
const maxCredentials = 100

// AddCredential makes an application credential, and returns its secret: the
// one that was given, or a random one. Without roles it has all that its user
// has in the project. Invalid for roles that the user does not have.
func (s *Service) AddCredential(ctx context.Context, c Credential, secret string) (Credential, string, error) {
	if err := checkName(c.Name); err != nil {
		return c, "", err
	}
	if len(c.Description) > maxText {
		return c, "", fault.New(fault.Invalid, "description may have %d bytes at most", maxText).At("description")
	}
	if secret == "" {
		secret = newSecret()
	}
	hash, err := s.hasher.hash(secret) // takes long, so nobody waits for it
	if err != nil {
		return c, "", err
	}
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return c, "", err
	}
	defer done()
	others := s.Credentials(c.User)
	if len(others) >= maxCredentials {
		return c, "", fault.New(fault.Denied, "Unable to create additional application credentials, maximum of %d already exceeded for user.", maxCredentials)
	}
	if slices.ContainsFunc(others, func(o Credential) bool { return o.Name == c.Name }) {
		return c, "", fault.New(fault.Exists, "there is an application credential %q already", c.Name).At("name")
	}
	owner, err := s.FindUser(c.User)
	if err != nil {
		return c, "", err
	}
	has := owner.Roles[c.Project]
	if c.Roles == nil {
		c.Roles = has
	}
	for _, role := range c.Roles {
		if !slices.Contains(has, role) {
			return c, "", fault.New(fault.Invalid, "Could not find role assignment with role: %s.", fault.Clip(role, maxName)).At("roles")
		}
	}
	c.ID, c.Secret = newID(s.cfg.NewUUID()), hash
	return c, secret, put(ctx, s, KindCredential, s.creds, c.ID, &c, time.Time{})
}

// RemoveCredential removes an application credential of a user, and ends its
// sessions.
func (s *Service) RemoveCredential(ctx context.Context, user, id string) error {
	done, err := s.mirror.Change(ctx)
	if err != nil {
		return err
	}
	defer done()
	if !slices.ContainsFunc(s.Credentials(user), func(c Credential) bool { return c.ID == id }) {
		return fault.New(fault.NotFound, "Could not find application credential: %s.", fault.Clip(id, maxName))
	}
	return errors.Join(remove(ctx, s, KindCredential, s.creds, id), s.revokeWhere(ctx, func(t *token) bool { return t.Credential == id }))
}
