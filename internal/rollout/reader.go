package rollout

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/library"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/store"
)

// ErrLed refuses what only the controller that leads can answer.
var ErrLed error = fault.New(fault.Unavailable, "only the controller that leads can tell this")

// ReaderConfig is what a reader needs. All fields but Functions and Leads are required.
type ReaderConfig struct {
	Store   store.Store
	Picture *picture.Picture
	Now     func() time.Time
	Log     *slog.Logger
	// Functions holds files of the operator's own functions; nil for none.
	Functions fs.FS
	// Leads tells which versions of the operator's own functions the controller has that leads, for a reader of one that stands by;
	// nil for that which leads itself.
	Leads func(ctx context.Context) (functions []string, err error)
}

// Reader answers what is asked about environments, task graphs and deployments, from a picture and the store beneath it. It changes nothing, so
// a controller that stands by has one, too. There it answers as the one that leads would, or with ErrLed: when the store cannot be read (the one
// that leads may be able to), when a job waits (for whom is no part of the picture), and when expressions are to be evaluated with other functions
// than that one has. It is safe for concurrent use.
type Reader struct {
	// Plans reads the plans of the reader's store; it is never changed.
	Plans *Plans

	cfg      ReaderConfig
	language *expression.Language
	// functions are the versions of the operator's own functions.
	functions []string

	planning turns // for plans that are computed, which hold nothing else
	trying   turns // for expressions that somebody tries
}

// NewReader returns the reader of a store. The error is about the operator's own functions.
func NewReader(cfg ReaderConfig) (*Reader, error) {
	own, language, err := languageOf(cfg.Functions)
	if err != nil {
		return nil, err
	}
	if cfg.Leads != nil {
		cfg.Store = besideStore{cfg.Store, cfg.Log}
	}
	return &Reader{Plans: NewPlans(cfg.Store), cfg: cfg, language: language, functions: own.Versions,
		planning: make(turns, mostComputing), trying: make(turns, mostComputing)}, nil
}

// CheckFunctions says what is wrong with the operator's own functions.
func CheckFunctions(dir fs.FS) error {
	_, _, err := languageOf(dir)
	return err
}

func languageOf(dir fs.FS) (*library.Library, *expression.Language, error) {
	own, err := library.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	language, err := expression.NewLanguage(own.Functions...)
	return own, language, err
}

// Functions are the versions of the operator's own functions.
func (e *Reader) Functions() []string { return e.functions }

func (e *Reader) inventory() *cluster.Snapshot { return e.cfg.Picture.Load().Inventory }

// asLeader returns ErrLed where expressions would be evaluated with other functions than those of the controller that leads.
func (e *Reader) asLeader(ctx context.Context) error {
	if e.cfg.Leads == nil {
		return nil
	}
	functions, err := e.cfg.Leads(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrLed, err)
	case !slices.Equal(functions, e.functions):
		return fmt.Errorf("%w: it has the functions %v, and this one %v", ErrLed, functions, e.functions)
	}
	return nil
}

// besideStore is the store of a controller that stands by. What it cannot read, the one that leads may: it lacks a key, perhaps.
type besideStore struct {
	store.Store
	log *slog.Logger
}

func (s besideStore) led(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		s.log.Warn("what is deployed cannot be read here; the leader is asked", "error", err)
	}
	return fmt.Errorf("%w: %w", ErrLed, err)
}

// Get returns an object. What fails, but that there is none, is ErrLed.
func (s besideStore) Get(ctx context.Context, key store.Key) (store.Object, error) {
	o, err := s.Store.Get(ctx, key)
	if err != nil && !fault.Is(err, fault.NotFound) {
		err = s.led(ctx, err)
	}
	return o, err
}

// List yields objects; see Get.
func (s besideStore) List(ctx context.Context, kind store.Kind, o store.Options) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for x, err := range s.Store.List(ctx, kind, o) {
			if err != nil {
				err = s.led(ctx, err)
			}
			if !yield(x, err) {
				return
			}
		}
	}
}

// mostComputing is how many plans, and how many expressions, are computed at a time; each may take a processor and some hundred megabytes.
const mostComputing = 2

// turns lets so many do something at a time as there is room in the channel.
type turns chan struct{}

// begin waits for a turn, until ctx ends. end must follow.
func (t turns) begin(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turns) end() { <-t }
