package check

import (
	"github.com/drover-project/drover/internal/sim/memory"
	"github.com/drover-project/drover/internal/store"
)

// Epochs holds what a database commits to what the port says of revisions and leases. It is
// told each commit in order, by one goroutine at a time.
type Epochs struct {
	verdict *Verdict
	newest  store.Revision
	// inForce are the epochs of leases that are held, and holders those of all that ever were.
	inForce map[int64]bool
	byName  map[string]int64
	holders map[int64]string
}

// NewEpochs returns the checks for an empty database.
func NewEpochs(v *Verdict) *Epochs {
	return &Epochs{verdict: v, inForce: map[int64]bool{}, byName: map[string]int64{}, holders: map[int64]string{}}
}

// Newest is the newest epoch that was ever given.
func (e *Epochs) Newest() (newest int64) {
	for epoch := range e.holders {
		newest = max(newest, epoch)
	}
	return newest
}

// Committed takes a commit in.
func (e *Epochs) Committed(c memory.Committed) {
	for _, s := range c.Steps {
		if s.From.Name != "" {
			e.verdict.Breakf(TakenLease, "%s takes the lease %q with epoch %d from %s, who is there and has it until %v", s.Lease.Holder, s.Lease.Name, s.Lease.Epoch, s.From.Holder, s.From.Expires)
		}
		if s.Lease.Name != "" {
			e.leased(s.Lease)
			continue
		}
		if s.Revision != e.newest+1 {
			e.verdict.Breakf(Revisions, "%s commits revision %d after %d", c.By, s.Revision, e.newest)
		}
		e.newest = s.Revision
		if s.Epoch != 0 && !e.inForce[s.Epoch] {
			e.verdict.Breakf(EpochInForce, "%s commits revision %d under epoch %d, and in force is %v", c.By, s.Revision, s.Epoch, e.inForce)
		}
	}
}

func (e *Epochs) leased(l store.Lease) {
	if was, known := e.holders[l.Epoch]; known && l.Holder != "" && was != l.Holder {
		e.verdict.Breakf(OneHolder, "epoch %d is %s's, and was %s's", l.Epoch, l.Holder, was)
	}
	if before := e.byName[l.Name]; before != l.Epoch {
		if before > l.Epoch {
			e.verdict.Breakf(OneHolder, "%s takes the lease %q with epoch %d, after %d", l.Holder, l.Name, l.Epoch, before)
		}
		delete(e.inForce, before)
		e.byName[l.Name] = l.Epoch
	}
	if l.Holder == "" {
		delete(e.inForce, l.Epoch)
		return
	}
	e.holders[l.Epoch], e.inForce[l.Epoch] = l.Holder, true
}
