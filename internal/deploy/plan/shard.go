package plan

import (
	"context"
	"runtime"
	"sync"

	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/legacy"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/yaql"
)

// shard evaluates tasks on some of the nodes. Shards work at the same time, each with a space and an evaluator of its own:
// what all nodes share is evaluated once in each.
type shard struct {
	*builder

	space      *state.Space
	evaluator  *expression.Evaluator
	parts      map[string]*state.Part // of nodes, by UID
	adopted    map[*state.Part]*state.Part
	filler     *filler // of texts on nodes that have no values of their own for placeholders
	fillers    map[int32]*filler
	views      map[[2]*state.Part]*state.View
	conditions map[string]*legacy.Condition
	cwd        map[yaql.Mapping]*yaql.Dict
	computed   []any // of the step at hand, for each of its computed fields
	failure    failure
}

// failure is an error and where it arose.
type failure struct {
	err       error
	placement int
	node      int32
}

// before tells whether the failure arose before another one in the order of placements and nodes, so that the same one
// is told whichever shard was faster.
func (f failure) before(other failure) bool {
	if other.err == nil || f.placement != other.placement {
		return other.err == nil || f.placement < other.placement
	}
	return f.node < other.node
}

// fewNodes is the number of nodes for which a further shard is worth its while.
const fewNodes = 8

// split makes the shards.
func (b *builder) split(language *expression.Language) error {
	n := max(1, min(runtime.GOMAXPROCS(0), len(b.nodes)/fewNodes))
	for i := range n {
		space := b.in.Space
		if i > 0 {
			space = state.NewSpace()
		}
		e, err := language.Evaluator(space)
		if err != nil {
			return err
		}
		b.shards = append(b.shards, &shard{builder: b, space: space, evaluator: e, parts: map[string]*state.Part{},
			adopted: map[*state.Part]*state.Part{}, filler: newFiller(b.in, b.in.Common.Data()), fillers: map[int32]*filler{}, views: map[[2]*state.Part]*state.View{},
			conditions: map[string]*legacy.Condition{}, cwd: map[yaql.Mapping]*yaql.Dict{}})
	}
	return nil
}

// evaluate computes the steps of all nodes. Nodes take turns among the shards, since neighbours are often alike.
func (b *builder) evaluate(ctx context.Context) error {
	var all sync.WaitGroup
	for i, s := range b.shards {
		all.Go(func() { s.run(ctx, i) })
	}
	all.Wait()
	var first failure
	for _, s := range b.shards {
		if s.failure.err != nil && s.failure.before(first) {
			first = s.failure
		}
	}
	return first.err
}

// run computes the steps of the shard's nodes, one node after the other, since tasks on a node look at the same. After an
// error only what comes before it in the order of placements is computed.
func (h *shard) run(ctx context.Context, number int) {
	byNode := make([][]int, len(h.nodes))
	for i, p := range h.placements {
		for _, n := range p.nodes {
			byNode[n] = append(byNode[n], i)
		}
	}
	for n := number; n < len(byNode); n += len(h.shards) {
		h.byNode[n] = make([]Step, 0, len(byNode[n]))
		h.plan.at[n] = make(map[int32]int32, len(byNode[n]))
		for _, i := range byNode[n] {
			if h.failure.err != nil && i >= h.failure.placement {
				break
			}
			if err := h.put(ctx, h.placements[i], int32(n)); err != nil {
				h.failure = failure{err, i, int32(n)}
			}
			runtime.Gosched() // whoever waits for a processor has it before the next step
		}
	}
}

// put puts a task on a node. Where there is one with its id already, the later one counts only if it has another type and
// is not skipped.
func (h *shard) put(ctx context.Context, p placement, n int32) error {
	steps := h.byNode[n]
	at, there := h.plan.at[n][p.id]
	if there && steps[at].Task == p.task {
		return nil
	}
	s, err := h.step(ctx, p.task, n)
	switch {
	case err != nil:
		return err
	case !there:
		h.plan.at[n][p.id] = int32(len(steps))
		h.byNode[n] = append(steps, *s)
	case s.Type != steps[at].Type && s.Type != typeSkipped:
		steps[at] = *s
	}
	return nil
}

// part returns the shard's own of a part.
func (h *shard) part(p *state.Part) *state.Part {
	if own, ok := h.adopted[p]; ok {
		return own
	}
	own := h.space.Adopt(p)
	h.adopted[p] = own
	return own
}

// view returns the union of two parts, the same one for the same parts.
func (h *shard) view(common, node *state.Part) *state.View {
	key := [2]*state.Part{common, node}
	v := h.views[key]
	if v == nil {
		v = h.space.View(h.part(common), h.part(node))
		h.views[key] = v
	}
	return v
}

// surroundings are what expressions of a task see on a node.
func (h *shard) surroundings(t *graph.Task, n int32) (expression.Surroundings, error) {
	uid := h.nodes[n].UID
	part, err := h.partOf(t, n)
	if err != nil {
		return expression.Surroundings{}, err
	}
	in := expression.Surroundings{New: h.view(h.in.Common, part), Node: h.view(nil, part), Common: h.view(h.in.Common, nil), Old: h.view(nil, nil)}
	if h.in.Old == nil {
		return in, nil
	}
	h.asking.Lock()
	common, node, ok := h.in.Old(t.ID, uid)
	h.asking.Unlock()
	if ok && node != nil && node.Data().Len() > 0 {
		in.Old = h.view(common, node)
	}
	return in, nil
}

// partOf returns the part of a node.
func (h *shard) partOf(t *graph.Task, n int32) (*state.Part, error) {
	uid := h.nodes[n].UID
	if part := h.in.Parts[uid]; part != nil {
		return part, nil
	}
	part := h.parts[uid]
	if part != nil {
		return part, nil
	}
	switch n {
	case h.master:
		d := yaql.NewDict(2)
		_ = d.Set("uid", Master)          // texts can be keys
		_ = d.Set("roles", []any{Master}) // texts can be keys
		part = h.space.NewPart(d)
	case h.plan.virtual:
		part = h.space.NewPart(nil)
	default:
		return nil, h.fail(t, uid, "", yaql.KeyError, "'"+uid+"'", "the state of the environment has no such node")
	}
	h.parts[uid] = part
	return part, nil
}
