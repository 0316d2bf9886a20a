package picture

import "github.com/drover-project/drover/internal/state"

// maxPending is how many changes are kept for a follower. One that is slower has
// to look at everything anew, which is then the cheaper way.
const maxPending = 10_000

// Follower gathers the changes between the states that its owner looks at. Its
// methods are not safe for concurrent use.
type Follower struct {
	p *Picture
	// Guarded by p.waiting: what was published and not taken yet; lost says that
	// there was too much of it.
	pending []*state.Change
	lost    bool
}

// Follow returns a follower, and the state from which it gathers on.
func (p *Picture) Follow() (*Follower, *state.State) {
	p.waiting.Lock()
	defer p.waiting.Unlock()
	f := &Follower{p: p}
	p.waiting.followers[f] = true
	return f, p.Load()
}

// Close ends the gathering.
func (f *Follower) Close() {
	f.p.waiting.Lock()
	defer f.p.waiting.Unlock()
	delete(f.p.waiting.followers, f)
}

// Next returns the newest state and the changes that lead to it from the state
// that was returned last; complete is false when they were too many to be kept.
func (f *Follower) Next() (now *state.State, changes []*state.Change, complete bool) {
	f.p.waiting.Lock()
	defer f.p.waiting.Unlock()
	changes, complete = f.pending, !f.lost
	f.pending, f.lost = nil, false
	return f.p.Load(), changes, complete
}

// take adds changes that are published. The caller holds p.waiting.
func (f *Follower) take(changes []*state.Change) {
	if f.lost || len(f.pending)+len(changes) > maxPending {
		f.pending, f.lost = nil, true
		return
	}
	f.pending = append(f.pending, changes...)
}
