package luxi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/requestid"
)

// maxInFlight is how much memory all requests of more than luxiwire.FreeFrame
// that are being read or worked on may take, in bytes.
const maxInFlight = 48 << 20

// lingerTime is how long, and lingerBytes how much, a connection that is about
// to be closed still takes in, so that a client in the middle of sending gets
// to read why.
const (
	lingerTime  = time.Second
	lingerBytes = 4 * luxiwire.MaxFrame
)

// stopTimeout is how long answers under way may take when the server stops: a client that
// does not read holds up nobody.
const stopTimeout = 5 * time.Second

// Server answers the requests of LUXI clients.
type Server struct {
	deps    Deps
	methods map[string]method
	// The limits of the protocol, and how often to look whether a client is still
	// there; tests take smaller ones.
	idle, begun time.Duration // for a request to begin, and for all of it to come
	look        time.Duration
	farewell    time.Duration // for answers under way at a stop
	maxFrame    int
	// memory is what long requests that are being read or worked on take together.
	memory *intake.Budget

	mu    sync.Mutex
	conns map[net.Conn]*attention
	// looking: a time is set for the next lookAround.
	looking bool
}

// New returns a server of all methods over the given parts of the controller.
func New(deps Deps) *Server { return newServer(deps, Methods) }

func newServer(deps Deps, table []method) *Server {
	s := &Server{
		deps:     deps,
		methods:  make(map[string]method, len(table)),
		idle:     luxiwire.IdleTimeout,
		begun:    luxiwire.FrameTimeout,
		look:     lookTime,
		farewell: stopTimeout,
		maxFrame: luxiwire.MaxFrame,
		conns:    map[net.Conn]*attention{},
		memory:   intake.NewBudget(maxInFlight),
	}
	for _, m := range table {
		s.methods[m.name] = m
	}
	return s
}

// Serve answers on the listener until the context ends or the listener fails.
// Requests that are being carried out when the context ends get a few seconds to be
// answered before Serve returns; the listener is then closed.
func (s *Server) Serve(ctx context.Context, listener *gate.Listener) error {
	defer context.AfterFunc(ctx, s.endAll)()
	return Accept(ctx, listener, func(conn net.Conn) {
		s.serveConn(ctx, conn, luxiwire.NewFrameReader(conn, s.maxFrame), s.attend(conn), Peer(conn))
	})
}

// Accept has each connection of a listener served, all at the same time, until ctx ends,
// which closes the listener, or the listener fails. It returns when all have been
// served. Whom the gate turns away is told so in the words of LUXI.
func Accept(ctx context.Context, listener *gate.Listener, serve func(net.Conn)) error {
	listener.Refuse(func(conn net.Conn, why string) {
		defer func() { _ = conn.Close() }() // nothing is left to be said
		err := fault.New(fault.Busy, "%s", why)
		refuse(conn, err.Error(), err)
	})
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })() // Accept reports it
	var open sync.WaitGroup
	defer open.Wait()
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = conn.Close() // it came too late
			}
			_ = listener.Close() // has begun already; behind it the socket is gone
			return nil
		}
		if err != nil {
			return fault.New(fault.Environment, "the control socket failed: %w", err)
		}
		open.Go(func() {
			defer func() { _ = conn.Close() }() // nothing is left to be said
			serve(conn)
		})
	}
}

// endAll interrupts the connections that wait for a request, and closes the others
// when their time is up.
func (s *Server) endAll() {
	s.each(func(conn net.Conn, a *attention) { a.interrupt(conn) })
	time.AfterFunc(s.farewell, func() {
		s.each(func(conn net.Conn, _ *attention) { _ = conn.Close() }) // whoever writes to it notices
	})
}

// each calls a function with all connections.
func (s *Server) each(f func(net.Conn, *attention)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn, a := range s.conns {
		f(conn, a)
	}
}

// ServeConn answers the requests of a connection that somebody vouches for, which frames are read from, until it or the context ends. left is a request that
// was read and is not taken any more (Deps.Take), or a question that the end of the context has ended; open tells that the connection is between two requests, so that somebody else may go on with it.
func (s *Server) ServeConn(ctx context.Context, conn net.Conn, frames *luxiwire.FrameReader, by reason.Account) (left []byte, open bool) {
	defer context.AfterFunc(ctx, s.endAll)()
	return s.serveConn(ctx, conn, frames, s.attend(conn), by)
}

