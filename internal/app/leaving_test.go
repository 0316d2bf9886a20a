package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// balancer divides requests among controllers as those do that people run: whoever answers /readyz with anything but 200
// twice in a row gets none.
type balancer struct {
	t   *testing.T
	all []cluster

	mu   sync.Mutex
	down []int
	next int
}

// lookEvery is how often it looks at each.
const lookEvery = 50 * time.Millisecond

func (b *balancer) look(ctx context.Context, client *http.Client) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		for i, c := range b.all {
			r, _ := http.NewRequestWithContext(ctx, http.MethodGet, c.ready.RAPI+"/readyz", http.NoBody)
			answer, err := client.Do(r)
			up := err == nil && answer.StatusCode == http.StatusOK
			if err == nil {
				_ = answer.Body.Close()
			}
			b.mu.Lock()
			if b.down[i]++; up {
				b.down[i] = 0
			}
			b.mu.Unlock()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// choose is who gets the next request.
func (b *balancer) choose() cluster {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		b.next = (b.next + 1) % len(b.all)
		if b.down[b.next] < 2 {
			return b.all[b.next]
		}
	}
}

// submitOver hands a job in over RAPI, and returns its number; whatever is no success is an error.
func (b *balancer) submitOver(ctx context.Context, client *http.Client) (id int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, b.choose().ready.RAPI+"/2/tags?tag=a", http.NoBody)
	if err != nil {
		return 0, err
	}
	r.SetBasicAuth("op", "secret")
	answer, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d: %s", answer.StatusCode, text)
	}
	if err == nil {
		id, err = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	return id, err
}

// TestLeavingInOrder: while one controller after the other leaves, the leader among them, nobody who asks through a balancer is
// refused, and what was acknowledged is there.
func TestLeavingInOrder(t *testing.T) {
	server := pgserver.Start(t, false)
	all := groupWith(t, slices.Repeat([]string{server.URL("leaving")}, 3), func(o *app.Options) { o.ShutdownDelay = 4 * time.Second })
	b := &balancer{t: t, all: all, down: make([]int, len(all))}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var parts sync.WaitGroup
	parts.Go(func() { b.look(ctx, trusting()) })
	var mu sync.Mutex
	var ids []int
	for range 4 {
		parts.Go(func() {
			client := trusting()
			for ctx.Err() == nil {
				switch id, err := b.submitOver(context.WithoutCancel(ctx), client); {
				case err != nil:
					t.Errorf("a request is refused: %v", err)
					return
				default:
					mu.Lock()
					ids = append(ids, id)
					mu.Unlock()
				}
			}
		})
	}
	all[1].delay(t)
	if err := all[0].stop(); err != nil {
		t.Error(err)
	}
	second, third := all[1], all[2]
	if leader := second.leader(t); leader == "c3" {
		second, third = third, second
	} else if leader != "c2" {
		t.Errorf("%s leads", leader)
	}
	if err := second.stop(); err != nil {
		t.Error(err)
	}
	if leader := third.leader(t); leader != "c2" && leader != "c3" {
		t.Errorf("%s leads", leader)
	}
	stop()
	parts.Wait()
	var rows [][]any
	third.call(t, "QueryJobs", &rows, ids, []string{"id"})
	if len(ids) < 10 || len(rows) != len(ids) || slices.ContainsFunc(rows, func(row []any) bool { return row[0] == nil }) {
		t.Errorf("of %d jobs that were acknowledged, %d are there", len(ids), len(rows))
	}
	t.Logf("%d requests", len(ids))
	if err := third.stop(); err != nil { // there is nobody who could have the lead
		t.Error(err)
	}
}

