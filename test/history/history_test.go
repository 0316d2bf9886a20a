// Package history records what clients of three controllers do and are told while
// the controllers are killed, paused, stopped, cut off from the database, and the
// database crashes, and checks the records against a model: each object behaves
// as if there were one controller that never fails.
//
// Outside of all that is stored, scripts work on instances meanwhile: never two on one.
//
// A short run is part of the normal tests. DROVER_SOAK=10m (make soak) goes on for
// that long, DROVER_HISTORIES=1000 for so many histories.
package history

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/sim/history"
	"github.com/drover-project/drover/internal/testkit"
)

// rest lets the clients go on for some time.
func rest(g *group, d time.Duration) {
	select {
	case <-time.After(d):
	case <-g.Context().Done():
	}
}

// plan is what fails in a group, one after the other: in the normal tests each of the failures in the first, and in the second
// each that takes no longer than it has to; a few with -short. Then it goes on with any of them until the time of a soak, or the
// number of DROVER_HISTORIES for all groups, is over.
func plan(t *testing.T, random *rand.Rand, group int) iter.Seq[failure] {
	t.Helper()
	all := slices.DeleteFunc(slices.Clone(failures), func(f failure) bool { return f.slow && (group > 0 || testing.Short()) })
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if testing.Short() {
		const few = 3
		all = all[:few]
	}
	var end time.Time
	if text := os.Getenv("DROVER_SOAK"); text != "" {
		soak, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("DROVER_SOAK: %v", err)
		}
		end = time.Now().Add(soak)
	}
	most := 0
	if text := os.Getenv("DROVER_HISTORIES"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("DROVER_HISTORIES: %v", err)
		}
		most = n / groups
	}
	return func(yield func(failure) bool) {
		for n := 0; n < len(all) || n < most || time.Now().Before(end); n++ {
			f := failures[random.IntN(len(failures))]
			if n < len(all) {
				f = all[n]
			}
			if !yield(f) {
				return
			}
		}
	}
}

// groups is how many groups go through histories at the same time.
const groups = 2

// TestHistories has groups go through histories at the same time.
func TestHistories(t *testing.T) {
	bin := testkit.Build(t)
	for number := range groups {
		t.Run(fmt.Sprintf("group %d", number+1), func(t *testing.T) {
			t.Parallel()
			g := newGroup(t, bin)
			g.prepare()
			e := g.beginEffects()
			n := 0
			for f := range plan(t, rand.New(rand.NewPCG(rand.Uint64(), 0)), number) {
				g.history(n, f)
				if n++; t.Failed() {
					break
				}
			}
			e.end()
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
	if err := tagged.get(g.Context(), "/2/instances/"+taggedInstance+"/tags", new([]string)); err != nil {
		g.Fatal(err)
	}
	if g.prepared = tagged.revision; g.prepared == 0 {
		g.Fatal("an answer does not say as of when it is")
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
	const clients, before, after = 5, 150 * time.Millisecond, 300 * time.Millisecond
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

// checkInstances: what was acknowledged as made was installed, and nothing was more often than its job tells of: an installation that
// was under way when a controller ended begins from the beginning.
func (h *clients) checkInstances() {
	installs, again := h.g.installs(), h.g.wentOn()
	for name := range h.made {
		if installs[name] == 0 {
			h.g.Errorf("%s was made, and not installed", name)
		}
	}
	for name, n := range installs {
		if n > 1+again[name] {
			h.g.Errorf("%s was installed %d times, and its job went on %d times", name, n, again[name])
		}
	}
}

// wentOn counts how often the creation of each instance went on behind a restart, or was run again, by what the logs of jobs tell.
func (g *group) wentOn() map[string]int {
	g.Helper()
	var rows [][]json.RawMessage
	leads, _ := g.leader()
	if err := leads.ask(g.Context(), &rows, "QueryJobs", nil, []string{"summary", "oplog"}); err != nil {
		g.Fatal(err)
	}
	out := map[string]int{}
	for _, row := range rows {
		_, name, creates := strings.Cut(string(row[0]), "INSTANCE_CREATE(")
		name, _, _ = strings.Cut(name, ")")
		if log := string(row[1]); creates {
			out[name] += strings.Count(log, "it goes on: ") + strings.Count(log, "it is run again")
		}
	}
	return out
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
