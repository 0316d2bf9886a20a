package agentwire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/testkit"
)

// defaultHistories are those of a normal run; $DROVER_HISTORIES names another number.
const defaultHistories = 64

// TestHistories gives orders to a node over a wire that loses requests and answers, doubles requests, holds them back until long afterwards and cuts answers in
// their midst, while the agent begins anew now and then. What it answered agrees with what was done: the model of a history is a count for each order.
// A failure names the history; $DROVER_HISTORY tries it alone.
func TestHistories(t *testing.T) {
	if one := os.Getenv("DROVER_HISTORY"); one != "" {
		seed, err := strconv.ParseUint(one, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		liveHistory(t, seed)
		return
	}
	n := defaultHistories
	if text := os.Getenv("DROVER_HISTORIES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	const atATime = 16 // they wait most of the time
	var all sync.WaitGroup
	var mu sync.Mutex
	seen, turn := map[string]int{}, make(chan struct{}, atATime)
	for seed := 1; seed <= n && !t.Failed(); seed++ {
		turn <- struct{}{}
		all.Go(func() {
			happened := liveHistory(t, uint64(seed))
			<-turn
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(seen, happened)
		})
	}
	all.Wait()
	for _, what := range []string{"lost", "doubled", "late", "no answer", "cut", "begun anew"} {
		if seen[what] == 0 {
			t.Errorf("in %d histories no message was %s", n, what)
		}
	}
}

// deeds counts what a node did, by order.
type deeds struct {
	silent

	mu   sync.Mutex
	done map[int]int
}

func (d *deeds) did(o agent.Order) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.done[int(o.Job)]++
}

// RebootSoft may not be done twice. Some fail.
func (d *deeds) RebootSoft(_ context.Context, o agent.Order, _ hypervisor.Thing, _ reason.Trail) error {
	d.did(o)
	if o.Job%5 == 0 {
		return fault.New(fault.WrongState, "order %d fails", o.Job)
	}
	return nil
}

// Install tells lines.
func (d *deeds) Install(_ context.Context, o agent.Order, _ hypervisor.Spec, _ string, _ map[string]string, log func(string)) error {
	for i := range linesOf(int(o.Job)) {
		log(fmt.Sprintf("%d/%d", o.Job, i))
	}
	d.did(o)
	return nil
}

func linesOf(order int) int { return order * 7 % 40 }

// weather is a wire in its worst mood.
type weather struct {
	t       *testing.T
	journal string
	node    *deeds

	mu      sync.Mutex
	rand    *rand.Rand
	handler *Handler
	seen    map[string]int
	late    sync.WaitGroup
}

// chance is true once in so many times.
func (w *weather) chance(in int, what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rand.IntN(in) > 0 {
		return false
	}
	w.seen[what]++
	return true
}

func (w *weather) n(below int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.IntN(below)
}

func (w *weather) present() *Handler {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.handler
}

// anew has the agent begin anew, behind the end of the one before.
func (w *weather) anew() {
	if before := w.present(); before != nil {
		before.Close()
	}
	h, err := NewHandler(w.node, w.journal)
	if err != nil {
		w.t.Error(err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handler = h
}

var errWeather = errors.New("the wire is cut")

// RoundTrip carries a request to the agent, and the answer back, or not.
func (w *weather) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	to := w.present()
	if w.chance(6, "lost") {
		return nil, errWeather
	}
	if w.chance(6, "doubled") {
		w.arrives(to, r, text, 0)
	}
	if w.chance(6, "late") {
		w.arrives(to, r, text, time.Duration(w.n(20))*time.Millisecond)
		return nil, errWeather
	}
	answer := serve(r.Context(), to, r, text)
	switch {
	case w.chance(6, "no answer"):
		return nil, errWeather
	case w.chance(6, "cut"):
		whole, _ := io.ReadAll(answer.Body)
		answer.Body = io.NopCloser(io.MultiReader(strings.NewReader(string(whole[:w.n(len(whole)+1)])), brokenReader{}))
	}
	return answer, nil
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errWeather }

// arrives has a copy of a request arrive after a time, at the agent to which it was sent: a connection does not outlive it. Nobody waits for its answer.
func (w *weather) arrives(to *Handler, r *http.Request, text []byte, after time.Duration) {
	w.late.Go(func() {
		time.Sleep(after)
		_ = serve(context.WithoutCancel(r.Context()), to, r, text).Body.Close()
	})
}

func serve(ctx context.Context, to *Handler, r *http.Request, text []byte) *http.Response {
	rec := httptest.NewRecorder()
	to.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, r.Method, r.URL.Path, strings.NewReader(string(text))))
	return rec.Result()
}

// liveHistory lives one history through, and returns what happened to messages.
func liveHistory(t *testing.T, seed uint64) map[string]int {
	t.Helper()
	w := &weather{t: t, journal: t.TempDir(), rand: rand.New(rand.NewPCG(seed, 21)), seen: map[string]int{}, node: &deeds{done: map[int]int{}}}
	w.anew()
	c := NewClient("node1", func(context.Context) (http.RoundTripper, error) { return w, nil }, testkit.Patience())
	const orders = 12
	var all sync.WaitGroup
	came := make([]error, orders+1)
	for i := 1; i <= orders; i++ {
		all.Go(func() {
			order := agent.Order{Epoch: 1, Job: job.ID(i)}
			if i%3 > 0 {
				came[i] = c.RebootSoft(t.Context(), order, hypervisor.Thing{UUID: "u", Name: "web1"}, nil)
				return
			}
			var lines []string
			came[i] = c.Install(t.Context(), order, hypervisor.Spec{}, "noop", nil, func(line string) { lines = append(lines, line) })
			for k, line := range lines {
				if line != fmt.Sprintf("%d/%d", i, k) {
					t.Errorf("history %d: line %d of order %d is %q", seed, k, i, line)
				}
			}
			if came[i] == nil && len(lines) != linesOf(i) {
				t.Errorf("history %d: order %d told %d lines, has %d", seed, i, len(lines), linesOf(i))
			}
		})
	}
	if seed%2 == 0 {
		all.Go(func() {
			time.Sleep(time.Duration(w.n(10)) * time.Millisecond)
			w.mu.Lock()
			w.seen["begun anew"]++
			w.mu.Unlock()
			w.anew()
		})
	}
	all.Wait()
	w.late.Wait()
	w.present().Close()
	w.node.mu.Lock()
	defer w.node.mu.Unlock()
	for _, i := range slices.Sorted(maps.Keys(w.node.done)) {
		if w.node.done[i] > 1 && i%3 > 0 {
			t.Errorf("history %d: order %d was carried out %d times", seed, i, w.node.done[i])
		}
	}
	for i := 1; i <= orders; i++ {
		done, err := w.node.done[i], came[i]
		fails := i%3 > 0 && i%5 == 0
		switch {
		case err == nil && (done == 0 || fails):
			t.Errorf("history %d: order %d is said to have succeeded, and was done %d times", seed, i, done)
		case fault.Is(err, fault.WrongState) && (done == 0 || !fails):
			t.Errorf("history %d: order %d is said to have failed, and was done %d times: %v", seed, i, done, err)
		case fault.Is(err, fault.Unavailable): // nobody knows: only an agent that began anew may leave it so
			if seed%2 > 0 {
				t.Errorf("history %d: nobody knows of order %d, though the agent was there all the time: %v", seed, i, err)
			}
		case err != nil && !fault.Is(err, fault.WrongState):
			t.Errorf("history %d: order %d: %v", seed, i, err)
		}
	}
	return w.seen
}
