package app

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/store"
)

// A controller that is not heard of any more stays among those that run: it may have been
// killed, or be cut off. Whoever leads notes when it was last heard of, so that the next one knows.

// kindHeard is by the names of controllers.
const kindHeard store.Kind = "controller-heard"

// hearNote is how old a note may become while the controller is heard.
const hearNote = time.Hour

// hearing is when a controller was last heard of.
type hearing struct {
	Instance string    `json:"instance"`
	Time     time.Time `json:"time"`
}

// hearings are those of a term.
type hearings struct {
	mu    sync.Mutex
	store store.Store
	epoch int64
	begun time.Time
	// noted are those in the store; nil before they were read.
	noted map[string]hearing
}

func newHearings(s store.Store, epoch int64, begun time.Time) *hearings {
	return &hearings{store: s, epoch: epoch, begun: begun}
}

// ask asks controllers how they are, and returns when each was last heard of: one that says nothing, and of which
// nothing is noted, as this term began.
func (h *hearings) ask(ctx context.Context, g *group, peers []peerRecord) ([]time.Time, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.load(ctx); err != nil {
		return nil, err
	}
	answers := make([]bool, len(peers))
	var asked sync.WaitGroup
	for i, p := range peers {
		asked.Go(func() {
			_, err := g.status(ctx, p)
			answers[i] = err == nil
		})
	}
	asked.Wait()
	now := time.Now()
	out := make([]time.Time, len(peers))
	for i, p := range peers {
		was, known := h.noted[p.Name]
		switch {
		case answers[i] || p.Instance == g.self.Instance:
			out[i] = now
		case known && was.Instance == p.Instance:
			out[i] = was.Time
		default:
			out[i] = h.begun
		}
	}
	return out, h.note(ctx, peers, out)
}

// load reads what was noted.
func (h *hearings) load(ctx context.Context) error {
	if h.noted != nil {
		return nil
	}
	noted := map[string]hearing{}
	for o, err := range h.store.List(ctx, kindHeard, store.Options{}) {
		if err != nil {
			return err
		}
		var was hearing
		if json.Unmarshal(o.Value, &was) == nil { // else it is as if nothing were noted
			noted[o.ID] = was
		}
	}
	h.noted = noted
	return nil
}

// note makes durable what is new by more than a while, and forgets those that have left.
func (h *hearings) note(ctx context.Context, peers []peerRecord, heard []time.Time) error {
	next, tx := map[string]hearing{}, store.Tx{Epoch: h.epoch}
	for i, p := range peers {
		was := h.noted[p.Name]
		if was.Instance == p.Instance && heard[i].Sub(was.Time) < hearNote {
			next[p.Name] = was
			continue
		}
		is := hearing{Instance: p.Instance, Time: heard[i].UTC()}
		text, err := json.Marshal(is)
		if err != nil {
			return err
		}
		next[p.Name] = is
		tx.Put = append(tx.Put, store.Put{Key: store.Key{Kind: kindHeard, ID: p.Name}, Value: text})
	}
	for name := range h.noted {
		if _, there := next[name]; !there {
			tx.Delete = append(tx.Delete, store.Key{Kind: kindHeard, ID: name})
		}
	}
	if len(tx.Put)+len(tx.Delete) == 0 {
		return nil
	}
	if _, err := store.Commit(ctx, h.store, tx); err != nil {
		return err
	}
	h.noted = next
	return nil
}
