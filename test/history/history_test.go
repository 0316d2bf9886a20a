// Package history records what clients of three controllers do and are told while
// the controllers are killed, paused, stopped, cut off from the database, and the
// database crashes, and checks the records against a model: each object behaves
// as if there were one controller that never fails.
//
// A short run is part of the normal tests. DROVER_SOAK=10m (make soak) goes on for
// that long.
package history

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/sim/history"
	"github.com/drover-project/drover/internal/testkit"
)

// failure is what happens in the midst of a history; in the end all is well
// again.
type failure struct {
	name string
	// of happens, and returns how long it was before another controller answered,
	// if that matters.
	of func(g *group, leads *member, others []*member) time.Duration
}

var failures = []failure{
	{name: "the leader is killed", of: func(_ *group, leads *member, others []*member) time.Duration {
		leads.kill()
		took := others[0].answers()
		leads.start()
		return took
	}},
	{name: "the leader is stopped", of: func(_ *group, leads *member, others []*member) time.Duration {
		leads.stop()
		took := others[0].answers()
		leads.start()
		return took
	}},
	{name: "the leader is cut from the database", of: func(_ *group, leads *member, others []*member) time.Duration {
		leads.line.set(true)
		took := others[0].answers()
		leads.line.set(false)
		return took
	}},
	{name: "a standby is killed", of: func(_ *group, _ *member, others []*member) time.Duration {
		others[1].kill()
		others[0].answers()
		others[1].start()
		return 0
	}},
	{name: "the standbys pause for a while", of: func(g *group, leads *member, others []*member) time.Duration {
		for _, m := range others {
			m.signal(syscall.SIGSTOP)
		}
		took := leads.answers() // whatever they were granted
		rest(g, time.Second)
		for _, m := range others {
			m.signal(syscall.SIGCONT)
		}
		return took
	}},
	{name: "the leader pauses for a while", of: func(g *group, leads *member, _ []*member) time.Duration {
		leads.signal(syscall.SIGSTOP)
		rest(g, time.Second)
		leads.signal(syscall.SIGCONT)
		return 0
	}},
	{name: "the database crashes", of: func(g *group, _ *member, others []*member) time.Duration {
		g.db.Kill(syscall.SIGQUIT)
		g.db.Up()
		others[0].answers()
		return 0
	}},
	{name: "the lead is handed over", of: func(g *group, _ *member, others []*member) time.Duration {
		ctx, cancel := context.WithTimeout(g.Context(), patience)
		defer cancel()
		if err := others[0].ask(ctx, new(any), "MasterFailover"); err != nil {
			g.Logf("the lead was not handed over: %v", err) // under load it may have moved already
		}
		return 0
	}},
	{name: "the leader is killed and a standby is cut from the database", of: func(_ *group, leads *member, others []*member) time.Duration {
		others[1].line.set(true)
		leads.kill()
		took := others[0].answers()
		others[1].line.set(false)
		leads.start()
		return took
	}},
	{name: "the leader is cut from the others", of: func(g *group, leads *member, others []*member) time.Duration {
		leads.peer.set(true) // it leads on, for its own clients
		rest(g, time.Second)
		leads.answers()
		leads.peer.set(false)
		others[0].answers()
		return 0
	}},
	{name: "all are cut from one another, and the leader is killed", of: func(g *group, leads *member, others []*member) time.Duration {
		for _, m := range g.members {
			m.peer.set(true)
		}
		rest(g, time.Second)
		leads.kill()
		rest(g, time.Second) // one of the others leads, and answers its own clients
		for _, m := range g.members {
			m.peer.set(false)
		}
		took := others[0].answers()
		leads.start()
		return took
	}},
	{name: "the leader pauses until another leads", of: func(g *group, leads *member, others []*member) time.Duration {
		leads.signal(syscall.SIGSTOP)
		took := others[0].answers()
		rest(g, time.Second)
		leads.signal(syscall.SIGCONT)
		return took
	}},
}

// rest lets the clients go on for some time.
func rest(g *group, d time.Duration) {
	select {
	case <-time.After(d):
	case <-g.Context().Done():
	}
}

// normalRun is how many histories a group goes through in the normal tests,
// shortRun with -short.
const (
	normalRun = 10
	shortRun  = 3
)

