package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/api/luxi"
	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
)

// The store has a format (package format). Whoever leads knows the present one, and raises
// it to a newer one as soon as every controller that might lead can keep it, or when an
// operator says so. Raised is durable before told: what engines ask changes when the
// transaction is committed.

// formatEvery is how often it is looked whether the format can be raised, and how often a
// controller that does not know it looks whether it is another by now.
const formatEvery = 5 * time.Second

// unfitError says why a program cannot lead on the store, which is no trouble that passes and
// none that ends a controller of a group.
type unfitError struct{ error }

// Unwrap returns what it is.
func (e *unfitError) Unwrap() error { return e.error }

// fits tells the format of a store, if this program can lead on it.
func fits(ctx context.Context, s store.Store) (present int, err error) {
	present, _, err = store.PresentFormat(ctx, s)
	if err == nil {
		err = format.Own().CanLead(present)
	}
	if fault.Is(err, fault.Unsupported) {
		err = &unfitError{err}
	}
	return present, err
}

// openFormat learns the format, at the beginning of a term.
func (c *controller) openFormat(ctx context.Context) error {
	present, err := fits(ctx, c.store)
	if err != nil {
		return err
	}
	c.format.Set(present)
	return nil
}

// beginFormat has a store without a cluster begin at the newest format that all controllers can keep.
func (c *controller) beginFormat(ctx context.Context) error {
	_, err := c.raise(ctx, raising{})
	return err
}

// raiseAlone raises the format at the start of a controller that is alone, before anything goes on.
func (c *controller) raiseAlone(ctx context.Context) error {
	if c.group != nil || !c.autoFinalize {
		return nil
	}
	_, err := c.raise(ctx, byItself)
	if c.lacksCopy(err) {
		return nil
	}
	return err
}

// lacksCopy tells whether the format stays as it is for want of a copy, and says so.
func (c *controller) lacksCopy(err error) bool {
	why, is := errors.AsType[*noCopyError](err)
	if is {
		c.log.Warn("the format of the store is not raised: there is no copy of before", "error", why)
	}
	return is
}

// keepFormat raises the format when all can, until ctx ends. It is looked for what others have raised
// unawares, too: an answer of the store may have been lost.
func (c *controller) keepFormat(ctx context.Context) error {
	held, refused := "", time.Time{}
	look := func() error {
		if c.format.Format() >= format.Own().Newest() {
			return nil
		}
		raise, err := c.look(ctx)
		if err == nil && c.autoFinalize && raise.Wanted() && time.Since(refused) >= copyAgain {
			raise, err = c.raise(ctx, byItself)
		}
		if c.lacksCopy(err) {
			refused, err = time.Now(), nil
		}
		if err != nil && ctx.Err() == nil {
			c.log.Warn("it cannot be told whether the format of the store can be raised", "error", err)
		}
		if now := heldBy(raise.Holds); err == nil && now != held {
			c.log.Info("the format of the store is not raised yet", "format", raise.To, "newest", raise.Newest, "because", now)
			held = now
		}
		return nil
	}
	if err := look(); err != nil {
		return err
	}
	return regularly(ctx, formatEvery, look)
}

// raising is on whose behalf a format is raised, nobody's for a store without a cluster, and whether that may be without a copy.
type raising struct {
	by     *audit.By
	noCopy bool
}

// byItself is for what nobody asked for.
var byItself = raising{by: &audit.By{Account: controllerItself.Account,
	Trail: reason.Trail{{Source: "gnt:controller", Reason: "every controller that was heard of in the last day can keep it"}}}}

// look decides what can be done about the format.
func (c *controller) look(ctx context.Context) (format.Raise, error) {
	g, err := c.gather(ctx)
	return g.raise, err
}

// gathered is what a raise is decided on, and depends on.
type gathered struct {
	raise  format.Raise
	expect []store.Expect
}

// gather asks the store and the others.
func (c *controller) gather(ctx context.Context) (g gathered, err error) {
	present, at, err := store.PresentFormat(ctx, c.store)
	if err != nil {
		return g, err
	}
	c.format.Set(max(present, c.format.Format()))
	members := []format.Member{}
	if c.group != nil {
		if members, g.expect, err = c.group.members(ctx, c.hearings); err != nil {
			return g, err
		}
	}
	g.expect = append(g.expect, store.Expect{Key: store.FormatKey, Revision: at})
	g.raise = format.Decide(present, format.Own(), members, time.Now())
	return g, nil
}

// raise raises the format as far as it can be. It begins anew when who there is changed meanwhile.
func (c *controller) raise(ctx context.Context, how raising) (r format.Raise, err error) {
	c.raising.Lock()
	defer c.raising.Unlock()
	const tries = 3
	for range tries {
		if r, err = c.tryRaise(ctx, how); !fault.Is(err, fault.Conflict) {
			break
		}
	}
	return r, err
}

