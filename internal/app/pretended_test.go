package app_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agentwire"
	"github.com/drover-project/drover/internal/authority"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/hypervisor/fake"
	"github.com/drover-project/drover/internal/joining"
)

// guests is a driver whose guests end themselves when a test says so.
type guests struct {
	*fake.Driver

	mu      sync.Mutex
	changed []func()
	ended   map[string]bool       // by name
	called  func(fake.Call) error // sees each call of the driver; nil for nobody
	reboots map[string]int        // by name
}

func newGuests(tb testing.TB, dir string) *guests {
	tb.Helper()
	g := &guests{ended: map[string]bool{}, reboots: map[string]int{}}
	var err error
	if g.Driver, err = fake.Open(fake.Config{Dir: filepath.Join(dir, "fake"), Fault: g.sees}); err != nil {
		tb.Fatal(err)
	}
	return g
}

func (g *guests) sees(c fake.Call) error {
	g.mu.Lock()
	if c.Method == "reboot" && !c.After {
		g.reboots[c.Name]++
	}
	called := g.called
	g.mu.Unlock()
	if called == nil {
		return nil
	}
	return called(c)
}

func (g *guests) Watch(changed func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changed = append(g.changed, changed)
}

// ends has the guest of an instance end itself.
func (g *guests) ends(name string) {
	g.mu.Lock()
	g.ended[name] = true
	changed := g.changed
	g.mu.Unlock()
	for _, f := range changed {
		f()
	}
}

func (g *guests) Instances(ctx context.Context) ([]hypervisor.Instance, error) {
	all, err := g.Driver.Instances(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range all {
		if g.ended[all[i].Name] {
			all[i].State, all[i].EndedItself, all[i].Memory, all[i].VCPUs = hypervisor.Stopped, true, 0, 0
		}
	}
	return all, err
}

// joined is an agent of this process that has joined, with what it dials by.
type joined struct {
	token  joining.Token
	config *tls.Config
	dir    string
	driver hypervisor.Driver
}

// joins has an agent join, which runs a node by a driver.
func joins(tb testing.TB, token joining.Token, dir string, driver hypervisor.Driver) *joined {
	tb.Helper()
	key, request, err := authority.NewRequest()
	if err != nil {
		tb.Fatal(err)
	}
	papers, err := agentwire.Join(tb.Context(), token.Addresses, authority.TrustByFingerprint(token.Authority, time.Now), token.Node, token.Secret, request)
	if err != nil {
		tb.Fatal(err)
	}
	block, _ := pem.Decode(papers.Certificate)
	config, err := authority.Trust(authority.Among(papers.Shown.PeerCertificates, token.Authority), &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key})
	if err != nil {
		tb.Fatal(err)
	}
	return &joined{token: token, config: config, dir: dir, driver: driver}
}

// run serves the node at addresses until what is returned is called.
func (m *joined) run(tb testing.TB, addresses []string) (stop func()) {
	tb.Helper()
	dial, stop := m.open(tb, addresses)
	dial()
	return stop
}

// open is run in two: it does not dial yet.
func (m *joined) open(tb testing.TB, addresses []string) (dial, stop func()) {
	tb.Helper()
	log := slog.New(slog.DiscardHandler)
	a, err := agent.New(agent.Config{Node: m.token.Node, Dir: m.dir, Driver: m.driver, Log: log})
	if err != nil {
		tb.Fatal(err)
	}
	h, err := agentwire.NewHandler(a, "")
	if err != nil {
		tb.Fatal(err)
	}
	d := agentwire.Dialer{
		Node: m.token.Node, Addresses: func() []string { return addresses }, TLS: func() (*tls.Config, error) { return m.config, nil }, Follow: a.Follow, Handler: h, Log: log,
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	dial = func() {
		go func() {
			defer close(ended)
			d.Run(ctx)
		}()
	}
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
		h.Close()
		if err := a.Close(); err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(stop)
	return dial, stop
}
