package app

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// storeSilent is how long the store may take to say who leads before the other controllers are
// asked, too: this one may be cut off from the store while they are not.
const storeSilent = 300 * time.Millisecond

// found is who leads, as somebody says.
type found struct {
	leader peerRecord
	err    error
}

// whoLeads tells who leads: as the store says or, where that does not answer, as the controller says
// itself that does.
func (g *group) whoLeads(ctx context.Context) (peerRecord, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stored, claimed := make(chan found, 1), make(chan found, 1)
	go func() {
		p, err := g.presentLeader(ctx)
		stored <- found{p, err}
	}()
	silent := time.After(storeSilent)
	var said found
	select {
	case said = <-stored:
		if said.err == nil || fault.Is(said.err, fault.NotFound) {
			return said.leader, said.err
		}
		stored = nil
	case <-silent:
	}
	go func() {
		p, err := g.whoClaims(ctx)
		claimed <- found{p, err}
	}()
	for stored != nil || claimed != nil {
		select {
		case said = <-stored:
			stored = nil
		case said = <-claimed:
			claimed = nil
		}
		if said.err == nil {
			return said.leader, nil
		}
	}
	return said.leader, said.err
}

// whoClaims asks the controllers that are remembered whether they lead. One that thinks so wrongly finds out before it
// answers anything.
func (g *group) whoClaims(ctx context.Context) (peerRecord, error) {
	others := g.roster.others(g.self.Instance)
	answers := make(chan found, len(others))
	for _, p := range others {
		go func() {
			st, err := g.status(ctx, p)
			if err == nil && st.Role != roleLeader {
				err = fault.New(fault.NotFound, "%s does not lead", p.Name)
			}
			if err == nil {
				g.roster.told(st.Others)
			}
			answers <- found{p, err}
		}()
	}
	var refused []string
	for range others {
		a := <-answers
		if a.err == nil {
			return a.leader, nil
		}
		refused = append(refused, a.err.Error())
	}
	slices.Sort(refused)
	return peerRecord{}, fault.New(fault.Unavailable, "none of the %d other controllers that are known leads: %s", len(others), strings.Join(refused, "; "))
}
