package inventory

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/cli/shell"
)

// The keys that a console has for itself: leave is Ctrl-], and take is Ctrl-T, for one who only looks.
const (
	leave = 0x1d
	take  = 0x14
)

// turn says whose turn it is to type, as the controller tells it.
type turn struct {
	Number uint64    `json:"number"`
	Who    string    `json:"who"`
	From   string    `json:"from"`
	Since  time.Time `json:"since"`
	Yours  bool      `json:"yours"`
}

// taken tells whether another one types.
func (t *turn) taken() bool { return t.Who != "" && !t.Yours }

// typist is who types, for people.
func (t *turn) typist() string {
	if t.From == "" {
		return t.Who
	}
	return t.Who + " (" + t.From + ")"
}

// seat is the place of somebody who sits before an instance.
type seat struct {
	// id is what the controller knows him by.
	id string

	mu   sync.Mutex
	turn turn
	// warned is the turn in which he was told that his keys do nothing.
	warned uint64
}

// seen is what an instance printed, and whose turn it is.
type seen struct {
	printed
	Turn turn `json:"turn"`
}

// read asks what an instance printed, and waits for it, or for another one's turn.
func (s *seat) read(ctx context.Context, ask func(context.Context, string, any, ...any) error, instance string, at uint64, seconds int) (p seen, err error) {
	return p, ask(ctx, "ReadConsole", &p, instance, at, seconds, map[string]any{"id": s.id, "turn": s.now().Number})
}

func (s *seat) now() turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn
}

func (s *seat) sees(t turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn = t
}

// told is what somebody is told of a turn that he has not seen; empty if that is nothing.
func (s *seat) told(t turn) string {
	was := s.now()
	switch {
	case t.Number == was.Number:
		return ""
	case t.taken() && was.Yours:
		return t.typist() + " has taken the keyboard over, and you look; Ctrl-T takes it back"
	case t.taken():
		return t.typist() + " types since " + t.Since.Local().Format(time.TimeOnly) + ", and you look; Ctrl-T takes the keyboard over"
	case t.Yours && was.taken():
		return "you type now"
	case was.taken():
		return was.typist() + " has left the keyboard: you may type"
	}
	return ""
}

// warning is what somebody is told whose keys do nothing, once each turn; empty if that is nothing.
func (s *seat) warning() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.warned == s.turn.Number {
		return ""
	}
	s.warned = s.turn.Number
	return s.turn.typist() + " types; Ctrl-T takes the keyboard over"
}

// sendKeys sends what is typed to an instance, until its person leaves. It tells of keys that nobody took, and goes on: the instance may be
// started yet.
func (s *seat) sendKeys(ctx context.Context, sh *shell.Shell, instance string, in io.Reader) error {
	client, err := sh.Another(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	for chunk := make([]byte, 1024); ; {
		n, err := in.Read(chunk)
		if err != nil {
			return err
		}
		keys, _, left := bytes.Cut(chunk[:n], []byte{leave})
		over := false
		if looks := s.now(); looks.taken() {
			if _, keys, over = bytes.Cut(keys, []byte{take}); !over && !left {
				if text := s.warning(); text != "" {
					sh.Rawf("\r\n[%s]\r\n", text)
				}
			}
		}
		if len(keys) > 0 || over {
			if err := client.Call(ctx, "TypeConsole", []any{instance, keys, s.id, over}, nil); err != nil {
				sh.Rawf("\r\n[%s]\r\n", err)
			}
		}
		if left {
			_ = client.Call(ctx, "LeaveConsole", []any{instance, s.id}, nil) // else it is found out in a minute
			return errLeft
		}
	}
}
