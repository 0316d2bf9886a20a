package web

import (
	"errors"
	"net/http"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/version"
)

// errUnknown is for who has to sign in first.
var errUnknown error = fault.New(fault.Denied, "nobody is signed in").WithHint("sign in with an account of the users file, or by drover web")

// visitor is somebody who asks.
type visitor struct {
	session key
	name    string
	// may is what they may do at this moment.
	may rights.Account
	by  reason.Account
}

// cookie is the name under which the browser keeps a session: with the cluster's id, as browsers do not tell the ports of a host apart. The prefix has
// browsers take it over a secure connection alone, or from this machine, and for this host alone.
func (s *Server) cookie() string {
	id := s.cfg.Querier.Picture.Load().Inventory.Cluster().UUID
	const enough = 8
	return "__Host-drover-" + id[:min(enough, len(id))]
}

// visitorOf finds out who asks; errUnknown if that cannot be told, or is no account any more.
func (s *Server) visitorOf(r *http.Request) (*visitor, error) {
	c, err := r.Cookie(s.cookie())
	if err != nil {
		return nil, errUnknown
	}
	v := &visitor{session: keyOf(c.Value), by: reason.Account{Surface: "web", From: from(r)}}
	of, ok := s.sessions.find(v.session)
	if !ok {
		return nil, errUnknown
	}
	if v.may, ok = s.rightsOf(of); !ok {
		s.sessions.end(v.session)
		return nil, errUnknown
	}
	v.name, v.by.Name = of.name, of.name
	return v, nil
}

// rightsOf is what a session may do at this moment; ok is false if its account is gone, or has another password.
func (s *Server) rightsOf(of session) (may rights.Account, ok bool) {
	if of.operator {
		return rights.Operator(), true
	}
	may, stamp, ok := s.cfg.Accounts.Account(of.name)
	return may, ok && stamp == of.stamp
}

// from is where a request came from.
func from(r *http.Request) string {
	if origin := intake.Origin(r.RemoteAddr); origin.IsValid() {
		return origin.Addr().String()
	}
	return r.RemoteAddr
}

// credentials are what somebody signs in with: an account, or the code of a link.
type credentials struct {
	Name     string `json:"name"`
	Password string `json:"password"`
	Code     string `json:"code"`
}

// signIn begins a session, under a new secret. Who guesses is answered later each time.
func signIn(s *Server, w http.ResponseWriter, r *http.Request, _ *visitor) (any, error) {
	var with credentials
	if err := read(w, r, &with); err != nil {
		return nil, err
	}
	of, ok := s.admit(with)
	if !ok {
		s.slowDown(r, with.Name)
		if with.Code != "" {
			return nil, fault.New(fault.Denied, "the link is over: it signs in once, for five minutes").WithHint("drover web makes another one")
		}
		return nil, fault.New(fault.Denied, "there is no such account, or it has another password")
	}
	if c, err := r.Cookie(s.cookie()); err == nil {
		s.sessions.end(keyOf(c.Value)) // what the browser had is not kept beside it
	}
	s.cfg.Log.Info("somebody has signed in to the page", "account", of.name, "from", from(r), "by_link", of.operator)
	s.keep(w, s.sessions.begin(of), int(sessionTime/time.Second))
	may, _ := s.rightsOf(of)
	return s.describe(of.name, may), nil
}

// admit finds the session that somebody may have.
func (s *Server) admit(with credentials) (session, bool) {
	if with.Code != "" {
		return s.sessions.redeem(with.Code)
	}
	if !s.cfg.Accounts.Verify(with.Name, with.Password) {
		return session{}, false
	}
	_, stamp, ok := s.cfg.Accounts.Account(with.Name)
	return session{name: with.Name, stamp: stamp}, ok
}

// slowDown waits as long as the answer to wrong credentials has to.
func (s *Server) slowDown(r *http.Request, name string) {
	gate.SlowDown(r, s.brake, s.cfg.Now(), func(count int, wait time.Duration) {
		s.cfg.Log.Warn("wrong credentials at the page", "from", r.RemoteAddr, "account", fault.Clip(name, 100), "wrong_from_there", count, "answered_after", wait)
	})
}

// keep has the browser keep a session's secret, or with a negative age forget it.
func (s *Server) keep(w http.ResponseWriter, secret string, age int) {
	http.SetCookie(w, &http.Cookie{Name: s.cookie(), Value: secret, Path: "/", MaxAge: age, Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

// signOut ends the session; what its tabs have open ends when that is looked at next.
func signOut(s *Server, w http.ResponseWriter, _ *http.Request, v *visitor) (any, error) {
	s.sessions.end(v.session)
	s.keep(w, "", -1)
	return map[string]any{}, nil
}

// whoAmI tells the page who has signed in, and where.
func whoAmI(s *Server, _ http.ResponseWriter, _ *http.Request, v *visitor) (any, error) {
	return s.describe(v.name, v.may), nil
}

// whereabouts is who is signed in, and where.
type whereabouts struct {
	Account string `json:"account"`
	// Change: the account may have something done.
	Change  bool      `json:"change"`
	Cluster string    `json:"cluster"`
	Version string    `json:"version"`
	Now     time.Time `json:"now"`
}

func (s *Server) describe(name string, may rights.Account) whereabouts {
	return whereabouts{Account: name, Change: may.May(rights.Change, rights.Of{}) == rights.Allowed,
		Cluster: s.cfg.Querier.Picture.Load().Inventory.Cluster().Name, Version: version.Current().Version, Now: s.cfg.Now().UTC()}
}

func faultOf(err error) (*fault.Error, bool) { return errors.AsType[*fault.Error](err) }
