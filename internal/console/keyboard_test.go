package console

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/reason"
)

// desk is a keyboard with a clock and what was told of it.
type desk struct {
	*testing.T
	*Keyboards
	at   time.Time
	told []string
	lost error
}

func newDesk(t *testing.T) *desk {
	d := &desk{T: t, at: time.Unix(0, 0)}
	d.Keyboards = NewKeyboards(func() time.Time { return d.at }, func(_ context.Context, e audit.Event) error {
		if d.lost == nil {
			d.told = append(d.told, string(e.What)+" "+e.Name+" "+e.Who)
		}
		return d.lost
	})
	return d
}

func sitting(id, name string) Sitting {
	return Sitting{ID: id, By: audit.By{Account: reason.Account{Surface: "luxi", Name: name}}}
}

func (d *desk) types(who Sitting, over bool) error {
	return d.Type(d.Context(), "u", "web1", who, over)
}

func (d *desk) has(who Sitting, told ...string) {
	d.Helper()
	if turn, _ := d.Turn("u", who); !turn.Yours || turn.Who != who.By.Account.Name {
		d.Errorf("it is not the turn of %s: %+v", who.By.Account.Name, turn)
	}
	if strings.Join(d.told, ", ") != strings.Join(told, ", ") {
		d.Errorf("told is %q, want %q", d.told, told)
	}
}

// TestOneTypes has two sit before one line: one types, the other looks, takes over, and the first is told.
func TestOneTypes(t *testing.T) {
	d := newDesk(t)
	alice, bob := sitting("a", "alice"), sitting("b", "bob")
	free, changed := d.Turn("u", bob)
	if free.Who != "" || free.Yours {
		t.Errorf("nobody types: %+v", free)
	}
	if err := d.types(alice, false); err != nil {
		t.Fatal(err)
	}
	<-changed
	d.has(alice, "console.type web1 alice")
	seen, changed := d.Turn("u", bob)
	if seen.Yours || seen.Who != "alice" || seen.Number == free.Number {
		t.Errorf("bob sees %+v", seen)
	}
	if err := d.types(bob, false); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "alice") {
		t.Errorf("two type: %v", err)
	}
	again := sitting("a2", "alice")
	if err := d.types(again, false); !fault.Is(err, fault.Conflict) {
		t.Errorf("two of one account type: %v", err)
	}
	if err := d.types(alice, false); err != nil {
		t.Errorf("who types goes on: %v", err)
	}
	if err := d.types(sitting("a", "mallory"), false); !fault.Is(err, fault.Conflict) {
		t.Errorf("another account of the same name of a sitting: %v", err)
	}
	select {
	case <-changed:
		t.Error("a change is told of that is none")
	default:
	}
	if err := d.types(bob, true); err != nil {
		t.Fatal(err)
	}
	<-changed
	d.has(bob, "console.type web1 alice", "console.take web1 bob")
	d.Leave("u", alice) // who has not the keyboard gives nothing back
	if err := d.types(alice, false); !fault.Is(err, fault.Conflict) {
		t.Errorf("who lost it types on: %v", err)
	}
	d.Leave("u", bob)
	if err := d.types(alice, false); err != nil {
		t.Errorf("who is alone looks: %v", err)
	}
	if err := d.Type(t.Context(), "other", "web2", bob, false); err != nil {
		t.Errorf("on another line: %v", err)
	}
	passer := sitting("", "carol")
	for _, over := range []bool{false, true} {
		if err := d.types(passer, over); !fault.Is(err, fault.Conflict) {
			t.Errorf("who passes by types in between: %v", err)
		}
	}
	d.Leave("u", alice)
	if err := d.types(passer, false); err != nil {
		t.Errorf("who passes by where nobody types: %v", err)
	}
	if turn, _ := d.Turn("u", bob); turn.Who != "" {
		t.Errorf("who passes by has sat down: %+v", turn)
	}
}

// TestWhoTypesIsTold: nothing is typed, and nothing taken over, of which it could not be made durable; who comes back after a time is told of anew.
func TestWhoTypesIsTold(t *testing.T) {
	d := newDesk(t)
	alice, bob := sitting("a", "alice"), sitting("b", "bob")
	d.lost = errors.New("the store is away")
	if err := d.types(alice, false); !errors.Is(err, d.lost) {
		t.Errorf("what could not be told: %v", err)
	}
	d.lost = nil
	if turn, _ := d.Turn("u", alice); turn.Who != "" {
		t.Errorf("somebody types untold: %+v", turn)
	}
	for i, step := range []struct {
		who   Sitting
		after time.Duration
		want  int
	}{{alice, 0, 1}, {bob, goneAfter + 1, 2}, {alice, goneAfter + 1, 2}, {alice, leftAfter, 2}, {bob, goneAfter + 1, 3}, {alice, leftAfter + 1, 4}} {
		d.at = d.at.Add(step.after)
		if err := d.types(step.who, false); err != nil || len(d.told) != step.want {
			t.Errorf("step %d: told is %q, want %d; %v", i, d.told, step.want, err)
		}
	}
	d.lost = errors.New("the store is away")
	if err := d.types(bob, true); !errors.Is(err, d.lost) {
		t.Errorf("what could not be told: %v", err)
	}
	d.lost = nil
	d.has(alice, d.told...)
}

// TestWhoIsSilentHasGone: who types and is not heard of for a time has gone; one who asks what was printed has not.
func TestWhoIsSilentHasGone(t *testing.T) {
	d := newDesk(t)
	alice, bob := sitting("a", "alice"), sitting("b", "bob")
	if err := d.types(alice, false); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		d.at = d.at.Add(goneAfter)
		d.Turn("u", alice)
	}
	if err := d.types(bob, false); !fault.Is(err, fault.Conflict) {
		t.Errorf("who looks on has gone: %v", err)
	}
	d.at = d.at.Add(goneAfter + 1)
	if turn, _ := d.Turn("u", bob); turn.Who != "" {
		t.Errorf("who is silent still types: %+v", turn)
	}
	d.at = d.at.Add(leftAfter + 1)
	if err := d.Type(t.Context(), "other", "web2", bob, false); err != nil || len(d.boards) != 1 {
		t.Errorf("what nobody needs is kept: %d, %v", len(d.boards), err)
	}
}
