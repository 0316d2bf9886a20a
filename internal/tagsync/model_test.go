package tagsync_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/tagsync"
	"github.com/drover-project/drover/internal/testkit"
)

var names = []string{"a", "b_", "γ"}

// effect is that of one of the names.
var effect = servertag.Effect{Namespace: user, Tag: "a", Parameter: "always_failover", Value: true}

// history is a rig whose past is drawn.
type history struct {
	*rig
	random *rand.Rand
	server *server.Server
	// last is what was acknowledged last, by name. Names that somebody changed on
	// the cluster since, or about which a request was not answered, are loose.
	last  map[string]bool
	loose map[string]bool
}

// deaf hears of only some changes, and of some twice and late.
type deaf struct {
	tagsync.Backend
	count int
}

// Follow drops every third change and tells every fourth again with the next.
func (d *deaf) Follow(ctx context.Context, changed func(server.Ref)) error {
	var late []server.Ref
	return d.Backend.Follow(ctx, func(instance server.Ref) {
		d.count++
		for _, again := range late {
			changed(again)
		}
		late = nil
		if d.count%3 != 0 {
			changed(instance)
		}
		if d.count%4 == 0 {
			late = append(late, instance)
		}
	})
}

func (h *history) draw(n int) int { return h.random.IntN(n) }

func (h *history) name() string { return names[h.draw(len(names))] }

// acknowledged takes in the answer to a request.
func (h *history) acknowledged(name string, wanted bool, err error) {
	if err != nil {
		h.loose[name] = true
		return
	}
	h.last[name] = wanted
	delete(h.loose, name)
}

func (h *history) want() {
	name := h.name()
	created, err := h.engine.Want(h.server.ID, user, []string{name}, h.asked())
	if err != nil || len(created) > 0 {
		h.acknowledged(name, true, err)
	}
}

func (h *history) unwant() {
	name := h.name()
	was, err := h.engine.Unwant(h.server.ID, user, name, h.asked())
	if err != nil || was {
		h.acknowledged(name, false, err)
	}
}

func (h *history) replace() {
	name := h.name()
	before := h.engine.Servers().Get(h.server.ID).Tags
	_, err := h.engine.Replace(h.server.ID, user, []string{name}, h.asked())
	for _, n := range names {
		if n == name { // it may have been wanted before, so that nothing was asked about it
			h.loose[n] = h.loose[n] || err != nil || !h.last[n]
			continue
		}
		if err != nil || before.Has(user, n) {
			h.acknowledged(n, false, err)
		}
	}
}

// edit is an administrator's job. It has ended when the next request comes.
func (h *history) edit() {
	name := h.name()
	h.loose[name] = true
	op := []string{"OP_TAGS_SET", "OP_TAGS_DEL"}[h.draw(2)]
	raw := servertag.DefaultPrefixes().Raw(user, name)
	h.finish(op, tagParams(h.server, raw))
}

// cancel cancels the newest job, if that is not too late.
func (h *history) cancel() {
	var newest job.ID
	for j := range h.queue.Jobs().All() {
		newest = max(newest, j.ID)
	}
	_, _ = h.queue.Cancel(h.ctx, newest, false, queue.By{}) // too late is no matter
}

// crash ends the controller at one of its next transactions, or now, and starts
// it again.
func (h *history) crash() {
	effect := []faultstore.Effect{faultstore.CrashBefore, faultstore.CrashAfter}[h.draw(2)]
	struck := h.store.Inject(faultstore.Fault{Do: effect, Skip: h.draw(6)})
	for range names {
		h.want()
		h.unwant()
	}
	select {
	case <-struck:
	default: // nothing more was written: it ends in good order
	}
	h.stop()
	h.start()
}

// rest waits until nothing is left to do. What waits for another try need not.
func (h *history) rest() *server.Server {
	limit := time.After(testkit.Patience())
	for {
		changed := h.shown.Changed()
		h.ahead.Add(int64(time.Hour))
		h.engine.Reconcile()
		s := h.engine.Servers().Get(h.server.ID)
		if atRest(s) && h.idle() && h.agrees(s) {
			return s
		}
		select {
		case <-changed:
		case <-time.After(time.Second): // nothing moves: look again
		case <-limit:
			h.Fatalf("no rest is found: %+v; on the cluster are %q", s, h.onCluster(s))
		}
	}
}

func (h *history) idle() bool {
	for j := range h.queue.Jobs().All() {
		if !j.Final() {
			return false
		}
	}
	return true
}

// agrees reports whether the cluster has the tags that users see, and their
// effects.
func (h *history) agrees(s *server.Server) bool {
	inst := h.shown.Load().Inventory.InstanceNamed(s.Instance)
	if _, set := inst.BEParams[effect.Parameter]; set != s.Tags.Has(user, effect.Tag) {
		return false
	}
	var raws []string
	for _, t := range s.Tags.Wanted(user) {
		raws = append(raws, t.Raw)
	}
	slices.Sort(raws)
	return slices.Equal(raws, h.onCluster(s))
}

func (h *history) live() {
	h.start()
	defer h.stop()
	h.server = h.create()
	steps := map[int]func(){0: h.want, 1: h.unwant, 2: h.replace, 3: h.edit, 4: h.cancel, 5: h.crash, 6: h.want, 7: h.unwant, 8: h.engineLooks}
	for range 12 {
		steps[h.draw(len(steps))]()
	}
	s := h.rest()
	for _, name := range names {
		if wanted, asked := h.last[name]; asked && !h.loose[name] && s.Tags.Has(user, name) != wanted {
			h.Fatalf("%q: acknowledged was %v, users read %v", name, wanted, !wanted)
		}
	}
}

func (h *history) engineLooks() { h.engine.Reconcile() }

// TestHistories has users, administrators, cancels, an unreliable feed and
// crashes between any two transactions meet on a whole controller, where one of
// the tags has an effect. Then users, store and cluster agree, on what was acknowledged. $DROVER_HISTORIES says how
// many, $DROVER_HISTORY one of them by its seed.
func TestHistories(t *testing.T) {
	runs := 50
	if n, err := strconv.Atoi(os.Getenv("DROVER_HISTORIES")); err == nil {
		runs = n
	} else if testing.Short() {
		runs = 5
	}
	only, err := strconv.ParseUint(os.Getenv("DROVER_HISTORY"), 10, 64)
	if err == nil {
		runs = 1
	}
	for range runs {
		seed := rand.Uint64()
		if err == nil {
			seed = only
		}
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			h := &history{random: rand.New(rand.NewPCG(seed, 0)), last: map[string]bool{}, loose: map[string]bool{}, rig: &rig{
				Failing: t, ctx: t.Context(), dir: t.TempDir(), log: slog.New(slog.DiscardHandler), effects: []servertag.Effect{effect},
				around: func(b tagsync.Backend) tagsync.Backend { return &deaf{Backend: b} }}}
			h.live()
		})
	}
}
