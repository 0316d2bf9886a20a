package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/drover-project/drover/internal/deploy/report"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/rollout"
)

// side is one of two plans that are compared.
type side struct {
	Deployment  int64  `json:"deployment"`
	Environment string `json:"environment"`
	Status      string `json:"status"`
	Headline    string `json:"headline"`
	rows        []report.Row
}

// comparison is how two plans differ: in what they run, and in what they were computed from.
type comparison struct {
	Before side `json:"before"`
	After  side `json:"after"`
	// Gone is what only the first one runs, Came what only the second one does, Changed what both run for other reasons.
	Gone    []report.Group `json:"gone"`
	Came    []report.Group `json:"came"`
	Changed []report.Group `json:"changed"`
	States  []changedValue `json:"states"`
	LeftOut int            `json:"left_out"`
	// TasksCommand and StatesCommand tell the same on the command line.
	TasksCommand  string `json:"tasks_command"`
	StatesCommand string `json:"states_command"`
}

// changedValue is a value that is not the same in two states; nil is where it is not.
type changedValue struct {
	Node string  `json:"node,omitempty"`
	Path string  `json:"path"`
	Old  *string `json:"old,omitempty"`
	New  *string `json:"new,omitempty"`
}

// How many different values a comparison names, and how many bytes of each.
const (
	mostDifferences = 500
	mostValue       = 400
)

// comparePlans tells how two stored plans differ.
func comparePlans(s *Server, _ http.ResponseWriter, r *http.Request, _ *visitor) (any, error) {
	reader, err := s.deployments()
	if err != nil {
		return nil, err
	}
	var sides [2]side
	for i, part := range []string{"id", "other"} {
		if sides[i], err = sideOf(r.Context(), reader, r.PathValue(part)); err != nil {
			return nil, err
		}
	}
	a, b := sides[0].Deployment, sides[1].Deployment
	c := comparison{Before: sides[0], After: sides[1], States: []changedValue{},
		TasksCommand: fmt.Sprintf("drover deploy diff --tasks %d %d", a, b), StatesCommand: fmt.Sprintf("drover deploy diff %d %d", a, b)}
	gone, came, changed := report.Compare(sides[0].rows, sides[1].rows)
	c.Gone, c.Came, c.Changed = report.Groups(gone), report.Groups(came), report.Groups(changed)
	found, err := reader.Diff(r.Context(), rollout.At{Deployment: a}, rollout.At{Deployment: b})
	if err != nil {
		return nil, err
	}
	c.LeftOut = max(len(found)-mostDifferences, 0)
	for _, d := range found[:len(found)-c.LeftOut] {
		x, err := shownDifference(&d)
		if err != nil {
			return nil, err
		}
		c.States = append(c.States, x)
	}
	return c, nil
}

// sideOf reads one of the plans.
func sideOf(ctx context.Context, reader *rollout.Reader, id string) (side, error) {
	n, err := deploymentNumber(id)
	if err != nil {
		return side{}, err
	}
	d, err := reader.Deployment(ctx, n)
	if err != nil {
		return side{}, err
	}
	tasks, err := reader.Tasks(ctx, n)
	if err != nil {
		return side{}, err
	}
	rows := report.RowsOf(d.Nodes, tasks)
	return side{n, d.Environment, string(d.Status), report.Headline(len(tasks), rows), rows}, nil
}

func shownDifference(d *rollout.Difference) (changedValue, error) {
	x := changedValue{Node: d.Node, Path: "$" + d.Path}
	if d.Host {
		x.Path = "host"
	}
	for _, v := range []struct {
		lacks bool
		is    any
		to    **string
	}{{d.Came, d.Old, &x.Old}, {d.Gone, d.New, &x.New}} {
		if v.lacks {
			continue
		}
		text, err := json.Marshal(v.is)
		if err != nil {
			return x, err
		}
		shown := fault.Clip(string(text), mostValue)
		*v.to = &shown
	}
	return x, nil
}
