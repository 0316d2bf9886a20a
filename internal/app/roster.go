package app

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// roster is what this controller remembers of the others of its group, so that it
// knows them without asking the store, and also while that is away. It is read anew
// when it is old, or when somebody comes whom it does not know, however many of those
// there are.
type roster struct {
	read func(ctx context.Context) ([]peerRecord, error)
	now  func() time.Time

	// looking is taken by whoever reads.
	looking chan struct{}
	mu      sync.Mutex
	peers   []peerRecord
	// began is when the last reading that succeeded began, and tried the last one.
	began, tried time.Time
}

const (
	// rosterAge is for how long a controller that was read stays known: one that has left
	// the group is refused after that.
	rosterAge = 5 * time.Second
	// rosterPause is how long to wait between two readings for those who are not known.
	rosterPause = 200 * time.Millisecond
)

func newRoster(read func(context.Context) ([]peerRecord, error)) *roster {
	return &roster{read: read, now: time.Now, looking: make(chan struct{}, 1)}
}

// known refuses a certificate that no controller of the group has. While the store is
// away those are known who were before.
func (r *roster) known(ctx context.Context, sha string) error {
	asked := r.now()
	there, fresh := r.look(sha, asked.Add(-rosterAge))
	if there && fresh {
		return nil
	}
	err := r.refresh(ctx, asked)
	if still, _ := r.look(sha, asked); still {
		return nil
	}
	if err != nil {
		return err
	}
	return fault.New(fault.NotFound, "the certificate %s belongs to no controller", sha)
}

// look tells whether a certificate was there when the group was last read, and whether
// that was since a moment.
func (r *roster) look(sha string, since time.Time) (there, fresh bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	there = slices.ContainsFunc(r.peers, func(p peerRecord) bool { return p.Fingerprint == sha })
	return there, !r.began.Before(since)
}

// others are the controllers that were there when the group was last read, but for one.
func (r *roster) others(instance string) []peerRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.peers), func(p peerRecord) bool { return p.Instance == instance })
}

// told adds those whom another controller knows, until the group is read again.
func (r *roster) told(peers []peerRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range peers {
		if !slices.ContainsFunc(r.peers, func(q peerRecord) bool { return q.Instance == p.Instance }) {
			r.peers = append(slices.Clip(r.peers), p)
		}
	}
}

// refresh reads the group, unless another did so that began after a moment; readings
// have a pause between them.
func (r *roster) refresh(ctx context.Context, since time.Time) error {
	select {
	case r.looking <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-r.looking }()
	if _, fresh := r.look("", since); fresh {
		return nil
	}
	select {
	case <-time.After(rosterPause - r.now().Sub(r.tried)):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	began := r.now()
	r.tried = began
	peers, err := r.read(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.peers, r.began = peers, began
	return nil
}