// serveConn answers the requests of one connection, in order.
func (s *Server) serveConn(ctx context.Context, conn net.Conn, frames *luxiwire.FrameReader, a *attention, by reason.Account) (left []byte, open bool) {
	defer s.forget(conn)
	frames.Charge(s.memory)
	defer frames.Charge(nil)
	defer frames.Release()
	for {
		frame, read, idle := s.next(ctx, conn, frames, a)
		if !read {
			return nil, idle
		}
		req, err := luxiwire.ParseRequest(frame)
		if err != nil {
			refuse(conn, err.Error(), err)
			return nil, false
		}
		answered, taken := s.take(req.Method)
		if !taken {
			return frame, true
		}
		given, usable := s.answer(ctx, conn, a, by, req)
		answered()
		if !given {
			return frame, true
		}
		if !usable {
			return nil, false
		}
		frames.Release()
	}
}

// next reads a request. If there is none, idle tells that the context has ended between two.
func (s *Server) next(ctx context.Context, conn net.Conn, frames *luxiwire.FrameReader, a *attention) (frame []byte, read, idle bool) {
	if a.rest(conn, true, time.Now().Add(s.idle)) != nil {
		return nil, false, false
	}
	if ctx.Err() != nil || frames.Begun() != nil {
		return nil, false, ctx.Err() != nil
	}
	if !frames.Whole() && a.rest(conn, false, time.Now().Add(s.begun)) != nil {
		return nil, false, false
	}
	if ctx.Err() != nil {
		return nil, false, true
	}
	frame, err := frames.Next()
	if fault.Is(err, fault.TooLarge) || fault.Is(err, fault.Busy) {
		frames.Release()
		refuse(conn, err.Error(), err)
	}
	return frame, err == nil, false // without one it is gone, too slow, or cut short: nobody to answer
}

// take asks whether a request is taken.
func (s *Server) take(method string) (answered func(), taken bool) {
	if s.deps.Take == nil {
		return func() {}, true
	}
	return s.deps.Take(s.methods[method].effect == changes)
}

