package app

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/store/image"
	"github.com/drover-project/drover/internal/store/life"
	"github.com/drover-project/drover/internal/systemd"
)

// ChangesEnd is how long a term that is given up waits for the answers of changes.
const ChangesEnd = changesEnd

// AsOfBefore copies a store to another place as a program leaves it that knows of no formats.
func AsOfBefore(t *testing.T, from, to string) {
	t.Helper()
	err := imageOf(t.Context(), from, func(img *image.Image) error {
		all := img.Objects
		img.Format, img.Objects = format.First, func(yield func(store.Object, error) bool) {
			for o, err := range all {
				if o.Key != store.FormatKey && !yield(o, err) {
					return
				}
			}
		}
		_, err := loadInto(t.Context(), to, img, func(use func(*image.Image) error) error { return use(img) })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// FormatAt is the format of the store at a place.
func FormatAt(ctx context.Context, place string) (n int, err error) {
	err = imageOf(ctx, place, func(img *image.Image) error {
		n, err = img.Format, img.Unfit
		return err
	})
	return n, err
}

// LifeAt is the life of the store at a place, as it is stored; empty for none.
func LifeAt(t *testing.T, place string) (text string) {
	t.Helper()
	err := imageOf(t.Context(), place, func(img *image.Image) error {
		for o, err := range img.Objects {
			if err != nil {
				return err
			}
			if o.Key == life.Key {
				text = string(o.Value)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// WithAgentPatience has work wait for nodes that are away for so long.
func (o Options) WithAgentPatience(d time.Duration) Options {
	o.agentPatience = d
	return o
}

// PeerRequests answers what controllers ask of each other, for one that does not lead.
func PeerRequests(ctx context.Context) http.Handler {
	return (&group{m: &member{}}).peerRequests(ctx)
}

// ReadPeerStatus reads how another controller says that it is.
func ReadPeerStatus(from io.Reader) error { return readPeer(from, maxPeerAnswer, &peerStatus{}) }

// WithFiles has the controller behave as one whose process may open so many files.
func (o Options) WithFiles(files int) Options {
	o.files = files
	return o
}

// WithWaitsEvery has the controller look so often what jobs wait for.
func (o Options) WithWaitsEvery(d time.Duration) Options {
	o.waitsEvery = d
	return o
}

// WithClock has the controller tell how old things are, and how far off clocks, by a clock.
func (o Options) WithClock(now func() time.Time) Options {
	o.clock = now
	return o
}

// Watchdog is a watchdog that a test tells what is done.
type Watchdog struct{ w *watchdog }

// NewWatchdog makes one.
func NewWatchdog(t *testing.T, manager systemd.Manager) Watchdog {
	return Watchdog{newWatchdog(Options{Manager: manager, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})}
}

// Keep tells the service manager until ctx ends.
func (w Watchdog) Keep(ctx context.Context) { w.w.keep(ctx) }

// Set has a stage begin.
func (w Watchdog) Set(moves func(context.Context), state string, until time.Time) {
	w.w.set(&stage{moves: moves, states: func() []string { return []string{state} }, until: until})
}
