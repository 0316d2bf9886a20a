package console

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/reason"
)

// Sitting is somebody who sits before the serial line of an instance. Two of one account are two.
type Sitting struct {
	// ID is known to who sits alone. Who has none only passes by: he types where nobody does, and takes no turn.
	ID string
	By audit.By
}

// passes tells whether somebody does not sit down.
func (s *Sitting) passes() bool { return s.ID == "" }

// is tells whether two are the same.
func (s *Sitting) is(other *Sitting) bool {
	return s.ID == other.ID && s.By.Account.Name == other.By.Account.Name && s.By.Account.Surface == other.By.Account.Surface
}

// Turn says whose turn it is to type on a serial line, as one of those who sit before it sees it.
type Turn struct {
	// Number changes whenever another one types, or nobody any more.
	Number uint64 `json:"number"`
	// Who types, from where, and since when; empty when nobody does.
	Who   string    `json:"who,omitempty"`
	From  string    `json:"from,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Yours says that it is the one who asks.
	Yours bool `json:"yours,omitempty"`
}

// Times of those who type.
const (
	// goneAfter is how long who types may be silent, not even asking what was printed, before another one may begin.
	goneAfter = time.Minute
	// leftAfter is how long somebody may type nothing before it is told of anew that he does.
	leftAfter = 10 * time.Minute
)

// Keyboards are those of all serial lines: one types on each, and the others look. They are safe for concurrent use.
type Keyboards struct {
	now  func() time.Time
	tell func(context.Context, audit.Event) error

	mu     sync.Mutex
	boards map[string]*keyboard // by the instance's UUID
	last   uint64               // the last number that was given
}

// keyboard is that of one serial line.
type keyboard struct {
	number  uint64
	typist  *typist                      // nil when nobody types
	told    map[reason.Account]time.Time // of whom it was told that they type, and when they did last
	changed chan struct{}                // closed with the next change of the number
}

type typist struct {
	Sitting
	since, heard time.Time
}

// NewKeyboards returns keyboards on which nobody types. What becomes of them is told, durably, before it is so.
func NewKeyboards(now func() time.Time, tell func(context.Context, audit.Event) error) *Keyboards {
	return &Keyboards{now: now, tell: tell, boards: map[string]*keyboard{}}
}

// board is the keyboard of an instance, as it is now. The caller holds mu.
func (k *Keyboards) board(uuid string, now time.Time) *keyboard {
	b := k.boards[uuid]
	if b == nil {
		b = &keyboard{told: map[reason.Account]time.Time{}, changed: make(chan struct{})}
		k.boards[uuid] = b
		k.pass(b, nil)
	}
	if b.typist != nil && now.Sub(b.typist.heard) > goneAfter {
		k.pass(b, nil)
	}
	return b
}

// pass has another one type, or nobody. The caller holds mu.
func (k *Keyboards) pass(b *keyboard, to *typist) {
	k.last++
	b.typist, b.number = to, k.last
	close(b.changed)
	b.changed = make(chan struct{})
}

// fate is what becomes of somebody who wants to type.
type fate uint8

const (
	goesOn fate = iota
	begins
	takesOver
	looks
)

// fateOf decides what becomes of somebody who wants to type, or to take over from whoever does.
func fateOf(types *typist, who *Sitting, over bool) fate {
	switch {
	case types == nil:
		return begins
	case types.is(who):
		return goesOn
	case over && !who.passes():
		return takesOver
	}
	return looks
}

// Type has somebody type on the serial line of an instance from now on, or go on. Conflict while another one types, unless the keyboard is to be taken
// over.
func (k *Keyboards) Type(ctx context.Context, uuid, name string, who Sitting, over bool) error {
	for {
		number, events, err := k.wants(uuid, name, &who, over)
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := k.tell(ctx, e); err != nil {
				return err
			}
		}
		if k.typesNow(uuid, who, number) {
			return nil
		}
	}
}

// wants decides what becomes of somebody, and what is to be told of it. Nothing is changed yet.
func (k *Keyboards) wants(uuid, name string, who *Sitting, over bool) (number uint64, events []audit.Event, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	b := k.board(uuid, now)
	event := func(what audit.Verb) audit.Event {
		e := audit.New(what, uuid, who.By)
		e.Name = name
		return e
	}
	switch fateOf(b.typist, who, over) {
	case looks:
		return 0, nil, fault.New(fault.Conflict, "%s has typed on the serial line of %s since %s, and one does at a time", b.typist.By.Account, name, b.typist.since.Format(time.TimeOnly)).
			WithHint("who types can be asked to leave, or the keyboard be taken over")
	case takesOver:
		e := event(audit.ConsoleTake)
		e.Before, e.After = accountText(b.typist.By.Account), accountText(who.By.Account)
		events = append(events, e)
	case begins, goesOn:
		if last, told := b.told[who.By.Account]; !told || now.Sub(last) > leftAfter {
			events = append(events, event(audit.ConsoleType))
		}
	}
	return b.number, events, nil
}

// accountText is an account as JSON.
func accountText(a reason.Account) json.RawMessage {
	text, err := json.Marshal(a)
	if err != nil { // texts only
		panic(err)
	}
	return text
}

// typesNow gives somebody the keyboard, unless it changed hands since it was decided.
func (k *Keyboards) typesNow(uuid string, who Sitting, number uint64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	b := k.board(uuid, now)
	if b.number != number {
		return false
	}
	if !who.passes() {
		if b.typist == nil || !b.typist.is(&who) {
			k.pass(b, &typist{Sitting: who, since: now})
		}
		b.typist.heard = now
	}
	b.told[who.By.Account] = now
	k.forget(now)
	return true
}

// forget drops what nobody needs any more. The caller holds mu.
func (k *Keyboards) forget(now time.Time) {
	for uuid, b := range k.boards {
		maps.DeleteFunc(b.told, func(_ reason.Account, last time.Time) bool { return now.Sub(last) > leftAfter })
		if len(b.told) == 0 && b.typist == nil {
			close(b.changed) // whoever waits looks again
			delete(k.boards, uuid)
		}
	}
}

// Turn tells whose turn it is, to somebody who is thereby heard, and is closed when that changes.
func (k *Keyboards) Turn(uuid string, who Sitting) (Turn, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	b := k.board(uuid, now)
	if b.typist == nil {
		return Turn{Number: b.number}, b.changed
	}
	t := Turn{Number: b.number, Who: b.typist.By.Account.Name, From: b.typist.By.Account.From, Since: b.typist.since, Yours: b.typist.is(&who)}
	if t.Yours {
		b.typist.heard = now
	}
	return t, b.changed
}

// Leave has somebody type no more.
func (k *Keyboards) Leave(uuid string, who Sitting) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if b := k.board(uuid, k.now()); b.typist != nil && b.typist.is(&who) {
		k.pass(b, nil)
	}
}

// Look reads what was printed, for somebody who sits before the line of an instance and has seen a turn. It does not wait for more where another turn is
// to be told, or as soon as one is.
func (k *Keyboards) Look(ctx context.Context, uuid string, who Sitting, seen, at uint64, read func(ctx context.Context, wait bool) (Piece, error)) (Piece, Turn, error) {
	turn, changed := k.Turn(uuid, who)
	waits, end := context.WithCancel(ctx)
	defer end()
	go func() {
		select {
		case <-changed:
			end()
		case <-waits.Done():
		}
	}()
	p, err := read(waits, turn.Number == seen)
	if err != nil && waits.Err() != nil && ctx.Err() == nil { // it is another one's turn
		p, err = Piece{From: at, Next: at}, nil
	}
	turn, _ = k.Turn(uuid, who)
	return p, turn, err
}
