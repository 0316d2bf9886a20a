package daemon

import (
	"errors"
	"log/slog"

	"github.com/drover-project/drover/internal/fault"
)

// Flush tells what a log of NewLog has counted and not told.
func Flush(log *slog.Logger) error {
	if h, ok := log.Handler().(*repeats); ok {
		return h.lines.flush()
	}
	return nil
}

// Last has a log end: what was counted is told. Where programs read the log, it tells why the daemon ends if nobody asked it to, too, and the error
// that comes back has no text: all is JSON to the last line.
func Last(log *slog.Logger, form LogFormat, err error) error {
	if flushed := Flush(log); err == nil || form != "json" {
		return errors.Join(err, flushed)
	}
	told := []any{"error", err}
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Field != "" {
		told = append(told, "setting", f.Field)
	}
	log.Error("it cannot go on, and ends", told...)
	return &saidError{err}
}

// saidError is one that was told already.
type saidError struct{ error }

// Error has nothing more to say.
func (*saidError) Error() string { return "" }

// Unwrap returns what was told: the exit status goes by it.
func (e *saidError) Unwrap() error { return e.error }
