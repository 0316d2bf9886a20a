package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func put(l *Line, text string) { _, _ = l.Write([]byte(text)) }

// reads checks what comes behind a position, and returns where to go on.
func reads(t *testing.T, l *Line, at uint64, want string, from uint64) uint64 {
	t.Helper()
	p := l.Read(t.Context(), at)
	if string(p.Text) != want || p.From != from || p.Next != from+uint64(len(want)) {
		t.Errorf("behind %d comes %.40q from %d to %d, want %.40q from %d", at, p.Text, p.From, p.Next, want, from)
	}
	return p.Next
}

func TestWhoLooksSeesWhatWasBefore(t *testing.T) {
	var l Line
	put(&l, "GUEST-")
	at := reads(t, &l, 0, "GUEST-", 0)
	put(&l, "UP\n")
	reads(t, &l, 0, "GUEST-UP\n", 0)
	at = reads(t, &l, at, "UP\n", 6)
	seen := make(chan Piece)
	go func() { seen <- l.Read(t.Context(), at) }()
	put(&l, "login: ")
	if p := <-seen; string(p.Text) != "login: " || p.From != at {
		t.Errorf("%+v", p)
	}
}

func TestAFlood(t *testing.T) {
	var l Line
	var all strings.Builder
	for i := range 20_000 {
		line := fmt.Sprintf("line %d\n", i)
		all.WriteString(line)
		put(&l, line)
	}
	want := all.String()
	reads(t, &l, 0, want[len(want)-Kept:], uint64(len(want)-Kept))
	put(&l, strings.Repeat("x", 3*Kept))
	if cap(l.ring) > 4*Kept {
		t.Errorf("it takes %d bytes", cap(l.ring))
	}
	reads(t, &l, 0, strings.Repeat("x", Kept), uint64(len(want)+2*Kept))
	before := cap(l.ring)
	piece := bytes.Repeat([]byte("y"), 32<<10)
	for range 100 << 20 / len(piece) { // a guest that prints 100 MB
		_, _ = l.Write(piece)
	}
	if cap(l.ring) != before {
		t.Errorf("behind 100 MB it takes %d bytes, and took %d", cap(l.ring), before)
	}
	reads(t, &l, 0, strings.Repeat("y", Kept), uint64(len(want)+3*Kept+100<<20-Kept))
}

func TestWhoIsTooSlow(t *testing.T) {
	var l Line
	put(&l, "begin")
	put(&l, strings.Repeat("x", Kept))
	at := reads(t, &l, 0, strings.Repeat("x", Kept), 5)
	put(&l, "end")
	reads(t, &l, at, "end", at)
}

// TestWhoComesFromAnotherLife: who held the line before had more to tell.
func TestWhoComesFromAnotherLife(t *testing.T) {
	var l Line
	put(&l, "new")
	reads(t, &l, 1000, "new", 0)
}

func TestNobodyLooksForEver(t *testing.T) {
	var l Line
	put(&l, "text")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p := l.Read(ctx, 4); len(p.Text) != 0 || p.From != 4 || p.Next != 4 {
		t.Errorf("%+v", p)
	}
}

func TestKeys(t *testing.T) {
	var l Line
	if err := l.Type([]byte("x")); !errors.Is(err, ErrNobodyThere) {
		t.Error(err)
	}
	var keys bytes.Buffer
	l.Attach(&keys)
	if err := l.Type([]byte("root\n")); err != nil || keys.String() != "root\n" {
		t.Error(keys.String(), err)
	}
	var next bytes.Buffer
	l.Attach(&next)
	l.Detach(&keys) // who goes late takes nobody's place away
	if err := l.Type([]byte("x")); err != nil || next.String() != "x" {
		t.Error(next.String(), err)
	}
	l.Detach(&next)
	if err := l.Type([]byte("x")); !errors.Is(err, ErrNobodyThere) {
		t.Error(err)
	}
}
