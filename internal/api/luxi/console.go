package luxi

import (
	"context"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/reason"
)

// readConsole tells what an instance printed on its serial line behind a position, and waits for it if that is nothing.
func readConsole(ctx context.Context, d *Deps, a *arguments) (any, error) {
	instance, at, seconds := a.str(0), a.integer(1), a.number(2)
	if at < 0 || math.IsNaN(seconds) || seconds < 0 {
		a.fail(fault.New(fault.Invalid, "a position and a time are not negative").At("args[1]"))
	}
	if err := a.bad(); err != nil {
		return nil, err
	}
	return d.Querier.ReadConsole(ctx, instance, uint64(at), job.Seconds(seconds))
}

// typeConsole types on an instance's serial line.
func typeConsole(ctx context.Context, d *Deps, a *arguments) (any, error) {
	instance := a.str(0)
	var keys []byte
	a.decode(1, "Bytes", &keys)
	if err := a.bad(); err != nil {
		return nil, err
	}
	inst, err := d.Querier.Picture.Load().Inventory.FindInstance(instance)
	if err != nil {
		return nil, err
	}
	by := a.as(-1)
	err = d.typists.seat(typist{inst.UUID, by.Account}, time.Now(), func() error {
		e := audit.New(audit.ConsoleType, inst.UUID, by)
		e.Name = inst.Name
		return d.Queue.Record(ctx, e)
	})
	if err != nil {
		return nil, err
	}
	return nil, d.Querier.TypeConsole(ctx, instance, keys)
}

// typist is who types on the serial line of an instance, which goes by its UUID.
type typist struct {
	instance string
	account  reason.Account
}

// leftAfter is how long somebody may type nothing and has not left. Who comes back later is told of anew.
const leftAfter = 10 * time.Minute

// typists are those who type, each with when that was last.
type typists struct {
	mu   sync.Mutex
	last map[typist]time.Time
}

// seat has an event tell of who begins to type before a key is typed: nothing is typed of which it could not be made durable.
func (t *typists) seat(who typist, now time.Time, tell func() error) error {
	t.mu.Lock()
	last, known := t.last[who]
	t.mu.Unlock()
	if !known || now.Sub(last) > leftAfter {
		if err := tell(); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.last, func(_ typist, last time.Time) bool { return now.Sub(last) > leftAfter })
	t.last[who] = now
	return nil
}
