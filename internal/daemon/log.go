package daemon

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/drover-project/drover/internal/requestid"
	"github.com/drover-project/drover/internal/systemd"
)

// NewLog returns the log of a daemon; its level can be changed while it
// runs. What is written on behalf of a request names it, times are seconds and say so, and what repeats at WARN and ERROR is counted (Flush tells what
// was not told yet). The newest of it is kept, too, as text; nil for nowhere.
func NewLog(w io.Writer, f LogFormat, at slog.Leveler, kept *Recent) *slog.Logger {
	out := written(w, f, at)
	if kept != nil {
		out = slog.NewMultiHandler(out, slog.NewTextHandler(kept, &slog.HandlerOptions{Level: at, ReplaceAttr: inSeconds}))
	}
	return slog.New(countRepeats(ofRequests{out}))
}

// written is the handler that writes a log where it is read.
func written(w io.Writer, f LogFormat, at slog.Leveler) slog.Handler {
	kind := func(w io.Writer, o *slog.HandlerOptions) slog.Handler { return slog.NewTextHandler(w, o) }
	if f == "json" {
		kind = func(w io.Writer, o *slog.HandlerOptions) slog.Handler { return slog.NewJSONHandler(w, o) }
	}
	if file, ok := w.(*os.File); ok && f == "text" && systemd.OnJournal(file, os.Getenv) {
		return systemd.NewJournalHandler(w, at, inSeconds, kind)
	}
	return kind(w, &slog.HandlerOptions{Level: at, ReplaceAttr: inSeconds})
}

// inSeconds has a time be a number of seconds, under a name that says so.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	return slog.Float64(a.Key+"_seconds", a.Value.Duration().Seconds())
}

// ofRequests is a handler that adds the id of the request to what is logged on
// its behalf.
type ofRequests struct{ slog.Handler }

// Handle implements slog.Handler.
func (h ofRequests) Handle(ctx context.Context, r slog.Record) error {
	if id := requestid.From(ctx); id != "" {
		r.AddAttrs(slog.String("request", id))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h ofRequests) WithAttrs(attrs []slog.Attr) slog.Handler {
	return ofRequests{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h ofRequests) WithGroup(name string) slog.Handler { return ofRequests{h.Handler.WithGroup(name)} }
