package rapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/reason"
)

// counted counts what is read of a body.
type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// A body is not even read unless somebody who may have one sends it.
func TestBodiesThatNobodyWantsAreNotRead(t *testing.T) {
	r := newRig(t, rigOptions{openReading: true})
	for _, tc := range []struct {
		method, path string
		header       http.Header
		status       int
	}{
		{http.MethodGet, "/2/info", nil, http.StatusOK},
		{http.MethodGet, "/2/jobs", nil, http.StatusOK},
		{http.MethodGet, "/2/info", header("admin", "secret"), http.StatusOK},
		{http.MethodPut, "/2/query/job", nil, http.StatusUnauthorized},
		{http.MethodPut, "/2/query/job", header("admin", "wrong"), http.StatusUnauthorized},
		{http.MethodPost, "/2/instances", header("reader", "read"), http.StatusForbidden},
		{http.MethodPost, "/2/nosuch", nil, http.StatusNotFound},
		{http.MethodDelete, "/2/info", nil, http.StatusNotImplemented},
	} {
		body := &counted{Reader: strings.NewReader("[" + strings.Repeat(`{"":0},`, 1<<20) + "0]")}
		req := httptest.NewRequestWithContext(t.Context(), tc.method, tc.path, body)
		req.Header = tc.header.Clone()
		if req.Header == nil {
			req.Header = http.Header{}
		}
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		r.rapi.ServeHTTP(w, req)
		if w.Code != tc.status || body.n != 0 {
			t.Errorf("%s %s: %d, want %d; %d bytes of the body were read", tc.method, tc.path, w.Code, tc.status, body.n)
		}
	}
}

func TestLimitsOfRequestsAreNamed(t *testing.T) {
	r := newRig(t, rigOptions{})
	values := "[" + strings.Repeat(`{"":0},`, 100_000) + "0]"
	for name, tc := range map[string]struct {
		method, path string
		body         any
		status       int
		text         string
	}{
		"query":        {"PUT", "/2/query/job", `{"fields":["` + strings.Repeat("x", 10<<20) + `"]}`, 413, "larger than 10485760 bytes"},
		"values":       {"PUT", "/2/query/job", `{"fields":["id"],"qfilter":` + values + `}`, 413, "more than 100000 values"},
		"opcode":       {"PUT", "/2/groups/default/modify", map[string]any{"ndparams": map[string]any{strings.Repeat("<", 1<<20): 1}}, 413, "larger than 1048576 bytes"},
		"rule":         {"POST", "/2/filters", map[string]any{"reason": []any{[]any{"me", strings.Repeat("<", 1<<20), 1}}}, 413, "larger than 1048576 bytes"},
		"reason":       {"PUT", "/2/tags?tag=x&reason=" + strings.Repeat("x", reason.MaxReason+1), nil, 413, "the limit is 16384"},
		"rule reason":  {"POST", "/2/filters", map[string]any{"reason": []any{[]any{"me", strings.Repeat("<", reason.MaxReason+1), 1}}}, 413, "the limit is 16384"},
		"hops":         {"POST", "/2/filters", `{"reason":[` + strings.Repeat(`["me","",1],`, reason.MaxEntries) + `["me","",1]]}`, 413, "the limit is 100"},
		"source":       {"POST", "/2/filters", map[string]any{"reason": []any{[]any{"GNT:opcode:x", "", 1}}}, 400, "reserved source"},
		"unknown name": {"PUT", "/2/modify", map[string]any{strings.Repeat("<", 150<<10): 1}, 400, "doesn't support the parameter"},
		"unknown key":  {"POST", "/2/filters", map[string]any{strings.Repeat("<", 150<<10): 1}, 400, "doesn't support the parameter"},
	} {
		got := r.do(tc.method, tc.path, tc.body)
		if got.status != tc.status || !strings.Contains(got.text, strings.ReplaceAll(tc.text, "'", "&#x27;")) || len(got.text) > 200<<10 {
			t.Errorf("%s: %d %.200s (%d bytes)", name, got.status, got.text, len(got.text))
		}
	}
	if n := r.queue.Jobs().Len(); n != 0 {
		t.Errorf("they made %d jobs", n)
	}
}

// Each of these keys ended the process.
func TestKeysThatTheStoreCannotHoldAreRefused(t *testing.T) {
	r := newRig(t, rigOptions{})
	for _, key := range []string{"a\tb", "\xff", "caf\xe9", strings.Repeat("x", 257)} {
		h := header("admin", "secret")
		h["Idempotency-Key"] = []string{key}
		if got := r.send(http.MethodPut, "/2/tags?tag=x", nil, h); got.status != http.StatusBadRequest && got.status != http.StatusRequestEntityTooLarge ||
			!strings.Contains(got.text, "submission key") {
			t.Errorf("%.20q: %d %s", key, got.status, got.text)
		}
	}
	r.succeed(http.MethodPut, "/2/tags?tag=x&reason="+url.QueryEscape(strings.Repeat("<", reason.MaxReason)), nil)
}