// forget removes a connection from those that the server looks after.
func (s *Server) forget(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

// answer carries out one request, as long as the client is there to read the
// answer. It reports whether the connection can be used for another. Nothing is given in answer to a question that the end of the context has ended,
// where somebody else may answer it.
func (s *Server) answer(until context.Context, conn net.Conn, a *attention, by reason.Account, req luxiwire.Request) (given, usable bool) {
	ctx, done := a.request(until)
	defer done()
	if s.deps.NewID != nil {
		ctx = requestid.With(ctx, s.deps.NewID())
	}
	begun := time.Now()
	result, revision, err := s.callNotOlder(ctx, by, req)
	result, err = s.finish(req.Method, result, err)
	s.observe(ctx, req.Method, err, begun)
	if err != nil && until.Err() != nil && s.deps.Take != nil && Asks(req.Method) {
		return false, true
	}
	return true, s.reply(conn, result, revision, err)
}

// AnswerStored answers a request for a controller that does not lead: as the one that
// leads would, unless the request takes an older answer. done is false, and nothing was
// said, if only the one that leads can; open tells whether the connection can be
// used for another request.
func (s *Server) AnswerStored(ctx context.Context, conn net.Conn, by reason.Account, req luxiwire.Request) (done, open bool) {
	if s.methods[req.Method].effect != asksStored {
		return false, true
	}
	begun, known := time.Now(), s.deps.Querier.Picture.Load().Revision
	if !req.Stale && (req.Revision != nil && *req.Revision > known || !s.deps.Current(known)) {
		return false, true
	}
	result, revision, err := s.callNotOlder(ctx, by, req)
	// Whatever was read was not older than known, and is now looked at: see Current.
	if errors.Is(err, live.ErrLed) || !req.Stale && !s.deps.Current(known) {
		return false, true
	}
	if result, err = s.finish(req.Method, result, err); errors.Is(err, live.ErrLed) {
		return false, true
	}
	s.observe(ctx, req.Method, err, begun)
	return true, s.reply(conn, result, revision, err)
}

// reply sends an answer; with a revision other than 0, that too. It reports
// whether the connection can be used for another request.
func (s *Server) reply(conn net.Conn, result any, revision int64, err error) bool {
	if bad, ok := errors.AsType[*parseError](err); ok {
		refuse(conn, bad.text, bad.err)
		return false
	}
	if list, ok := result.(listing); ok && err == nil {
		return s.stream(conn, list, revision)
	}
	var out []byte
	if err == nil {
		out, err = luxiwire.ResultFrameAt(result, revision)
	}
	if err != nil {
		out, err = luxiwire.ErrorFrame(pairOf(err), err)
	}
	return err == nil && send(conn, out)
}

// observe tells who wants to know that a request was carried out. Methods that
// do not exist share one name.
func (s *Server) observe(ctx context.Context, method string, err error, begun time.Time) {
	if s.deps.Observe == nil {
		return
	}
	if _, known := s.methods[method]; !known {
		method = "unknown"
	}
	outcome := "ok"
	if err != nil {
		outcome = string(fault.CodeOf(err))
	}
	s.deps.Observe(ctx, method, outcome, time.Since(begun))
}

// callNotOlder is call, once the state is as new as the request wants it. The
// revision is for clients that know of it: what the answer is not older than, or
// of a request that may have changed something, one that shows it.
func (s *Server) callNotOlder(ctx context.Context, by reason.Account, req luxiwire.Request) (result any, revision int64, err error) {
	if s.deps.Assured != nil && req.Method != QueryHealth && req.Method != MakeBundle {
		if err := s.deps.Assured(ctx); err != nil {
			return nil, 0, err
		}
	}
	if req.Revision != nil {
		if err := s.deps.Querier.Reach(ctx, *req.Revision); err != nil {
			return nil, 0, err
		}
	}
	if req.Stale {
		revision = s.deps.Querier.Picture.Load().Revision
	}
	result, err = s.call(ctx, by, req)
	if req.Revision != nil && !req.Stale {
		revision = s.deps.Querier.Picture.Load().Revision
	}
	return result, revision, err
}

// later is a result that is still to be computed, of what was read: that takes long, and what the controller that leads does meanwhile changes
// nothing about it.
type later func() (any, error)

// finish computes a result that is still to be computed.
func (s *Server) finish(method string, so any, failed error) (result any, err error) {
	compute, ok := so.(later)
	if !ok || failed != nil {
		return so, failed
	}
	defer s.rescue(method, &err)
	return compute()
}

// listing is a result that computes itself piece by piece.
type listing interface{ Chunks() iter.Seq[[]byte] }

// stream writes a listing as it is computed, so that a long one neither waits
// for its end nor is held in memory. A panic on the way ends the connection,
// for its client has read a beginning that nothing can follow.
func (s *Server) stream(conn net.Conn, list listing, revision int64) (sent bool) {
	defer func() {
		if p := recover(); p != nil {
			s.deps.Log.Error("a LUXI listing panicked", "panic", p, "stack", string(debug.Stack()))
			sent = false
		}
	}()
	out := bufio.NewWriterSize(&patient{conn}, 64<<10)
	if _, err := out.WriteString(`{"success":true,"result":`); err != nil {
		return false
	}
	for piece := range s.deps.Querier.Paced(list.Chunks()) {
		if _, err := out.Write(piece); err != nil {
			return false
		}
	}
	if revision > 0 {
		if _, err := fmt.Fprintf(out, `,"revision":%d`, revision); err != nil {
			return false
		}
	}
	if _, err := out.Write([]byte{'}', luxiwire.Terminator}); err != nil {
		return false
	}
	return out.Flush() == nil
}

// patient gives every write the time that a message may take.
type patient struct{ conn net.Conn }

func (p *patient) Write(piece []byte) (int, error) {
	if err := p.conn.SetWriteDeadline(time.Now().Add(luxiwire.SendTimeout)); err != nil {
		return 0, err
	}
	return p.conn.Write(piece)
}

// call runs the method of a request. A panic in it becomes an error of this
// request alone.
func (s *Server) call(ctx context.Context, by reason.Account, req luxiwire.Request) (result any, err error) {
	m, ok := s.methods[req.Method]
	if !ok {
		return nil, unknownMethod(req.Method, s.methods)
	}
	args, err := m.arguments(req.Args)
	if err != nil {
		return nil, err
	}
	args.by = by
	defer s.rescue(m.name, &err)
	return m.run(ctx, &s.deps, args)
}

// rescue makes an error of a panic. It is deferred.
func (s *Server) rescue(method string, err *error) {
	if p := recover(); p != nil {
		s.deps.Log.Error("a LUXI method panicked", "method", method, "panic", p, "stack", string(debug.Stack()))
		*err = fault.New(fault.Internal, "%s failed by a fault of the controller: %v", method, p)
	}
}

// refuse answers a request that was not understood, then takes in and drops
// what the client is still sending, for a while.
func refuse(conn net.Conn, text string, why error) {
	out, err := luxiwire.ParseFailureFrame(text, why)
	if err != nil || !send(conn, out) {
		return
	}
	if half, ok := conn.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		return
	}
	if conn.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		drop(conn, lingerBytes)
	}
}

// drop reads and forgets up to n bytes.
func drop(conn net.Conn, n int) {
	buffer := make([]byte, 64<<10)
	for n > 0 {
		got, err := conn.Read(buffer)
		if err != nil {
			return
		}
		n -= got
	}
}

func send(conn net.Conn, message []byte) bool {
	return conn.SetWriteDeadline(time.Now().Add(luxiwire.SendTimeout)) == nil && luxiwire.WriteFrame(conn, message) == nil
}

// raw is a value that is already JSON.
type raw = json.RawMessage
