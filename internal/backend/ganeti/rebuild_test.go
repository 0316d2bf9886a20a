package ganeti

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/tagsync"
)

// rebuilding are the opcodes of a rebuild of a server.
func rebuilding(t *testing.T, run bool) []*opcode.Opcode {
	t.Helper()
	s := &server.Server{ID: "s1", Instance: "snf-1", UUID: "u1", Backend: "far", Image: server.Image{OS: "debootstrap+default"}}
	ops, err := s.Opcodes(&server.Task{Do: server.Rebuild, Anew: &server.Anew{Run: run}})
	if err != nil {
		t.Fatal(err)
	}
	return ops
}

// TestRequestsOfRebuilds: each is one request without a body. A stock Ganeti refuses a body beside a query, which says the reason and the UUID of the instance.
func TestRequestsOfRebuilds(t *testing.T) {
	for run, stays := range map[bool]string{true: "0", false: "1"} {
		q, instance, err := requestOfJob(rebuilding(t, run))
		if err != nil || instance != (server.Ref{UUID: "u1", Name: "snf-1"}) || q.method != http.MethodPost || q.path != "/2/instances/snf-1/reinstall" || q.body != nil {
			t.Errorf("it is asked for by %+v of %+v, %v", q, instance, err)
		}
		reason := q.query.Get("reason")
		q.query.Del("reason")
		if got, want := q.query.Encode(), "instance_uuid=u1&nostartup="+stays+"&os=debootstrap%2Bdefault"; got != want || !strings.Contains(reason, "rebuild server s1") {
			t.Errorf("it is asked for with %s and the reason %q, want %s", got, reason, want)
		}
	}
	ops := rebuilding(t, true)
	if _, _, err := requestOfJob([]*opcode.Opcode{ops[1], ops[0]}); !fault.Is(err, fault.Invalid) {
		t.Errorf("in another order: %v", err)
	}
}

// TestWhatAClusterTookIsFound: by what a job does, behind those that were there before, the first of them; its own word that it took none is known from what
// others say in its place.
func TestWhatAClusterTookIsFound(t *testing.T) {
	one := func(id int, name, system string, ops ...string) string {
		var texts []string
		for _, op := range ops {
			texts = append(texts, fmt.Sprintf(`{"OP_ID": "OP_INSTANCE_%s", "instance_name": %q, "os_type": %q}`, op, name, system))
		}
		return fmt.Sprintf(`{"id": "%d", "ops": [%s]}`, id, strings.Join(texts, ", "))
	}
	whole := []string{"SHUTDOWN", "REINSTALL", "STARTUP"}
	const system = "debootstrap+default"
	jobs := []string{
		one(7, "snf-1", system, whole...), one(8, "snf-2", system, whole...), one(9, "snf-1", "other", whole...), one(10, "snf-1", system, "REINSTALL"),
		one(11, "snf-1", system, whole[:2]...), one(13, "snf-1", system, whole...), one(12, "snf-1", system, whole...),
	}
	answer, status := "", http.StatusOK
	c := stock(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/2/jobs":
			_, _ = fmt.Fprintf(w, "[%s]", strings.Join(jobs, ","))
		case r.Method == http.MethodGet:
			_, _ = fmt.Fprint(w, `{"name": "snf-1", "uuid": "u1", "tags": [], "admin_state": "up"}`)
		default:
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, answer)
		}
	})
	if newest, keyed, err := c.Newest(t.Context()); err != nil || newest != 13 || keyed {
		t.Errorf("the newest is job %d, %v, %v", newest, keyed, err)
	}
	for after, want := range map[job.ID]job.ID{6: 7, 7: 12, 12: 13, 13: 0} {
		if id, err := c.Find(t.Context(), after, rebuilding(t, true)...); err != nil || id != want {
			t.Errorf("behind job %d it is job %d, %v; want %d", after, id, err, want)
		}
	}
	if id, err := c.Find(t.Context(), 6, rebuilding(t, false)...); err != nil || id != 11 {
		t.Errorf("what starts nothing is job %d, %v", id, err)
	}
	for _, x := range []struct {
		status  int
		answer  string
		untaken bool
	}{
		{http.StatusServiceUnavailable, `{"code": 503, "message": "Service Unavailable", "explain": "Job queue is drained, cannot submit"}`, true},
		{http.StatusServiceUnavailable, "<html>nobody there</html>", false}, {http.StatusGatewayTimeout, `{"code": 504, "message": "Gateway Timeout", "explain": "Timeout while talking to the master daemon"}`, false},
		{http.StatusForbidden, `{"code": 403, "message": "Forbidden", "explain": "no right"}`, true}, {http.StatusRequestTimeout, "", false},
	} {
		status, answer = x.status, x.answer
		_, err := c.Submit(t.Context(), "key", rebuilding(t, true)...)
		if _, untaken := errors.AsType[*tagsync.UntakenError](err); err == nil || untaken != x.untaken {
			t.Errorf("%d %s: untaken %v, %v", x.status, x.answer, untaken, err)
		}
	}
	status, answer = http.StatusOK, `"14"`
	if id, err := c.Submit(t.Context(), "key", rebuilding(t, true)...); err != nil || id != 14 {
		t.Errorf("it is job %d, %v", id, err)
	}
}
