package inventory

import (
	"context"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// spoil makes a stored object unreadable.
func spoil(t *testing.T, s store.Store, kind cluster.Kind, uuid string) {
	t.Helper()
	tx := store.Tx{Put: []store.Put{{Key: store.Key{Kind: store.Kind(kind), ID: uuid}, Value: []byte("{")}}}
	if _, err := store.Commit(t.Context(), s, tx); err != nil {
		t.Fatal(err)
	}
}

func TestUnreadableObjectIsSetAside(t *testing.T) {
	s := openStore(t, t.TempDir())
	k := open(t, s, 0)
	if err := k.Bootstrap(t.Context(), setup("node1", "node2")); err != nil {
		t.Fatal(err)
	}
	bad := k.Snapshot().NodeNamed("node2").UUID
	k.Close()
	spoil(t, s, cluster.KindNode, bad)
	k = open(t, s, 0)
	aside := k.Unreadable()
	if len(aside) != 1 || aside[0].Kind != cluster.KindNode || aside[0].UUID != bad || aside[0].Why == nil {
		t.Fatalf("set aside: %+v", aside)
	}
	if k.Snapshot().NodeNamed("node1") == nil || k.Snapshot().NodeNamed("node2") != nil {
		t.Error("the rest does not serve")
	}
	if err := k.Update(t.Context(), addTag("x")); err != nil {
		t.Error(err)
	}
	o, err := s.Get(t.Context(), store.Key{Kind: store.Kind(cluster.KindNode), ID: bad})
	if err != nil || string(o.Value) != "{" {
		t.Errorf("the object is now %s, %v", o.Value, err)
	}
}

func TestUnreadableClusterIsNoNewCluster(t *testing.T) {
	s := openStore(t, t.TempDir())
	k := open(t, s, 0)
	if err := k.Bootstrap(t.Context(), setup("node1")); err != nil {
		t.Fatal(err)
	}
	for o, err := range s.List(t.Context(), store.Kind(cluster.KindCluster), store.Options{}) {
		if err != nil {
			t.Fatal(err)
		}
		spoil(t, s, cluster.KindCluster, o.ID)
	}
	if _, err := Open(t.Context(), s, 0, picture.New()); !fault.Is(err, fault.WrongState) {
		t.Errorf("opened without its cluster: %v", err)
	}
}

// TestWaitForOnesTurnEnds holds an update up, and gives up another behind it.
func TestWaitForOnesTurnEnds(t *testing.T) {
	s := faultstore.New(openStore(t, t.TempDir()))
	k := open(t, s, 0)
	if err := k.Bootstrap(t.Context(), setup("node1")); err != nil {
		t.Fatal(err)
	}
	gate, first := make(chan struct{}), make(chan error, 1)
	held := s.Inject(faultstore.Fault{Do: faultstore.Hold, Gate: gate})
	go func() { first <- k.Update(t.Context(), addTag("first")) }()
	<-held
	ctx, stop := context.WithCancel(t.Context())
	second := make(chan error, 1)
	go func() { second <- k.Update(ctx, addTag("second")) }()
	stop()
	if err := <-second; !fault.Is(err, fault.Canceled) {
		t.Errorf("given up: %v", err)
	}
	close(gate)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if tags := k.Snapshot().Cluster().Tags; len(tags) != 1 {
		t.Errorf("the tags are %v", tags)
	}
}
