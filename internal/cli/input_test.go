package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

var errStop = errors.New("stop")

// TestQuestionsCanBeInterrupted asks a person who never answers.
func TestQuestionsCanBeInterrupted(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	keyboard, _ := io.Pipe() // nobody types
	var shown strings.Builder
	sh := &shell{in: &input{ctx: ctx, beneath: keyboard}, err: &shown, person: true}
	answer := make(chan error, 1)
	go func() { answer <- sh.confirm("Remove everything?") }()
	stop(errStop)
	select {
	case err := <-answer:
		if !errors.Is(err, errStop) {
			t.Errorf("an interrupted question ends with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("an interrupted question waits on")
	}
}

func TestInputPassesOnWhatItReads(t *testing.T) {
	in := &input{ctx: t.Context(), beneath: io.MultiReader(strings.NewReader("one "), strings.NewReader("two"))}
	got, err := io.ReadAll(in)
	if string(got) != "one two" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
