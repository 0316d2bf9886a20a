package mond_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/api/mond"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/reason"
)

// node returns a node with instances that are as they should be and others
// that are not; broken makes its hypervisor silent.
func node(broken error) *mond.Node {
	const at = int64(1_700_000_000_500_000_000)
	snap := cluster.Empty()
	instance := func(uuid, name, admin string) cluster.Change {
		return cluster.Put(&cluster.Instance{Meta: cluster.NewMeta(uuid, at), Name: name, PrimaryNode: "n1", AdminState: admin})
	}
	snap = snap.With(
		cluster.Put(&cluster.Node{Meta: cluster.NewMeta("n1", at), Name: "node1"}),
		instance("u1", "web1", cluster.AdminUp), instance("u2", "web2", cluster.AdminUp),
		instance("u3", "db1", cluster.AdminDown), instance("u4", "db2", cluster.AdminDown),
		instance("u5", "old", cluster.AdminOffline),
	)
	return &mond.Node{
		Name: "node1", Hypervisor: func() string { return "fake" }, Log: slog.New(slog.DiscardHandler),
		Inventory: func() *cluster.Snapshot { return snap },
		Instances: func(context.Context) ([]hypervisor.Instance, time.Time, error) {
			return []hypervisor.Instance{
				{UUID: "u1", Name: "web1", State: hypervisor.Running}, {UUID: "u2", Name: "web2", State: hypervisor.Stopped},
				{UUID: "u4", Name: "db2", State: hypervisor.Paused},
			}, time.Unix(0, at), broken
		},
		Reason: func(instance string) reason.Trail {
			if instance != "web1" {
				return nil
			}
			return reason.Trail{{Source: "gnt:user", Reason: "new kernel", Time: 1}}
		},
	}
}

func get(t *testing.T, n *mond.Node, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	n.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, strings.TrimSpace(string(body))
}

// TestAnswers compares answers with those of the reference's agent, letter by
// letter but for the collector's name.
func TestAnswers(t *testing.T) {
	for path, want := range map[string]string{
		"/":                   `[1]`,
		"/1/":                 `null`,
		"/1/list/collectors":  `[["inst-status-fake","instance",1]]`,
		"/2/list/collectors":  `Resource not found`,
		"/1/report/storage/x": `Unable to find the requested collector`,
		"/1/report/nothing":   `Unable to produce a report for the requested resource`,
	} {
		if _, got := get(t, node(nil), path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

const report = `{"name":"inst-status-fake","version":"B","format_version":1,"timestamp":1700000000500000000,"category":"instance","kind":1,"data":{"instances":[` +
	`{"name":"db1","uuid":"u3","adminState":"down","actualState":"shutdown","uptime":null,"mtime":1700000000.5,"state_reason":[],"status":{"code":0,"message":""}},` +
	`{"name":"db2","uuid":"u4","adminState":"down","actualState":"paused","uptime":null,"mtime":1700000000.5,"state_reason":[],"status":{"code":4,"message":"The instance is not stopped as it should be"}},` +
	`{"name":"old","uuid":"u5","adminState":"offline","actualState":"unknown","uptime":null,"mtime":1700000000.5,"state_reason":[],"status":{"code":2,"message":"The instance is marked as offline"}},` +
	`{"name":"web1","uuid":"u1","adminState":"up","actualState":"running","uptime":null,"mtime":1700000000.5,"state_reason":[["gnt:user","new kernel",1]],"status":{"code":0,"message":""}},` +
	`{"name":"web2","uuid":"u2","adminState":"up","actualState":"shutdown","uptime":null,"mtime":1700000000.5,"state_reason":[],"status":{"code":4,"message":"The instance is not running as it should be"}}],` +
	`"status":{"code":4,"message":"The instance is not stopped as it should be\nThe instance is marked as offline\nThe instance is not running as it should be"}}}`

func TestInstanceReport(t *testing.T) {
	for path, want := range map[string]string{
		"/1/report/instance/inst-status-fake": report,
		"/1/report/instance/inst-status-xen":  report,
		"/1/report/all":                       "[" + report + "]",
	} {
		code, got := get(t, node(nil), path)
		if code != http.StatusOK || sorted(t, got) != sorted(t, want) {
			t.Errorf("%s: %d\n got %s\nwant %s", path, code, got, want)
		}
	}
}

// sorted writes JSON so that equal values are equal texts.
func sorted(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestASilentNodeIsBad(t *testing.T) {
	_, got := get(t, node(errors.New("no answer")), "/1/report/instance/inst-status-fake")
	if !strings.Contains(got, `"instances":[],"status":{"code":4,"message":"Unable to receive the list of instances: no answer"}`) {
		t.Errorf("got %s", got)
	}
}

// A monitor is only read: by any other method there is no page, as in the reference.
func TestOnlyReading(t *testing.T) {
	handler := node(nil).Handler()
	for _, path := range []string{"/", "/1/", "/1/list/collectors", "/1/report/all", "/1/report/instance/inst-status"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "BREW"} {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
			if w.Code != http.StatusNotFound || w.Body.String() != "Resource not found\n" {
				t.Errorf("%s %s was answered with %d: %s", method, path, w.Code, w.Body)
			}
		}
	}
}

// TestAReportHasATime: its own, where the node did not look.
func TestAReportHasATime(t *testing.T) {
	n, begun := node(nil), time.Now()
	n.Instances = func(context.Context) ([]hypervisor.Instance, time.Time, error) {
		return nil, time.Time{}, errors.New("it does not tell its state in time")
	}
	var out mond.Report
	if _, body := get(t, n, "/1/report/instance/inst-status-fake"); json.Unmarshal([]byte(body), &out) != nil || out.Timestamp < begun.UnixNano() || out.Timestamp > time.Now().UnixNano() {
		t.Errorf("the time of the report is %v", time.Unix(0, out.Timestamp))
	}
}

// TestTheCollectorHasTheNameOfTheHypervisor that the cluster has by now.
func TestTheCollectorHasTheNameOfTheHypervisor(t *testing.T) {
	n, now := node(nil), "fake"
	n.Hypervisor = func() string { return now }
	for _, now = range []string{"fake", "kvm"} {
		if status, body := get(t, n, "/1/report/instance/inst-status-"+now); status != http.StatusOK || !strings.Contains(body, `"inst-status-`+now+`"`) {
			t.Errorf("%s: %d %s", now, status, body)
		}
	}
}
