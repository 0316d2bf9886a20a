package app_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// TestClientsDoNotNoticeThatTheLeadGoes: those who submit, on a connection for each job or on one for all, and those who wait for a job, there and over RAPI, at the
// one that leads and at others; and who has a connection on which nothing happens meanwhile.
func TestClientsDoNotNoticeThatTheLeadGoes(t *testing.T) {
	server := pgserver.Start(t, false)
	all := groupOver(t, slices.Repeat([]string{server.URL("unnoticed")}, 3)...)
	id := all[0].submitDelay(t, 3600)
	all[2].awaitStatus(t, id, "running")
	var mu sync.Mutex
	var ids []int
	submit := func(client *luxiwire.Client) error {
		var id int
		err := client.Call(context.WithoutCancel(t.Context()), "SubmitJob", []any{[]any{map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.001, "reason": []any{}}}}, &id)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			ids = append(ids, id)
		}
		return err
	}
	waits := func(client *luxiwire.Client) error { // as gnt-job watch does
		var change any
		return client.Call(context.WithoutCancel(t.Context()), "WaitForJobChange", []any{id, []string{"status"}, []string{"running"}, 1 << 30, 1}, &change)
	}
	ctx, stop := context.WithCancel(t.Context())
	var parts sync.WaitGroup
	defer parts.Wait()
	defer stop()
	again := func(what string, do func() error) {
		parts.Go(func() {
			for ctx.Err() == nil {
				if err := do(); err != nil {
					t.Errorf("%s is told: %v", what, err)
					return
				}
			}
		})
	}
	var idle []*luxiwire.Client
	for i, c := range all {
		submitter, waiter := c.dial(t), c.dial(t)
		again(fmt.Sprintf("who submits on one connection to c%d", i+1), func() error { return submit(submitter) })
		again(fmt.Sprintf("who waits at c%d", i+1), func() error { return waits(waiter) })
		again(fmt.Sprintf("who submits at c%d", i+1), func() error {
			client, err := luxiwire.Dial(context.WithoutCancel(t.Context()), c.ready.LUXI)
			if err != nil {
				return err
			}
			defer func() { _ = client.Close() }()
			return submit(client)
		})
		client := trusting()
		again(fmt.Sprintf("who sends over RAPI in pieces at c%d", i+1), func() error { return c.renames(client) })
		again(fmt.Sprintf("who waits over RAPI at c%d", i+1), func() error { return c.waits(client, id) })
		idle = append(idle, c.dial(t))
	}
	for _, to := range []int{1, 2, 0} {
		for i, client := range idle {
			if err := submit(client); err != nil {
				t.Errorf("who had nothing to ask at c%d is told: %v", i+1, err)
			}
		}
		all[to].call(t, "MasterFailover", new(any))
		all[(to+1)%len(all)].awaitLeader(t, fmt.Sprintf("c%d", to+1))
	}
	stop()
	all[0].call(t, "CancelJob", new(any), id, true) // nobody waits for it any more
	parts.Wait()
	var rows [][]any
	all[0].call(t, "QueryJobs", &rows, ids, []string{"id"})
	if len(ids) < len(all) || len(rows) != len(ids) || slices.ContainsFunc(rows, func(row []any) bool { return row[0] == nil }) {
		t.Errorf("of %d jobs that were acknowledged, %d are there", len(ids), len(rows))
	}
	for _, c := range all {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}

// waits asks RAPI to be told when a job is not running any more, as Ganeti's own client does.
func (c cluster) waits(client *http.Client, id int) error {
	return c.sends(client, http.MethodGet, fmt.Sprintf("/2/jobs/%d/wait", id),
		strings.NewReader(fmt.Sprintf(`{"fields": ["status"], "previous_job_info": ["running"], "previous_log_serial": %d}`, 1<<30)))
}

// renames submits a job by a body whose length is not told before.
func (c cluster) renames(client *http.Client) error {
	return c.sends(client, http.MethodPut, "/2/instances/i0/rename", struct{ io.Reader }{strings.NewReader(`{"new_name": "i1", "ip_check": false}`)})
}

func (c cluster) sends(client *http.Client, method, path string, body io.Reader) error {
	r, err := http.NewRequest(method, c.ready.RAPI+path, body)
	if err != nil {
		return err
	}
	r.SetBasicAuth("op", "secret")
	r.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d: %s", answer.StatusCode, text)
	}
	return err
}
