package systems_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/systems"
)

func open(t *testing.T, clusters map[string]systems.Cluster) *systems.Service {
	t.Helper()
	s := systems.Open(systems.Config{Clusters: clusters, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(s.Close)
	return s
}

func has(names ...string) systems.Cluster {
	return func(context.Context) ([]string, error) { return names, nil }
}

func names(all server.Images) (out []string) {
	for _, m := range all {
		out = append(out, m.Name)
	}
	return out
}

// TestSystemsAreImages: with their variants, each on the clusters that have it; what Drover's own images are installed by is none.
func TestSystemsAreImages(t *testing.T) {
	s := open(t, map[string]systems.Cluster{"": has("debootstrap+minimal", "debootstrap+full", "noop+default", "image+debian13"), "far": has("debootstrap+minimal", "image+theirs")})
	all := s.Images()
	if got := names(all); !slices.Equal(got, []string{"debootstrap+full", "debootstrap+minimal", "image+theirs", "noop"}) {
		t.Fatalf("the images are %q", got)
	}
	ids := map[string]bool{}
	for _, m := range all {
		ids[m.ID] = true
	}
	if len(ids) != len(all) || all[3].ID != server.DefaultImages()[0].ID || all[3].OS != "noop+default" || all[1].OS != "debootstrap+minimal" {
		t.Errorf("%+v", all)
	}
	if again := open(t, map[string]systems.Cluster{"far": has("debootstrap+minimal")}).Images(); again[0].ID != all[1].ID {
		t.Errorf("it is %s, and was %s", again[0].ID, all[1].ID)
	}
	for i, want := range []map[string]bool{{"": true, "far": false}, {"": true, "far": true}, {"": false, "far": true}} {
		for zone, fits := range want {
			if err := all[i].Fits(zone, server.Flavor{}); (err == nil) != fits {
				t.Errorf("%s on %q: %v", all[i].Name, zone, err)
			}
		}
	}
}

// TestOneIDIsOneImage: what clusters call with a variant and without is two images, of which that of Drover's own cluster is the one that it was.
func TestOneIDIsOneImage(t *testing.T) {
	first := server.DefaultImages()[0]
	for what, c := range map[string]struct {
		own, far []string
		names    []string
		zone     string // of the image with the id and the name of before
	}{
		"the same":                        {[]string{"noop+default"}, []string{"noop+default"}, []string{"noop"}, ""},
		"a far one without variants":      {[]string{"noop+default"}, []string{"noop"}, []string{"noop without variants", "noop"}, ""},
		"a far one with a variant":        {[]string{"noop"}, []string{"noop+default"}, []string{"noop", "noop+default"}, ""},
		"only far, without variants":      {[]string{"debian"}, []string{"noop"}, []string{"debian", "noop"}, "far"},
		"only far, in one cluster, twice": {[]string{"debian"}, []string{"noop", "noop+default"}, []string{"debian", "noop", "noop+default"}, "far"},
	} {
		all := open(t, map[string]systems.Cluster{"": has(c.own...), "far": has(c.far...)}).Images()
		if got := names(all); !slices.Equal(got, c.names) {
			t.Errorf("%s: the images are %q, want %q", what, got, c.names)
		}
		ids := map[string]bool{}
		for _, m := range all {
			ids[m.ID] = true
			for _, cluster := range m.Clusters {
				if has := map[string][]string{"": c.own, "far": c.far}[cluster]; !slices.Contains(has, m.OS) {
					t.Errorf("%s: %s is made of %s, and the cluster %q has %q", what, m.Name, m.OS, cluster, has)
				}
			}
		}
		if m, err := all.Find(first.ID); err != nil || m.Name != first.Name || m.Fits(c.zone, server.Flavor{}) != nil || len(ids) != len(all) {
			t.Errorf("%s: %+v, %v", what, all, err)
		}
	}
}

// TestWhatWasKnownStays: while a cluster does not answer, or its nodes have nothing; what it has now is known after a while.
func TestWhatWasKnownStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Value
		now.Store([]string(nil))
		asked := 0
		s := systems.Open(systems.Config{Clusters: map[string]systems.Cluster{"": func(context.Context) ([]string, error) {
			asked++
			if names := now.Load().([]string); names == nil || names[0] != "away" {
				return names, nil
			}
			return nil, errors.New("it is away")
		}}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		defer s.Close()
		shows := func(when string, want ...string) {
			t.Helper()
			s.Images() // has it asked
			synctest.Wait()
			if got := names(s.Images()); !slices.Equal(got, want) {
				t.Errorf("%s it has %q, want %q", when, got, want)
			}
			synctest.Wait()
		}
		shows("without nodes")
		now.Store([]string{"a"})
		time.Sleep(time.Second)
		shows("with a node", "a")
		begun := asked
		now.Store([]string{"b"})
		shows("soon after", "a")
		if asked != begun {
			t.Errorf("it was asked %d times more", asked-begun)
		}
		time.Sleep(systems.Fresh)
		shows("later", "b")
		now.Store([]string{"away"})
		time.Sleep(systems.Fresh)
		shows("away", "b")
		now.Store([]string(nil))
		time.Sleep(systems.Fresh)
		shows("without nodes again", "b")
		now.Store([]string{"c"})
		time.Sleep(time.Second)
		shows("with a node again", "c")
	})
}

// TestNobodyWaitsForEver: for a cluster that does not answer; and others' systems are told meanwhile.
func TestNobodyWaitsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := atomic.Int32{}
		s := systems.Open(systems.Config{Clusters: map[string]systems.Cluster{"": has("a"), "far": func(ctx context.Context) ([]string, error) {
			asked.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		begun, done := time.Now(), make(chan []string, 9)
		for range cap(done) {
			go func() { done <- names(s.Images()) }()
		}
		for range cap(done) {
			if got := <-done; !slices.Equal(got, []string{"a"}) {
				t.Errorf("there are %q", got)
			}
		}
		if took := time.Since(begun); took > systems.Patience || asked.Load() != 1 {
			t.Errorf("it took %v, and the cluster was asked %d times", took, asked.Load())
		}
		s.Close()
		if got := names(s.Images()); !slices.Equal(got, []string{"a"}) {
			t.Errorf("closed, there are %q", got)
		}
	})
}

// TestNobodyWaitsWhereSomethingIsKnown: while a cluster is asked again, for however long it does not answer.
func TestNobodyWaitsWhereSomethingIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := atomic.Int32{}
		s := open(t, map[string]systems.Cluster{"far": func(ctx context.Context) ([]string, error) {
			if asked.Add(1) == 1 {
				return []string{"a"}, nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		s.Images()
		time.Sleep(systems.Fresh)
		begun := time.Now()
		if got := names(s.Images()); !slices.Equal(got, []string{"a"}) || time.Since(begun) != 0 {
			t.Errorf("it has %q, which took %v", got, time.Since(begun))
		}
		if synctest.Wait(); asked.Load() != 2 {
			t.Errorf("it was asked %d times", asked.Load())
		}
	})
}

// TestAClusterThatFailsIsLeftAlone for a while, however often somebody wants to know.
func TestAClusterThatFailsIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := atomic.Int32{}
		s := open(t, map[string]systems.Cluster{"far": func(context.Context) ([]string, error) {
			asked.Add(1)
			return nil, errors.New("it is away")
		}})
		for want := range int32(3) {
			for range 5 {
				s.Images()
				synctest.Wait()
			}
			if got := asked.Load(); got != want+1 {
				t.Fatalf("%d seconds later it was asked %d times", want, got)
			}
			time.Sleep(time.Second)
		}
	})
}
