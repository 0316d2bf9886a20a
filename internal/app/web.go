package app

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/api/remoteconsole"
	"github.com/drover-project/drover/internal/api/web"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/rights"
)

// listenWeb opens the address of the page. Without an address there is none.
func (s *surfaces) listenWeb(ctx context.Context, o Options) (err error) {
	if o.Web == "" {
		return nil
	}
	if s.webListener, err = listen(ctx, gate.Web, o.Web, o); err != nil {
		return fault.New(fault.Environment, "cannot listen for the page: %w", err).WithHint("choose another address with --web; port 0 picks a free one")
	}
	scheme := "http"
	if at, ok := s.webListener.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		scheme, s.webCert = "https", s.cert
	}
	s.ready.Web = scheme + "://" + s.webListener.Addr().String()
	if o.WebURL != nil {
		s.ready.Web = o.WebURL.String()
	}
	return nil
}

// serveWeb serves the page until ctx ends.
func (s *surfaces) serveWeb(ctx context.Context, h http.Handler, log *slog.Logger) error {
	if s.webListener == nil {
		return nil
	}
	return rapi.ServeHandler(ctx, gate.Web, s.webListener, s.webCert, h, log)
}

// newWeb returns the server of the page.
func (c *controller) newWeb(s *surfaces, o Options) *web.Server {
	config := web.Config{Queue: c.queue, Querier: c.querier, Rollout: c.rollout, Accounts: listedAccounts{s.users}, Health: c.clusterHealth, URL: o.WebURL, Now: time.Now, Log: o.Log,
		Consoles: c.newConsoles("instance", remoteconsole.OfInstances(func() *cluster.Snapshot { return c.querier.Picture.Load().Inventory })), Observe: c.figures.observe("web", o.Log), NewID: c.requestIDs.Next}
	if s.webCert != nil {
		config.Certificate = func() *x509.Certificate { return s.webCert.Current().Leaf }
	}
	return web.New(config)
}

// listedAccounts are those of RAPI's users file, as it is at each moment.
type listedAccounts struct{ users *rapi.UsersFile }

// Verify reports whether the password is that of the account.
func (a listedAccounts) Verify(name, password string) bool {
	return a.users.Current().Verify(name, password)
}

// Account is what an account may do, and a text that changes with its password.
func (a listedAccounts) Account(name string) (may rights.Account, stamp string, ok bool) {
	return a.users.Current().Account(name)
}

// parseWebURL reads where people reach the page: scheme and host alone, for what browsers keep of it is for a host.
func parseWebURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/" {
		return nil, fault.New(fault.Invalid, "web-url: %q is no address of a page", fault.Clip(text, 200)).At("web-url").WithHint("it is scheme and host, for example https://drover.example.org")
	}
	u.Path = ""
	return u, nil
}