// TestHistories has two groups go through histories at the same time.
func TestHistories(t *testing.T) {
	bin := testkit.Build(t)
	count := normalRun
	if testing.Short() {
		count = shortRun
	}
	var soak time.Duration
	if text := os.Getenv("DROVER_SOAK"); text != "" {
		var err error
		if soak, err = time.ParseDuration(text); err != nil {
			t.Fatalf("DROVER_SOAK: %v", err)
		}
	}
	for first := range 2 {
		t.Run(fmt.Sprintf("group %d", first+1), func(t *testing.T) {
			t.Parallel()
			g := newGroup(t, bin)
			g.prepare()
			end := time.Now().Add(soak)
			for n := 0; n < count || time.Now().Before(end); n++ {
				if t.Failed() {
					break
				}
				g.history(n, failures[(first*5+n)%len(failures)])
			}
			g.end()
		})
	}
}

// prepare makes the instance that has tags, and adds the rule that keeps some jobs from
// running.
func (g *group) prepare() {
	g.Helper()
	tagged := &asker{member: g.members[0]}
	if err := new(clients).run(g.Context(), tagged, map[string]any{
		"OP_ID": "OP_INSTANCE_CREATE", "instance_name": taggedInstance, "mode": "create", "disk_template": "diskless", "disks": []any{}, "nics": []any{},
		"name_check": false, "ip_check": false, "os_type": "counted", "pnode": "node1.drover.example", "start": false, "reason": []any{},
	}); err != nil {
		g.Fatal(err)
	}
	held := []any{[]any{"opcode", []any{"=", "comment", "held"}}}
	if err := g.members[0].ask(g.Context(), new(any), "ReplaceFilter", nil, 0, held, "PAUSE", []any{}); err != nil {
		g.Fatal(err)
	}
}

// history has clients ask while something fails, and checks what they were told.
func (g *group) history(n int, f failure) {
	g.Helper()
	leads, others := g.leader()
	h := &clients{g: g, name: fmt.Sprintf("h%d", n), begun: time.Now(), ids: map[string]int{}, made: map[string]bool{}}
	ctx, stop := context.WithCancel(g.Context())
	defer stop()
	const clients, before, after = 5, 300 * time.Millisecond, 500 * time.Millisecond
	var all sync.WaitGroup
	for id := range clients {
		all.Go(func() { h.client(ctx, id) })
	}
	all.Go(func() { h.create(ctx) })
	rest(g, before)
	took := f.of(g, leads, others)
	rest(g, after)
	stop()
	all.Wait()
	// In the end every controller tells the same.
	for i, m := range g.members {
		m.answers()
		for _, object := range h.objects() {
			h.ask(m, clients+i, history.Input{Object: object, Do: "read"})
		}
	}
	v := h.Check(patience)
	if v.Wrong != "" {
		g.Errorf("%s: what clients were told does not agree:\n%s", f.name, v.Wrong)
	}
	for _, why := range v.StaleWrong {
		g.Error(why)
	}
	g.Logf("%s: %d answers and %d that did not come, %s; %d that may have been old; another controller answered after %v; %d instances made; %d answers of standbys",
		f.name, v.Answers, v.Lost, v.Result, v.Stale, took.Round(time.Millisecond), len(h.made), g.answersOfStandbys())
	h.checkInstances()
}

// checkInstances: what was acknowledged as made was installed once, and nothing
// more often.
func (h *clients) checkInstances() {
	installs := h.g.installs()
	for name := range h.made {
		if installs[name] != 1 {
			h.g.Errorf("%s was made, and installed %d times", name, installs[name])
		}
	}
	for name, n := range installs {
		if n > 1 {
			h.g.Errorf("%s was installed %d times", name, n)
		}
	}
}

// end looks at all that is left when the group has ended.
func (g *group) end() {
	g.Helper()
	terms := g.checkTerms()
	for _, m := range g.members {
		m.stop()
	}
	out, err := exec.CommandContext(g.Context(), g.bin, "store", "check", g.url).CombinedOutput()
	if err != nil {
		g.Errorf("the store is not consistent: %v\n%s", err, out)
	}
	g.Logf("%d terms; %s", len(terms), out)
}
