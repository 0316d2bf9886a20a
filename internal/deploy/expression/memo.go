package expression

import (
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

// read is one read of a key of a view.
type read struct {
	view *state.View
	key  int
}

// recording collects the reads of an evaluation.
type recording struct {
	current *state.View // nil for whole expressions
	reads   []read
}

func (r *recording) note(v *state.View, key int) {
	for _, x := range r.reads {
		if x.view == v && x.key == key {
			return
		}
	}
	r.reads = append(r.reads, read{v, key})
}

// outcome is what an evaluation came to. Outcomes are remembered, and identical ones are the same pointer.
type outcome struct {
	value     any
	err       error
	late      bool // the error came when the value was walked through, not when it was computed
	decisions []*Decision
}

// memo remembers outcomes by what was read, as a tree: an evaluation always begins with the same read, and what it
// reads next depends only on the classes of what it has read.
type memo struct {
	root   branch
	hits   int
	misses int
	off    bool
}

type branch struct {
	outcome *outcome // nil until an evaluation ended here
	slot    slot
	key     int
	known   bool // slot and key are set
	class   state.Class
	child   *branch
	more    map[state.Class]*branch
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

// recall returns the outcome of an earlier evaluation that read the same, or nil. Its reads count as done again.
func (e *Evaluator) recall(m *memo, cur *state.View) *outcome {
	b := &m.root
	for b.outcome == nil {
		if !b.known {
			return nil
		}
		if b = b.next(e.viewOf(b.slot, cur).Class(b.key)); b == nil {
			return nil
		}
	}
	if n := len(e.recordings); n > 0 {
		e.replay(m, cur, e.recordings[n-1])
	}
	return b.outcome
}

// replay notes the reads that led to a remembered outcome.
func (e *Evaluator) replay(m *memo, cur *state.View, to *recording) {
	for b := &m.root; b.outcome == nil; {
		v := e.viewOf(b.slot, cur)
		to.note(v, b.key)
		b = b.next(v.Class(b.key))
	}
}

// remember stores an outcome under what was read.
func (e *Evaluator) remember(m *memo, r *recording, out *outcome) {
	b := &m.root
	for _, x := range r.reads {
		s, ok := e.slotOf(x.view, r.current)
		if !ok || b.outcome != nil || b.known && (b.slot != s || b.key != x.key) {
			return // the evaluation took a way of its own; then it is not repeatable
		}
		b.slot, b.key, b.known = s, x.key, true
		b = b.grow(x.view.Class(x.key))
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

// end takes the innermost recording away and adds its reads to the one around it.
func (e *Evaluator) end(r *recording) {
	e.recordings = e.recordings[:len(e.recordings)-1]
	if n := len(e.recordings); n > 0 {
		for _, x := range r.reads {
			e.recordings[n-1].note(x.view, x.key)
		}
	}
}
