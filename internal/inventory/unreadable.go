package inventory

import (
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// Unreadable is a stored object that is set aside, because it cannot be read.
type Unreadable struct {
	Kind cluster.Kind
	UUID string
	Why  error
}

// Unreadable returns the objects that are set aside, by kind and UUID. They are
// in the store as they were, and the inventory lacks them.
func (k *Keeper) Unreadable() []Unreadable {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.aside)
}

// setAside makes an inventory of the objects that can be read. Without the
// cluster's own there is none: it would be taken for a new one.
func (k *Keeper) setAside(stored []cluster.Stored) (*cluster.Snapshot, error) {
	var aside []Unreadable
	var readable []cluster.Stored
	for _, st := range stored {
		_, err := cluster.Decode(st.Kind, st.Data)
		switch {
		case err == nil:
			readable = append(readable, st)
		case cluster.Kind(st.Kind) == cluster.KindCluster:
			return nil, fault.New(fault.WrongState, "the store's object of the cluster itself (%s %s) cannot be read: %w", st.Kind, st.UUID, err).
				WithHint("restore the store from a backup")
		default:
			aside = append(aside, Unreadable{cluster.Kind(st.Kind), st.UUID, err})
		}
	}
	k.mu.Lock()
	k.aside = aside
	k.mu.Unlock()
	return cluster.Empty().Apply(readable)
}
