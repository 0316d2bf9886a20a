package queue_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/schedule"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
)

// TestModel drives a queue by random requests, ends of opcodes, failures of the
// store and crashes, and compares it with what must hold whenever it has come
// to rest (invariants_test.go). Each half lives as many histories through as
// rapid makes: 100, unless -rapid.checks says otherwise.
func TestModel(t *testing.T) {
	for _, half := range []string{"first half", "second half"} {
		t.Run(half, func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { liveThrough(t, rt) }) })
	}
}

// liveThrough lives one history through.
func liveThrough(t *testing.T, rt *rapid.T) {
	m := newModel(t, rt)
	defer m.close()
	rt.Repeat(map[string]func(*rapid.T){
		"":               m.settleAndCheck,
		"submit":         m.submit,
		"submit again":   m.submit, // twice as likely as the others
		"finish":         m.finish,
		"finish again":   m.finish,
		"cancel":         m.cancel,
		"priority":       m.changePriority,
		"put rule":       m.putRule,
		"delete rule":    m.deleteRule,
		"archive":        m.archive,
		"fail the store": m.failStore,
		"refuse":         m.refuse,
		"restart":        m.restart,
		"crash":          m.crash,
	})
	m.runDry(rt)
}

// model is a queue with what a test knows about it.
type model struct {
	*rig
	faulty *faultstore.Store
	max    int
	// known are the jobs that were acknowledged, last what each was when the
	// queue last was at rest.
	known map[job.ID]bool
	last  map[job.ID]*job.Job
	// allowed is how many jobs of a bucket may be in flight where a change of
	// rules has put more than its limit into it.
	allowed map[schedule.Bucket]int
	rules   []string
	// refusing says that the store refuses things for good: then a request may be
	// refused, too.
	refusing bool
	// struck is closed when the injected failure has happened.
	struck <-chan struct{}
}

const resumable = `{"OP_ID":"OP_TEST_JQUEUE"}`

func newModel(t *testing.T, rt *rapid.T) *model {
	m := &model{known: map[job.ID]bool{}, last: map[job.ID]*job.Job{}, allowed: map[schedule.Bucket]int{}}
	m.rig = &rig{t: t, dir: inMemory(t), gates: map[string]*gate{}}
	m.wrap = func(s store.Store) store.Store {
		m.faulty = faultstore.New(s)
		return m.faulty
	}
	m.open()
	m.max = rapid.IntRange(1, 3).Draw(rt, "max running")
	m.setMax(m.max)
	return m
}

var (
	genOpcode   = rapid.SampledFrom([]string{dummy, resumable, resumable, shutdown("web1"), shutdown("web2")})
	genReason   = rapid.SampledFrom([]string{"", "", "bulk", "nightly", "rate-limit:1:x", "rate-limit:2:x", "rate-limit:1:y"})
	genStatuses = rapid.SampledFrom([][]string{nil, {"success"}, {"error"}, {"success", "canceled"}})
	genRule     = rapid.SampledFrom([]string{
		`[["reason",["=","reason","bulk"]]]`, `[["reason",["=","reason","nightly"]]]`,
		`[["opcode",["=","OP_ID","OP_INSTANCE_SHUTDOWN"]]]`, `[["jobid",["<=","id","watermark"]]]`, `[["jobid",[">","id","watermark"]]]`,
	})
	genAction = rapid.SampledFrom([]string{`"ACCEPT"`, `"PAUSE"`, `"PAUSE"`, `"REJECT"`, `"CONTINUE"`, `["RATE_LIMIT",1]`, `["RATE_LIMIT",2]`})
)

func (m *model) genOps(rt *rapid.T) []*opcode.Opcode {
	var ops []*opcode.Opcode
	for range rapid.IntRange(1, 3).Draw(rt, "opcodes") {
		op := *parse(m.t, genOpcode.Draw(rt, "opcode"))[0]
		op.Priority = rapid.SampledFrom([]int{-10, 0, 0, 10}).Draw(rt, "priority")
		if text := genReason.Draw(rt, "reason"); text != "" {
			op.Reason = parse(m.t, because(text))[0].Reason
		}
		if len(m.known) > 0 && rapid.IntRange(0, 3).Draw(rt, "depends") == 0 {
			on := rapid.SampledFrom(append(m.ids(), -1)).Draw(rt, "on")
			op.Depends = []opcode.Dependency{{Job: int64(on), Statuses: genStatuses.Draw(rt, "statuses")}}
		}
		ops = append(ops, &op)
	}
	return ops
}

func (m *model) ids() []job.ID { return slices.Sorted(maps.Keys(m.known)) }

func (m *model) anyJob(rt *rapid.T) job.ID {
	if len(m.known) == 0 {
		rt.Skip("no jobs")
	}
	return rapid.SampledFrom(m.ids()).Draw(rt, "job")
}

