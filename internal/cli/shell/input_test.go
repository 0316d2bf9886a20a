package shell

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
)

var errStop = errors.New("stop")

// TestQuestionsCanBeInterrupted asks a person who never answers.
func TestQuestionsCanBeInterrupted(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	keyboard, _ := io.Pipe() // nobody types
	var shown strings.Builder
	sh := &Shell{In: &Input{Ctx: ctx, Beneath: keyboard}, Err: &shown, Person: true}
	answer := make(chan error, 1)
	go func() { answer <- sh.Confirm("Remove everything?") }()
	stop(errStop)
	select {
	case err := <-answer:
		if !errors.Is(err, errStop) {
			t.Errorf("an interrupted question ends with %v", err)
		}
	case <-time.After(testkit.Patience()):
		t.Fatal("an interrupted question waits on")
	}
}

func TestInputPassesOnWhatItReads(t *testing.T) {
	in := &Input{Ctx: t.Context(), Beneath: io.MultiReader(strings.NewReader("one "), strings.NewReader("two"))}
	got, err := io.ReadAll(in)
	if string(got) != "one two" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
