package bench

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/luxiwire"
)

// client is a connection over LUXI.
type client struct {
	luxi *luxiwire.Client
	op   map[string]any // the opcode that is submitted
}

func (r *runner) dial(ctx context.Context) (*client, error) {
	c, err := luxiwire.Dial(ctx, r.LUXI)
	if err != nil {
		return nil, err
	}
	return &client{c, map[string]any{
		"OP_ID": "OP_TEST_DUMMY", "result": nil, "messages": nil, "fail": nil, "submit_jobs": nil,
		"reason": []any{[]any{"drover bench", r.label, time.Now().UnixNano()}},
	}}, nil
}

func (c *client) close() { _ = c.luxi.Close() } // there is nothing left to lose

func (c *client) call(ctx context.Context, method string, result any, args ...any) error {
	return c.luxi.Call(ctx, method, args, result)
}

// submit submits a job and returns its id.
func (c *client) submit(ctx context.Context) (id int64, err error) {
	err = c.call(ctx, "SubmitJob", &id, []any{c.op})
	return id, err
}

func (c *client) submitMany(ctx context.Context, n int) ([]int64, error) {
	ops := make([]any, n)
	for i := range ops {
		ops[i] = c.op
	}
	return c.submitAll(ctx, ops)
}

// submitAll submits a job for each opcode.
func (c *client) submitAll(ctx context.Context, ops []any) ([]int64, error) {
	jobs := make([]any, len(ops))
	for i, op := range ops {
		jobs[i] = []any{op}
	}
	var answers [][2]json.RawMessage
	if err := c.call(ctx, "SubmitManyJobs", &answers, jobs); err != nil {
		return nil, err
	}
	ids := make([]int64, len(answers))
	for i, a := range answers {
		if err := json.Unmarshal(a[1], &ids[i]); err != nil || string(a[0]) != "true" {
			return nil, fault.New(fault.Failed, "a job was not taken: %s", a[1])
		}
	}
	return ids, nil
}

func (c *client) status(ctx context.Context, id int64) (string, error) {
	var rows [][]string
	err := c.call(ctx, "QueryJobs", &rows, []any{id}, []string{"status"})
	if err != nil || len(rows) != 1 || len(rows[0]) != 1 {
		return "", fault.New(fault.Failed, "cannot tell the status of job %d: %w", id, err)
	}
	return rows[0][0], nil
}

// end waits for the end of a job and returns its status.
func (c *client) end(ctx context.Context, id int64) (string, error) {
	var previous any
	for {
		var change [2]json.RawMessage
		if err := c.call(ctx, "WaitForJobChange", &change, id, []string{"status"}, previous, nil, 60); err != nil {
			return "", err
		}
		var fields []string
		if err := json.Unmarshal(change[0], &fields); err != nil || len(fields) != 1 {
			return "", fault.New(fault.Failed, "the status of job %d has an unexpected form: %s", id, change[0])
		}
		switch fields[0] {
		case "success", "error", "canceled":
			return fields[0], nil
		}
		previous = fields
	}
}

// succeeded waits for the ends of jobs, which have to be successes.
func (c *client) succeeded(ctx context.Context, ids ...int64) error {
	for _, id := range ids {
		status, err := c.end(ctx, id)
		if err != nil {
			return err
		}
		if status != "success" {
			return fault.New(fault.Failed, "job %d ended as %s", id, status)
		}
	}
	return nil
}

// pause adds a rule that holds the jobs of a label.
func (c *client) pause(ctx context.Context, label string) (uuid string, err error) {
	predicates := []any{[]any{"reason", []any{"=", "reason", label}}}
	why := []any{[]any{"drover bench", "measures how fast a rule takes effect", time.Now().UnixNano()}}
	err = c.call(ctx, "ReplaceFilter", &uuid, nil, 0, predicates, "PAUSE", why)
	return uuid, err
}

// rapi is a client over RAPI with a connection of its own.
type rapi struct {
	http *http.Client
	url  string
	user string
	pass string
}

func (r *runner) newRAPI() *rapi {
	return &rapi{
		http: &http.Client{Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate is the controller's own, on this machine
			MaxIdleConnsPerHost: 1,
		}},
		url:  strings.TrimSuffix(r.RAPI, "/") + "/2/tags?tag=bench&dry-run=1",
		user: r.User, pass: r.Password,
	}
}

// submit asks for a change of tags that is not carried out, and returns the
// job's id.
func (c *rapi) submit(ctx context.Context) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, c.url, nil)
	if err != nil {
		return 0, fault.New(fault.Invalid, "the address of RAPI is wrong: %w", err)
	}
	req.SetBasicAuth(c.user, c.pass)
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, fault.New(fault.Unavailable, "RAPI does not answer: %w", err)
	}
	text, err := io.ReadAll(resp.Body)
	if closeErr := resp.Body.Close(); err == nil {
		err = closeErr
	}
	var id int64
	if _, scanErr := fmt.Sscan(strings.Trim(string(text), "\"\n "), &id); err != nil || scanErr != nil || resp.StatusCode != http.StatusOK {
		return 0, fault.New(fault.Failed, "RAPI answered a submission by status %d: %.200s", resp.StatusCode, text)
	}
	return id, nil
}