// TestWhoIsBeingAnsweredIsAnsweredBeforeTheLeadGoes: the lead is asked for while the body of a request is still on its way. It is carried out here, and nobody
// is told that the controller shuts down.
func TestWhoIsBeingAnsweredIsAnsweredBeforeTheLeadGoes(t *testing.T) {
	server := pgserver.Start(t, false)
	all := groupOver(t, server.URL("answered"), server.URL("answered"))
	body, rest := io.Pipe()
	taken := make(chan struct{})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got100Continue: func() { close(taken) }})
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, all[0].ready.RAPI+"/2/instances/i0/rename", body)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("op", "secret")
	r.Header.Set("Expect", "100-continue")
	r.Header.Set("Content-Type", "application/json")
	status := make(chan int, 1)
	go func() {
		client := trusting()
		client.Transport.(*http.Transport).ExpectContinueTimeout = testkit.Patience() //nolint:forcetypeassert // it is made so
		answer, err := client.Do(r)
		if err != nil {
			t.Error(err)
			status <- 0
			return
		}
		_ = answer.Body.Close()
		status <- answer.StatusCode
	}()
	<-taken
	asked, led := time.Now(), make(chan struct{})
	go func() {
		all[1].call(t, "MasterFailover", new(any))
		close(led)
	}()
	select {
	case <-led:
	case <-time.After(app.ChangesEnd / 4): // nothing tells that the lead stays
	}
	_, _ = rest.Write([]byte(`{"new_name": "i1", "ip_check": false}`))
	_ = rest.Close()
	if got := <-status; got != http.StatusOK && time.Since(asked) < app.ChangesEnd { // on a machine that is too busy for it the time to answer may be over
		t.Errorf("who was being answered got %d", got)
	}
	<-led
	for _, c := range all {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestLeavingSaysSo: a controller that leaves says so from the first moment on, and hands the lead over to one that stays: what runs may come to its end
// meanwhile, and requests are taken.
func TestLeavingSaysSo(t *testing.T) {
	server := pgserver.Start(t, false)
	all := groupWith(t, slices.Repeat([]string{server.URL("says")}, 3), func(o *app.Options) {
		o.ShutdownDelay, o.StopGrace = 6*time.Second, time.Minute
	})
	id := all[0].submitDelay(t, 4)
	left := make(chan error, 2)
	go func() { left <- all[2].stop() }() // it is no successor
	all[0].awaitLeaving(t, "c3")
	go func() { left <- all[0].stop() }()
	all[1].awaitLeaving(t, "c1")
	status, h := all[0].health(t)
	if status != http.StatusServiceUnavailable || h.Ready || !strings.Contains(fmt.Sprint(h.Problems), "the controller is stopping") {
		t.Errorf("it says %d, %+v", status, h)
	}
	var later int // it is taken here, and runs where the lead is then
	all[0].call(t, "SubmitJob", &later, []any{map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.001, "reason": []any{}}})
	var runs [][]string
	all[0].call(t, "QueryJobs", &runs, []int{id}, []string{"status"})
	if runs[0][0] != "running" {
		t.Errorf("a request waits until what runs has ended, which is %s", runs[0][0])
	}
	all[1].awaitStatus(t, later, "success")
	all[1].awaitStatus(t, id, "success")
	for range 2 {
		if err := <-left; err != nil {
			t.Error(err)
		}
	}
	all[1].awaitMasters(t, "c2 leader")
	var begun [][]json.RawMessage
	all[1].call(t, "QueryJobs", &begun, []int{id}, []string{"oplog"})
	if log := string(begun[0][0]); strings.Contains(log, "The controller ended") {
		t.Errorf("what ran was not given its time: %s", log)
	}
	if err := all[1].stop(); err != nil {
		t.Error(err)
	}
}

// leader is the name of who leads, as a controller says.
func (c cluster) leader(t *testing.T) string {
	t.Helper()
	var rows []master
	c.call(t, "QueryMasters", &rows)
	for _, r := range rows {
		if r.Role == "leader" {
			return r.Name
		}
	}
	return ""
}

// awaitLeaving waits until a controller says of itself that it is leaving.
func (c cluster) awaitLeaving(t *testing.T, name string) {
	t.Helper()
	limit := time.After(patience)
	for {
		var rows []struct{ Name, Note string }
		c.call(t, "QueryMasters", &rows)
		for _, r := range rows {
			if r.Name == name && r.Note == "it is leaving" {
				return
			}
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-limit:
			t.Fatalf("%s does not say that it is leaving: %v", name, rows)
		}
	}
}
