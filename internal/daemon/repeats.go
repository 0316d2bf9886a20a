package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// What repeats at WARN and ERROR is told once and counted from then on: the count is told after the first of these times, then after the next, and
// after each of the last one for as long as it goes on. A line is the same if its message and all its values but times are: nobody is away for an
// hour in three thousand lines, and nothing is left out.
var repeatTimes = []time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute}

// forgetAfter is for how long a line has to stay away to be new again: the first of the times that is as long.
const forgetAfter = time.Minute

// maxRepeats bounds how many different lines are remembered; what is said beyond them is told as it comes.
const maxRepeats = 1000

// repeats is a handler that counts what repeats.
type repeats struct {
	slog.Handler

	with  string // what the handlers derived from one another have in all their lines
	lines *repeated
}

// repeated are the lines that were told lately.
type repeated struct {
	mu    sync.Mutex
	lines map[string]*repeatedLine
}

type repeatedLine struct {
	to    slog.Handler
	last  slog.Record
	count int // how often since it was told
	step  int // which of the times runs
	timer *time.Timer
}

func countRepeats(to slog.Handler) *repeats {
	return &repeats{Handler: to, lines: &repeated{lines: map[string]*repeatedLine{}}}
}

// Handle implements slog.Handler.
func (h *repeats) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn || h.lines.counted(h, &r) {
		return h.pass(ctx, r)
	}
	return nil
}

func (h *repeats) pass(ctx context.Context, r slog.Record) error { return h.Handler.Handle(ctx, r) }

// WithAttrs implements slog.Handler.
func (h *repeats) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := &strings.Builder{}
	for _, a := range attrs {
		writeAttr(with, a)
	}
	return &repeats{Handler: h.Handler.WithAttrs(attrs), with: h.with + with.String(), lines: h.lines}
}

// WithGroup implements slog.Handler.
func (h *repeats) WithGroup(name string) slog.Handler {
	return &repeats{Handler: h.Handler.WithGroup(name), with: h.with + name + "{", lines: h.lines}
}

// counted counts a line; first tells whether it is to be told now.
func (s *repeated) counted(h *repeats, r *slog.Record) (first bool) {
	key := h.with + "\x00" + sameLine(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if line := s.lines[key]; line != nil {
		line.count++
		line.last = r.Clone()
		return false
	}
	if len(s.lines) < maxRepeats {
		line := &repeatedLine{to: h.Handler}
		line.timer = time.AfterFunc(repeatTimes[0], func() { s.due(key, line) })
		s.lines[key] = line
	}
	return true
}

// due tells how often a line came since it was told, or forgets it.
func (s *repeated) due(key string, line *repeatedLine) {
	s.mu.Lock()
	if s.lines[key] != line { // it was told when the process ended
		s.mu.Unlock()
		return
	}
	count, last := line.count, line.last
	if count == 0 && repeatTimes[line.step] >= forgetAfter {
		delete(s.lines, key)
	} else {
		line.step = min(line.step+1, len(repeatTimes)-1)
		line.count = 0
		line.timer.Reset(repeatTimes[line.step])
	}
	s.mu.Unlock()
	_ = tellCount(line.to, last, count) // as of any line, nobody is there to hear of it
}

// flush tells of all that was counted and not told.
func (s *repeated) flush() error {
	s.mu.Lock()
	lines := s.lines
	s.lines = map[string]*repeatedLine{}
	s.mu.Unlock()
	var err error
	for _, line := range lines {
		line.timer.Stop()
		err = errors.Join(err, tellCount(line.to, line.last, line.count))
	}
	return err
}

func tellCount(to slog.Handler, last slog.Record, count int) error {
	if count == 0 {
		return nil
	}
	last.AddAttrs(slog.Int("repeated", count))
	return to.Handle(context.Background(), last)
}

// sameLine is what two lines have in common that are the same.
func sameLine(r *slog.Record) string {
	b := &strings.Builder{}
	b.WriteString(r.Level.String() + r.Message)
	r.Attrs(func(a slog.Attr) bool {
		writeAttr(b, a)
		return true
	})
	return b.String()
}

func writeAttr(b *strings.Builder, a slog.Attr) {
	if v := a.Value.Resolve(); v.Kind() != slog.KindDuration && v.Kind() != slog.KindTime {
		fmt.Fprintf(b, "\x00%s=%v", a.Key, v.Any())
	}
}
