package agentwire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/exec/nodetest"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/reason"
)

// answering is an agent that answers each call with the same.
type answering func() *http.Response

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return a(), nil
}

func saying(status int, body io.Reader) answering {
	return func() *http.Response {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body)}
	}
}

// endless repeats a text.
type endless string

func (e endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		n += copy(p[n:], e)
	}
	return n, nil
}

// TestHostileAgents has agents answer with what is no answer. Each is an error that names the node, and none makes the controller grow.
func TestHostileAgents(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer answering
		want   fault.Code
		text   string
	}{
		{"nothing", func() *http.Response { return saying(200, strings.NewReader(""))() }, fault.Unavailable, "the answer has no end"},
		{"HTML", saying(200, strings.NewReader("<html>\n")), fault.Unavailable, "cannot be read"},
		{"an empty value", saying(200, strings.NewReader("{}\n")), fault.Unavailable, "neither output nor an end"},
		{"a list", saying(200, strings.NewReader("[]\n")), fault.Unavailable, "cannot be read"},
		{"a line without an end", saying(200, endless("x")), fault.Unavailable, "more than"},
		{"another result", saying(200, strings.NewReader(`{"end":{"result":[1]}}`+"\n")), fault.Internal, "with something else"},
		{"an error without a code", saying(200, strings.NewReader(`{"end":{"error":{"message":"m"}}}`+"\n")), fault.Internal, "m"},
		{"a long error", saying(200, strings.NewReader(`{"end":{"error":{"code":"failed","message":"`+strings.Repeat("m", 1<<20)+`"}}}`+"\n")), fault.Failed, "mmm..."},
		{"a status", saying(502, endless("bad gateway")), fault.Unavailable, "node node1 answered with status 502"},
		{"a redirect", saying(302, strings.NewReader("")), fault.Unavailable, "node node1 answered with status 302"},
		{"a refusal", saying(400, strings.NewReader(`{"code":"invalid","message":"no"}`)), fault.Invalid, "no"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := NewClient("node1", func(context.Context) (http.RoundTripper, error) { return c.answer, nil }, 50*time.Millisecond)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := client.Info(t.Context())
			if !fault.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || len(err.Error()) > 3*fault.MaxText {
				t.Errorf("the error is %q: %.300v", fault.CodeOf(err), err)
			}
			runtime.ReadMemStats(&after)
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 4*maxFrame {
				t.Errorf("%d bytes were allocated", grown)
			}
		})
	}
}

// TestAnAgentThatTalksWithoutEnd sends lines until the one who asked has had enough.
func TestAnAgentThatTalksWithoutEnd(t *testing.T) {
	gone := make(chan struct{})
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(gone)
		for err := error(nil); err == nil; {
			_, err = io.WriteString(w, "{\"line\":\"and another\"}\n")
		}
	}))
	defer s.Close()
	client := NewClient("node1", over(s, func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
	}), time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	const enough = 10_000
	lines := 0
	a := &asking{client: client, name: "info", why: ctx, r: request{Node: "node1"}, log: func(string) {
		if lines++; lines == enough {
			stop()
		}
	}}
	if _, err := a.until(ctx); !fault.Is(err, fault.Unavailable) || lines < enough {
		t.Errorf("after %d lines: %v", lines, err)
	}
	nodetest.Within(t, gone, "the end of an answer that nobody reads")
}

