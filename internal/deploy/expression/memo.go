package expression

import (
	"context"

	"github.com/drover-project/drover/internal/deploy/state"
)

// slot says which view a read looked at, from the point of view of the piece that was evaluated.
type slot uint8

const (
	current slot = iota // $ of the piece
	ofNew
	ofOld
	ofNode
	ofCommon
)

// read is one read of a key of a view, or a comparison, of which only what it came to was seen.
type read struct {
	view     *state.View
	key      int
	asked    *piece // the argument that was compared; nil for reads of keys
	function string // that compared it
	class    state.Class
}

// recording collects the reads of an evaluation.
type recording struct {
	current *state.View // nil for whole expressions
	reads   []read
	spoiled bool // something was looked at that is not among the reads
}

func (r *recording) note(v *state.View, key int) {
	for i := range r.reads {
		if r.reads[i].view == v && r.reads[i].key == key && r.reads[i].asked == nil {
			return
		}
	}
	r.reads = append(r.reads, read{view: v, key: key})
}

// compared notes a comparison.
func (r *recording) compared(p *piece, function string, d *Decision) {
	r.reads = append(r.reads, read{asked: p, function: function, class: d.class})
}

// outcome is what an evaluation came to. Outcomes are remembered, and identical ones are the same pointer.
type outcome struct {
	value any
	err   error
	late  bool // the error came when the value was walked through, not when it was computed
	// decisions are those that a whole expression made when it was evaluated; nodes that are alike share them.
	decisions []*Decision
}

// memo remembers outcomes by what was read, as a tree: an evaluation always begins with the same read, and what it
// reads next depends only on the classes of what it has read. A comparison is a read, too, with a class for what it came
// to: an expression that compares what each node has of its own is evaluated once all the same.
type memo struct {
	root   branch
	hits   int
	misses int
	off    bool
}

type branch struct {
	outcome  *outcome // nil until an evaluation ended here
	slot     slot
	key      int
	asked    *piece // set for comparisons, instead of slot and key
	function string
	known    bool // what is read here is set
	class    state.Class
	child    *branch
	more     map[state.Class]*branch
}

// next returns the branch for a class, or nil.
func (b *branch) next(c state.Class) *branch {
	if b.child != nil && b.class == c {
		return b.child
	}
	return b.more[c]
}

func (b *branch) grow(c state.Class) *branch {
	if n := b.next(c); n != nil {
		return n
	}
	n := &branch{}
	if b.child == nil {
		b.class, b.child = c, n
		return n
	}
	if b.more == nil {
		b.more = map[state.Class]*branch{}
	}
	b.more[c] = n
	return n
}

// remembers tells whether it is worth to look something up: expressions that read what each node has of its own
// never meet the same again.
func (m *memo) remembers() bool { return !m.off }

// count keeps the score.
func (m *memo) count(hit bool) {
	if hit {
		m.hits++
		return
	}
	m.misses++
	if m.misses > 16 && m.misses > m.hits {
		m.off, m.root = true, branch{}
	}
}

// viewOf returns the view of a slot.
func (e *Evaluator) viewOf(s slot, cur *state.View) *state.View {
	switch s {
	case ofNew:
		return e.now.New
	case ofOld:
		return e.now.Old
	case ofNode:
		return e.now.Node
	case ofCommon:
		return e.now.Common
	}
	return cur
}

// slotOf returns the slot of a view; ok is false for views of other evaluations.
func (e *Evaluator) slotOf(v, cur *state.View) (slot, bool) {
	switch v {
	case cur:
		return current, true
	case e.now.New:
		return ofNew, true
	case e.now.Old:
		return ofOld, true
	case e.now.Node:
		return ofNode, true
	case e.now.Common:
		return ofCommon, true
	}
	return 0, false
}

// recall returns the outcome of an earlier evaluation that read the same, or nil. The comparisons that it made are made
// again, from what is remembered of them.
func (e *Evaluator) recall(ctx context.Context, m *memo, cur *state.View) *outcome {
	made := len(e.decisions)
	for b := &m.root; ; {
		var class state.Class
		switch {
		case b.outcome != nil:
			return b.outcome
		case !b.known:
		case b.asked == nil:
			class = e.viewOf(b.slot, cur).Class(b.key)
		default:
			if d, _ := e.decide(ctx, b.asked, b.function, nil); d != nil {
				class = d.class
			}
		}
		if class != 0 {
			b = b.next(class)
		}
		if class == 0 || b == nil {
			e.decisions = e.decisions[:made]
			return nil
		}
	}
}

// remember stores an outcome under what was read.
func (e *Evaluator) remember(m *memo, r *recording, out *outcome) {
	if r.spoiled {
		return
	}
	b := &m.root
	for _, x := range r.reads {
		s, class := current, x.class
		if x.asked == nil {
			var ok bool
			if s, ok = e.slotOf(x.view, r.current); !ok {
				return
			}
			class = x.view.Class(x.key)
		}
		if b.outcome != nil || b.known && (b.slot != s || b.key != x.key || b.asked != x.asked || b.function != x.function) {
			return // the evaluation took a way of its own; then it is not repeatable
		}
		b.slot, b.key, b.asked, b.function, b.known = s, x.key, x.asked, x.function, true
		b = b.grow(class)
	}
	if !b.known {
		b.outcome = out
	}
}

func (e *Evaluator) begin(cur *state.View) *recording {
	r := &recording{current: cur}
	e.recordings = append(e.recordings, r)
	return r
}

// end takes the innermost recording away.
func (e *Evaluator) end() { e.recordings = e.recordings[:len(e.recordings)-1] }
