package agentwire

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/fault"
)

// Dialer keeps a link from an agent to the controller that leads.
type Dialer struct {
	// Node is who dials.
	Node string
	// Addresses are where controllers are, as HOST:PORT, as they are known at the moment.
	Addresses func() []string
	// TLS has the agent's certificate of the moment, and by whom those of controllers are signed.
	TLS func() (*tls.Config, error)
	// Follow has the node follow the leader of an epoch, and refuses one that another has followed; nil for an agent that learns it from orders.
	Follow func(ctx context.Context, epoch int64) error
	// Moved takes the addresses that a leader tells; nil for nobody.
	Moved func(addresses []string)
	// Linked is told when a link is there, and when it is not any more; nil for nobody.
	Linked func(bool)
	// Handler serves the agent.
	Handler http.Handler
	Log     *slog.Logger
}

// redials are the pauses between tries to reach a controller.
func redials() backoff.Pauses {
	return backoff.Pauses{First: 100 * time.Millisecond, Longest: 5 * time.Second}
}

// It is said that no controller is reached when that lasts, and not again for toldEvery.
const (
	lasting   = 4 // tries
	toldEvery = time.Minute
)

// Run keeps the link until ctx ends.
func (d *Dialer) Run(ctx context.Context) {
	var told time.Time
	for failures := 0; ctx.Err() == nil; {
		var err error
		begun := time.Now()
		for _, address := range d.Addresses() { // of several controllers one leads
			begun = time.Now()
			if err = d.once(ctx, address); ctx.Err() != nil {
				return
			}
			d.Log.Debug("no link to a controller", "node", d.Node, "address", address, "error", err)
		}
		if failures++; time.Since(begun) > redials().Longest { // a link that is ended at once is none: two agents of one node would fight for it
			failures = 1
		}
		pause := redials().After(failures)
		if failures >= lasting && time.Since(told) > toldEvery {
			d.Log.Warn("there is no link to a controller that leads; it is tried again", "node", d.Node, "addresses", d.Addresses(), "error", err)
			told = time.Now()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// once dials, and serves until the link ends.
func (d *Dialer) once(ctx context.Context, address string) error {
	config, err := d.TLS()
	if err != nil {
		return err
	}
	conn, answer, err := greeted(ctx, address, config, hello{Protocol: protocol, Node: d.Node})
	if err != nil {
		return err
	}
	if d.Follow != nil && answer.Epoch > 0 {
		if err := d.Follow(ctx, answer.Epoch); err != nil {
			_ = conn.Close()
			return err
		}
	}
	if d.Moved != nil && len(answer.Addresses) > 0 {
		d.Moved(answer.Addresses)
	}
	if d.Linked != nil {
		d.Linked(true)
		defer d.Linked(false)
	}
	d.Log.Info("linked to the controller that leads", "node", d.Node, "address", address, "epoch", answer.Epoch)
	d.serve(ctx, conn)
	return errors.New("the link was ended")
}

// greeted dials, and says what an agent says first. The connection is closed if it is refused.
func greeted(ctx context.Context, address string, config *tls.Config, said hello) (conn *tls.Conn, answer welcome, err error) {
	limit, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	c, err := (&tls.Dialer{Config: config}).DialContext(limit, "tcp", address)
	if err != nil {
		return nil, answer, fault.New(fault.Unavailable, "the controller at %s is not reached: %w", address, err)
	}
	dialled := c.(*tls.Conn) //nolint:forcetypeassert // that is what it dials
	late := context.AfterFunc(limit, func() { _ = dialled.SetDeadline(time.Now()) })
	err = writeGreeting(dialled, said)
	if err == nil {
		err = readGreeting(dialled, &answer)
	}
	switch inTime := late(); {
	case err != nil, !inTime:
		err = fault.New(fault.Unavailable, "the controller at %s does not answer: %w", address, errors.Join(err, limit.Err()))
	case answer.Refused != nil:
		err = answer.Refused.fault()
	}
	if err != nil {
		_ = dialled.Close()
		return nil, answer, err
	}
	return dialled, answer, nil
}

// Papers are what an agent gets from a controller.
type Papers struct {
	// Certificate is PEM.
	Certificate []byte
	// Addresses are where controllers are.
	Addresses []string
	// Shown is what the controller showed of who signed its certificate.
	Shown tls.ConnectionState
}

// Join asks for the certificate of a node, with the secret of a token and a request, as DER. The controllers are tried one after the other, and the error is that
// of the one that leads, if there was one.
func Join(ctx context.Context, addresses []string, config *tls.Config, node, secret string, request []byte) (Papers, error) {
	return ask(ctx, addresses, config, hello{Protocol: protocol, Node: node, Secret: secret, Request: request})
}

// Renew asks for the next certificate of a node.
func Renew(ctx context.Context, addresses []string, config *tls.Config, node string, request []byte) (Papers, error) {
	return ask(ctx, addresses, config, hello{Protocol: protocol, Node: node, Request: request})
}

func ask(ctx context.Context, addresses []string, config *tls.Config, said hello) (p Papers, err error) {
	for _, address := range addresses {
		conn, answer, failed := greeted(ctx, address, config, said)
		if failed == nil {
			p = Papers{Certificate: answer.Certificate, Addresses: slices.Clone(answer.Addresses), Shown: conn.ConnectionState()}
			_ = conn.Close()
			return p, nil
		}
		if err == nil || !fault.Is(failed, fault.Unavailable) {
			err = failed
		}
	}
	return p, err
}

// serve serves the connection until it ends, or ctx.
func (d *Dialer) serve(ctx context.Context, conn net.Conn) {
	l := &single{conn: conn, over: make(chan struct{})}
	s := &http.Server{
		Handler: d.Handler, Protocols: new(http.Protocols), HTTP2: settings(maxToAgent), ReadHeaderTimeout: greetTime, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(d.Log.Handler(), slog.LevelDebug),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				_ = l.Close()
			}
		},
	}
	s.Protocols.SetHTTP2(true)
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	_ = s.Serve(l) // it ends with the connection
	_ = s.Close()
}

// single is a listener that has one connection.
type single struct {
	conn  net.Conn
	taken sync.Once
	ends  sync.Once
	over  chan struct{}
}

// Accept implements net.Listener.
func (l *single) Accept() (conn net.Conn, err error) {
	l.taken.Do(func() { conn = l.conn })
	if conn != nil {
		return conn, nil
	}
	<-l.over
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l *single) Close() error {
	l.ends.Do(func() { close(l.over) })
	return nil
}

// Addr implements net.Listener.
func (l *single) Addr() net.Addr { return l.conn.LocalAddr() }
