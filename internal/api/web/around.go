package web

import (
	"context"

	"github.com/drover-project/drover/internal/deploy/layout"
	"github.com/drover-project/drover/internal/queue"
)

// surroundings are what a job waits for and who waits for it, placed for people to look at.
type surroundings struct {
	queue.Around
	Drawing *layout.Drawing `json:"drawing"`
}

// around tells what a job waits for, and who waits for it.
func around(ctx context.Context, s *Server, id string) (any, error) {
	n, err := jobNumber(id)
	if err != nil {
		return nil, err
	}
	a, err := s.cfg.Queue.Around(ctx, n)
	if err != nil {
		return nil, err
	}
	var lines [][2]int
	for _, l := range a.Links {
		lines = append(lines, [2]int{l.From, l.To})
	}
	return surroundings{a, layout.Of(len(a.Points), lines)}, nil
}
