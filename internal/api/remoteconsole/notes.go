package remoteconsole

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coder/websocket"

	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
)

// withNotes is the subprotocol of our own page. As with the other one the bytes of a console are in binary messages; beside them are text messages, each an object
// of JSON: the page is told what its person is to know (note), and tells what it wants (wish). Terminals that know nothing of it read the same between the bytes of
// a serial line, in brackets.
const withNotes = "drover-console"

// note is what a person before a serial line is to know: one of these.
type note struct {
	// Turn says whose turn it is to type, now that this has changed.
	Turn *console.Turn `json:"turn,omitempty"`
	// Refused says why what was typed has not arrived.
	Refused string `json:"refused,omitempty"`
	// LeftOut is how many bytes are not shown: they came faster than they were taken.
	LeftOut uint64 `json:"left_out,omitempty"`

	// was is the turn before.
	was console.Turn
}

// text is the note in words; empty if there is nothing to say.
func (n *note) text() string {
	switch {
	case n.Turn != nil:
		return told(n.was, *n.Turn)
	case n.LeftOut > 0:
		return fmt.Sprintf("%d bytes came too fast, and are not shown", n.LeftOut)
	}
	return n.Refused
}

// note tells the person something.
func (s *session) note(n note) error {
	if s.notes {
		text, err := json.Marshal(n)
		if err != nil { // texts and numbers
			panic(err)
		}
		return s.write(websocket.MessageText, text)
	}
	if text := n.text(); text != "" {
		return s.send(fmt.Appendf(nil, "\r\n[%s]\r\n", text))
	}
	return nil
}

// told is what somebody is told who sees a turn behind another one; empty if that is nothing.
func told(was, is console.Turn) string {
	switch taken := is.Who != "" && !is.Yours; {
	case was.Number == is.Number:
		return ""
	case taken && was.Yours:
		return is.Who + " has taken the keyboard over, and you look"
	case taken:
		return is.Who + " types since " + is.Since.UTC().Format(time.TimeOnly) + " UTC, and you look; a new address with &take-over=true takes the keyboard over"
	case is.Who == "" && was.Who != "" && !was.Yours:
		return was.Who + " has left the keyboard: you may type"
	}
	return ""
}

// wish is what a page says beside what is typed.
type wish struct {
	// Take: the keyboard is to be taken over from whoever has it.
	Take bool `json:"take"`
	// Shown is how many bytes of the console the page has shown so far.
	Shown uint64 `json:"shown"`
}

// heard takes what a page says, and returns whether it takes the keyboard over.
func (s *session) heard(message []byte) (take bool, err error) {
	var w wish
	if err := intake.Read(message, &w); err != nil {
		return false, fault.New(fault.Invalid, "what the page says cannot be read: %w", err)
	}
	if w.Take {
		return true, nil
	}
	select {
	case <-s.shown: // an older number
	default:
	}
	s.shown <- w.Shown // there is room: nobody else fills it
	return false, nil
}

// aheadOfPage is how many bytes a page may have that it has not shown. What comes meanwhile waits where only the last of it is kept, rather than in a browser.
const aheadOfPage = 512 << 10

// catchUp waits until a page has shown enough of what it was sent.
func (s *session) catchUp(ctx context.Context, sent uint64) error {
	if !s.notes {
		return nil
	}
	for s.known+aheadOfPage < sent {
		select {
		case n := <-s.shown:
			if n > sent {
				return fault.New(fault.Invalid, "the page has shown %d bytes, and was sent %d", n, sent)
			}
			s.known = max(s.known, n)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
