// Package systems knows which operating systems the clusters of servers have, which are images to those who make servers.
//
// Clusters are asked when somebody wants to know, and seldom: what is known of one is told at once, and it is asked again beside that when that
// is old. Only where nothing is known yet it is waited for.
//
// Invariants:
//   - What a cluster was last known to have stays while it does not answer (TestWhatWasKnownStays).
//   - However many want to know, a cluster is asked by one at a time, and nobody waits longer than Patience (TestNobodyWaitsForEver).
package systems

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
)

// Times of asking.
const (
	// Fresh is how long what a cluster said is taken for what it has.
	Fresh = 30 * time.Second
	// Patience is how long somebody waits for a cluster of which nothing is known.
	Patience = 2 * time.Second
	// mayTake is how long one question may take, and again the pause behind one without an answer.
	mayTake = 20 * time.Second
	again   = time.Second
)

// Cluster asks a cluster for its operating systems that servers may have: names with their variants, as debian+minimal.
type Cluster func(context.Context) ([]string, error)

// Config is what a Service needs.
type Config struct {
	// Clusters are those of servers, by name; Drover's own has none.
	Clusters map[string]Cluster
	Now      func() time.Time
	Log      *slog.Logger
}

// Service knows the systems of clusters. It may be used from any number of goroutines; Close ends what it asks.
type Service struct {
	cfg    Config
	ctx    context.Context // ends when the service closes
	stop   context.CancelFunc
	asking sync.WaitGroup

	mu     sync.Mutex
	closed bool
	known  map[string]*known // by cluster
}

// known is what a cluster is known to have.
type known struct {
	systems []string
	// answered: it has said what it has.
	answered bool
	// next is when it is asked again; ended is closed when the question ends that is under way, nil while there is none.
	next  time.Time
	ended chan struct{}
}

// Open returns a service that knows nothing yet.
func Open(cfg Config) *Service {
	s := &Service{cfg: cfg, known: map[string]*known{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	for name := range cfg.Clusters {
		s.known[name] = &known{}
	}
	return s
}

// Close ends all questions.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.asking.Wait()
}

// Images are the systems of all clusters as images, by name.
func (s *Service) Images() server.Images {
	patience := time.NewTimer(Patience)
	defer patience.Stop()
	for _, ended := range s.begin() {
		select {
		case <-ended:
		case <-patience.C:
			return s.images()
		}
	}
	return s.images()
}

// begin has clusters asked whose time has come, and returns the ends of questions that are waited for.
func (s *Service) begin() (wait []<-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, k := range s.known {
		if k.ended == nil && !s.closed && !s.cfg.Now().Before(k.next) {
			k.ended = make(chan struct{})
			s.asking.Go(func() { s.ask(name, k) })
		}
		if k.ended != nil && !k.answered {
			wait = append(wait, k.ended)
		}
	}
	return wait
}

// ask asks one cluster. One that says that it has none may have nodes that are not there yet.
func (s *Service) ask(name string, k *known) {
	ctx, cancel := context.WithTimeout(s.ctx, mayTake)
	defer cancel()
	systems, err := s.cfg.Clusters[name](ctx)
	if err == nil && len(systems) == 0 {
		err = fault.New(fault.NotFound, "it has none")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k.next = s.cfg.Now().Add(again)
	if err != nil {
		s.cfg.Log.Debug("a cluster does not say which operating systems it has", "cluster", name, "error", err)
	} else {
		k.systems, k.answered, k.next = systems, true, s.cfg.Now().Add(Fresh)
	}
	close(k.ended)
	k.ended = nil
}

// images are what is known. The variants of Drover's own images are left out: they are images themselves.
func (s *Service) images() server.Images {
	s.mu.Lock()
	defer s.mu.Unlock()
	on := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(s.known)) {
		for _, system := range s.known[name].systems {
			if own := name == "" && strings.HasPrefix(system, cluster.ImageOS+"+"); !own {
				on[system] = append(on[system], name)
			}
		}
	}
	return server.SystemImages(on)
}
