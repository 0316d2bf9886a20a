package machine

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/schedule"
	"github.com/drover-project/drover/internal/state"
)

var (
	histories = flag.Int("histories", 30_000, "how many histories of the machine TestHistories tries")
	history   = flag.Uint64("history", 0, "try this history alone, and tell its steps")
)

// TestHistories lets machines live through random histories: submissions with
// relative and circular dependencies, keys and refusals, drain, cancels,
// priorities, changes of rules and of the inventory, failures, a store that is
// late or fails, and crashes at any point. After each step it checks what must
// hold (invariants_test.go). A failure names the history; -history N tries it
// alone and tells its steps.
func TestHistories(t *testing.T) {
	if *history > 0 {
		if err := live(*history, t.Logf); err != nil {
			t.Fatal(err)
		}
		return
	}
	n := *histories
	if testing.Short() {
		n /= 50
	}
	var all sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		all.Go(func() {
			for seed := 1 + w; seed <= n && !t.Failed(); seed += workers {
				if err := live(uint64(seed), func(string, ...any) {}); err != nil {
					t.Errorf("history %d (go test -run TestHistories -history %d -v): %v", seed, seed, err)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d histories lived through", n)
}

// live lives one history through.
func live(seed uint64, tell func(string, ...any)) error { return newHistory(seed, tell).live() }

func (h *world) live() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	for range 8 + h.n(24) {
		step := steps[h.n(len(steps))]
		h.tell("%s (%d on their way, last job %d)", step.name, len(h.writes), h.m.lastID)
		h.orKilled(func() { step.do(h) })
		if err := h.check(); err != nil {
			return fmt.Errorf("after %s: %w", step.name, err)
		}
	}
	for dry := false; !dry && err == nil; {
		h.orKilled(func() { err, dry = h.runDry(), true })
	}
	return err
}

// steps are what can happen, as often as they stand here.
var steps = []struct {
	name string
	do   func(*world)
}{
	{"submit", (*world).submit},
	{"submit", (*world).submit},
	{"submit", (*world).submit},
	{"commit", (*world).commit},
	{"commit", (*world).commit},
	{"commit", (*world).commit},
	{"finish", (*world).finish},
	{"finish", (*world).finish},
	{"finish", (*world).finish},
	{"log", (*world).logSome},
	{"ask again", (*world).askAgain},
	{"release", (*world).release},
	{"cancel", (*world).cancel},
	{"priority", (*world).priority},
	{"rule", (*world).changeRules},
	{"drain", (*world).drain},
	{"inventory", (*world).inventory},
	{"nodes", (*world).nodes},
	{"fail a write", (*world).failWrite},
	{"archive", (*world).archive},
	{"refuse a job", (*world).unstorable},
	{"crash", (*world).crash},
	{"stop", (*world).stop},
}

// world is a machine with a store that is late, and what a test knows of both.
type world struct {
	*rand.Rand

	tell func(string, ...any)
	m    *Machine
	now  time.Time
	max  int
	move string // what the locks of OP_INSTANCE_SHUTDOWN are prefixed with
	away map[string]*schedule.Absence

	// The store: what is durable, and the transactions on their way.
	jobs     map[job.ID]*job.Job
	archived map[job.ID]*job.Job
	keys     map[string]job.ID
	rules    map[string]jobfilter.Rule
	flags    state.Flags
	writes   []*write

	runs map[run]bool // opcodes that run
	// interrupted are those that ran when the controller ended and go on; moved says
	// that the locks which opcodes need have changed since.
	interrupted map[run]bool
	moved       bool
	ran         map[run]int // how often each was run
	told        map[job.ID]bool
	byKey       map[string]job.ID // acknowledged
	surplus     int               // how many jobs may run over the limit
	lastSeen    map[job.ID]*job.Job
	nextUUID    int
	waits       map[job.ID][]job.Span // as they were seen while they lasted
	shown       map[job.ID]bool       // known to be durable

	// points counts the moments at which the controller can be killed; it is at
	// killAt (crash_test.go).
	points, killAt int
}

type run struct {
	id    job.ID
	index int
}

// write is a transaction on its way, with what is to happen when it is durable.
type write struct {
	ready  *Ready
	jobs   map[job.ID]*job.Job
	keys   map[string]job.ID
	rules  map[string]*jobfilter.Rule
	flags  *state.Flags
	starts []Start
	acks   []Outcome
	ackKey []string
}

func newHistory(seed uint64, tell func(string, ...any)) *world {
	h := &world{Rand: rand.New(rand.NewPCG(seed, 1)), tell: tell, now: time.Unix(1e9, 0),
		jobs: map[job.ID]*job.Job{}, archived: map[job.ID]*job.Job{}, keys: map[string]job.ID{}, rules: map[string]jobfilter.Rule{},
		ran: map[run]int{}, told: map[job.ID]bool{}, shown: map[job.ID]bool{}, byKey: map[string]job.ID{}, lastSeen: map[job.ID]*job.Job{}}
	h.max = 1 + h.n(3)
	h.open()
	return h
}

func (h *world) n(below int) int { return h.IntN(below) }

// open makes a machine of what is durable.
func (h *world) open() {
	h.runs, h.writes, h.surplus, h.waits = map[run]bool{}, nil, 0, map[job.ID][]job.Span{}
	clear(h.shown)
	for id := range h.jobs {
		h.shown[id] = true
	}
	l := Loaded{Ended: map[job.ID]job.Status{}, Keys: map[string]job.ID{}, Flags: h.flags, World: h.world(),
		Resumable: func(op string) (bool, string) { return op != dummyOp.ID, "the test says so" }}
	for _, id := range slices.Sorted(maps.Keys(h.jobs)) {
		j := h.jobs[id]
		l.LastID = max(l.LastID, id)
		if j.Key != "" {
			l.Keys[j.Key] = id
		}
		if !j.Final() {
			l.Jobs = append(l.Jobs, j.WithHold(nil)) // which is not stored
		}
	}
	for id := range h.archived {
		l.LastID = max(l.LastID, id)
	}
	for _, j := range l.Jobs {
		for _, id := range j.Dependencies() {
			if other := h.stored(id); other != nil && other.Final() {
				l.Ended[id] = other.Status()
			}
		}
	}
	for _, uuid := range slices.Sorted(maps.Keys(h.rules)) {
		l.Rules = append(l.Rules, h.rules[uuid])
		l.LastID = max(l.LastID, job.ID(h.rules[uuid].Watermark))
	}
	m, err := New(l)
	if err != nil {
		panic(err)
	}
	h.m = m
	h.interrupted, h.moved = map[run]bool{}, false
	for _, j := range l.Jobs {
		if op := &j.Ops[j.Next()]; op.Status == job.Running && op.Input.ID != dummyOp.ID && j.CancelReason != job.Killed {
			h.interrupted[run{j.ID, j.Next()}] = true
		}
	}
	h.apply(Recover{})
}

// stored returns the durable value of a job.
func (h *world) stored(id job.ID) *job.Job {
	if j := h.jobs[id]; j != nil {
		return j
	}
	return h.archived[id]
}

// seen returns the durable value of a job that is known to be durable.
func (h *world) seen(id job.ID) *job.Job {
	if h.shown[id] || h.archived[id] != nil {
		return h.stored(id)
	}
	return nil
}

// world is what the inventory means at the moment.
func (h *world) world() World {
	prefix := h.move
	nodes := func(op *opcode.Opcode) []string {
		if op.ID != "OP_INSTANCE_SHUTDOWN" {
			return nil
		}
		return []string{"of everybody", "of " + op.Str("instance_name")}
	}
	return World{MaxRunning: h.max, Nodes: nodes, Away: h.away, LockName: func(n lock.Name) string { return "the lock " + n.String() }, Locks: func(op *opcode.Opcode) lock.Request {
		if op.ID != "OP_INSTANCE_SHUTDOWN" {
			return nil
		}
		return lock.Request{
			{Name: lock.Name{Level: lock.Cluster, Item: lock.BGL}, Mode: lock.Shared},
			{Name: lock.Name{Level: lock.Instance, Item: prefix + op.Str("instance_name")}, Mode: lock.Exclusive},
		}
	}}
}

// apply lets an event happen. Now and then a clone has to come to the same, and
// another one that goes its own way must not be noticed; nor a clone that was
// discarded.
func (h *world) apply(e Event) *Ready {
	h.now = h.now.Add(time.Millisecond)
	var before, same, other *Machine
	if h.n(16) == 0 {
		gone := h.m.Clone()
		before, same = h.m.Clone(), h.m.Clone()
		last := h.m.Clone()
		h.m.Discard(last)
		h.m.Discard(gone)
		other = h.m.Clone()
		h.m.Discard(last)
	}
	r := h.m.Apply(e, h.now)
	if same != nil {
		again := same.Apply(e, h.now)
		if a, b := digest(h.m), digest(same); a != b || fmt.Sprint(r.Jobs, r.Keys, r.Rules, r.Holds, r.Kills) != fmt.Sprint(again.Jobs, again.Keys, again.Rules, again.Holds, again.Kills) {
			panic(fmt.Sprintf("a clone came to something else:\n%s\n%s", a, b))
		}
		was := digest(before)
		for _, id := range other.jobs.Keys() {
			other.Apply(Cancel{Job: id}, h.now)
		}
		if is := digest(before); is != was {
			panic("a clone noticed what another one did")
		}
	}
	h.write(&write{ready: r})
	return r
}

// write hands over what an event made, with the present state of what it touched.
func (h *world) write(w *write) {
	r := w.ready
	w.jobs, w.keys, w.rules, w.flags = map[job.ID]*job.Job{}, map[string]job.ID{}, map[string]*jobfilter.Rule{}, nil
	for _, id := range r.Jobs {
		if j := h.m.Job(id); j != nil {
			w.jobs[id] = j
		}
	}
	for _, key := range r.Keys {
		if id := h.m.Key(key); id != 0 {
			w.keys[key] = id
		}
	}
	for _, uuid := range r.Rules {
		w.rules[uuid] = nil
		for _, rule := range h.m.Rules() {
			if rule.UUID == uuid {
				w.rules[uuid] = &rule
			}
		}
	}
	if r.Flags {
		f := h.m.Flags()
		w.flags = &f
	}
	w.starts = r.Starts
	h.writes = append(h.writes, w)
	for _, id := range r.Kills {
		h.tell("job %d is killed", id)
	}
}

// commit makes some transactions durable together and lets happen what waited
// for them. Between all of that the controller can be killed.
func (h *world) commit() {
	if len(h.writes) == 0 {
		return
	}
	group := h.writes[:1+h.n(min(len(h.writes), 4))]
	h.writes = h.writes[len(group):]
	h.point()
	for _, w := range group {
		h.store(w)
		h.point()
	}
	for _, w := range group {
		h.answer(w)
		h.point()
	}
}

// answer lets happen what waited for a transaction that is durable.
func (h *world) answer(w *write) {
	for id, j := range w.jobs {
		h.m.Stored(j)
		h.shown[id] = true
	}
	for _, o := range w.acks {
		if o.Err == nil {
			h.told[o.ID] = true
		}
	}
	for i, key := range w.ackKey {
		if o := w.acks[i]; key != "" && o.Err == nil {
			h.byKey[key] = o.ID
		}
	}
	for _, s := range w.starts {
		if !h.m.Runs(s) {
			continue
		}
		if h.m.closing {
			h.apply(NotBegun(s))
			continue
		}
		h.ran[run{s.Job, s.Index}]++
		h.runs[run{s.Job, s.Index}] = true
	}
}

func (h *world) store(w *write) {
	for id, j := range w.jobs {
		if h.archived[id] == nil {
			h.jobs[id] = j
		}
	}
	maps.Copy(h.keys, w.keys)
	for _, j := range w.ready.Gone {
		delete(h.jobs, j.ID)
		delete(h.lastSeen, j.ID)
		if h.m.Key(j.Key) == 0 && h.keys[j.Key] == j.ID {
			delete(h.keys, j.Key)
		}
	}
	for uuid, r := range w.rules {
		if r == nil {
			delete(h.rules, uuid)
		} else {
			h.rules[uuid] = *r
		}
	}
	if w.flags != nil {
		h.flags = *w.flags
	}
}

func (h *world) settle() {
	for len(h.writes) > 0 {
		h.commit()
	}
}

// failWrite has the next transaction fail, made or not: it is written again.
func (h *world) failWrite() {
	if len(h.writes) == 0 {
		return
	}
	w := h.writes[0]
	h.writes = h.writes[1:]
	if h.n(2) == 0 {
		h.store(w)
	}
	h.write(w)
}

// unstorable has the store refuse the next transaction for good. Then each
// thing in it is written by itself, as it is by then, and the store may refuse
// that, too.
func (h *world) unstorable() {
	if len(h.writes) == 0 || h.n(3) > 0 {
		return
	}
	w := h.writes[0]
	h.writes = h.writes[1:]
	parts := h.divide(w)
	for _, part := range parts {
		if len(parts) > 1 && h.n(3) > 0 {
			h.write(part)
			continue
		}
		h.refuse(part)
	}
}

// divide makes a write of each thing in one.
func (h *world) divide(w *write) []*write {
	var parts []*write
	for _, id := range w.ready.Jobs {
		part := &write{ready: &Ready{Jobs: []job.ID{id}}}
		if j := h.m.Job(id); j != nil && j.Key != "" {
			part.ready.Keys = []string{j.Key}
		}
		for _, s := range w.starts {
			if s.Job == id {
				part.ready.Starts = append(part.ready.Starts, s)
			}
		}
		for i, o := range w.acks {
			if o.ID == id && o.Err == nil {
				part.acks, part.ackKey = append(part.acks, o), append(part.ackKey, w.ackKey[i])
			}
		}
		parts = append(parts, part)
	}
	for _, j := range w.ready.Gone {
		parts = append(parts, &write{ready: &Ready{Gone: []*job.Job{j}}})
	}
	for _, uuid := range w.ready.Rules {
		parts = append(parts, &write{ready: &Ready{Rules: []string{uuid}}})
	}
	if w.flags != nil {
		parts = append(parts, &write{ready: &Ready{Flags: true}})
	}
	return parts
}

// refuse has the store refuse one thing for good.
func (h *world) refuse(part *write) {
	switch r := part.ready; {
	case len(r.Jobs) > 0:
		id := r.Jobs[0]
		if slices.ContainsFunc(h.writes, func(later *write) bool { return later.jobs[id] != nil }) {
			h.write(part) // what another write makes of the job decides
			return
		}
		h.tell("job %d is refused by the store", id)
		h.apply(Unstorable{Job: id, Stored: h.shown[id], Err: errors.New("too large")})
	case len(r.Rules) > 0: // what is stored is in force again
		plan, err := h.m.PlanRules(func(rules []jobfilter.Rule, _ job.ID) ([]jobfilter.Rule, []string, error) {
			rules = slices.DeleteFunc(rules, func(rule jobfilter.Rule) bool { return rule.UUID == r.Rules[0] })
			if old, stored := h.rules[r.Rules[0]]; stored {
				rules = append(rules, old)
			}
			return rules, r.Rules, nil
		}, inTurn)
		if err != nil {
			panic(err)
		}
		h.apply(plan)
	case r.Flags:
		h.apply(SetDrained{On: h.flags.Drained})
	case len(r.Gone) > 0: // no store refuses to forget something for good
		h.write(part)
	}
}

var dummyOp, resumableOp, shutdownOp = parseOp(`{"OP_ID":"OP_TEST_DELAY","duration":1}`), parseOp(`{"OP_ID":"OP_TEST_JQUEUE"}`),
	parseOp(`{"OP_ID":"OP_INSTANCE_SHUTDOWN","instance_name":"web1"}`)

func parseOp(text string) *opcode.Opcode {
	op, err := opcode.Parse([]byte(text), opcode.Options{})
	if err != nil {
		panic(err)
	}
	return op
}

var (
	reasons  = []string{"", "", "", "bulk", "nightly", "rate-limit:1:x", "rate-limit:2:x", "rate-limit:1:y"}
	statuses = [][]string{nil, {"success"}, {"error"}, {"success", "canceled"}}
)

func (h *world) op(place int) *opcode.Opcode {
	op := *[]*opcode.Opcode{dummyOp, resumableOp, shutdownOp, shutdownOp}[h.n(4)]
	if op.ID == "OP_INSTANCE_SHUTDOWN" && h.n(2) == 0 {
		op = *op.With("instance_name", "web2")
	}
	op.Priority = []int{-10, 0, 0, 10}[h.n(4)]
	if text := reasons[h.n(len(reasons))]; text != "" {
		op.Reason = reason.Trail{{Source: "user", Reason: text, Time: 1}}
	}
	for h.n(4) == 0 {
		on := int64(h.m.lastID) + int64(h.n(5)) - 2 + int64(place)
		if h.n(2) == 0 {
			on = -1 - int64(h.n(3))
		}
		if on != 0 {
			op.Depends = append(op.Depends, opcode.Dependency{Job: on, Statuses: statuses[h.n(len(statuses))]})
		}
	}
	return &op
}

func (h *world) submit() {
	if h.m.closing {
		return
	}
	var subs []Submission
	for place := range 1 + h.n(4) {
		var s Submission
		for range 1 + h.n(3) {
			s.Ops = append(s.Ops, h.op(place))
		}
		if h.n(5) == 0 {
			s.Key = fmt.Sprintf("key %d", h.n(4))
		}
		s.IgnoreDrain = h.n(2) == 0
		if h.n(12) == 0 {
			s.Refused = errors.New("a reserved source")
		}
		subs = append(subs, s)
	}
	s := Submit{Jobs: subs, Known: map[string]job.ID{}, Ended: map[job.ID]job.Status{}}
	for {
		prepared, missing := h.m.Prepare(s)
		if len(missing.Keys)+len(missing.Jobs) == 0 {
			s = prepared
			break
		}
		for _, key := range missing.Keys {
			s.Known[key] = 0
			if id := h.keys[key]; h.seen(id) != nil {
				s.Known[key] = id
			}
		}
		for _, id := range missing.Jobs {
			s.Ended[id] = ""
			if j := h.seen(id); j != nil {
				s.Ended[id] = j.Status()
			}
		}
	}
	first := h.m.lastID + 1
	r := h.apply(s)
	w := h.writes[len(h.writes)-1]
	for _, id := range r.Repeated { // their second answer waits for them to be durable, too
		if j := h.m.Job(id); j != nil && !h.shown[id] {
			r.touch(id)
			r.Keys = append(r.Keys, j.Key)
			w.jobs[id], w.keys[j.Key] = j, id
		}
	}
	w.acks = r.Outcomes
	for _, sub := range subs {
		w.ackKey = append(w.ackKey, sub.Key)
	}
	h.checkRelative(subs, r.Outcomes, first)
}

// checkRelative compares what the jobs of a submission depend on with what
// their places say.
func (h *world) checkRelative(subs []Submission, out []Outcome, first job.ID) {
	for i, s := range subs {
		j := h.m.Job(out[i].ID)
		if out[i].Err != nil || j == nil || out[i].ID < first || len(j.Ops) != len(s.Ops) || s.Key != "" {
			continue
		}
		for k, op := range s.Ops {
			for d, dep := range op.Depends {
				place := i + int(dep.Job)
				if dep.Job > 0 || place < 0 || out[place].Err != nil {
					continue
				}
				if got := j.Ops[k].Input.Depends[d].Job; got != int64(out[place].ID) {
					panic(fmt.Sprintf("job %d depends on %d, and place %d is job %d", j.ID, got, place, out[place].ID))
				}
			}
		}
	}
}

func (h *world) oneRun() (run, bool) {
	all := slices.SortedFunc(maps.Keys(h.runs), func(a, b run) int { return int(a.id - b.id) })
	if len(all) == 0 {
		return run{}, false
	}
	return all[h.n(len(all))], true
}

func (h *world) finish() {
	r, ok := h.oneRun()
	if !ok {
		return
	}
	delete(h.runs, r)
	var err error
	if h.n(5) == 0 {
		err = errors.New("it failed")
	}
	h.apply(Done{Log: Log{Job: r.id, Index: r.index}, Result: []byte(`null`), Err: err})
}

func (h *world) logSome() {
	if r, ok := h.oneRun(); ok {
		h.apply(Log{Job: r.id, Index: r.index, Entries: []job.LogEntry{{Type: job.LogMessage, Payload: []byte(`"m"`)}}})
	}
}

func (h *world) release() {
	if r, ok := h.oneRun(); ok {
		h.apply(Release{Job: r.id, Index: r.index, Names: []lock.Name{{Level: lock.Instance, Item: h.move + "web1"}}})
	}
}

// askAgain has an opcode ask for its locks again: one that runs without, of which in this world none
// can be told then either, so that it begins again without, or one that means something else by now. What
// has begun asks so only where its old locks are of nothing that it acts upon, which this world does not know.
func (h *world) askAgain() {
	r, ok := h.oneRun()
	if e, there := h.m.jobs.Get(r.id); !ok || !there || e.request != nil && h.interrupted[r] {
		return
	}
	delete(h.runs, r)
	h.ran[r]--
	h.apply(AskAgain{Start: Start{Job: r.id, Index: r.index, Resumed: h.interrupted[r]}})
}

func (h *world) anyJob() job.ID { return job.ID(1 + h.n(int(h.m.lastID)+1)) }

func (h *world) cancel() {
	if h.m.closing {
		return
	}
	id := h.anyJob()
	kill := h.n(2) == 0
	before := h.m.Job(id)
	r := h.apply(Cancel{Job: id, Kill: kill})
	if j := h.m.Job(id); before != nil && !before.Final() && !j.Final() && j.CancelReason == "" {
		panic(fmt.Sprintf("job %d goes on after a cancel: %v", id, r.Answer))
	}
}

func (h *world) priority() {
	if !h.m.closing {
		h.apply(ChangePriority{Job: h.anyJob(), Priority: h.n(42) - 21})
	}
}

func (h *world) drain() {
	if !h.m.closing {
		h.apply(SetDrained{On: h.n(3) == 0})
	}
}

func (h *world) inventory() {
	h.max = 1 + h.n(3)
	h.surplus = h.m.running
	h.move, h.moved = []string{"", "moved-"}[h.n(2)], true
	h.apply(h.world())
}

// nodes has nodes go away, and come.
func (h *world) nodes() {
	h.away = map[string]*schedule.Absence{}
	for _, uuid := range []string{"of everybody", "of web1", "of web2"} {
		if h.n(3) == 0 {
			h.away[uuid] = &schedule.Absence{UUID: uuid, Node: "node " + uuid, Since: job.At(h.now), Lost: h.n(2) == 0}
		}
	}
	h.apply(h.world())
}

// archive moves a durable end into the archive.
func (h *world) archive() {
	for _, id := range slices.Sorted(maps.Keys(h.jobs)) {
		if j := h.jobs[id]; j.Final() && h.m.Job(id) == nil && h.n(2) == 0 {
			delete(h.jobs, id)
			h.archived[id] = j
			if j.Key != "" {
				h.keys[j.Key] = id
				h.apply(Forget{Keys: []string{j.Key}})
			}
			return
		}
	}
}

// crash loses what is not durable; what is on its way may still become so.
func (h *world) crash() {
	for range h.n(len(h.writes) + 1) {
		h.store(h.writes[0])
		h.writes = h.writes[1:]
	}
	h.open()
}

// stop ends the controller in good order; opcodes that run are interrupted.
func (h *world) stop() {
	h.apply(Stop{})
	h.settle()
	for id, j := range h.jobs {
		if j.Status() == job.Running && !h.runs[run{id, j.Next()}] && !h.m.unread[id] && !h.interrupted[run{id, j.Next()}] {
			panic(fmt.Sprintf("job %d was stored as running after a stop, and does not run", id))
		}
	}
	h.open()
}

// runDry lets everything end, without rules: every job that was acknowledged
// comes to an end.
func (h *world) runDry() error {
	h.apply(SetDrained{On: false})
	h.away = nil
	h.apply(h.world())
	for _, r := range slices.Clone(h.m.Rules()) {
		plan, err := h.m.PlanRules(without(r.UUID), inTurn)
		if err != nil {
			return err
		}
		h.apply(plan)
	}
	if h.settle(); len(h.m.unread) > 0 {
		h.open() // what was set aside is tried again by the next controller
	}
	for {
		h.settle()
		if err := h.check(); err != nil {
			return fmt.Errorf("while all ends: %w", err)
		}
		r, ok := h.oneRun()
		if !ok {
			break
		}
		delete(h.runs, r)
		h.apply(Done{Log: Log{Job: r.id, Index: r.index}, Result: []byte(`null`)})
	}
	if n := h.m.Unfinished(); n > 0 {
		return fmt.Errorf("%d jobs never end:\n%s", n, digest(h.m))
	}
	for id := range h.told {
		if j := h.stored(id); j == nil || !j.Final() {
			return fmt.Errorf("the acknowledged job %d is lost, or never ended", id)
		}
	}
	return nil
}

// digest tells all that a machine has decided.
func digest(m *Machine) string {
	var b strings.Builder
	fmt.Fprintf(&b, "last %d running %d\n", m.lastID, m.running)
	m.jobs.Scan(func(id job.ID, e *entry) bool {
		fmt.Fprintf(&b, "%d: place %d, %s, opcode %d, priority %d, pending %d, came %v, hold %v, buckets %v, rule %v, locks %v, cancel %q\n",
			id, e.place, e.job.Status(), e.job.Next(), e.job.Priority(), e.pending, e.came, e.job.Hold, e.buckets, e.rule, m.locks.Held(e.owner()), e.job.CancelReason)
		return true
	})
	m.ending.Scan(func(id job.ID, j *job.Job) bool {
		fmt.Fprintf(&b, "%d ended as %s\n", id, j.Status())
		return true
	})
	return b.String()
}
