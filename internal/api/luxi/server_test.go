package luxi

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/testkit"
)

// echoServer answers Echo, blocks in Block until the channel is closed (who
// sends to the channel knows, when that returns, that it is in Block), and
// panics in Panic.
// Limits are set before it listens, for connections read them.
func echoServer(t *testing.T, block chan struct{}, limits ...func(*Server)) (*Server, string) {
	t.Helper()
	s := newServer(Deps{Log: slog.New(slog.DiscardHandler)}, []method{
		{"Echo", 1, 1, asks, func(_ context.Context, _ *Deps, a *arguments) (any, error) { return a.items[0], nil }},
		{"Fail", 0, 0, asks, func(context.Context, *Deps, *arguments) (any, error) {
			return nil, fault.New(fault.NotFound, "no such thing").At("x").WithHint("look elsewhere")
		}},
		{"Block", 0, 0, asks, func(context.Context, *Deps, *arguments) (any, error) {
			for range block {
			}
			return true, nil
		}},
		{"Panic", 0, 0, asks, func(context.Context, *Deps, *arguments) (any, error) { panic("on purpose") }},
	})
	s.maxFrame = 100_000
	for _, set := range limits {
		set(s)
	}
	return s, listen(t, s)
}

func TestRequestsOfAConnectionAreAnsweredInOrder(t *testing.T) {
	_, path := echoServer(t, nil)
	c := dialRaw(t, path)
	c.send(`{"method":"Echo","args":[1]}` + "\x03" + `{"method":"Echo","args":["für 保"]}` + "\x03" + `{"method":"Fail","args":[]}` + "\x03")
	for _, want := range []any{1.0, "für 保"} {
		if r, ok := c.receive(); !ok || !r.Success || r.Result != want {
			t.Errorf("got %+v, want %v", r, want)
		}
	}
	r, ok := c.receive()
	if !ok || r.Success || r.Fault == nil || r.Fault.Code != fault.NotFound || r.Fault.Field != "x" || r.Fault.Hint != "look elsewhere" {
		t.Errorf("got %+v %+v", r, r.Fault)
	}
	if r := c.ask(`{"method":"Echo","args":[2]}`); r.Result != 2.0 {
		t.Errorf("after an error: %+v", r)
	}
}

func TestWhatIsNotUnderstoodClosesTheConnection(t *testing.T) {
	_, path := echoServer(t, nil)
	for name, text := range map[string]string{
		"garbage": "\x00\xff\x1b[", "empty": "", "no object": "[1]", "method": `{"method":"echo","args":[1]}`,
		"arity": `{"method":"Echo","args":[]}`, "no list": `{"method":"Echo","args":{}}`, "null": `{"method":"Echo","args":null}`,
		"nested": `{"method":"Echo","args":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`,
	} {
		c := dialRaw(t, path)
		c.send(text + "\x03" + `{"method":"Echo","args":[1]}` + "\x03")
		r, ok := c.receive()
		message, _ := r.Result.(string)
		if !ok || r.Success || !strings.HasPrefix(message, "Failed to parse request: ") {
			t.Errorf("%s: got %+v, %v", name, r, ok)
		}
		if r, ok := c.receive(); ok {
			t.Errorf("%s: the connection goes on: %+v", name, r)
		}
	}
}

func TestNobodyStallsOthers(t *testing.T) {
	block := make(chan struct{})
	_, path := echoServer(t, block)
	var stuck []*conn
	for _, text := range []string{"", "{", `{"method":"Block","args":[]}` + "\x03", "\xff\xff", `{"method":"Panic","args":[]}` + "\x03"} {
		c := dialRaw(t, path)
		c.send(text)
		stuck = append(stuck, c)
	}
	half := dialRaw(t, path)
	half.send(`{"method":"Echo","args":["half"]}` + "\x03")
	if err := half.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if r := dialRaw(t, path).ask(`{"method":"Echo","args":["me"]}`); r.Result != "me" {
		t.Errorf("got %+v", r)
	}
	if r, ok := half.receive(); !ok || r.Result != "half" {
		t.Errorf("a client that only closed its sending side: %+v, %v", r, ok)
	}
	if r, ok := stuck[4].receive(); !ok || r.Fault == nil || r.Fault.Code != fault.Internal {
		t.Errorf("after a panic: %+v", r)
	}
	close(block)
	if r, ok := stuck[2].receive(); !ok || r.Result != true {
		t.Errorf("the blocked one: %+v", r)
	}
}

func TestIdleConnectionIsClosed(t *testing.T) {
	s := newServer(Deps{Log: slog.New(slog.DiscardHandler)}, nil)
	s.idle = 10 * time.Millisecond
	c := dialRaw(t, listen(t, s))
	if _, ok := c.receive(); ok {
		t.Error("an answer to nothing")
	}
}