// TestHostileControllers sends what is no call.
func TestHostileControllers(t *testing.T) {
	var handler *Handler
	r := nodetest.New(t, func(_ *testing.T, a *agent.Agent) exec.Node {
		handler = newHandler(t, a)
		return a
	})
	defer handler.Close()
	id := strings.Repeat("ab", 16)
	node := `"node":"node1.example.com"`
	for _, c := range []struct {
		method, path, body string
		status             int
		text               string
	}{
		{"GET", "/v1/info", `{` + node + `,"args":{}}`, 405, "a call is a POST"},
		{"POST", "/v1/nosuch", `{` + node + `,"args":{}}`, 404, "there is no call"},
		{"POST", "/", ``, 404, "there is no call"},
		{"POST", "/v2/info", `{` + node + `,"args":{}}`, 404, "there is no call"},
		{"POST", "/v1/info", `{"node":"node2","args":{}}`, 403, `the call is for node \"node2\", and this is node1.example.com`},
		{"POST", "/v1/info", `{"args":{}}`, 403, "the call is for node"},
		{"POST", "/v1/info", `<>`, 400, "the call cannot be read"},
		{"POST", "/v1/info", `{` + node + `,"args":{},"more":1}`, 400, "means nothing here"},
		{"POST", "/v1/info", `{` + node + `,"args":[]}`, 400, "the arguments of info cannot be read"},
		{"POST", "/v1/info", `{` + node + `}`, 400, "the arguments of info cannot be read"},
		{"POST", "/v1/instance", `{` + node + `,"args":{"thing":{"UUID":"u","Name":"n"},"and":1}}`, 400, "means nothing here"},
		{"POST", "/v1/remove", `{` + node + `,"args":{}}`, 400, "no name that could be one"},
		{"POST", "/v1/remove", `{` + node + `,"id":"../x","args":{}}`, 400, "no name that could be one"},
		{"POST", "/v1/cancel", `{` + node + `,"id":"` + id + `","args":{}}`, 400, "why the call is to end"},
		{"POST", "/v1/info", `{"node":"` + strings.Repeat("x", maxRequest) + `"}`, 413, "more than"},
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body)))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.text) || w.Body.Len() > maxRefusal {
			t.Errorf("%s %s %.100s: %d %.300s", c.method, c.path, c.body, w.Code, w.Body)
		}
	}
	// The name of a call is that of one.
	send := func(path, args string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(`{`+node+`,"id":"`+id+`","from":-7,"args":`+args+`}`)))
		return w
	}
	if w := send("/v1/delay", `{"for":1}`); w.Code != http.StatusOK {
		t.Errorf("a call: %d %s", w.Code, w.Body)
	}
	if w := send("/v1/remove", `{"order":{},"thing":{"UUID":"u","Name":"n"},"stop":{}}`); w.Code != http.StatusConflict {
		t.Errorf("another call under its name: %d %s", w.Code, w.Body)
	}
	if all, err := r.Node.Instances(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("what is there: %v, %v", all, err)
	}
}

// silent is a node that does nothing until it is told to end.
type silent struct{ port }

type port = Served

func (silent) Node() string { return "node1" }

