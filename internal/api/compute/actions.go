package compute

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/server"
)

// action is what may be asked of a server, with the arguments that it has.
type action struct {
	do        server.Do
	arguments intake.Object
}

var (
	none = intake.Object{}

	// actions are all there are, by the key of the body.
	actions = map[string]action{
		"os-start": {server.Start, none}, "start": {server.Start, none}, "os-stop": {server.Stop, none}, "shutdown": {server.Stop, none},
		"delete": {server.Delete, none}, "forceDelete": {server.Delete, none}, "reboot": {server.Reboot, intake.Object{"type": done}},
	}
)

// actionNames are the actions that there are at the version of a request.
func (r *request) actionNames() []string {
	out := slices.Concat(slices.Collect(maps.Keys(actions)), slices.Collect(maps.Keys(locking)))
	if r.flavour == nova {
		out = append(out, consoleOutput, rebuildAction)
		out = slices.AppendSeq(out, maps.Keys(capturing))
		out = slices.AppendSeq(out, maps.Keys(resizing))
		if !r.since(withConsoles) {
			out = slices.AppendSeq(out, maps.Keys(oldConsoles))
		}
	}
	slices.Sort(out)
	return out
}

// act does what the one key of the body names: an action of the table, each of which is a task of the server; or, at the versions that have it, something about its
// console (consoles.go), its disk (rebuild.go, capture.go), its size (resize.go) or its lock (lock.go).
func act(r *request) (result, error) {
	s, err := r.server()
	if err != nil {
		return result{}, err
	}
	var body map[string]json.RawMessage
	if err := r.read(nil, &body); err != nil {
		return result{}, err
	}
	if len(body) != 1 {
		return result{}, fault.New(fault.Invalid, "The body of an action must be an object with one key")
	}
	for key, argument := range body {
		if protocol, is := oldConsoles[key]; is && r.flavour == nova && !r.since(withConsoles) {
			return r.oldConsole(s, protocol, argument)
		}
		if key == consoleOutput && r.flavour == nova {
			return r.printed(s, argument)
		}
		if key == rebuildAction && r.flavour == nova {
			return r.rebuild(s, argument)
		}
		if capturing[key] != nil && r.flavour == nova {
			return r.capture(s, key, argument)
		}
		if do := resizing[key]; do != nil && r.flavour == nova {
			return do(r, s, argument)
		}
		if do := locking[key]; do != nil {
			return do(r, s, argument)
		}
		a, known := actions[key]
		if !known {
			return result{}, fault.New(fault.Invalid, "There is no such action: %s", fault.Clip(key, 100)).
				WithHint("there are %s", strings.Join(r.actionNames(), ", "))
		}
		if err := (intake.Key{Done: true, In: a.arguments}).Check(key, argument); err != nil {
			return result{}, err
		}
		do := a.do
		if do == server.Reboot {
			if do, err = rebootOf(argument); err != nil {
				return result{}, err
			}
		}
		if _, err := r.begin(s, do); err != nil {
			return result{}, err
		}
	}
	return result{status: http.StatusAccepted}, nil
}

// begin has something done to a server, which is kept with who asked for it.
func (r *request) begin(s *server.Server, do server.Do) (*server.Server, error) {
	by, operator := r.byUser(), r.administers()
	return r.api.cfg.Engine.Change(s.ID, func(s *server.Server) (*server.Server, error) {
		if err := s.Unlocked(operator); err != nil {
			return nil, err
		}
		return s.Begin(do, by)
	})
}

func rebootOf(argument json.RawMessage) (server.Do, error) {
	var how struct {
		Type string `json:"type"`
	}
	if intake.ReadOpen(argument, &how) == nil {
		switch strings.ToUpper(how.Type) {
		case "SOFT":
			return server.Reboot, nil
		case "HARD":
			return server.RebootHard, nil
		}
	}
	return "", fault.New(fault.Invalid, "reboot needs a type: SOFT or HARD").At("type")
}
