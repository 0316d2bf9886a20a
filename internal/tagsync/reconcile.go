package tagsync

import (
	"context"
	"slices"

	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

// Reconcile has every server looked at, for what no event told of, and forgets those that are long gone. How often is internal/app's to say.
func (e *Engine) Reconcile() {
	e.beside(func() {
		if err := e.forgetPast(e.ctx); err != nil && e.ctx.Err() == nil {
			e.cfg.Log.Info("deleted servers are forgotten later", "error", err)
		}
	})
	for s := range e.Servers().All() {
		e.kick(s.ID)
	}
}

// Finding is what a server and its cluster differ in.
type Finding struct {
	Server   string `json:"server"`
	Name     string `json:"name"`
	Backend  string `json:"backend,omitempty"`
	Instance string `json:"instance"`
	// Unreachable is why the cluster could not be asked; then nothing else is
	// known.
	Unreachable string `json:"unreachable,omitempty"`
	// Missing: the server is to be there, and its instance is not on the cluster. Unmatched: there is one
	// of its name, and nobody can tell whether it is the server's.
	Missing bool `json:"missing,omitempty"`
	// Absent is why that is known.
	Absent      string                 `json:"absent,omitempty"`
	Unmatched   bool                   `json:"unmatched,omitempty"`
	Differences []servertag.Difference `json:"differences"`
}

// Drift reports whether something is to be done, or could not be found out.
func (f *Finding) Drift() bool {
	return f.Unreachable != "" || f.Missing || f.Unmatched || slices.ContainsFunc(f.Differences, func(d servertag.Difference) bool { return d.IsDrift() })
}

// Report is what was found of servers.
type Report struct {
	// Looked is how many servers were looked at; Findings are of those that differ.
	Looked   int       `json:"looked"`
	Findings []Finding `json:"findings"`
	// Drift: at least one of them is not as it is to be, and no job is at it.
	Drift bool `json:"drift"`
	// Fixed: all clusters could be asked, and what was found was dealt with afterwards
	// as far as that goes without waiting.
	Fixed bool `json:"fixed"`
	// Left: something is not as it is to be even so, and no job is at it: it waits for
	// another one, or for somebody.
	Left bool `json:"left,omitempty"`
}

// Examine compares servers with their clusters: one by its id, or all for an
// empty one. It changes nothing, unless it is to fix: then each server that
// differs is brought in line as far as that goes without waiting for jobs. What it
// tells is how it was before. NotFound when there is no such server.
func (e *Engine) Examine(ctx context.Context, id string, fix bool) (*Report, error) {
	r := &Report{Findings: []Finding{}, Fixed: fix}
	silent := map[string]string{} // clusters that did not answer, with the reason
	for s := range e.chosen(id) {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		r.Looked++
		f := e.find(ctx, s, silent)
		if !f.Missing && !f.Unmatched && f.Unreachable == "" && len(f.Differences) == 0 {
			continue
		}
		r.Findings, r.Drift = append(r.Findings, f), r.Drift || f.Drift()
		if !fix {
			continue
		}
		if f.Unreachable != "" || e.Attend(ctx, s.ID) != nil {
			r.Fixed = false
		} else if now := e.Servers().Get(s.ID); now != nil {
			f := e.find(ctx, now, silent)
			r.Left = r.Left || f.Drift()
		}
	}
	if id != "" && r.Looked == 0 {
		return nil, errNoServer(id)
	}
	return r, nil
}

// chosen yields one server, or all by number.
func (e *Engine) chosen(id string) func(func(*server.Server) bool) {
	servers := e.Servers()
	if id == "" {
		return servers.Numbers()
	}
	return func(yield func(*server.Server) bool) {
		if s := servers.Get(id); s != nil {
			yield(s)
		}
	}
}

// find compares one server with its cluster.
func (e *Engine) find(ctx context.Context, s *server.Server, silent map[string]string) Finding {
	f := Finding{Server: s.ID, Name: s.Name, Backend: s.Backend, Instance: s.Instance, Unreachable: silent[s.Backend], Differences: []servertag.Difference{}}
	b := e.cfg.Backends[s.Backend]
	if b == nil {
		f.Unreachable = "its cluster is not configured any more"
	}
	if f.Unreachable != "" {
		return f
	}
	sight, err := e.look(ctx, b, s)
	if err != nil {
		silent[s.Backend], f.Unreachable = err.Error(), err.Error()
		return f
	}
	sight = s.Own(sight)
	f.Unmatched = sight.Doubt
	f.Missing = !sight.Instance && !sight.Doubt && s.Deleted == 0 && s.Doing() == nil && s.Fault == nil
	if f.Missing {
		f.Absent = sight.Absent
	}
	if !s.Deleting() {
		f.Differences = append(f.Differences, s.Tags.Compare(e.cfg.Policy, sight.Sight)...)
	}
	return f
}