func (m *model) submit(rt *rapid.T) {
	var subs []queue.Submission
	for range rapid.IntRange(1, 3).Draw(rt, "jobs") {
		subs = append(subs, queue.Submission{Ops: m.genOps(rt)})
	}
	out, err := m.q.SubmitMany(ctx, subs)
	for i, o := range out {
		if m.carriedOut(rt, err) && m.carriedOut(rt, out[i].Err) {
			m.known[o.ID] = true
		}
	}
}

// inMemory returns a directory on a file system in memory where there is one:
// what crashes here is the queue, not the machine, and the disk would take
// most of the time.
func inMemory(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "drover-model-") //nolint:usetesting // t.TempDir cannot be told where
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// running returns the jobs of which an opcode runs.
func (m *model) running() []*job.Job {
	var out []*job.Job
	for j := range m.q.Jobs().All() {
		if j.Status() == job.Running {
			out = append(out, j)
		}
	}
	return out
}

func (m *model) finish(rt *rapid.T) {
	running := m.running()
	if len(running) == 0 {
		rt.Skip("nothing runs")
	}
	j := rapid.SampledFrom(running).Draw(rt, "job")
	var err error
	if rapid.IntRange(0, 4).Draw(rt, "outcome") == 0 {
		err = errors.New("it failed")
	}
	m.end(j, err)
}

func (m *model) end(j *job.Job, err error) {
	i := j.Next()
	m.rig.finish(j.ID, i, err)
	m.reaches(j.ID, "past its opcode", func(j *job.Job) bool { return j.Ops[i].Status.Final() })
}

func (m *model) cancel(rt *rapid.T) {
	id := m.anyJob(rt)
	kill := rapid.Bool().Draw(rt, "kill")
	_, err := m.q.Cancel(ctx, id, kill, queue.By{})
	if !m.carriedOut(rt, err) {
		return
	}
	if j := m.q.Jobs().Get(id); j != nil && !j.Final() {
		if j.CancelReason == "" {
			rt.Fatalf("job %d is %s after a cancel", id, j.Status())
		}
		if kill {
			m.reaches(id, "final after a kill", (*job.Job).Final)
		}
	}
}

func (m *model) changePriority(rt *rapid.T) {
	id := m.anyJob(rt)
	_, err := m.q.ChangePriority(ctx, id, rapid.IntRange(-20, 19).Draw(rt, "priority"), queue.By{})
	m.carriedOut(rt, err)
}

// putRule adds a rule or replaces one.
func (m *model) putRule(rt *rapid.T) {
	uuid := ""
	if len(m.rules) > 0 && rapid.Bool().Draw(rt, "replace") {
		uuid = rapid.SampledFrom(m.rules).Draw(rt, "rule")
	}
	r := rule(m.t, rapid.IntRange(0, 2).Draw(rt, "priority"), genAction.Draw(rt, "action"), genRule.Draw(rt, "predicates"))
	added, _, err := m.q.PutFilter(ctx, uuid, r, queue.By{})
	if m.carriedOut(rt, err) && uuid == "" {
		m.rules = append(m.rules, added)
	}
	m.allowSurplus()
}

func (m *model) deleteRule(rt *rapid.T) {
	if len(m.rules) == 0 {
		rt.Skip("no rules")
	}
	i := rapid.IntRange(0, len(m.rules)-1).Draw(rt, "rule")
	if m.carriedOut(rt, m.q.DeleteFilter(ctx, m.rules[i], queue.By{})) {
		m.rules = slices.Delete(m.rules, i, i+1)
	}
	m.allowSurplus()
}

// allowSurplus takes note of buckets that have too many jobs since rules have
// changed: what is in flight stays.
func (m *model) allowSurplus() {
	for b, n := range m.look().inFlight {
		m.allowed[b] = max(m.allowed[b], n)
	}
}

func (m *model) archive(rt *rapid.T) {
	id := m.anyJob(rt)
	j, err := m.q.Job(ctx, id)
	m.must(rt, err)
	done, err := m.q.Archive(ctx, id, queue.By{})
	if !m.carriedOut(rt, err) {
		return
	}
	if done != (j.Final() && !j.Archived) {
		rt.Fatalf("archiving job %d (%s, archived %v): %v", id, j.Status(), j.Archived, done)
	}
}

// failStore makes one transaction fail that is still to come.
func (m *model) failStore(rt *rapid.T) {
	if m.struck != nil {
		select {
		case <-m.struck:
		default:
			rt.Skip("a failure is under way")
		}
	}
	m.struck = m.faulty.Inject(faultstore.Fault{
		Do:   rapid.SampledFrom([]faultstore.Effect{faultstore.FailBefore, faultstore.FailAfter}).Draw(rt, "effect"),
		Skip: rapid.IntRange(0, 2).Draw(rt, "skip"),
	})
}

