package inventory

import (
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// Updates that are written together count in their order, also when one removes what another puts back, or the other way around.
func TestUpdatesOfOneThingThatAreWrittenTogether(t *testing.T) {
	for name, there := range map[string]bool{"removed and put back": true, "changed and removed": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, s *faultstore.Store, k *Keeper) {
				node := k.Snapshot().NodeNamed("node1")
				remove := func(*cluster.Snapshot) ([]cluster.Change, error) {
					return []cluster.Change{cluster.Delete(cluster.KindNode, node.UUID)}, nil
				}
				put := func(*cluster.Snapshot) ([]cluster.Change, error) { return []cluster.Change{cluster.Put(node)}, nil }
				both := []Change{put, remove}
				if there {
					both = []Change{remove, put}
				}
				batch := make([]*update, len(both))
				for i, change := range both {
					batch[i] = &update{ctx: t.Context(), answer: make(chan error, 1), change: func(snap *cluster.Snapshot) ([]cluster.Change, []store.Put, error) {
						changes, err := change(snap)
						return changes, nil, err
					}}
				}
				if again := k.carryOut(batch); len(again) > 0 {
					t.Errorf("%d are carried out again", len(again))
				}
				for i, u := range batch {
					if err := <-u.answer; err != nil {
						t.Errorf("update %d: %v", i, err)
					}
				}
				stored, err := Read(t.Context(), s)
				if err != nil || (stored.Node(node.UUID) != nil) != there || (k.Snapshot().Node(node.UUID) != nil) != there {
					t.Errorf("stored is %v, shown %v, %v", stored.Node(node.UUID), k.Snapshot().Node(node.UUID), err)
				}
			})
		})
	}
}
