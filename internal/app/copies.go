package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/systemd"
)

// copies are made of an embedded store before it becomes one that programs of before cannot read: its schema is moved, or its
// format raised. Each is a place of a store, in the data directory: `drover backup create --at` and `drover store check` take it, also
// those of the program of before. nil makes none.
type copies struct {
	data    string
	log     *slog.Logger
	manager systemd.Manager
}

// copiesOf are those of a controller: none where the store is a database's, whose operators have its own means, or where they
// are not wanted.
func copiesOf(o Options) *copies {
	if o.NoCopy || isPostgres(o.Store) {
		return nil
	}
	return &copies{o.Data, o.Log, o.Manager}
}

// copyAgain is after how long a copy that could not be made is tried again.
const copyAgain = time.Minute

// noCopyError says why a copy could not be made, and the store stays as it is.
type noCopyError struct{ error }

// Unwrap returns what it is.
func (e *noCopyError) Unwrap() error { return e.error }

func beforeSchema(to int64) string { return fmt.Sprintf("before-schema-%d", to) }

func beforeFormat(to int) string { return fmt.Sprintf("before-format-%d", to) }

// at is where a copy of a name is; nowhere without copies.
func (c *copies) at(name string) string {
	if c == nil {
		return ""
	}
	return filepath.Join(c.data, name)
}

// make makes the copy of a name, in the place of one that is there.
func (c *copies) make(ctx context.Context, name string) error {
	if c == nil {
		return nil
	}
	begun := time.Now()
	working, done := context.WithCancel(ctx)
	defer done()
	go c.tell(working)
	if err := sqlite.Copy(ctx, filepath.Join(c.data, storeDir), c.at(name)); err != nil {
		return withoutCopy(err)
	}
	if c.log != nil {
		c.log.Info("the store was copied before it is moved on", "to", c.at(name), "seconds", time.Since(begun).Seconds())
	}
	return nil
}

// tell asks the service manager for time while a copy is made.
func (c *copies) tell(ctx context.Context) {
	for again := time.NewTicker(startMore / 2); ; {
		if err := c.manager.Tell(systemd.Status("copies its store before it is moved on"), systemd.MoreTime(startMore)); err != nil && c.log != nil {
			c.log.Warn("the service manager was not told", "error", err)
		}
		select {
		case <-ctx.Done():
			again.Stop()
			return
		case <-again.C:
		}
	}
}

// withoutCopy adds to the error of a copy what to do.
func withoutCopy(err error) error {
	if known, ok := errors.AsType[*fault.Error](err); ok && fault.Is(err, fault.Exhausted) {
		return known.WithHint("make room, or go on without a copy, which is the way back: the setting no-copy, or drover cluster format raise --no-copy")
	}
	return err
}