// refuse has the store refuse a transaction that is still to come for good, once
// in a life of the queue: what is refused twice is set aside, and never ends.
func (m *model) refuse(rt *rapid.T) {
	if m.refusing {
		rt.Skip("it has")
	}
	m.refusing = true
	m.faulty.Inject(faultstore.Fault{Do: faultstore.FailBefore, Skip: rapid.IntRange(0, 2).Draw(rt, "skip"),
		Err: fault.New(fault.TooLarge, "far too large"), When: func(tx store.Tx) bool { return len(tx.Put) > 0 }})
}

// restart ends the controller in good order, with opcodes running.
func (m *model) restart(*rapid.T) { m.reopen() }

// crash ends the controller in the middle of a submission. The store says that the
// controller is fenced: then the queue neither waits nor tries again, as nothing does
// that was killed, and no clock decides what becomes of the request.
func (m *model) crash(rt *rapid.T) {
	effect := rapid.SampledFrom([]faultstore.Effect{faultstore.CrashBefore, faultstore.CrashAfter}).Draw(rt, "effect")
	m.faulty.Inject(faultstore.Fault{Do: effect, Err: fault.New(fault.Fenced, "killed")})
	if _, err := m.q.Submit(ctx, queue.Submission{Ops: m.genOps(rt)}); err == nil {
		rt.Fatal("a submission was acknowledged by a store that had crashed")
	}
	m.reopen()
}

func (m *model) reopen() {
	m.rig.crash()
	m.struck, m.refusing = nil, false
	for j := range m.q.Jobs().All() {
		m.known[j.ID] = true // also one whose submission was not answered
	}
}

// runDry lets everything end, without rules.
func (m *model) runDry(rt *rapid.T) {
	for _, uuid := range m.rules {
		for !m.carriedOut(rt, m.q.DeleteFilter(ctx, uuid, queue.By{})) {
			continue
		}
		m.allowSurplus()
		m.settleAndCheck(rt)
	}
	m.rules = nil
	for {
		m.settleAndCheck(rt)
		running := m.running()
		if len(running) == 0 {
			break
		}
		m.end(running[0], nil)
	}
	m.rig.crash()
	m.settleAndCheck(rt)
	for id := range m.known {
		if j := m.last[id]; !j.Final() {
			rt.Fatalf("job %d never ended: %s", id, j.Encode())
		}
	}
}

func (m *model) must(rt *rapid.T, err error) {
	rt.Helper()
	if err != nil {
		rt.Fatal(err)
	}
}

// carriedOut reports whether a request was, as it must be unless the store
// refuses things for good.
func (m *model) carriedOut(rt *rapid.T, err error) bool {
	rt.Helper()
	if m.refusing && fault.Is(err, fault.TooLarge) {
		return false
	}
	m.must(rt, err)
	return true
}

// rest waits until everything that was decided is durable and every opcode
// that may run does. A second request is behind whatever the first made the
// queue write again.
func (m *model) rest(rt *rapid.T) {
	for range 2 {
		for !m.carriedOut(rt, m.q.SetDrained(context.Background(), false, queue.By{})) {
			continue // the store has refused it, and takes the next
		}
	}
	for _, j := range m.running() {
		m.began(j.ID, j.Next())
	}
}

func (m *model) settleAndCheck(rt *rapid.T) {
	m.rest(rt)
	s := m.look()
	for b, n := range s.inFlight {
		if n > max(b.Limit, m.allowed[b]) {
			rt.Fatalf("%d jobs are in flight in %s\n%s", n, b, s)
		}
	}
	for b := range m.allowed {
		m.allowed[b] = min(m.allowed[b], s.inFlight[b])
	}
	for _, err := range []error{
		m.checkSlots(s), m.checkLocks(s), m.checkNobodyIsForgotten(s), m.checkOrder(s), m.checkPaused(s), m.checkHistory(s), m.checkRuns(s),
	} {
		if err != nil {
			rt.Fatalf("%v\n%s\nbefore:\n%s", err, s, &state{jobs: m.last, chain: s.chain})
		}
	}
	m.last = s.jobs
}

// String lists what is not final, for a failure.
func (s *state) String() string {
	var b strings.Builder
	for _, r := range s.chain.Rules() {
		fmt.Fprintf(&b, "rule %s\n", r.Describe())
	}
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		j := s.jobs[id]
		if j.Final() {
			continue
		}
		fmt.Fprintf(&b, "job %d: %s, opcode %d, priority %d, hold %v, rule %v, buckets %v, depends on %v\n",
			id, j.Status(), j.Next(), j.Priority(), j.Hold, s.rule(j), s.buckets(j), j.Dependencies())
	}
	return b.String()
}
