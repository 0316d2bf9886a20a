// Package inventory keeps the live inventory of a cluster: the newest durable
// snapshot in memory, and the one way to change it.
//
// Invariants:
//   - Snapshot never shows what is not durable.
//   - Updates take effect one after the other; each sees all before it. Those
//     that arrive while a transaction is being written are written together
//     in the next, so their number does not depend on the disk.
//   - A stored object that cannot be read is set aside and told, and stays in the
//     store as it is; the others serve.
//   - What an update notes besides the inventory (Noted) is written in the transaction of its change, or not at all.
//   - A failed update leaves no trace. What became of a transaction of which the
//     store cannot say so is looked up, before anybody is told and before anything
//     else is written (outcome.go): it was made, or it is made again upon what there is.
package inventory

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// kinds are the kinds of objects that make up the inventory.
var kinds = [...]cluster.Kind{
	cluster.KindCluster, cluster.KindGroup, cluster.KindNode, cluster.KindNetwork, cluster.KindInstance, cluster.KindImage, cluster.KindDisk,
}

// Keeper is safe for concurrent use.
type Keeper struct {
	store store.Store
	epoch int64
	shown *picture.Picture

	mu       sync.Mutex
	waiting  []*update
	watchers []func(*cluster.Snapshot)
	writing  bool // a goroutine carries out updates
	closed   bool
	ending   chan struct{} // closed with it
	idle     sync.WaitGroup
	aside    []Unreadable
}

// update is one call of Update.
type update struct {
	ctx    context.Context
	change Noted
	answer chan error
}

// Change decides, from the newest inventory, what to change; an error refuses
// the update. It may be called on another goroutine than the caller's of
// Update, must be quick, and must not call Update itself.
type Change func(*cluster.Snapshot) ([]cluster.Change, error)

// Noted is a Change that also decides what is noted beside the inventory: objects of other kinds, which nobody else
// writes. A note with no change is written like any other.
type Noted func(*cluster.Snapshot) ([]cluster.Change, []store.Put, error)

// Open reads the inventory from a store, and shows it in the picture from now
// on. All changes are made under the epoch; see store.Tx.
func Open(ctx context.Context, s store.Store, epoch int64, shown *picture.Picture) (*Keeper, error) {
	k := &Keeper{store: s, epoch: epoch, shown: shown, ending: make(chan struct{})}
	revision, err := s.Revision(ctx)
	if err != nil {
		return nil, err
	}
	snap, err := k.load(ctx)
	if err != nil {
		return nil, err
	}
	shown.Committed(&state.Change{Revision: int64(revision), Inventory: snap})
	shown.Publish()
	return k, nil
}

// Has reports whether objects of a kind belong to the inventory.
func Has(kind store.Kind) bool { return slices.Contains(kinds[:], cluster.Kind(kind)) }

// Read reads the inventory from a store. An object that cannot be read is an
// error.
func Read(ctx context.Context, s store.Store) (*cluster.Snapshot, error) {
	stored, err := list(ctx, s)
	if err != nil {
		return nil, err
	}
	return cluster.Empty().Apply(stored)
}

func list(ctx context.Context, s store.Store) (stored []cluster.Stored, err error) {
	for _, kind := range kinds {
		for o, err := range s.List(ctx, store.Kind(kind), store.Options{}) {
			if err != nil {
				return nil, err
			}
			stored = append(stored, cluster.Stored{Kind: string(kind), UUID: o.ID, Data: o.Value})
		}
	}
	return stored, nil
}

func (k *Keeper) load(ctx context.Context) (*cluster.Snapshot, error) {
	stored, err := list(ctx, k.store)
	if err != nil {
		return nil, err
	}
	return k.read(stored)
}

// read makes an inventory of what is stored.
func (k *Keeper) read(stored []cluster.Stored) (*cluster.Snapshot, error) {
	snap, err := cluster.Empty().Apply(stored)
	if err == nil {
		return snap, nil
	}
	return k.setAside(stored)
}

// Snapshot returns the newest durable inventory.
func (k *Keeper) Snapshot() *cluster.Snapshot { return k.shown.Load().Inventory }

// OnChange makes watch be called with each new snapshot, in order and before
// the updates that led to it return. It must be quick.
func (k *Keeper) OnChange(watch func(*cluster.Snapshot)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.watchers = append(k.watchers, watch)
}

// Update changes the inventory and returns when the change is durable and
// shown by Snapshot. A change of nothing writes nothing. The end of ctx ends
// the wait for one's turn; an update whose turn has come is finished. With an error
// of code fault.Unavailable it is not known whether the change was made: nothing may
// be done that rests upon either. Any other error means that it was not.
func (k *Keeper) Update(ctx context.Context, change Change) error {
	return k.UpdateNoted(ctx, func(snap *cluster.Snapshot) ([]cluster.Change, []store.Put, error) {
		changes, err := change(snap)
		return changes, nil, err
	})
}

// UpdateNoted is Update for a change with notes beside it, both in one transaction.
func (k *Keeper) UpdateNoted(ctx context.Context, change Noted) error {
	u := &update{ctx: ctx, change: change, answer: make(chan error, 1)}
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		return fault.New(fault.Unavailable, "the inventory is closed")
	}
	k.waiting = append(k.waiting, u)
	if !k.writing {
		k.writing = true
		k.idle.Go(k.write)
	}
	k.mu.Unlock()
	select {
	case err := <-u.answer:
		return err
	case <-ctx.Done():
	}
	if k.withdraw(u) {
		return u.notBegun()
	}
	return <-u.answer
}

