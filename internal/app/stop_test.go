package app_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
)

// submitDelay submits a job that takes some seconds, and waits until it runs.
func (c cluster) submitDelay(t *testing.T, seconds float64) (id int) {
	t.Helper()
	c.call(t, "SubmitJob", &id, []any{map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": seconds, "reason": []any{}}})
	c.awaitStatus(t, id, "running")
	return id
}

// awaitStatus waits until a job has a status.
func (c cluster) awaitStatus(t testing.TB, id int, want string) {
	t.Helper()
	client := c.dial(t) // one for all questions: a job may change often
	for status := ""; status != want; {
		var change [2]json.RawMessage
		const noLog = 1 << 30 // what the job says is no change of its status
		if err := client.Call(t.Context(), "WaitForJobChange", []any{id, []string{"status"}, []string{status}, noLog, 10}, &change); err != nil {
			t.Fatal(err)
		}
		var values []string
		if err := json.Unmarshal(change[0], &values); err != nil {
			t.Fatal(err)
		}
		if status = values[0]; status != want && (status == "success" || status == "error" || status == "canceled") {
			t.Fatalf("job %d ended with %s", id, status)
		}
	}
}

// TestStopGrace: what runs may end when the controller stops, as long as the
// grace lasts; what it ends is resumed at the next start.
func TestStopGrace(t *testing.T) {
	for _, tc := range []struct {
		name    string
		grace   time.Duration
		seconds float64
		ended   bool
	}{
		{"it may end", time.Hour, 0.5, true},
		{"it is ended", 0, 3600, false},
		{"its time is over", time.Millisecond, 3600, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			c := startWith(t, app.Options{Data: dir, StopGrace: tc.grace})
			id := c.submitDelay(t, tc.seconds)
			if err := c.stop(); err != nil {
				t.Fatal(err)
			}
			again := time.Now()
			c = start(t, dir, false)
			var rows [][]any
			c.call(t, "QueryJobs", &rows, []int{id}, []string{"status", "end_ts"})
			end, _ := rows[0][1].([]any)
			switch {
			case !tc.ended && end != nil:
				t.Errorf("the job has ended: %v", rows[0])
			case tc.ended && (rows[0][0] != "success" || len(end) != 2 || end[0].(float64) > float64(again.Unix())):
				t.Errorf("the job did not end before the start at %d: %v", again.Unix(), rows[0])
			}
			if err := c.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReadingNeedsAnAccountWhereItIsAskedFor: without the setting everybody may
// read over RAPI, with it nobody who has no account; the pages beside it stay
// open.
func TestReadingNeedsAnAccountWhereItIsAskedFor(t *testing.T) {
	for _, required := range []bool{false, true} {
		c := startWith(t, app.Options{Data: t.TempDir(), RequireAuthentication: required})
		status := func(path, password string) int {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.ready.RAPI+path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if password != "" {
				r.SetBasicAuth(c.ready.RAPIUser, password)
			}
			answer, err := trusting().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			return answer.StatusCode
		}
		stranger := http.StatusOK
		if required {
			stranger = http.StatusUnauthorized
		}
		for _, tc := range []struct {
			path, password string
			want           int
		}{
			{"/2/jobs", "", stranger}, {"/2/info", "", stranger}, {"/2/jobs", "wrong", http.StatusUnauthorized},
			{"/2/jobs", c.ready.RAPIPassword, http.StatusOK}, {"/healthz", "", http.StatusOK}, {"/readyz", "", http.StatusOK},
		} {
			if got := status(tc.path, tc.password); got != tc.want {
				t.Errorf("required %v, password %q: %s is answered with %d, want %d", required, tc.password, tc.path, got, tc.want)
			}
		}
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestWhatHoldsASecretIsForItsOwner looks at the modes of the files that hold
// passwords and keys, and of the socket that makes its owner an administrator.
func TestWhatHoldsASecretIsForItsOwner(t *testing.T) {
	dir := t.TempDir()
	// Somebody was there first, and may read what comes.
	for _, name := range []string{"elsewhere.json", "elsewhere.json.new"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	c := start(t, dir, false)
	for _, name := range []string{"elsewhere.json", "ready.json", "rapi/password", "rapi/users", "rapi/rapi.pem", "luxi.sock"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if others := info.Mode().Perm() & 0o077; others != 0 {
			t.Errorf("%s can be used by others: %v", name, info.Mode())
		}
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}
