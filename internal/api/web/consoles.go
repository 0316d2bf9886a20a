package web

import (
	"context"
	"net/http"

	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/rights"
)

// Consoles are those of instances: they are opened with tickets, which are paths of WebSockets and good for one. remoteconsole.Consoles are such.
type Consoles interface {
	Issue(ctx context.Context, g console.Grant) (path string, err error)
	http.Handler
}

// consoles is the path below which they are opened.
const consoles = "/console/"

// consoleWish is a wish to sit down before an instance.
type consoleWish struct {
	Console console.Kind `json:"console"`
	Reason  string       `json:"reason"`
}

// issueTicket makes a ticket for a console of an instance. It is as good as the session that asks: whoever is signed in otherwise opens nothing with it, and what was
// opened ends when the session does, or may change nothing any more.
func issueTicket(s *Server, w http.ResponseWriter, r *http.Request, v *visitor) (any, error) {
	var wish consoleWish
	if err := read(w, r, &wish); err != nil {
		return nil, err
	}
	by, err := s.because(v, wish.Reason)
	if err != nil {
		return nil, err
	}
	if wish.Console != console.Serial && wish.Console != console.VNC {
		return nil, fault.New(fault.Invalid, "there is no console %q", fault.Clip(string(wish.Console), 50)).At("console").WithHint("there are %s, the serial line, and %s, the screen", console.Serial, console.VNC)
	}
	inst, err := s.cfg.Querier.Picture.Load().Inventory.FindInstance(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	session := v.session
	path, err := s.cfg.Consoles.Issue(r.Context(), console.Grant{Kind: wish.Console, Of: inst.UUID, User: v.name, By: by,
		Still: func(ctx context.Context) error { return s.stillSits(ctx, session) }})
	if err != nil {
		return nil, err
	}
	return map[string]string{"path": path}, nil
}

// sits is under which the context of who opens a console has their session.
type sits struct{}

// stillSits refuses who opens, or looks at, a console for which another session has the ticket, or one that may change nothing any more.
func (s *Server) stillSits(ctx context.Context, asked key) error {
	if who, ok := ctx.Value(sits{}).(key); !ok || who != asked {
		return fault.New(fault.Denied, "the ticket is another session's")
	}
	of, ok := s.sessions.find(asked)
	if !ok {
		return errUnknown
	}
	if may, ok := s.rightsOf(of); !ok || may.May(rights.Change, rights.Of{}) != rights.Allowed {
		return errUnknown
	}
	return nil
}

// openConsole hands a WebSocket of this page on to consoles. Browsers let every page ask for one, so it is looked at as what changes something is.
func openConsole(s *Server, w http.ResponseWriter, r *http.Request, v *visitor) (any, error) {
	changing := r.Clone(r.Context())
	changing.Method = http.MethodPost
	if err := s.cross.Check(changing); err != nil {
		return nil, fault.New(fault.Denied, "the console is opened by a page of another site")
	}
	s.cfg.Consoles.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sits{}, v.session)))
	return nil, nil //nolint:nilnil // it was answered
}
