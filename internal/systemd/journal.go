package systemd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
)

// OnJournal tells whether a file is a stream of the journal, as the variable
// JOURNAL_STREAM says (systemd.exec(5)).
func OnJournal(file *os.File, getenv func(string) string) bool {
	var device, inode uint64
	if _, err := fmt.Sscanf(getenv("JOURNAL_STREAM"), "%d:%d", &device, &inode); err != nil {
		return false
	}
	info, err := file.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Dev == device && stat.Ino == inode
}

// journal is a handler whose lines begin with the priority as the journal reads
// it. The journal has the time.
type journal struct {
	inner slog.Handler
	line  *journalLine
}

// journalLine is the line being written; handlers derived from one another share it.
type journalLine struct {
	mu  sync.Mutex
	buf bytes.Buffer
	out io.Writer
}

// NewJournalHandler returns a handler that writes lines for the journal; inner
// makes the handler that writes their text, without time and level, and with its values as replace has them.
func NewJournalHandler(out io.Writer, level slog.Leveler, replace func([]string, slog.Attr) slog.Attr, inner func(io.Writer, *slog.HandlerOptions) slog.Handler) slog.Handler {
	line := &journalLine{out: out}
	return &journal{line: line, inner: inner(&line.buf, &slog.HandlerOptions{Level: level, ReplaceAttr: withoutTimeAndLevel(replace)})}
}

func withoutTimeAndLevel(replace func([]string, slog.Attr) slog.Attr) func([]string, slog.Attr) slog.Attr {
	return func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
			return slog.Attr{}
		}
		return replace(groups, a)
	}
}

// Enabled implements slog.Handler.
func (j *journal) Enabled(ctx context.Context, level slog.Level) bool {
	return j.inner.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (j *journal) Handle(ctx context.Context, r slog.Record) error {
	j.line.mu.Lock()
	defer j.line.mu.Unlock()
	j.line.buf.Reset()
	fmt.Fprintf(&j.line.buf, "<%d>", priority(r.Level))
	if err := j.inner.Handle(ctx, r); err != nil {
		return err
	}
	_, err := j.line.out.Write(j.line.buf.Bytes())
	return err
}

// WithAttrs implements slog.Handler.
func (j *journal) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &journal{inner: j.inner.WithAttrs(attrs), line: j.line}
}

// WithGroup implements slog.Handler.
func (j *journal) WithGroup(name string) slog.Handler {
	return &journal{inner: j.inner.WithGroup(name), line: j.line}
}

// priority is the level as syslog(3) numbers it.
func priority(level slog.Level) int {
	switch {
	case level >= slog.LevelError:
		return 3
	case level >= slog.LevelWarn:
		return 4
	case level >= slog.LevelInfo:
		return 6
	}
	return 7
}
