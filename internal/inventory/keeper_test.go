package inventory

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/sqlite"
)

func openStore(t *testing.T, dir string) store.Store {
	t.Helper()
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func open(t *testing.T, s store.Store, epoch int64) *Keeper {
	t.Helper()
	k, err := Open(t.Context(), s, epoch, picture.New())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func setup(nodes ...string) Setup {
	count := 0
	return Setup{Name: "cluster.example", Nodes: nodes, Hypervisors: []string{"fake"}, DiskTemplates: []string{"diskless"}, VolumeGroup: "vg0",
		Now: time.Unix(1, 0), NewUUID: func() string { count++; return fmt.Sprintf("uuid-%d", count) }}
}

// addTag returns an update that adds a tag to the cluster.
func addTag(tag string) Change {
	return func(snap *cluster.Snapshot) ([]cluster.Change, error) {
		c := snap.Cluster().Clone()
		c.Tags = c.Tags.With(tag)
		return []cluster.Change{cluster.Put(c)}, nil
	}
}

func TestBootstrapSurvives(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	k := open(t, s, 0)
	if k.Snapshot().Cluster() != nil {
		t.Fatal("an empty store has a cluster")
	}
	if err := k.Bootstrap(t.Context(), setup("node1", "node2")); err != nil {
		t.Fatal(err)
	}
	if err := k.Bootstrap(t.Context(), setup("node1")); !fault.Is(err, fault.WrongState) {
		t.Fatalf("second bootstrap: %v", err)
	}
	k.Close()
	snap := open(t, s, 0).Snapshot()
	c, group, first := snap.Cluster(), snap.GroupNamed("default"), snap.NodeNamed("node1")
	if c == nil || group == nil || first == nil || snap.NodeCount() != 2 {
		t.Fatalf("after reopening: %v %v %v", c, group, first)
	}
	if c.Name != "cluster.example" || c.MasterNode != first.UUID || c.Hypervisor() != "fake" || c.VolumeGroup != "vg0" ||
		first.Group != group.UUID || !first.MasterCandidate || first.PrimaryIP != "127.0.0.1" {
		t.Fatalf("cluster %+v, node %+v", c, first)
	}
}

func TestFirstRefusesNoNodes(t *testing.T) {
	if _, err := First(setup()); !fault.Is(err, fault.Invalid) {
		t.Fatalf("got %v", err)
	}
}

func TestUpdates(t *testing.T) {
	k := open(t, openStore(t, t.TempDir()), 0)
	if err := k.Bootstrap(t.Context(), setup("node1")); err != nil {
		t.Fatal(err)
	}
	seen := 0
	k.OnChange(func(snap *cluster.Snapshot) {
		if snap != k.Snapshot() {
			t.Error("a watcher is told of another snapshot than the newest")
		}
		seen++
	})
	if err := k.Update(t.Context(), addTag("a")); err != nil {
		t.Fatal(err)
	}
	refusal := errors.New("no")
	err := k.Update(t.Context(), func(*cluster.Snapshot) ([]cluster.Change, error) { return nil, refusal })
	if !errors.Is(err, refusal) {
		t.Fatalf("a refused update: %v", err)
	}
	if err := k.Update(t.Context(), func(*cluster.Snapshot) ([]cluster.Change, error) { return nil, nil }); err != nil {
		t.Fatal(err)
	}
	node := k.Snapshot().NodeNamed("node1").UUID
	err = k.Update(t.Context(), func(*cluster.Snapshot) ([]cluster.Change, error) {
		return []cluster.Change{cluster.Delete(cluster.KindNode, node)}, nil
	})
	if err != nil || k.Snapshot().NodeCount() != 0 {
		t.Fatalf("delete: %v", err)
	}
	if seen != 2 {
		t.Fatalf("watchers were called %d times, want 2", seen)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := k.Update(ctx, addTag("late")); !fault.Is(err, fault.Canceled) || k.Snapshot().Cluster().Tags.Has("late") {
		t.Fatalf("an update whose context is over: %v", err)
	}
	k.Close()
	if err := k.Update(t.Context(), addTag("closed")); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("after Close: %v", err)
	}
}

func TestConcurrentUpdatesAllCount(t *testing.T) {
	s := openStore(t, t.TempDir())
	k := open(t, s, 0)
	if err := k.Bootstrap(t.Context(), setup("node1")); err != nil {
		t.Fatal(err)
	}
	const count = 200
	var all sync.WaitGroup
	for i := range count {
		all.Go(func() {
			tag := fmt.Sprintf("tag%d", i)
			if err := k.Update(t.Context(), addTag(tag)); err != nil {
				t.Error(err)
			}
			if !k.Snapshot().Cluster().Tags.Has(tag) {
				t.Errorf("%s is not there when its update returned", tag)
			}
		})
	}
	all.Wait()
	k.Close()
	if got := len(open(t, s, 0).Snapshot().Cluster().Tags); got != count {
		t.Fatalf("%d tags are stored, want %d", got, count)
	}
}

func TestFencedKeeperChangesNothing(t *testing.T) {
	s := openStore(t, t.TempDir())
	lease, err := s.AcquireLease(t.Context(), "leader", "me", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	k := open(t, s, lease.Epoch)
	if err := k.Bootstrap(t.Context(), setup("node1")); err != nil {
		t.Fatal(err)
	}
	if err := s.ReleaseLease(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if err := k.Update(t.Context(), addTag("a")); !fault.Is(err, fault.Fenced) || k.Snapshot().Cluster().Tags.Has("a") {
		t.Fatalf("got %v", err)
	}
}