func (silent) Delay(ctx context.Context, _ time.Duration) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// TestTooManyCalls begins as many as an agent takes. It says so, and goes on when they are over.
func TestTooManyCalls(t *testing.T) {
	h := newHandler(t, silent{})
	begin := func(i int) error {
		_, err := h.calls.begin(&request{ID: fmt.Sprintf("%032x", i)}, "delay", false, func(ctx context.Context, n Served, _ func(string)) (any, error) {
			return none{}, n.Delay(ctx, 0)
		})
		return err
	}
	for i := range maxCalls {
		if err := begin(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := begin(maxCalls); !fault.Is(err, fault.Busy) {
		t.Errorf("one call too many: %v", err)
	}
	h.Close()
	if err := begin(maxCalls); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a call behind the end: %v", err)
	}
}

// TestAnswersAreKeptWithinBounds asks for more than an agent keeps answers of, and says of some that they have come.
func TestAnswersAreKeptWithinBounds(t *testing.T) {
	h := newHandler(t, silent{})
	defer h.Close()
	var had []string
	for i := range maxAnswers + 100 {
		r := &request{ID: fmt.Sprintf("%032x", i)}
		x, err := h.calls.begin(r, "delay", false, func(context.Context, Served, func(string)) (any, error) { return none{}, nil })
		if err != nil {
			t.Fatal(err)
		}
		for frames, more := x.since(0); len(frames) == 0; frames, more = x.since(0) {
			<-more
		}
		had = append(had, r.ID)
	}
	h.calls.all.Wait()
	if n := len(h.calls.byID); n != maxAnswers || len(h.calls.answered) != n {
		t.Errorf("%d answers are kept, want %d", n, maxAnswers)
	}
	h.calls.mu.Lock()
	h.calls.had(had[len(had)-1000:])
	h.calls.mu.Unlock()
	if n := len(h.calls.byID); n != maxAnswers-1000 || len(h.calls.answered) != n {
		t.Errorf("%d answers are kept, want %d", n, maxAnswers-1000)
	}
}

// TestOutputIsKeptWithinBounds has a call tell more than is kept for who joins it.
func TestOutputIsKeptWithinBounds(t *testing.T) {
	x := newExecution("run-task", func(error) {})
	line := strings.Repeat("x", 1023)
	for range 2 * maxOutput / 1024 {
		x.log(line)
	}
	x.ended(&end{})
	frames, _ := x.since(0)
	if want := maxOutput / 1024; frames[0].Lost != want || len(frames) != want+2 || frames[len(frames)-1].End == nil {
		t.Errorf("%d lines are lost, and %d frames come", frames[0].Lost, len(frames))
	}
	var text bytes.Buffer
	for _, f := range frames {
		if err := json.NewEncoder(&text).Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	var told []string
	a := &asking{client: NewClient("node1", nil, 0), log: func(l string) { told = append(told, l) }}
	if _, err := a.read(&text); err != nil || len(told) != maxOutput/1024+1 || !strings.Contains(told[0], "lost") {
		t.Errorf("%d lines were told, %v", len(told), err)
	}
	if a.r.From != 2*maxOutput/1024 {
		t.Errorf("the next line is %d", a.r.From)
	}
}

// TestParametersKeepTheirNumbers sends numbers as the inventory has them.
func TestParametersKeepTheirNumbers(t *testing.T) {
	for _, v := range []any{int64(9007199254740993), int64(-1), 1.5, 1e300, "1", true, nil, []any{int64(1), "a"}, map[string]any{"a": int64(2)}} {
		text, err := json.Marshal(hypervisor.Spec{Params: map[string]any{"p": v}})
		if err != nil {
			t.Fatal(err)
		}
		var spec hypervisor.Spec
		if err := read(text, &spec); err != nil {
			t.Fatal(err)
		}
		if got := plain(spec).Params["p"]; fmt.Sprintf("%T %v", got, got) != fmt.Sprintf("%T %v", v, v) {
			t.Errorf("%T %v arrives as %T %v", v, v, got, got)
		}
	}
}

// specified is a node that notes the specifications that it is given.
type specified struct {
	Served

	got []hypervisor.Spec
}

func (*specified) Node() string { return "node1" }

func (n *specified) Start(_ context.Context, _ agent.Order, spec hypervisor.Spec, _ reason.Trail) error {
	n.got = append(n.got, spec)
	return nil
}

func (n *specified) RebootHard(_ context.Context, _ agent.Order, spec hypervisor.Spec, _ hypervisor.Stop, _ reason.Trail) error {
	n.got = append(n.got, spec)
	return nil
}

func (n *specified) Install(_ context.Context, _ agent.Order, spec hypervisor.Spec, _ string, _ map[string]string, _ func(string)) error {
	n.got = append(n.got, spec)
	return nil
}

// TestEachOrderHasTheNumbersOfItsParameters: whichever order brings a specification, drivers find in it what the inventory has, as they do where the node is in
// the process of the controller.
func TestEachOrderHasTheNumbersOfItsParameters(t *testing.T) {
	n := &specified{}
	h := newHandler(t, n)
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	defer h.Close()
	c := NewClient("node1", over(s, func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
	}), 0)
	want := map[string]any{"vnc_port": int64(5900), "ratio": 1.5, "acpi": true, "kernel_args": "ro"}
	spec := nodetest.Spec(nodetest.One)
	spec.Params = want
	for what, err := range map[string]error{
		"start":   c.Start(t.Context(), nodetest.Order(1, 1), spec, nil),
		"reboot":  c.RebootHard(t.Context(), nodetest.Order(2, 1), spec, hypervisor.Stop{}, nil),
		"install": c.Install(t.Context(), nodetest.Order(3, 1), spec, "os", nil, quiet),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if len(n.got) != 3 {
		t.Fatalf("%d specifications came", len(n.got))
	}
	for i := range n.got {
		if !reflect.DeepEqual(n.got[i].Params, want) {
			t.Errorf("order %d brings %#v, want %#v", i+1, n.got[i].Params, want)
		}
	}
}

// TestErrorsKeepTheirWords sends errors that have words around their fault.
func TestErrorsKeepTheirWords(t *testing.T) {
	inner := fault.New(fault.Busy, "the disk is taken").At("disks[0]").WithHint("wait")
	for _, err := range []error{inner, fmt.Errorf("job 7: %w", inner), errors.New("of no kind")} {
		got := failed(err).fault()
		if fault.CodeOf(got) != fault.CodeOf(err) || !strings.HasPrefix(got.Error(), strings.TrimSuffix(err.Error(), " (wait)")) {
			t.Errorf("%v arrives as %v", err, got)
		}
	}
	if failed(nil) != nil || (*failure)(nil).fault() != nil {
		t.Error("no error is one")
	}
}

// panicking is a node with a mistake.
type panicking struct{ port }

func (panicking) Node() string { return "node1" }

func (panicking) Delay(context.Context, time.Duration) error { panic("a mistake") }

// TestAPanicCostsItsCallAlone has the agent meet a mistake of its own.
func TestAPanicCostsItsCallAlone(t *testing.T) {
	h := newHandler(t, panicking{})
	defer h.Close()
	x, err := h.calls.begin(&request{ID: newID()}, "delay", false, func(ctx context.Context, n Served, _ func(string)) (any, error) { return none{}, n.Delay(ctx, 0) })
	if err != nil {
		t.Fatal(err)
	}
	for frames, more := x.since(0); ; frames, more = x.since(0) {
		if len(frames) > 0 {
			if e := frames[0].End; e == nil || e.Error.Code != fault.Internal {
				t.Errorf("%+v", frames[0])
			}
			return
		}
		<-more
	}
}

// TestALateCopyIsNotCarriedOut has a copy of a call come when its answer has been had: over a connection that the controller takes for cut, and the
// agent does not yet.
func TestALateCopyIsNotCarriedOut(t *testing.T) {
	h := newHandler(t, silent{})
	defer h.Close()
	done := 0
	begin := func(r *request) (*execution, error) {
		return h.calls.begin(r, "reboot-soft", true, func(context.Context, Served, func(string)) (any, error) { done++; return none{}, nil })
	}
	first, next := newID(), newID()
	had := []string{first}
	for _, r := range []*request{{ID: first}, {ID: next, Had: had}} {
		x, err := begin(r)
		if err != nil {
			t.Fatal(err)
		}
		for frames, more := x.since(0); len(frames) == 0; frames, more = x.since(0) {
			<-more
		}
	}
	if _, err := begin(&request{ID: first}); !fault.Is(err, fault.Unavailable) || done != 2 {
		t.Errorf("a late copy: %v; 2 calls were carried out %d times", err, done)
	}
	for range 2 * keptNames {
		h.calls.gone.add(newID())
	}
	if n := len(h.calls.gone.newer) + len(h.calls.gone.older); n > 2*keptNames || h.calls.gone.has(first) {
		t.Errorf("%d names are kept", n)
	}
}