// withdraw takes an update back; false when its turn has come.
func (k *Keeper) withdraw(u *update) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.Index(k.waiting, u)
	if i >= 0 {
		k.waiting = slices.Delete(k.waiting, i, i+1)
	}
	return i >= 0
}

func (u *update) notBegun() error {
	return fault.New(fault.Canceled, "the change of the inventory was not begun: %w", context.Cause(u.ctx))
}

// Close waits for the updates that were begun; later ones are refused. What the store
// cannot tell about is left to the next controller.
func (k *Keeper) Close() {
	k.mu.Lock()
	if !k.closed {
		k.closed = true
		close(k.ending)
	}
	k.mu.Unlock()
	k.idle.Wait()
}

// write carries out updates until none waits.
func (k *Keeper) write() {
	for {
		k.mu.Lock()
		batch := k.waiting
		k.waiting = nil
		k.writing = len(batch) > 0
		k.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for len(batch) > 0 {
			batch = k.carryOut(batch)
		}
	}
}

// carryOut writes a batch in one transaction and answers each of its updates. It
// returns those that are to be carried out again.
func (k *Keeper) carryOut(batch []*update) []*update {
	next, tx, accepted := gather(k.Snapshot(), batch)
	if len(tx.Put)+len(tx.Delete) == 0 {
		answerAll(accepted, nil)
		return nil
	}
	err := k.commit(tx, &state.Change{Inventory: next, Objects: objects(tx)})
	if err != nil && !store.Refused(err) {
		return k.lookUp(tx, accepted, err)
	}
	answerAll(accepted, err)
	return nil
}

// commit makes a transaction durable, shows what it changed and tells the
// watchers.
func (k *Keeper) commit(tx store.Tx, c *state.Change) error {
	tx.Epoch = k.epoch
	durable := make(chan error, 1)
	k.store.Enqueue(tx, func(revision store.Revision, err error) {
		if err == nil {
			c.Revision = int64(revision)
			k.shown.Committed(c)
		}
		durable <- err
	})
	if err := <-durable; err != nil {
		return err
	}
	k.shown.Publish()
	k.mu.Lock()
	watchers := k.watchers
	k.mu.Unlock()
	for _, watch := range watchers {
		watch(c.Inventory)
	}
	return nil
}

// objects names what a transaction puts or deletes of the inventory.
func objects(tx store.Tx) []state.Object {
	var out []state.Object
	for i := range tx.Put {
		if Has(tx.Put[i].Kind) {
			out = append(out, state.Object{Kind: cluster.Kind(tx.Put[i].Kind), UUID: tx.Put[i].ID})
		}
	}
	for _, key := range tx.Delete {
		out = append(out, state.Object{Kind: cluster.Kind(key.Kind), UUID: key.ID})
	}
	return out
}

func answerAll(updates []*update, err error) {
	for _, u := range updates {
		u.answer <- err
	}
}

// gather makes the changes of a batch one after the other, and one transaction
// of them. Updates that are refused are answered at once and left out.
func gather(base *cluster.Snapshot, batch []*update) (*cluster.Snapshot, store.Tx, []*update) {
	puts := map[store.Key]store.Put{}
	deletes := map[store.Key]bool{}
	accepted := make([]*update, 0, len(batch))
	for _, u := range batch {
		changes, encoded, notes, err := u.decide(base)
		if err != nil {
			u.answer <- err
			continue
		}
		accepted = append(accepted, u)
		for i := range notes {
			puts[notes[i].Key] = notes[i]
		}
		base = base.With(changes...)
		for i, c := range changes {
			key := store.Key{Kind: store.Kind(c.Kind), ID: c.UUID}
			if c.Put == nil {
				delete(puts, key)
				deletes[key] = true
				continue
			}
			delete(deletes, key)
			puts[key] = encoded[i]
		}
	}
	tx := store.Tx{Put: slices.Collect(maps.Values(puts)), Delete: slices.Collect(maps.Keys(deletes))}
	return base, tx, accepted
}

// decide asks what the update wants to change and encodes it, so that what
// the store would refuse is refused here, alone.
func (u *update) decide(base *cluster.Snapshot) ([]cluster.Change, []store.Put, []store.Put, error) {
	if u.ctx.Err() != nil {
		return nil, nil, nil, u.notBegun()
	}
	changes, notes, err := u.change(base)
	if err != nil {
		return nil, nil, nil, err
	}
	encoded := make([]store.Put, len(changes))
	for i, c := range changes {
		if c.Put == nil {
			continue
		}
		value, err := cluster.Encode(c.Put)
		if err != nil {
			return nil, nil, nil, err
		}
		encoded[i] = store.Put{Key: store.Key{Kind: store.Kind(c.Kind), ID: c.UUID}, Value: value}
		if err := (store.Tx{Put: encoded[i : i+1]}).Check(); err != nil {
			return nil, nil, nil, err
		}
	}
	return changes, encoded, notes, (store.Tx{Put: notes}).Check()
}
