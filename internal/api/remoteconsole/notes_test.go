package remoteconsole

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit"
)

// page is a client that is told in notes what its person is to know.
type page struct {
	*client
	bytes int // of the console, that it was sent
}

func (r *rig) openPage() *page {
	r.Helper()
	c, _, err := r.dialAs(r.issue(console.Serial), "drover-console")
	if err != nil {
		r.Fatal(err)
	}
	c.SetReadLimit(-1)
	return &page{client: c}
}

func (p *page) says(text string) {
	p.Helper()
	if err := p.Write(p.Context(), websocket.MessageText, []byte(text)); err != nil {
		p.Fatal(err)
	}
}

// next is the next message: a note, or bytes of the console.
func (p *page) next() (n note, text string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), testkit.Patience())
	defer cancel()
	kind, message, err := p.Read(ctx)
	if err == nil && kind == websocket.MessageText {
		err = json.Unmarshal(message, &n)
		message = nil
	}
	if err != nil {
		p.Fatal(err)
	}
	p.bytes += len(message)
	return n, string(message)
}

// turn waits until another turn is told of.
func (p *page) turn() console.Turn {
	p.Helper()
	for {
		if n, _ := p.next(); n.Turn != nil {
			return *n.Turn
		}
	}
}

// TestAPageIsToldInNotes: who types, that somebody has taken over, what was not typed, and never between the bytes of the console; it takes over without opening it anew.
func TestAPageIsToldInNotes(t *testing.T) {
	r := newRig(t, nil)
	first, second := r.openPage(), r.openPage()
	if turn := first.turn(); turn.Who != "" {
		t.Errorf("at first %+v", turn)
	}
	second.turn()
	first.key("a")
	if turn := first.turn(); !turn.Yours {
		t.Errorf("who types is told of %+v", turn)
	}
	if turn := second.turn(); turn.Yours || turn.Who != "alice" {
		t.Errorf("who looks is told of %+v", turn)
	}
	second.key("b")
	for n := (note{}); n.Refused == ""; n, _ = second.next() {
		if n.Refused != "" && !strings.Contains(n.Refused, "one does at a time") {
			t.Errorf("keys that nobody took: %q", n.Refused)
		}
	}
	second.says(`{"take":true}`)
	if turn := second.turn(); !turn.Yours {
		t.Errorf("who takes over is told of %+v", turn)
	}
	if turn := first.turn(); turn.Yours || turn.Who != "alice" {
		t.Errorf("whose keyboard is taken over is told of %+v", turn)
	}
	second.key("c")
	for text := ""; !strings.HasSuffix(text, "c"); {
		var n note
		n, more := second.next()
		if text += more; n.Refused != "" || strings.Contains(text, "[") {
			t.Fatalf("it is told %+v, %q", n, text)
		}
	}
	second.says(`{"take":1}`)
	if status, why := second.ends(); status != websocket.StatusPolicyViolation || !strings.Contains(why, "cannot be read") {
		t.Errorf("what a page should not say: %v %q", status, why)
	}
}

// TestAPageThatIsSlow is sent no more than it has shown and some, and told how much was left out meanwhile; one that says that it has shown more than it was sent is put out.
func TestAPageThatIsSlow(t *testing.T) {
	r := newRig(t, nil)
	p := r.openPage()
	p.turn()
	prints := func(n int) { _, _ = r.line.Write(bytes.Repeat([]byte("x"), n)) }
	for p.bytes <= aheadOfPage {
		prints(console.Kept)
		for was := p.bytes; p.bytes == was; {
			p.next()
		}
	}
	for range 3 {
		prints(console.Kept)
	}
	p.says(fmt.Sprintf(`{"shown":%d}`, p.bytes))
	n, _ := p.next()
	if n.LeftOut != 2*console.Kept {
		t.Errorf("it is told %+v", n)
	}
	for ahead := p.bytes; p.bytes == ahead; {
		p.next()
	}
	p.says(`{"shown":99999999}`)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience())
	defer cancel()
	var err error
	for range 3 * aheadOfPage / console.Kept { // until the controller asks how far it is
		prints(console.Kept)
		if _, _, err = p.Read(ctx); err != nil {
			break
		}
	}
	if websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("what it cannot have shown: %v", err)
	}
}

// TestWhatATerminalIsTold: the same in words.
func TestWhatATerminalIsTold(t *testing.T) {
	since := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		note note
		want string
	}{
		{note{Refused: "the machine does not run"}, "the machine does not run"},
		{note{LeftOut: 7}, "7 bytes came too fast, and are not shown"},
		{note{Turn: &console.Turn{Number: 2, Who: "bob", Since: since}}, "bob types since 03:04:05 UTC, and you look; a new address with &take-over=true takes the keyboard over"},
		{note{Turn: &console.Turn{Number: 2, Who: "bob"}, was: console.Turn{Number: 1, Yours: true, Who: "alice"}}, "bob has taken the keyboard over, and you look"},
		{note{Turn: &console.Turn{Number: 2}, was: console.Turn{Number: 1, Who: "bob"}}, "bob has left the keyboard: you may type"},
		{note{Turn: &console.Turn{Number: 2}}, ""},
	} {
		if got := c.note.text(); got != c.want {
			t.Errorf("%+v: %q, not %q", c.note, got, c.want)
		}
	}
}

// TestOfInstances: what is found is the instance, by its UUID, as the inventory is by then.
func TestOfInstances(t *testing.T) {
	now := cluster.Empty()
	find := OfInstances(func() *cluster.Snapshot { return now })
	if _, err := find("u1"); !fault.Is(err, fault.NotFound) {
		t.Errorf("of none: %v", err)
	}
	now = now.With(cluster.Put(&cluster.Instance{Meta: cluster.NewMeta("u1", 1), Name: "web1"}))
	for _, id := range []string{"u1", "web1"} {
		if m, err := find(id); err != nil || m != (Machine{UUID: "u1", Name: "web1"}) {
			t.Errorf("of %s: %+v, %v", id, m, err)
		}
	}
}
