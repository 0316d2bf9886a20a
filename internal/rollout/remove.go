package rollout

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// A deployment is removed with its plan, with what became of its tasks, and with those parts of its state to which nothing else refers. What tasks printed
// goes with their jobs. It stays as long as something is decided by it: course.Table.Needed, and successes, which are compared with its state.

// Removal is which deployments went, or would go.
type Removal struct {
	// Deployments went, the oldest first.
	Deployments []Removed `json:"deployments"`
	// Spared counts those that stay though they are old enough.
	Spared int `json:"spared"`
	// More says that there was no time for all.
	More bool `json:"more"`
}

// Removed is a deployment that went, or would go.
type Removed struct {
	ID          int64         `json:"id"`
	Environment string        `json:"environment"`
	Status      course.Status `json:"status"`
	Mode        course.Mode   `json:"mode"`
	// Over is when the last thing happened to it, in nanoseconds since the epoch.
	Over int64 `json:"over"`
}

// Delete removes deployments. If one of them is needed none goes (fault.WrongState); they go one after the other, so an error on the way says which went before.
// With dry it only says which would go.
func (e *Engine) Delete(ctx context.Context, ids []int64, dry bool, by By) (*Removal, error) {
	if len(ids) == 0 {
		return nil, fault.New(fault.Invalid, "no deployment is named").At("ids")
	}
	known := e.known()
	var named []*course.Deployment
	for _, id := range ids {
		d, err := deploymentOf(known, id)
		if err != nil {
			return nil, err
		}
		named = append(named, d)
	}
	slices.SortFunc(named, func(a, b *course.Deployment) int { return int(a.ID - b.ID) })
	named = slices.Compact(named)
	used, err := e.succeeded(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range named {
		if why := e.needed(d, used); why != "" {
			return nil, fault.New(fault.WrongState, "deployment %d stays: %s", d.ID, why)
		}
	}
	return e.remove(ctx, named, 0, dry, time.Time{}, by)
}

// Prune removes the deployments to which nothing happened since a moment and that nothing needs, until the limit is over. It can be ended at any moment
// and begun again. With dry it only says which would go.
func (e *Engine) Prune(ctx context.Context, before time.Time, limit time.Duration, dry bool, by By) (*Removal, error) {
	until := e.cfg.Now().Add(limit)
	var old []*course.Deployment
	for d := range e.known().Deployments() {
		if d.Over() < before.UnixNano() {
			old = append(old, d)
		}
	}
	if len(old) == 0 {
		return e.remove(ctx, nil, 0, dry, until, by)
	}
	used, err := e.succeeded(ctx)
	if err != nil {
		return nil, err
	}
	var going []*course.Deployment
	for _, d := range old {
		if e.needed(d, used) == "" {
			going = append(going, d)
		}
	}
	return e.remove(ctx, going, len(old)-len(going), dry, until, by)
}

// needed says why a deployment stays, as things are now.
func (e *Reader) needed(d *course.Deployment, succeeded map[int64]bool) string {
	if why := e.known().Needed(d); why != "" {
		return why
	}
	if succeeded[d.ID] {
		return "tasks of the environment " + d.Environment + " last succeeded in it, and are compared with its state"
	}
	return ""
}

// succeeded are the deployments in which tasks last succeeded. None joins them that is not under way meanwhile.
func (e *Reader) succeeded(ctx context.Context) (map[int64]bool, error) {
	in := map[int64]bool{}
	for o, err := range e.cfg.Store.List(ctx, KindSuccess, store.Options{}) {
		if err != nil {
			return nil, err
		}
		var s course.Success
		if err := json.Unmarshal(o.Value, &s); err != nil {
			return nil, fault.New(fault.Internal, "the stored success %s cannot be read: %w", o.ID, err)
		}
		in[s.Deployment] = true
	}
	return in, nil
}

// remove removes deployments, as they were known when it was decided that they may go, until a moment if one is given.
func (e *Engine) remove(ctx context.Context, going []*course.Deployment, spared int, dry bool, until time.Time, by By) (*Removal, error) {
	out := &Removal{Deployments: []Removed{}, Spared: spared}
	if !dry {
		e.removing.Lock()
		defer e.removing.Unlock()
	}
	var uses *uses
	for _, d := range going {
		if !dry {
			if out.More = !until.IsZero() && !e.cfg.Now().Before(until); out.More {
				break
			}
			var err error
			if uses == nil {
				uses, err = e.countUses(ctx, going)
			}
			if err == nil {
				err = e.patiently(ctx, func(ctx context.Context) error { return e.removeOne(ctx, d, uses, by) })
			}
			if err != nil {
				return out, behind(out.Deployments, err)
			}
		}
		out.Deployments = append(out.Deployments, Removed{d.ID, d.Environment, d.Status, d.Mode, d.Over()})
	}
	return out, nil
}

// behind tells with an error which deployments went before it.
func behind(gone []Removed, err error) error {
	if len(gone) == 0 {
		return err
	}
	var ids []string
	for _, d := range gone {
		ids = append(ids, strconv.FormatInt(d.ID, 10))
	}
	return fault.New(fault.CodeOf(err), "%w (removed before: %s)", err, strings.Join(ids, ", "))
}

// uses says how many deployments refer to each part of a state, of those that were counted.
type uses struct {
	counted map[int64]bool
	by      map[course.Digest]int
	// of are the parts to which those that go refer.
	of map[int64][]course.Digest
	// unreadable says that some deployment or environment cannot be read: it may refer to any part, so all stay.
	unreadable bool
}

// countUses reads all deployments. What is stored later may have a lower number than one of them, for plans are stored beside one another.
func (e *Engine) countUses(ctx context.Context, going []*course.Deployment) (*uses, error) {
	u := &uses{counted: map[int64]bool{}, by: map[course.Digest]int{}, of: map[int64][]course.Digest{}}
	for _, d := range going {
		u.of[d.ID] = nil
	}
	err := eachStored(ctx, e, KindDeployment, u, func(d *course.Deployment) {
		parts := partsOf(d)
		u.counted[d.ID] = true
		for _, p := range parts {
			u.by[p]++
		}
		if _, goes := u.of[d.ID]; goes {
			u.of[d.ID] = parts
		}
	})
	return u, err
}

// eachStored hands over the objects of a kind, and notes whether one cannot be read.
func eachStored[T any](ctx context.Context, e *Engine, kind store.Kind, u *uses, take func(*T)) error {
	for o, err := range e.cfg.Store.List(ctx, kind, store.Options{}) {
		if err != nil {
			return err
		}
		x := new(T)
		if json.Unmarshal(o.Value, x) != nil {
			u.unreadable = true
			continue
		}
		take(x)
	}
	return nil
}

// partsOf are the parts of a state to which a deployment refers, each once.
func partsOf(d *course.Deployment) []course.Digest {
	var out []course.Digest
	eachDigest(func(p *course.Digest) { out = append(out, *p) }, &d.Common, d.Nodes, d.Absent)
	slices.Sort(out)
	return slices.Compact(out)
}

// removeOne removes a deployment, for who holds the baton. With the first transaction it is gone; the rest of what it had goes then, or when a controller
// begins to lead (clearGaps).
func (e *Engine) removeOne(ctx context.Context, d *course.Deployment, u *uses, by By) error {
	if now := e.known().Deployment(d.ID); now == nil {
		return nil // somebody else was quicker
	} else if now != d {
		return fault.New(fault.Conflict, "deployment %d was changed at this moment", d.ID).WithHint("look at it: drover deploy status %d", d.ID)
	}
	if why := e.known().Needed(d); why != "" { // of its environment something may have changed
		return fault.New(fault.Conflict, "deployment %d stays: %s", d.ID, why)
	}
	parts, err := e.unused(ctx, d, u)
	if err != nil {
		return err
	}
	tx := store.Tx{Delete: []store.Key{{Kind: KindDeployment, ID: d.Key()}}}
	if below, err := e.clearedBelow(ctx); err != nil {
		return err
	} else if d.ID < below {
		tx.Put = append(tx.Put, clearedUpTo(d.ID))
	}
	for _, p := range parts {
		tx.Delete = append(tx.Delete, store.Key{Kind: KindPart, ID: string(p)})
	}
	if err := e.commit(tx, &state.Change{DeploymentsRemoved: []*course.Deployment{d}}, done(audit.DeploymentDelete, d, by)); err != nil {
		return err
	}
	for _, p := range u.of[d.ID] {
		u.by[p]--
	}
	return e.clearDeployment(ctx, d.ID)
}

// unused are the parts of a deployment to which nothing else refers.
func (e *Engine) unused(ctx context.Context, d *course.Deployment, u *uses) (out []course.Digest, err error) {
	others := map[course.Digest]bool{}
	note := func(p *course.Digest) { others[*p] = true }
	err = eachStored(ctx, e, KindEnvironment, u, func(x *course.Environment) { eachDigest(note, &x.Common, x.Nodes) })
	if err != nil || u.unreadable {
		return nil, err
	}
	for later := range e.known().Deployments() {
		if u.counted[later.ID] {
			continue
		}
		whole, err := e.whole(ctx, later)
		if err != nil {
			return nil, err
		}
		eachDigest(note, &whole.Common, whole.Nodes, whole.Absent)
	}
	for _, p := range u.of[d.ID] {
		if u.by[p] == 1 && !others[p] {
			out = append(out, p)
		}
	}
	return out, nil
}

// clearDeployment removes what is left of a deployment that there is not: the pieces of its plan, and what became of its tasks.
func (e *Engine) clearDeployment(ctx context.Context, id int64) error {
	if err := e.clearPlan(ctx, id); err != nil {
		return err
	}
	prefix := course.RecordPrefix(id)
	var keys []store.Key
	for o, err := range e.cfg.Store.List(ctx, KindRecord, store.Options{After: prefix}) {
		if err != nil {
			return err
		}
		if !strings.HasPrefix(o.ID, prefix) {
			break
		}
		keys = append(keys, o.Key)
	}
	return e.forget(keys)
}

// cleared says below which number nothing is left of deployments that there are not: whoever leads next need not look there.
type cleared struct {
	Below int64 `json:"below"`
}

// clearedKey is where that is, once it was worth it.
var clearedKey = store.Key{Kind: KindCleared, ID: "below"}

// clearedUpTo has it looked for what is left from a number on.
func clearedUpTo(below int64) store.Put {
	return put(clearedKey.Kind, clearedKey.ID, cleared{below})
}

// mostGaps is how many numbers without a deployment are looked at each time that a controller begins to lead, before it is noted that this was done.
const mostGaps = 100

// clearGaps removes what a controller has left that died while it stored a plan, and another one with a higher number that was done before, or while it
// removed a deployment. What is left of a plan of the highest number goes with the next plan, which has that number.
func (e *Engine) clearGaps(ctx context.Context) error {
	from, err := e.clearedBelow(ctx)
	if err != nil {
		return err
	}
	next, gaps := from, 0
	for d := range e.known().Deployments() {
		for ; next < d.ID; next++ {
			gaps++
			_, err := e.cfg.Store.Get(ctx, store.Key{Kind: KindDeployment, ID: strconv.FormatInt(next, 10)})
			if err == nil { // it cannot be read, and may be mended
				continue
			}
			if !fault.Is(err, fault.NotFound) {
				return err
			}
			if err := e.clearDeployment(ctx, next); err != nil {
				return err
			}
		}
		next = max(next, d.ID+1)
	}
	if gaps <= mostGaps {
		return nil
	}
	return e.commit(store.Tx{Put: []store.Put{clearedUpTo(next)}}, &state.Change{})
}

// clearedBelow is the number from which on it is to be looked for what is left.
func (e *Engine) clearedBelow(ctx context.Context) (int64, error) {
	c, err := read[cleared](ctx, e.Reader, clearedKey.Kind, clearedKey.ID)
	switch {
	case fault.Is(err, fault.NotFound):
		return 1, nil
	case err != nil:
		return 0, err
	}
	return max(c.Below, 1), nil
}