// tryRaise raises the format in one transaction with the event that tells of it; without a word where
// nobody wants it, since there was nothing before. Otherwise the embedded store is copied first: there is no other way back.
func (c *controller) tryRaise(ctx context.Context, how raising) (format.Raise, error) {
	g, err := c.gather(ctx)
	if err != nil || !g.raise.Wanted() {
		return g.raise, err
	}
	r := g.raise
	tx := store.Tx{Epoch: c.lease.Epoch, Expect: g.expect, Put: []store.Put{{Key: store.FormatKey, Value: format.Encode(r.To)}}}
	change := &state.Change{}
	if by := how.by; by != nil {
		if !how.noCopy {
			if err := c.copies.make(ctx, beforeFormat(r.To)); err != nil {
				return r, &noCopyError{err}
			}
		}
		e := audit.New(audit.FormatRaise, strconv.Itoa(r.To), *by)
		e.Before, e.After = json.RawMessage(format.Encode(r.From)), json.RawMessage(format.Encode(r.To))
		change.Events = []*audit.Event{c.queue.Note(&tx, e)}
	}
	if err := c.commitShown(ctx, tx, change); err != nil {
		return r, c.raisedAfterAll(ctx, r.To, err)
	}
	c.format.Set(r.To)
	if how.by == nil {
		return r, nil
	}
	c.log.Warn("the format of the store was raised; programs that do not know it cannot lead any more", "from", r.From, "to", r.To, "brings", format.Brought(r.To))
	return r, nil
}

// commitShown makes a transaction durable, and shows what it changed.
func (c *controller) commitShown(ctx context.Context, tx store.Tx, change *state.Change) error {
	durable := make(chan error, 1)
	c.store.Enqueue(tx, func(revision store.Revision, err error) {
		if err == nil {
			change.Revision = int64(revision)
			c.picture.Committed(change)
		}
		durable <- err
	})
	select {
	case err := <-durable:
		if err == nil {
			c.picture.Publish()
		}
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// raisedAfterAll looks up what became of a raise whose answer was an error: it may have been stored.
func (c *controller) raisedAfterAll(ctx context.Context, to int, err error) error {
	if present, _, lookErr := store.PresentFormat(ctx, c.store); lookErr == nil && present >= to {
		c.format.Set(present)
		return nil
	}
	return err
}

// members are the controllers of the group as the format concerns them, with what a decision upon them depends on.
func (g *group) members(ctx context.Context, h *hearings) (out []format.Member, expect []store.Expect, err error) {
	peers, err := g.peers(ctx)
	if err != nil {
		return nil, nil, err
	}
	heard, err := h.ask(ctx, g, peers)
	if err != nil {
		return nil, nil, err
	}
	for i, p := range peers {
		out = append(out, format.Member{Name: p.Name, Program: format.Told(p.Formats), Heard: heard[i]})
		expect = append(expect, store.Expect{Key: store.Key{Kind: kindPeer, ID: p.Name}, Revision: p.revision})
	}
	return out, expect, nil
}

// heldBy says who keeps the group from a format, as one text.
func heldBy(holds []format.Hold) string {
	var out []string
	for _, h := range holds {
		out = append(out, fmt.Sprintf("%s: %s; it counts until %s unless it stops or is heard again", h.Name, h.Why, h.Until.UTC().Format(time.RFC3339)))
	}
	return strings.Join(out, "; ")
}

// formatState is what operators are told of the format.
func (c *controller) formatState(ctx context.Context) (luxi.Format, error) {
	r, err := c.look(ctx)
	return c.tellFormat(r), err
}

func (c *controller) tellFormat(r format.Raise) luxi.Format {
	f := luxi.Format{Format: r.From, Newest: r.Newest, Next: r.To, Program: format.Own(), Auto: c.autoFinalize, Holds: []luxi.FormatHold{}, Brings: []luxi.FormatBrings{}}
	for n := r.From; n <= r.Newest; n++ {
		f.Brings = append(f.Brings, luxi.FormatBrings{Format: n, Brings: format.Brought(n)})
	}
	for _, h := range r.Holds {
		f.Holds = append(f.Holds, luxi.FormatHold{Name: h.Name, Why: h.Why, Until: h.Until.UTC()})
	}
	return f
}

// raiseFormat is for operators: it refuses what cannot be done, and does the rest.
func (c *controller) raiseFormat(ctx context.Context, by audit.By, noCopy bool) (luxi.Format, error) {
	r, err := c.raise(ctx, raising{&by, noCopy})
	if err == nil && !r.Wanted() && len(r.Holds) > 0 {
		err = fault.New(fault.WrongState, "the format of the store stays %d: %s", r.From, heldBy(r.Holds)).
			WithHint("stop these controllers in good order, or start newer programs in their place")
	}
	if err != nil {
		return luxi.Format{}, err
	}
	told := c.tellFormat(r)
	if r.Wanted() && !noCopy {
		told.Copy = c.copies.at(beforeFormat(r.To))
	}
	return told, nil
}

// awaitFormat waits until the store has a format at which this controller can lead.
func (g *group) awaitFormat(ctx context.Context) error {
	defer g.unfit.Store(nil)
	for {
		present, err := fits(ctx, g.m.store)
		unfit, is := errors.AsType[*unfitError](err)
		if !is {
			return err
		}
		if g.unfit.Load() == nil {
			g.m.log.Error("this controller cannot lead, and forwards everything to one that can", "format", present, "error", unfit)
			g.unfit.Store(&Problem{Part: "format", Text: "this controller cannot lead: " + unfit.Error(), Since: time.Now().UTC()})
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(formatEvery):
		}
	}
}
