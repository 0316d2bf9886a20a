package compute

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/identity"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/server"
)

// consoleTypes are the types of consoles that Nova has, by protocol; those that are served are console's kinds.
var consoleTypes = map[string][]string{
	"vnc": {"novnc", "xvpvnc"}, "serial": {"serial"}, "spice": {"spice-html5"}, "rdp": {"rdp-html5"}, "mks": {"webmks"},
}

// oldConsoles are the actions that were before remote consoles (microversion 2.6), by protocol.
var oldConsoles = map[string]string{"os-getVNCConsole": "vnc", "os-getSerialConsole": "serial", "os-getSPICEConsole": "spice", "os-getRDPConsole": "rdp"}

// wantedConsole is what a client asks for.
type wantedConsole struct {
	Protocol string `json:"protocol"`
	Type     string `json:"type"`
}

// openRemoteConsole makes the address of a console.
func openRemoteConsole(r *request) (result, error) {
	if !r.since(withConsoles) {
		return result{}, errNoRoute
	}
	s, err := r.server()
	if err != nil {
		return result{}, err
	}
	var body struct {
		Wanted *wantedConsole `json:"remote_console"`
	}
	if err := r.read(bodyOfConsole, &body); err != nil {
		return result{}, err
	}
	if body.Wanted == nil {
		return result{}, fault.New(fault.Invalid, "remote_console is missing: an object with a protocol and a type").At("remote_console")
	}
	address, err := r.console(s, *body.Wanted)
	return result{http.StatusOK, object{"remote_console": object{"protocol": body.Wanted.Protocol, "type": body.Wanted.Type, "url": address}}}, err
}

// oldConsole does the same for an action.
func (r *request) oldConsole(s *server.Server, protocol string, argument json.RawMessage) (result, error) {
	wanted := wantedConsole{Protocol: protocol}
	if err := (intake.Key{Done: true, In: intake.Object{"type": done}}).Check("type", argument); err != nil {
		return result{}, err
	}
	if intake.ReadOpen(argument, &wanted) != nil || wanted.Protocol != protocol {
		return result{}, fault.New(fault.Invalid, "A console needs a type").At("type")
	}
	address, err := r.console(s, wanted)
	return result{http.StatusOK, object{"console": object{"type": wanted.Type, "url": address}}}, err
}

// still asks, whenever it is called, whether whoever has a token may have something done in a project: Denied, also when the session was to end
// by now and nobody can be asked about it.
func (a *API) still(was *identity.Session, token, project string) func(context.Context) error {
	return func(ctx context.Context) error {
		now, err := a.cfg.Session(ctx, token)
		if err == nil && now.Account().May(rights.Change, rights.Of{Project: project}) != rights.Allowed || err != nil && !a.cfg.Now().Before(was.Expires) {
			return identity.ErrDenied()
		}
		return err
	}
}

// consoleOutput is the action that asks what a server printed.
const consoleOutput = "os-getConsoleOutput"

// printed tells what the machine of a server printed on its serial line last, also when it does not run any more: all that is kept, or so many
// lines of it.
func (r *request) printed(s *server.Server, argument json.RawMessage) (result, error) {
	lines, err := linesOf(argument)
	if err != nil {
		return result{}, err
	}
	const text = "Unable to get console log, functionality not implemented: %w"
	switch {
	case s.UUID == "":
		return result{}, fault.New(fault.WrongState, "Instance %s is not ready", s.ID)
	case s.Backend != "":
		return result{}, refused{fault.New(fault.Unsupported, text, errors.New("its cluster shows no consoles here")), http.StatusNotImplemented}
	}
	out, err := r.api.cfg.Printed(r.Context(), s.UUID)
	switch fault.CodeOf(err) {
	case fault.Unsupported:
		return result{}, refused{fault.New(fault.Unsupported, text, err), http.StatusNotImplemented}
	case fault.Environment, fault.Failed: // the node's, at the moment
		return result{}, fault.New(fault.Unavailable, "What instance %s printed cannot be read: %w", s.ID, err)
	}
	return result{http.StatusOK, object{"output": lastLines(asText(out), lines)}}, err
}

// linesOf is how many lines are asked for; less than nothing for all.
func linesOf(argument json.RawMessage) (int, error) {
	if err := (intake.Key{Done: true, In: intake.Object{"length": done}}).Check("length", argument); err != nil {
		return 0, err
	}
	var wish *struct {
		Length json.RawMessage `json:"length"`
	}
	if err := intake.ReadOpen(argument, &wish); err != nil {
		return 0, malformed(err)
	}
	if wish == nil || wish.Length == nil || string(wish.Length) == "null" {
		return -1, nil
	}
	n, err := strconv.Atoi(wordOf(wish.Length))
	if err != nil || n < -1 {
		return 0, fault.New(fault.Invalid, "Invalid input for field/attribute length. Value: %s. It must be a number of lines, or -1 for all", fault.Clip(wordOf(wish.Length), 40)).At("length")
	}
	return n, nil
}

// asText is what a machine printed as text that a terminal may show: without what would move its cursor or change its colours.
func asText(printed []byte) string {
	for i := 0; i < len(printed) && i < utf8.UTFMax && !utf8.RuneStart(printed[0]); i++ {
		printed = printed[1:] // what is kept begins within a character
	}
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) && c != '\n' && c != '\t' {
			return -1
		}
		return c
	}, strings.ToValidUTF8(string(printed), "\uFFFD"))
}

// lastLines are the last n lines of a text; all of them for a number below zero.
func lastLines(text string, n int) string {
	if n < 0 {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" { // behind the end of the last one
		lines = lines[:len(lines)-1]
	}
	return strings.Join(lines[max(0, len(lines)-n):], "")
}

// console makes the address of a console of a server.
func (r *request) console(s *server.Server, wanted wantedConsole) (string, error) {
	types, known := consoleTypes[wanted.Protocol]
	if !known || !slices.Contains(types, wanted.Type) {
		return "", fault.New(fault.Invalid, "There is no console of protocol %.100q and type %.100q", wanted.Protocol, wanted.Type).At("type")
	}
	kind := console.Kind(wanted.Type)
	if kind != console.Serial && kind != console.VNC {
		return "", fault.New(fault.Invalid, "Unavailable console type %s.", wanted.Type).At("type").WithHint("there are novnc and serial")
	}
	if is := s.Status(); is != server.Active && is != server.Rebooting {
		return "", fault.New(fault.WrongState, "Instance %s is not ready: it is %s", s.ID, is)
	}
	path, err := r.api.cfg.Console(r.Context(), console.Grant{Kind: kind, Of: s.ID, User: r.session.User.ID, Project: s.Project,
		By: audit.By{Account: reason.Account{Surface: "compute", Name: r.session.User.Name}}, Still: r.api.still(r.session, r.Header.Get("X-Auth-Token"), s.Project)})
	switch fault.CodeOf(err) {
	case fault.Unsupported:
		return "", fault.New(fault.Invalid, "Unavailable console type %s: %w", wanted.Type, err).At("type")
	case fault.Environment, fault.Failed: // the node's, at the moment
		return "", fault.New(fault.Unavailable, "The console of instance %s cannot be reached: %w", s.ID, err)
	}
	return "ws" + strings.TrimPrefix(r.base(), "http") + path, err
}
