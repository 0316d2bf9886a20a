package query

import (
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/state"
)

// What rows depend on. Each row belongs to one object (an instance, a job, a
// lock), which may have several rows; its values may come from other objects, too:
// an instance shows the name of its node. For each item that can be watched at
// the cost of what changed there is a function that names the objects whose rows
// may be different, all of them and few more.

// Delta is what lies between two states, as far as rows can show it.
type Delta struct {
	Changes  []*state.Change
	Was, Now *cluster.Snapshot
	// Jobs are those of the later state; nil if there is no table of them.
	Jobs *job.Table
}

// Affected are the keys of objects whose rows may be different.
type Affected struct {
	keys map[string]bool
	// All says that any row may be different.
	All bool
}

// Add counts an object, by its key, among them.
func (a *Affected) Add(key string) {
	if a.keys == nil {
		a.keys = map[string]bool{}
	}
	a.keys[key] = true
}

func (a *Affected) none() bool { return !a.All && len(a.keys) == 0 }
