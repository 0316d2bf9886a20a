package exec

import (
	"context"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/placement"
)

// reportTime is how long a creation waits for nodes that did not report yet what they changed last.
const reportTime = 5 * time.Second

// reports are what nodes told about themselves last. Nobody is asked that has told it; those that have not are waited for
// together. One that does not tell is passed over, with a warning.
func (e *Env) reports(ctx context.Context, nodes []*cluster.Node) map[string]placement.Report {
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	found := make([]placement.Report, len(nodes))
	var all sync.WaitGroup
	for i, node := range nodes {
		all.Go(func() {
			info, err := e.reported(ctx, node)
			if err != nil {
				found[i].Failed = err.Error()
				return
			}
			found[i] = placement.Report{
				Memory: int64(info.MemoryTotal - info.MemoryNode), MemoryFree: int64(info.MemoryFree),
				Disk: int64(info.DiskTotal), DiskFree: int64(info.DiskFree), CPUs: int64(info.CPUs),
				Hypervisor: info.Hypervisor, StandsIn: info.StandsIn, Takes: info.Takes, Templates: info.Templates,
			}
		})
	}
	all.Wait()
	out := make(map[string]placement.Report, len(nodes))
	for i, node := range nodes {
		out[node.UUID] = found[i]
		if found[i].Failed != "" {
			e.Warnf("Node %s is passed over: %s", node.Name, found[i].Failed)
		}
	}
	return out
}

func (e *Env) reported(ctx context.Context, node *cluster.Node) (hypervisor.Node, error) {
	a, err := e.agent(node)
	if err != nil {
		return hypervisor.Node{}, err
	}
	state, err := a.State(ctx, false)
	if err == nil {
		err = state.Err
	}
	return state.Node, err
}

// decide decides where an instance goes, and takes the place.
func (e *Env) decide(ctx context.Context, p *places, r placement.Request) placement.Decision {
	return e.decideFor(ctx, p, r, "")
}

// decideFor is decide for a node that somebody else has chosen: the decision says why, and what placement says of that node.
func (e *Env) decideFor(ctx context.Context, p *places, r placement.Request, why string) placement.Decision {
	reports := e.reports(ctx, placement.Candidates(e.snapshot(), r))
	d := p.decide(e.snapshot, reports, r)
	if why != "" {
		d.UUID, d.Node, d.Why = r.Node, nodeName(e.snapshot(), r.Node), why
	}
	text, err := d.Encode()
	if err != nil {
		e.Warnf("How the node was chosen is not kept: %v", err)
		return d
	}
	e.placement = text
	if e.Placed != nil {
		e.Placed(text)
	}
	return d
}
