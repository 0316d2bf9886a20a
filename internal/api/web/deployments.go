package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/layout"
	"github.com/drover-project/drover/internal/deploy/report"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/rollout"
)

func (s *Server) deployments() (*rollout.Reader, error) {
	if s.cfg.Querier.Deployments == nil {
		return nil, fault.New(fault.Unsupported, "this controller deploys nothing")
	}
	return s.cfg.Querier.Deployments, nil
}

func deploymentNumber(id string) (int64, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 1 {
		return 0, fault.New(fault.Invalid, "%q is no number of a deployment", fault.Clip(id, 50))
	}
	return n, nil
}

// deployment is how far one is, as a whole and by tasks, and what may be done to it.
type deployment struct {
	*course.Progress
	Sums []course.Sum `json:"sums"`
	Acts []offer      `json:"acts"`
}

// deploymentOf is how far a deployment is, without what it reaches for: digests of states and settings tell nobody anything.
func deploymentOf(ctx context.Context, s *Server, id string) (any, error) {
	d, err := s.deployments()
	if err != nil {
		return nil, err
	}
	n, err := deploymentNumber(id)
	if err != nil {
		return nil, err
	}
	p, err := d.Progress(ctx, n)
	if err != nil {
		return nil, err
	}
	tasks, err := d.Tasks(ctx, n)
	if err != nil {
		return nil, err
	}
	may := offers(p, s.cfg.Querier.Picture.Load().Deployments.LatestIn(p.Environment))
	shown := *p.Deployment
	shown.Nodes, shown.Basis, shown.Common = nil, course.Basis{}, ""
	p.Deployment, p.ByTask = &shown, nil // the sums have them
	return deployment{p, course.Sums(tasks), may}, nil
}

// explainedStep is all about a task on a node, with the command that tells it.
type explainedStep struct {
	*course.Explanation
	Command string `json:"command"`
}

// stepOf explains a task on a node; id is the deployment's and its step's.
func stepOf(ctx context.Context, s *Server, id string) (any, error) {
	d, err := s.deployments()
	if err != nil {
		return nil, err
	}
	of, step, _ := strings.Cut(id, "/")
	n, err := deploymentNumber(of)
	if err != nil {
		return nil, err
	}
	tasks, err := d.Tasks(ctx, n)
	if err != nil {
		return nil, err
	}
	at, err := strconv.Atoi(step)
	if err != nil || at < 0 || at >= len(tasks) {
		return nil, fault.New(fault.NotFound, "deployment %d has no step %q", n, fault.Clip(step, 50))
	}
	t := &tasks[at]
	x, err := d.Explain(ctx, n, t.Task, t.Node)
	if err != nil {
		return nil, err
	}
	return explainedStep{x, fmt.Sprintf("drover deploy explain %d %s %s", n, quoted(t.Task), quoted(t.Node))}, nil
}

// planned is a stored plan: its tasks as a graph, and for people what runs where, and why.
type planned struct {
	Tasks   []string        `json:"tasks"`
	Drawing *layout.Drawing `json:"drawing"`
	Groups  []report.Group  `json:"groups"`
}

// planOf tells of a stored plan what never changes.
func planOf(s *Server, _ http.ResponseWriter, r *http.Request, _ *visitor) (any, error) {
	reader, err := s.deployments()
	if err != nil {
		return nil, err
	}
	n, err := deploymentNumber(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	d, err := reader.Deployment(r.Context(), n)
	if err != nil {
		return nil, err
	}
	c, err := reader.Plans.Course(r.Context(), d)
	if err != nil {
		return nil, err
	}
	roles := map[string][]string{}
	for _, x := range d.Nodes {
		roles[x.UID] = x.Roles
	}
	rows := []report.Row{}
	for i := range c.Steps {
		if x := &c.Steps[i]; x.Run {
			rows = append(rows, report.Row{Task: x.Task, Node: x.Node, Roles: roles[x.Node], Why: x.Why})
		}
	}
	tasks, lines := c.TaskGraph()
	return planned{Tasks: tasks, Drawing: layout.Of(len(tasks), lines), Groups: report.Groups(rows)}, nil
}
