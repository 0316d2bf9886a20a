package screen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
)

// page notes what happens to it. It asks once, and again when a is pressed.
type page struct {
	mu      sync.Mutex
	asked   int
	keys    chan string
	answers chan string
	seen    []string
	end     error
}

func (p *page) Next() (func(context.Context) (any, error), time.Duration) {
	return func(ctx context.Context) (any, error) {
		p.mu.Lock()
		p.asked++
		p.mu.Unlock()
		select {
		case answer := <-p.answers:
			return answer, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, time.Hour
}

func (p *page) Take(answer any, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if text, ok := answer.(string); ok {
		p.seen = append(p.seen, text)
	}
	return errors.Join(err, p.end)
}

func (p *page) Key(name string, _ Size) Action {
	p.keys <- name
	switch name {
	case "q":
		return Leave
	case "a":
		return Again
	}
	return Stay
}

func (p *page) Lines(size Size) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := append([]string{"rows"}, p.seen...)
	for len(lines) < size.Height {
		lines = append(lines, "")
	}
	return append(lines, "below the screen")
}

// watcher is an output that tells when a text was written to it.
type watcher struct {
	mu    sync.Mutex
	all   bytes.Buffer
	await map[string]chan struct{}
}

func (w *watcher) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.Write(data)
	for text, found := range w.await {
		if strings.Contains(w.all.String(), text) {
			close(found)
			delete(w.await, text)
		}
	}
	return len(data), nil
}

// until waits for a text.
func (w *watcher) until(t *testing.T, text string) {
	t.Helper()
	w.mu.Lock()
	found := make(chan struct{})
	if strings.Contains(w.all.String(), text) {
		close(found)
	} else {
		w.await[text] = found
	}
	w.mu.Unlock()
	select {
	case <-found:
	case <-time.After(testkit.Patience()):
		t.Fatalf("%q was not shown, but %q", text, w.all.String())
	}
}

func show(ctx context.Context, t *testing.T, p *page) (keys io.Writer, out *watcher, ended <-chan error) {
	t.Helper()
	in, keys := io.Pipe()
	out = &watcher{await: map[string]chan struct{}{}}
	end := make(chan error, 1)
	go func() {
		end <- Show(ctx, Terminal{In: in, Out: out, Environ: []string{"TERM=xterm"}, Size: Size{40, 5}}, p)
	}()
	return keys, out, end
}

func press(t *testing.T, to io.Writer, keys string) {
	t.Helper()
	if _, err := io.WriteString(to, keys); err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(testkit.Patience()):
		t.Fatal("the page does not end")
		return nil
	}
}

func TestAPageIsAskedAndLeft(t *testing.T) {
	p := &page{keys: make(chan string, 9), answers: make(chan string)}
	keys, out, ended := show(t.Context(), t, p)
	p.answers <- "first\x1b]0;title\x07"
	out.until(t, `first\x1b]0;title\x07`) // what an answer has in it is not obeyed
	press(t, keys, "a")                   // it rests for an hour unless it is asked to go on
	p.answers <- "second"
	out.until(t, "second")
	press(t, keys, "\x1b[Bq")
	if err := await(t, ended); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a", "down", "q"} {
		if got := <-p.keys; got != want {
			t.Errorf("key %s, want %s", got, want)
		}
	}
	const itsOwn, back = "\x1b[?1049h", "\x1b[?1049l" // the terminal's other screen
	shown := out.all.String()
	if strings.Contains(shown, "below the screen") || strings.Index(shown, itsOwn) > strings.Index(shown, "rows") || strings.Index(shown, back) < strings.Index(shown, "second") {
		t.Errorf("shown: %q", shown)
	}
}

func TestAKeyWhileAQuestionIsUnderWayAsksAfterIt(t *testing.T) {
	p := &page{keys: make(chan string, 9), answers: make(chan string)}
	keys, out, ended := show(t.Context(), t, p)
	press(t, keys, "aaa")
	for range "aaa" {
		<-p.keys
	}
	p.answers <- "first"
	p.answers <- "second" // one more question, however often it was asked for
	out.until(t, "second")
	press(t, keys, "q")
	if err := await(t, ended); err != nil {
		t.Fatal(err)
	}
	if p.asked != 2 {
		t.Errorf("asked %d times, want 2", p.asked)
	}
}

func TestWhatEndsAPage(t *testing.T) {
	broken := errors.New("broken")
	canceled, cancel := context.WithCancel(t.Context())
	for _, c := range []struct {
		name string
		ctx  context.Context
		end  error
		act  func(p *page, keys io.Writer)
		want error
	}{
		{"an error that the page returns", t.Context(), broken, func(p *page, _ io.Writer) { p.answers <- "x" }, broken},
		{"an interruption on the keyboard", t.Context(), nil, func(_ *page, keys io.Writer) { press(t, keys, "\x03") }, context.Canceled},
		{"the end of the command", canceled, nil, func(*page, io.Writer) { cancel() }, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &page{keys: make(chan string, 9), answers: make(chan string), end: c.end}
			keys, out, ended := show(c.ctx, t, p)
			out.until(t, "rows")
			c.act(p, keys)
			if err := await(t, ended); !errors.Is(err, c.want) {
				t.Errorf("ended with %v, want %v", err, c.want)
			}
		})
	}
	cancel()
}
