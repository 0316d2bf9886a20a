package query

import (
	"iter"
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
)

// Plan is a query that was compiled and has done all that needs no node.
type Plan struct {
	// Need and Nodes say what must be asked of which nodes, by UUID, before
	// Finish; no nodes when nothing needs to be asked.
	Need  Need
	Nodes []string
	// Explain tells how the query is carried out.
	Explain Explanation
	finish  func(map[string]NodeState) (*Result, error)
}

// Explanation tells how a query is carried out.
type Explanation struct {
	What string `json:"what"`
	// Access says where the rows come from: "names" (each found by its name),
	// "index" or "scan".
	Access string `json:"access"`
	// Index names the fields whose index narrowed the rows, if any did.
	Index string `json:"index,omitempty"`
	// Considered rows were looked at; Kept of them are left before any node
	// was asked.
	Considered int `json:"considered"`
	Kept       int `json:"kept"`
	// Live are the fields that only nodes know, among columns and filter;
	// Nodes is how many nodes are asked for them.
	Live  []string `json:"live,omitempty"`
	Nodes int      `json:"nodes"`
	// FilterLive: the filter has to be applied again once nodes answered.
	FilterLive bool `json:"filter_live"`
	// AsOf is when the oldest of the nodes' answers was taken, in ns since the
	// epoch; Silent nodes have none. Only Explain sets them.
	AsOf   int64 `json:"as_of,omitempty"`
	Silent int   `json:"silent,omitempty"`
}

// Finish takes the nodes' answers by UUID; a node that is left out counts as
// failed.
func (p *Plan) Finish(answers map[string]NodeState) (*Result, error) { return p.finish(answers) }

// prepare is Prepare for one item.
func (t *Table[R]) prepare(src *Source, r Request) (*Plan, error) {
	r.Filter = t.resolve(r.Filter, src.Now)
	known, err := t.parse(r)
	if err != nil {
		return nil, err
	}
	v := NewView(src, r.Fields)
	ex := Explanation{What: t.What}
	considered, err := t.candidates(v, r.Filter, &ex)
	if err != nil {
		return nil, err
	}
	need := known.need
	rows, err := t.keep(v, counted(considered, &ex.Considered), t.Compile(r.Filter, need == 0))
	if err != nil {
		return nil, err
	}
	p := &Plan{Need: need, Explain: ex}
	if need != 0 {
		if r.Fresh {
			p.Need |= NeedFresh
		}
		p.Nodes = t.nodesOf(v, rows)
		p.Explain.Live = t.liveNames(known.used)
		p.Explain.FilterLive = known.filterLive
	}
	p.Explain.Kept, p.Explain.Nodes = len(rows), len(p.Nodes)
	p.finish = func(answers map[string]NodeState) (*Result, error) {
		final := rows
		if need != 0 {
			v.Answers = NewAnswers(p.Nodes, answers, need)
			if final, err = t.expandAndKeep(v, rows, r.Filter); err != nil {
				return nil, err
			}
		}
		return t.result(v, final, r, known.order)
	}
	return p, nil
}

// parsed is a request whose names all mean something.
type parsed[R any] struct {
	order ordering[R]
	used  []string // the fields that are shown, tested or sorted by
	// need is what nodes must be asked for; filterLive, whether the filter needs
	// some of it.
	need       Need
	filterLive bool
}

func (t *Table[R]) parse(r Request) (parsed[R], error) {
	tested := qlang.Fields(r.Filter)
	if err := t.checkFilterFields(tested); err != nil {
		return parsed[R]{}, err
	}
	order, err := t.ordering(r)
	if err != nil {
		return parsed[R]{}, err
	}
	used := slices.Concat(r.Fields, tested, order.names())
	return parsed[R]{
		order: order, used: used, need: t.Always | t.needs(slices.Values(used)),
		filterLive: t.needs(slices.Values(tested)) != 0,
	}, nil
}

