package remoteconsole

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/fault"
)

// session is one connection to a console.
type session struct {
	consoles *Consoles
	grant    console.Grant
	machine  Machine
	by       audit.By
	conn     *websocket.Conn
	// notes: the client is told in messages of their own what its person is to know.
	notes bool
	// shown has how many bytes such a client has shown last, of those that it was sent.
	shown chan uint64
	// known is the last such number that the serial line has taken note of.
	known uint64
	// moved is when something came or went last, in nanoseconds since the epoch.
	moved atomic.Int64
}

// errIdle ends a connection over which nothing came or went.
var errIdle = errors.New("nothing came or went for too long")

// serve serves the connection until either end ends it, ctx does, or it has to be.
func (s *session) serve(ctx context.Context, takeOver bool) {
	s.touch()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() { end(s.watch(ctx)) }()
	var err error
	if s.grant.Kind == console.Serial {
		err = s.serial(ctx, takeOver)
	} else {
		err = s.screen(ctx)
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	status, why := farewell(err)
	_ = s.conn.Close(status, why) // to a client that may be gone
	s.consoles.cfg.Log.Debug("a console was left", "of", s.grant.Of, "console", s.grant.Kind, "user", s.by.Account.Name, "why", err)
}

// farewell is what a client is told at the end. A reason of a WebSocket has 123 bytes at most.
func farewell(err error) (websocket.StatusCode, string) {
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return websocket.StatusNormalClosure, "the machine has ended"
	case errors.Is(err, context.Canceled):
		return websocket.StatusGoingAway, "the controller ends, or leads no more"
	}
	return websocket.StatusPolicyViolation, fault.Clip(err.Error(), 100)
}

func (s *session) touch() { s.moved.Store(s.consoles.cfg.Now().UnixNano()) }

// watch returns why the connection is to end: it is idle, its client has gone, or its user may not look any more.
func (s *session) watch(ctx context.Context) error {
	c := s.consoles
	look := time.NewTicker(c.cfg.every)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
		if c.cfg.Now().Sub(time.Unix(0, s.moved.Load())) > c.cfg.idle {
			return errIdle
		}
		at, gone := c.cfg.Find(s.grant.Of)
		if err := c.may(ctx, s.grant, at, gone); err != nil {
			return err
		}
		limit, cancel := context.WithTimeout(ctx, sendTime)
		err := s.conn.Ping(limit)
		cancel()
		if err != nil {
			return err
		}
	}
}

// receive waits for a message of the client, until the connection is closed: the end of a context would cut it, and nobody be told why.
func (s *session) receive() (kind websocket.MessageType, message []byte, err error) {
	if kind, message, err = s.conn.Read(context.Background()); err == nil {
		s.touch()
	}
	return kind, message, err
}

// send sends bytes of the console to the client.
func (s *session) send(text []byte) error { return s.write(websocket.MessageBinary, text) }

// write sends a message to the client, who may take a time for it, whatever ends meanwhile.
func (s *session) write(kind websocket.MessageType, message []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), sendTime)
	defer cancel()
	s.touch()
	return s.conn.Write(ctx, kind, message)
}

// screen moves the bytes of a screen.
func (s *session) screen(ctx context.Context) error {
	screen, err := s.consoles.cfg.Instances.OpenScreen(ctx, s.machine.UUID)
	if err != nil {
		return err
	}
	defer func() { _ = screen.Close() }()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		for {
			kind, message, err := s.receive()
			if err == nil && kind != websocket.MessageBinary {
				err = fault.New(fault.Invalid, "a screen takes binary messages alone")
			}
			if err != nil {
				end(err)
				_ = screen.Close()
				return
			}
			_, _ = screen.Write(message) // to a machine that may have ended: what is read tells
		}
	}()
	for piece := make([]byte, 32<<10); ; {
		n, err := screen.Read(piece)
		if n > 0 {
			if e := s.send(piece[:n]); e != nil {
				return e
			}
		}
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		}
	}
}

// lookFor is how long one look waits for what is printed.
const lookFor = 20 * time.Second

// serial moves the bytes of a serial line, and tells the person what they are to know.
func (s *session) serial(ctx context.Context, takeOver bool) error {
	cfg, uuid := &s.consoles.cfg, s.machine.UUID
	who := console.Sitting{ID: rand.Text(), By: s.by}
	defer cfg.Keyboards.Leave(uuid, who)
	if takeOver {
		if err := cfg.Keyboards.Type(ctx, uuid, s.machine.Name, who, true); err != nil {
			return err
		}
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() { end(s.keys(ctx, who)) }()
	var seen console.Turn
	var sent uint64
	for at := uint64(0); ; {
		piece, turn, err := cfg.Keyboards.Look(ctx, uuid, who, seen.Number, at, func(ctx context.Context, wait bool) (console.Piece, error) {
			if wait {
				return cfg.Instances.ReadConsole(ctx, uuid, at, lookFor)
			}
			return cfg.Instances.ReadConsole(ctx, uuid, at, 0)
		})
		if err == nil && piece.From > at && at > 0 {
			err = s.note(note{LeftOut: piece.From - at})
		}
		if err == nil && len(piece.Text) > 0 {
			err = s.send(piece.Text)
			sent += uint64(len(piece.Text))
		}
		if err == nil && seen.Number != turn.Number {
			err = s.note(note{Turn: &turn, was: seen})
		}
		if err == nil {
			err = s.catchUp(ctx, sent)
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil {
			return err
		}
		at, seen = piece.Next, turn
	}
}

// keys sends what is typed to the machine, and tells of keys that nobody took.
func (s *session) keys(ctx context.Context, who console.Sitting) error {
	for {
		kind, message, err := s.receive()
		if err != nil {
			return err
		}
		take := false
		if s.notes && kind == websocket.MessageText {
			if take, err = s.heard(message); err != nil {
				return err
			}
			if !take {
				continue
			}
			message = nil
		}
		if err := s.press(ctx, who, message, take); err != nil {
			if err := s.note(note{Refused: err.Error()}); err != nil {
				return err
			}
		}
	}
}

// press types, or has somebody take the keyboard over.
func (s *session) press(ctx context.Context, who console.Sitting, all []byte, take bool) error {
	cfg := &s.consoles.cfg
	if take {
		return cfg.Keyboards.Type(ctx, s.machine.UUID, s.machine.Name, who, true)
	}
	for keys := range slices.Chunk(all, agent.MaxKeys) {
		if err := cfg.Keyboards.Type(ctx, s.machine.UUID, s.machine.Name, who, false); err != nil {
			return err
		}
		if err := cfg.Instances.TypeConsole(ctx, s.machine.UUID, keys); err != nil {
			return err
		}
	}
	return nil
}
