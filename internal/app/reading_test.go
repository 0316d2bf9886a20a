package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/luxiwire"
)

// standbysAnswer asks a standby for what it may answer itself.
func standbysAnswer(t *testing.T, url string) {
	t.Helper()
	all := groupOf(t, url, 2)
	standby := all[1]
	client, err := luxiwire.Dial(t.Context(), standby.ready.LUXI)
	if err != nil {
		t.Fatal(err)
	}
	client.Stale = true
	call := func(method string, result any, args ...any) {
		t.Helper()
		if err := client.Call(t.Context(), method, args, result); err != nil {
			t.Fatal(err)
		}
	}
	standby.untilItAnswers(t, "luxi", func() { call("QueryTags", new(any), "cluster", "") })
	// Who changed something reads it there, wherever it was done.
	for n := range 50 {
		var id int
		call("SubmitJob", &id, []any{map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.001, "reason": [][]any{{"user", "x", 1}}}})
		var answer struct{ Data [][][2]any }
		call("Query", &answer, "job", []string{"id", "status", "opstatus"}, []any{"=", "id", id})
		if len(answer.Data) != 1 || answer.Data[0][0][1] != float64(id) {
			t.Fatalf("the job %d of round %d is not there: %v", id, n, answer.Data)
		}
		call("Query", &answer, "job", []string{"id", "held_by"}, []any{"=", "id", id}) // the leader tells
		if len(answer.Data) != 1 {
			t.Fatalf("the job %d is not there: %v", id, answer.Data)
		}
	}
	_ = client.Close()
	_, text := standby.page(t, "/metrics")
	if want := `drover_requests_total{api="luxi",code="ok",method="Query"} 50`; !strings.Contains(text, "\n"+want+"\n") {
		t.Errorf("the standby's figures do not tell %s", want)
	}
	standby.answersRAPI(t)
	for _, c := range []cluster{standby, all[0]} {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}

// standbysAnswerAsTheLeader asks a standby for what it answers itself only while it is
// certain that the leader would answer the same.
func standbysAnswerAsTheLeader(t *testing.T, url string) {
	t.Helper()
	all := groupOf(t, url, 2)
	standby, client, asking := all[1], all[1].dial(t), trusting()
	standby.untilItAnswers(t, "luxi", func() {
		if err := client.Call(t.Context(), "QueryTags", []any{"cluster", ""}, new(any)); err != nil {
			t.Fatal(err)
		}
	})
	standby.untilItAnswers(t, "rapi", func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, standby.ready.RAPI+"/2/nodes", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("op", "secret")
		answer, err := asking.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _ = answer.Body.Close(); answer.StatusCode != http.StatusOK {
			t.Fatal(answer.Status)
		}
	})
	// What is acknowledged at one is read at the other, at once.
	for n := range 50 {
		at, there := all[n%2], all[1-n%2]
		var id int
		at.call(t, "SubmitJob", &id, []any{map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.001, "reason": [][]any{{"user", "x", 1}}}})
		var rows []any
		there.call(t, "QueryJobs", &rows, []int{id}, []string{"id"})
		if len(rows) != 1 || rows[0] == nil {
			t.Fatalf("the job %d of round %d is not there: %v", id, n, rows)
		}
	}
	for _, c := range slices.Backward(all) {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}

// untilItAnswers asks until the controller answered something itself: it reads
// what there is first.
func (c cluster) untilItAnswers(t *testing.T, api string, ask func()) {
	t.Helper()
	again, limit := time.NewTicker(10*time.Millisecond), time.After(patience)
	defer again.Stop()
	for {
		ask()
		if _, text := c.page(t, "/metrics"); answeredItself(text, api) {
			return
		}
		select {
		case <-again.C:
		case <-limit:
			t.Fatal("the standby answers nothing itself")
		}
	}
}

// answeredItself tells whether the figures of a controller count an answer of its own
// that it gave while it stood by.
func answeredItself(figures, api string) bool {
	_, count, told := strings.Cut(figures, fmt.Sprintf("\ndrover_standby_requests_total{answered_by=%q,api=%q} ", "standby", api))
	return told && !strings.HasPrefix(count, "0\n")
}

// answersRAPI asks a standby over RAPI.
func (c cluster) answersRAPI(t *testing.T) {
	t.Helper()
	ask := func(path, password string, header map[string]string) (int, string, http.Header) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.ready.RAPI+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("op", password)
		for name, value := range header {
			r.Header.Set(name, value)
		}
		answer, err := trusting().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text), answer.Header
	}
	_, changed := c.write(t, "secret", "r-1")
	revision := changed.Get("Drover-Revision")
	stale := map[string]string{"Drover-Stale": "1", "Drover-Revision": revision, "X-Request-ID": "r-2"}
	for _, path := range []string{"/2/jobs", "/2/jobs?bulk=1", "/2/nodes", "/2/instances?bulk=1", "/2/info", "/2/tags", "/2/query/job?fields=id,held_by", "/2/query/job?fields=id,status"} {
		status, text, header := ask(path, "secret", stale)
		if status != http.StatusOK || !json.Valid([]byte(text)) || len(header["X-Request-Id"]) != 1 || len(header["Drover-Revision"]) != 1 {
			t.Errorf("%s: %d %s %v", path, status, text, header)
		}
		told, err := strconv.ParseInt(header.Get("Drover-Revision"), 10, 64)
		wanted, _ := strconv.ParseInt(revision, 10, 64)
		if err != nil || told < wanted {
			t.Errorf("%s: not older than %s was asked for, and it is of %d", path, revision, told)
		}
		if status, _, _ := ask(path, "wrong", stale); status != http.StatusUnauthorized {
			t.Errorf("%s: %d for a wrong password", path, status)
		}
	}
	if _, text := c.page(t, "/metrics"); !strings.Contains(text, fmt.Sprintf("drover_requests_total{api=%q,code=%q,method=%q}", "rapi", "200", "GET")) {
		t.Error("the standby answered nothing over RAPI itself")
	}
}