// NewView returns what the getters of a query about a state see.
func NewView(src *Source, fields []string) *View {
	v := &View{Source: src, Cluster: src.Inventory.Cluster(), Answers: &Answers{}, Asked: map[string]bool{}}
	if v.Cluster == nil {
		v.Cluster = &cluster.Cluster{}
	}
	for _, name := range fields {
		v.Asked[name] = true
	}
	return v
}

func (t *Table[R]) checkFilterFields(names []string) error {
	for _, n := range names {
		if t.field(n) == nil {
			return t.noField(n)
		}
	}
	return nil
}

// candidates yields the rows that the filter is to be applied to.
func (t *Table[R]) candidates(v *View, filter qlang.Node, ex *Explanation) (iter.Seq[R], error) {
	if names, byName := requestedNames(filter, t.NameField); byName && len(names) > 0 {
		rows, ok, err := t.Named(v, names)
		if ok || err != nil {
			ex.Access = "names"
			return slices.Values(rows), err
		}
	}
	if p := t.route(v, filter); p != nil && p.Count <= t.IndexLimit(v) {
		ex.Access, ex.Index = "index", p.Index
		return t.inOrder(p), nil
	}
	ex.Access = "scan"
	return t.All(v), nil
}

// counted yields the rows and counts them.
func counted[R any](rows iter.Seq[R], n *int) iter.Seq[R] {
	return func(yield func(R) bool) {
		for r := range rows {
			*n++
			if !yield(r) {
				return
			}
		}
	}
}

// keep returns the rows that a test lets through or cannot decide about yet,
// shortened.
func (t *Table[R]) keep(v *View, rows iter.Seq[R], test Test[R]) ([]R, error) {
	if test == nil {
		return slices.Collect(t.shortened(rows)), v.Err()
	}
	var out []R
	for block := range t.blocks(rows) {
		if err := v.Err(); err != nil {
			return nil, err
		}
		for _, r := range block {
			verdict, err := test(v, r)
			if err != nil {
				return nil, err
			}
			if verdict == No {
				continue
			}
			if t.Shorten != nil {
				r = t.Shorten(r)
			}
			out = append(out, r)
		}
	}
	return out, v.Err()
}

// shortened yields rows as they are kept.
func (t *Table[R]) shortened(rows iter.Seq[R]) iter.Seq[R] {
	if t.Shorten == nil {
		return rows
	}
	return func(yield func(R) bool) {
		for r := range rows {
			if !yield(t.Shorten(r)) {
				return
			}
		}
	}
}

func (t *Table[R]) expandAndKeep(v *View, rows []R, filter qlang.Node) ([]R, error) {
	if t.Expand != nil {
		var out []R
		for _, r := range rows {
			out = append(out, t.Expand(v, r)...)
		}
		rows = out
	}
	return t.keep(v, slices.Values(rows), t.Compile(filter, true))
}

// nodesOf returns the nodes that know about the rows, each once, without those
// that are marked offline.
func (t *Table[R]) nodesOf(v *View, rows []R) []string {
	switch {
	case t.EveryNode:
		return vmNodes(v)
	case t.Nodes == nil:
		return nil
	}
	seen := map[string]bool{"": true}
	var out []string
	for _, r := range rows {
		uuid := t.Nodes(v, r)
		if seen[uuid] {
			continue
		}
		seen[uuid] = true
		if n := v.Inventory.Node(uuid); n != nil && !n.Offline {
			out = append(out, uuid)
		}
	}
	return out
}

// vmNodes returns the nodes that can run instances and are not marked offline.
func vmNodes(v *View) []string {
	var out []string
	for n := range v.Inventory.Nodes() {
		if n.VMCapable && !n.Offline {
			out = append(out, n.UUID)
		}
	}
	return out
}

func (t *Table[R]) liveNames(used []string) []string {
	var out []string
	for _, n := range used {
		if f := t.field(n); f != nil && f.From == Live && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
