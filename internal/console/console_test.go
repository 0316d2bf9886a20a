package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func next(t *testing.T, v *View) (string, uint64) {
	t.Helper()
	text, missed, err := v.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(text), missed
}

func TestWhoLooksSeesWhatWasBefore(t *testing.T) {
	var l Line
	_, _ = l.Write([]byte("GUEST-"))
	first := l.Look()
	_, _ = l.Write([]byte("UP\n"))
	second := l.Look()
	for _, v := range []*View{first, second} {
		if text, missed := next(t, v); text != "GUEST-UP\n" || missed != 0 {
			t.Errorf("%q, %d", text, missed)
		}
	}
	seen := make(chan string)
	go func() {
		text, _, _ := first.Next(t.Context())
		seen <- string(text)
	}()
	_, _ = l.Write([]byte("login: "))
	if text := <-seen; text != "login: " {
		t.Errorf("%q", text)
	}
}

func TestAFlood(t *testing.T) {
	var l Line
	want := ""
	for i := range 20_000 {
		line := fmt.Sprintf("line %d\n", i)
		want += line
		_, _ = l.Write([]byte(line))
	}
	_, _ = l.Write([]byte(strings.Repeat("x", 3*Kept)))
	if cap(l.ring) > 4*Kept || len(l.Text()) != Kept {
		t.Errorf("%d of %d", len(l.Text()), cap(l.ring))
	}
	l = Line{}
	_, _ = l.Write([]byte(want))
	if got := string(l.Text()); got != want[len(want)-Kept:] {
		t.Error("what is kept is not what came last")
	}
}

func TestWhoIsTooSlow(t *testing.T) {
	var l Line
	_, _ = l.Write([]byte("begin"))
	v := l.Look()
	_, _ = l.Write(bytes.Repeat([]byte("x"), Kept))
	text, missed := next(t, v)
	if missed != 5 || text != strings.Repeat("x", Kept) {
		t.Errorf("%d are told missing of 5, %d bytes", missed, len(text))
	}
	_, _ = l.Write([]byte("end"))
	if text, missed := next(t, v); text != "end" || missed != 0 {
		t.Errorf("%q, %d", text, missed)
	}
}

func TestNobodyLooksForEver(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, _, err := new(Line).Look().Next(ctx); !errors.Is(err, gone) {
		t.Error(err)
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
	l.Attach(nil)
	if err := l.Type([]byte("x")); !errors.Is(err, ErrNobodyThere) {
		t.Error(err)
	}
}
