package identity

import (
	"context"
	"slices"
	"time"
)

// Session returns what a token stands for. Denied when it is unknown, revoked
// or over, or when its user is disabled or has no role in the project any more,
// or the credential that it came from is gone.
func (s *Service) Session(text string) (*Session, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.tokens[hashOf(text)]
	if t == nil || !s.cfg.Now().Before(t.Expires) {
		return nil, ErrDenied()
	}
	user := s.users[t.User]
	if user == nil || !user.Enabled {
		return nil, ErrDenied()
	}
	session := &Session{User: *user, Methods: t.Methods, Issued: t.Issued, Expires: t.Expires, AuditID: t.AuditID}
	if t.Project != "" {
		p, roles := s.projects[t.Project], user.Roles[t.Project]
		if p == nil || !p.Enabled || len(roles) == 0 {
			return nil, ErrDenied()
		}
		project := *p
		session.Project, session.Roles = &project, roles
	}
	if t.Credential == "" {
		return session, nil
	}
	c := s.creds[t.Credential]
	if c == nil || c.over(s.cfg.Now()) {
		return nil, ErrDenied()
	}
	if session.credential = t.Credential; !c.Expires.IsZero() && c.Expires.Before(session.Expires) {
		session.Expires = c.Expires
	}
	session.Roles = slices.DeleteFunc(slices.Clone(session.Roles), func(role string) bool { return !slices.Contains(c.Roles, role) })
	return session, nil
}

// Revoke ends a session.
func (s *Service) Revoke(ctx context.Context, text string) error {
	defer s.mirror.Share()()
	return remove(ctx, s, KindToken, s.tokens, hashOf(text))
}

// tokensWhere returns the hashes of the tokens for which something holds.
func (s *Service) tokensWhere(holds func(*token) bool) (ids []string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for id, t := range s.tokens {
		if holds(t) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (s *Service) revokeWhere(ctx context.Context, ends func(*token) bool) error {
	ids := s.tokensWhere(ends)
	if len(ids) == 0 {
		return nil
	}
	return remove(ctx, s, KindToken, s.tokens, ids...)
}

// maxTokens is how many sessions may be known before those that are over are
// looked for at each login, and maxPerUser how many one user may have: the older
// half ends when there is to be another.
const (
	maxTokens  = 1000
	maxPerUser = 500
)

// sweep removes sessions that are over, and those that somebody who is to get another has too many of.
func (s *Service) sweep(ctx context.Context, user string) error {
	s.mu.RLock()
	many := len(s.tokens) >= maxTokens
	s.mu.RUnlock()
	if !many && len(s.tokensWhere(func(t *token) bool { return t.User == user })) < maxPerUser {
		return nil
	}
	defer s.mirror.Share()()
	now := s.cfg.Now()
	cut := s.cut()
	return s.revokeWhere(ctx, func(t *token) bool { return !now.Before(t.Expires) || t.Issued.Before(cut[t.User]) })
}

// cut returns since when sessions go on, for users that have too many.
func (s *Service) cut() map[string]time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	issued := map[string][]time.Time{}
	for _, t := range s.tokens {
		issued[t.User] = append(issued[t.User], t.Issued)
	}
	out := map[string]time.Time{}
	for user, times := range issued {
		if len(times) >= maxPerUser {
			slices.SortFunc(times, time.Time.Compare)
			out[user] = times[len(times)-maxPerUser/2]
		}
	}
	return out
}