func TestServeAnswersWhatItBegan(t *testing.T) {
	block := make(chan struct{})
	entered := make(chan struct{})
	s := newServer(Deps{Log: slog.New(slog.DiscardHandler)}, []method{
		{"Block", 0, 0, asks, func(context.Context, *Deps, *arguments) (any, error) {
			close(entered)
			<-block
			return "done", nil
		}},
	})
	path := filepath.Join(t.TempDir(), "s")
	listener := socketAt(t, path, gate.LUXI)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener) }()
	busy, idle := dialRaw(t, path), dialRaw(t, path)
	busy.send(`{"method":"Block","args":[]}` + "\x03")
	<-entered
	stop()
	if _, ok := idle.receive(); ok {
		t.Error("an idle connection is not closed")
	}
	close(block)
	if r, ok := busy.receive(); !ok || r.Result != "done" {
		t.Errorf("got %+v, %v", r, ok)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// TestServeEndsThoughAClientDoesNotRead: whoever takes no more than the beginning of a long
// answer does not hold up a stop.
func TestServeEndsThoughAClientDoesNotRead(t *testing.T) {
	long := pieces(func(yield func([]byte) bool) {
		for piece := bytes.Repeat([]byte(" "), 1<<20); yield(piece); {
			continue
		}
	})
	s := newServer(Deps{Log: slog.New(slog.DiscardHandler), Querier: &live.Querier{}}, []method{
		{"Long", 0, 0, asks, func(context.Context, *Deps, *arguments) (any, error) { return long, nil }},
	})
	s.farewell = 10 * time.Millisecond
	path := filepath.Join(t.TempDir(), "s")
	listener := socketAt(t, path, gate.LUXI)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener) }()
	client := dialRaw(t, path)
	client.send(`{"method":"Long","args":[]}` + "\x03")
	if _, err := io.ReadFull(client.Conn, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testkit.Patience()):
		t.Error("it does not end")
	}
}

func TestTableOfMethods(t *testing.T) {
	var names []string
	for _, m := range Methods {
		if (m.min > m.max && m.max != anything) || m.run == nil || arityNames[m.min] == "" {
			t.Errorf("%s: bad row", m.name)
		}
		names = append(names, m.name)
	}
	slices.Sort(names)
	if again := slices.Compact(slices.Clone(names)); len(again) != len(names) {
		t.Error("a method is there twice")
	}
}

// TestWhatOnlyAsks: a request that changes something is never sent again, and never answered by a controller that stands by; nor is one that nobody knows.
func TestWhatOnlyAsks(t *testing.T) {
	for name, want := range map[string]effect{
		"SubmitJob": changes, "CancelJob": changes, "ReplaceFilter": changes, "TypeConsole": changes, "ReadConsole": waits, "AskIdentity": changes, "BeginDeployment": changes, "NoSuchMethod": changes,
		"WaitForJobChange": asks, "CheckJob": asks, "QueryOSes": asks, "QueryClusterInfo": asks, "QueryServerClusters": asks,
		"Query": asksStored, "QueryJobs": asksStored, "QueryTags": asksStored, "ExplainDeploymentTask": asksStored, "PreviewDeployment": asksStored,
	} {
		if got := New(Deps{}).methods[name].effect; got != want || Asks(name) != (want == asks || want == asksStored) {
			t.Errorf("%s: %d, and asks: %t", name, got, Asks(name))
		}
		if want == asksStored {
			continue
		}
		if done, open := New(Deps{}).AnswerStored(t.Context(), nil, reason.Account{}, luxiwire.Request{Method: name}); done || !open {
			t.Errorf("%s: a controller that does not lead answers it, or ends the connection: %t, %t", name, done, open)
		}
	}
	for _, m := range Methods {
		if strings.HasPrefix(m.name, "Query") && m.effect == changes {
			t.Errorf("%s is a question that is not asked again", m.name)
		}
	}
}

// TestThePageHasOurMethods: who writes a client finds each request that the reference does not
// have in docs/compat/luxi.md.
func TestThePageHasOurMethods(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", "compat", "luxi.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, added, _ := strings.Cut(string(page), "\n## Added\n")
	ours := slices.Concat(deployMethods, serverMethods)
	if i := slices.IndexFunc(jobMethods, func(m method) bool { return m.name == "QueryOSes" }); i >= 0 {
		ours = append(ours, jobMethods[i:]...)
	}
	for _, m := range ours {
		if !strings.Contains(added, "`"+m.name+"`") {
			t.Errorf("the page says nothing of %s", m.name)
		}
	}
	if len(ours) < 30 {
		t.Errorf("only %d methods are our own", len(ours))
	}
}

func TestSpaced(t *testing.T) {
	for text, want := range map[string]string{
		`[null,1,"a,b:c\",d",{"k":[ ]}]`: `[null, 1, "a,b:c\",d", {"k": []}]`,
		`"\\",1`:                         `"\\", 1`,
	} {
		if got := spaced(raw(text)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := spaced(raw(`"` + strings.Repeat("é", 100_000) + `"`)); len(got) > spacedLimit+10 || !strings.HasSuffix(got, "é...") {
		t.Errorf("a long text: %d bytes", len(got))
	}
}

// FuzzConnection sends any bytes to the methods of a server without a
// controller behind it; it must answer or close, and go on with others.
func FuzzConnection(f *testing.F) {
	f.Add([]byte(`{"method":"Echo","args":[1]}`))
	f.Add([]byte("{\"method\":\"Echo\",\"args\":[\"\\u0003\"]}\x03\x03"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		for _, m := range []method{{name: "A", min: 1, max: 5}} {
			a, err := m.arguments(stream)
			if err != nil {
				if _, err := luxiwire.ParseFailureFrame(err.Error(), err); err != nil {
					t.Fatal(err)
				}
				continue
			}
			a.jobID()
			a.jobIDs(0)
			a.filter(0)
			a.strs(0)
			a.trail(0)
			if err := a.bad(); err != nil {
				if _, err := luxiwire.ParseFailureFrame(err.Error(), err); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
