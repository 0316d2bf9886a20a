package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/layout"
	"github.com/drover-project/drover/internal/deploy/report"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/rollout"
)

// proposed is what a deployment would do, which is not stored.
type proposed struct {
	// Wish is what was asked for, with what the plan was computed from: whoever hands it in again gets what was shown, or is refused.
	Wish     rollout.Wish   `json:"wish"`
	Headline string         `json:"headline"`
	Runs     int            `json:"runs"`
	Groups   []report.Group `json:"groups"`
	Warnings []string       `json:"warnings"`
	// Sums are all tasks, also those that would not run, and Drawing places them.
	Sums    []course.Sum    `json:"sums"`
	Drawing *layout.Drawing `json:"drawing"`
	// Plan and Run are the commands that show the same, and carry it out.
	Plan string `json:"plan"`
	Run  string `json:"run"`
}

// wishIn reads a wish out of an address: environment, mode, force, type, and only and nodes as often as there are some.
func wishIn(from url.Values) rollout.Wish {
	return rollout.Wish{Environment: from.Get("environment"), Mode: course.Mode(from.Get("mode")), Force: from.Get("force") != "", Type: from.Get("type"),
		Only: from["only"], Nodes: from["nodes"]}
}

// commandOf is a command of deployments with the options that a wish stands for.
func commandOf(verb string, w *rollout.Wish) string {
	parts := []string{"drover deploy", verb, quoted(w.Environment)}
	for _, o := range []struct{ name, is string }{{"--task", strings.Join(w.Only, ",")}, {"--node", strings.Join(w.Nodes, ",")}, {"--type", w.Type}} {
		if o.is != "" {
			parts = append(parts, o.name, quoted(o.is))
		}
	}
	if w.Force {
		parts = append(parts, "--force")
	}
	switch {
	case w.Mode == course.Noop:
		parts = append(parts, "--noop")
	case w.Mode == course.DryRun && verb == "run": // a plan is the same
		parts = append(parts, "--dry-run")
	}
	return strings.Join(parts, " ")
}

// propose tells what a deployment would do.
func propose(s *Server, _ http.ResponseWriter, r *http.Request, v *visitor) (any, error) {
	reader, err := s.deployments()
	if err != nil {
		return nil, err
	}
	w := wishIn(r.URL.Query())
	compute, err := reader.Preview(r.Context(), w, queue.By{Account: v.by})
	if err != nil {
		return nil, err
	}
	p, err := compute()
	if err != nil {
		return nil, err
	}
	w.Mode, w.Basis = p.Deployment.Mode, &p.Deployment.Basis
	rows := report.RowsOf(p.Deployment.Nodes, p.Tasks)
	o := p.Outline()
	return proposed{Wish: w, Headline: report.Headline(p.Deployment.Steps, rows), Runs: len(rows), Groups: report.Groups(rows), Warnings: p.Warnings,
		Sums: o.Tasks, Drawing: layout.Of(len(o.Tasks), o.After), Plan: commandOf("plan", &w), Run: commandOf("run", &w)}, nil
}

// begun is a deployment that was begun.
type begun struct {
	Deployment int64 `json:"deployment"`
}

// deploy plans what was shown, and begins it.
func deploy(s *Server, w http.ResponseWriter, r *http.Request, v *visitor) (any, error) {
	var wish struct {
		Wish   rollout.Wish `json:"wish"`
		Reason string       `json:"reason"`
	}
	if err := read(w, r, &wish); err != nil {
		return nil, err
	}
	by, err := s.because(v, wish.Reason)
	if err != nil {
		return nil, err
	}
	if wish.Wish.Basis == nil {
		return nil, fault.New(fault.Invalid, "a deployment needs the basis of the plan that was shown").At("wish.basis")
	}
	d, _, err := s.cfg.Rollout.Plan(r.Context(), wish.Wish, by)
	if err != nil {
		return nil, err
	}
	if _, err := s.cfg.Rollout.Begin(r.Context(), d.ID, by); err != nil {
		return nil, fault.New(fault.CodeOf(err), "%w", err).WithHint("the plan is kept: drover deploy run --plan %d", d.ID)
	}
	return begun{d.ID}, nil
}

// act is how something is done that may be done to a deployment.
type act struct {
	// name is what its button says, does what comes of it, and command the command that does it, with a place for the number.
	name, does, command string
	do                  func(ctx context.Context, e *rollout.Engine, id int64, by rollout.By) (*course.Deployment, error)
}

// acts are all that package course knows.
var acts = map[course.Act]act{
	course.Begin: {"Begin", "What the plan runs begins, if what it was computed from is still what there is.", "drover deploy run --plan %d",
		func(ctx context.Context, e *rollout.Engine, id int64, by rollout.By) (*course.Deployment, error) {
			return e.Begin(ctx, id, by)
		}},
	course.Stop: {"Stop", "Nothing more of it begins. What runs comes to its end, and the rest is left: it can go on later.", "drover deploy stop %d",
		func(ctx context.Context, e *rollout.Engine, id int64, by rollout.By) (*course.Deployment, error) {
			return e.Stop(ctx, id, by)
		}},
	course.Resume: {"Go on", "What is left begins, as it was planned. What failed stays so, and what comes behind that does not run.", "drover deploy resume %d",
		func(ctx context.Context, e *rollout.Engine, id int64, by rollout.By) (*course.Deployment, error) {
			return e.Resume(ctx, id, false, by)
		}},
	course.Retry: {"Try again", "What failed begins again, and what is left behind it, as it was planned.", "drover deploy retry %d",
		func(ctx context.Context, e *rollout.Engine, id int64, by rollout.By) (*course.Deployment, error) {
			return e.Resume(ctx, id, true, by)
		}},
}

// offer is an act as the page offers it.
type offer struct {
	Do      course.Act `json:"do"`
	Name    string     `json:"name"`
	Does    string     `json:"does"`
	Command string     `json:"command"`
}

// offers are what may be done to a deployment now, also by those who may only look: they see the commands.
func offers(p *course.Progress, latest *course.Deployment) []offer {
	out := []offer{}
	for _, do := range p.Acts(latest) {
		a := acts[do]
		out = append(out, offer{do, a.name, a.does, fmt.Sprintf(a.command, p.ID)})
	}
	return out
}

// actOn does something to a deployment.
func actOn(s *Server, w http.ResponseWriter, r *http.Request, v *visitor) (any, error) {
	id, err := deploymentNumber(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	a, known := acts[course.Act(r.PathValue("do"))]
	if !known {
		return nil, fault.New(fault.NotFound, "nobody can %q a deployment", fault.Clip(r.PathValue("do"), 50))
	}
	var wish struct {
		Reason string `json:"reason"`
	}
	if err := read(w, r, &wish); err != nil {
		return nil, err
	}
	by, err := s.because(v, wish.Reason)
	if err != nil {
		return nil, err
	}
	d, err := a.do(r.Context(), s.cfg.Rollout, id, by)
	if err != nil {
		return nil, err
	}
	return outcome{true, fmt.Sprintf("Deployment %d is %s.", id, d.Status)}, nil
}
