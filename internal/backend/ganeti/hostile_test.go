package ganeti

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/server"
)

// endless are the beginnings of answers that never end, and what follows again and again.
var endless = map[string][2]string{
	"blanks":             {"", "                "},
	"one text":           {`"`, "xxxxxxxxxxxxxxxxxxxx"},
	"one number":         {`1`, "11111111111111111111"},
	"depth":              {"", "[[[[[[[[[[[[[[[[[[[["},
	"depth of objects":   {"", `{"a":{"a":{"a":{"a":`},
	"small things":       {`[`, `{},{},{},{},{},{},{},`},
	"blanks in a list":   {`[`, "                   "},
	"blanks behind one":  {`[{}`, "                   "},
	"instances":          {`[`, `{"name":"NNNNNNNN","tags":["","","","","",""]},`},
	"one instance":       {`{"name":"snf-1","tags":[`, `"","","","","","","","","",`},
	"one in a list":      {`[{"name":"snf-1","tags":[`, `"","","","","","","","","",`},
	"a state of its own": {`[{"name":"a","admin_state":[`, `{},{},{},{},{},{},`},
	"jobs":               {`[`, `{"id":1},{"id":"2"},`},
	"keys":               {`{`, `"a":1,"a":1,"a":1,`},
	"opcodes":            {`{"status":"success","ops":[`, `{},{},{},{},{},{},`},
	"a job":              {`{"status":"success","ops":[{`, `"a":{},"b":[],`},
	"results":            {`{"status":"success","opresult":[`, `[[]],{},null,`},
}

// TestAnswersWithoutEnd: whatever is asked, what a cluster sends without end costs little memory, and a bounded part of it is read.
func TestAnswersWithoutEnd(t *testing.T) {
	asks := map[string]func(context.Context, *Cluster) error{
		"name": func(ctx context.Context, c *Cluster) error { _, err := c.Name(ctx); return err },
		"jobs": func(ctx context.Context, c *Cluster) error { _, err := c.Jobs(ctx); return err },
		"job":  func(ctx context.Context, c *Cluster) error { _, err := c.Job(ctx, 7); return err },
		"look": func(ctx context.Context, c *Cluster) error {
			_, err := c.Look(ctx, server.Ref{Name: "snf-1"}, nil)
			return err
		},
		"instances": func(ctx context.Context, c *Cluster) error { return (&follower{Cluster: c}).instances(ctx) },
		"first": func(ctx context.Context, c *Cluster) error {
			_, _, err := c.first(ctx, 7, &remoteJob{Ops: make([]remoteOp, 1)})
			return err
		},
	}
	// Lists of small things are read for long, so each of these is for one that asks for a list.
	long := map[string]string{"small things": "first", "instances": "instances", "jobs": "jobs"}
	lists := []string{"first", "instances", "jobs"}
	for what, text := range endless {
		for asked, ask := range asks {
			if only := long[what]; only != "" && only != asked && slices.Contains(lists, asked) {
				continue
			}
			body := &flood{begin: text[0], more: text[1]}
			c := &Cluster{cfg: Config{URL: "https://far"}, client: &http.Client{Transport: body}, reading: intake.NewBudget(maxReading)}
			before := allocated()
			err := ask(t.Context(), c)
			took := allocated() - before
			if err == nil {
				t.Errorf("%s, asked for %s: it is believed", what, asked)
			}
			const most = maxList + 1<<20
			if body.sent > most {
				t.Errorf("%s, asked for %s: %d bytes were read", what, asked, body.sent)
			}
			// Of a list little is in memory at a time; all else is bounded as a whole.
			if limit := int64(80 << 20); body.peak > limit || took > limit && !slices.Contains(lists, asked) {
				t.Errorf("%s, asked for %s: %d MiB at a time, %d in all (%v)", what, asked, body.peak>>20, took>>20, err)
			}
			if n := c.reading.Taken(); n != 0 {
				t.Errorf("%s, asked for %s: %d bytes count as being read", what, asked, n)
			}
		}
	}
}

// flood answers every request without end, and notes how large the heap is meanwhile.
type flood struct {
	begin, more string
	sent, n     int64
	base, peak  int64
}

func (f *flood) RoundTrip(*http.Request) (*http.Response, error) {
	f.sent, f.base, f.peak = 0, heapOf(), 0
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(f)}, nil
}

func (f *flood) Read(p []byte) (int, error) {
	n := 0
	if f.sent == 0 {
		n = copy(p, f.begin)
	}
	for len(p)-n >= len(f.more) {
		text := f.more
		if strings.Contains(text, "NNNNNNNN") {
			f.n++
			text = strings.Replace(text, "NNNNNNNN", fmt.Sprintf("%08d", f.n), 1)
		}
		n += copy(p[n:], text)
	}
	if n == 0 {
		n = copy(p, " ")
	}
	if before := f.sent; (before+int64(n))>>22 != before>>22 {
		f.peak = max(f.peak, heapOf()-f.base)
	}
	f.sent += int64(n)
	return n, nil
}

// heapOf is how much memory is in use.
func heapOf() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// allocated is how much memory was ever taken.
func allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
}

// TestSmallThingsAreFew: what is no longer than it may be can take many times its length when it is decoded.
func TestSmallThingsAreFew(t *testing.T) {
	text := `{"status":"success","opstatus":[],"ops":[` + strings.Repeat("{},", maxJob/4) + `{}]}`
	c := stock(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
	before := allocated()
	if _, err := c.Job(t.Context(), 7); !fault.Is(err, fault.TooLarge) || !strings.Contains(err.Error(), "values") {
		t.Error(err)
	}
	if took := allocated() - before; took > 80<<20 {
		t.Errorf("%d MiB", took>>20)
	}
}

// TestManyAnswersAtOnce: those that are long share what there is, and the others are read.
func TestManyAnswersAtOnce(t *testing.T) {
	c := stock(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"name":"far"}`)) })
	if err := c.reading.Take(maxReading - 1<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Name(t.Context()); err != nil {
		t.Error(err)
	}
	c.client.Transport = &flood{begin: `"`, more: "xxxxxxxxxxxxxxxx"}
	if _, err := c.Job(t.Context(), 7); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "under way") {
		t.Error(err)
	}
	if n := c.reading.Taken(); n != maxReading-1<<20 {
		t.Errorf("%d bytes are taken", n)
	}
}

// TestOddInstances: a state that is no text is none, and compares with itself.
func TestOddInstances(t *testing.T) {
	c := stock(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`[{"name":"a","admin_state":[1],"tags":null},{"name":"b","admin_state":{"x":1}},{"name":"c","admin_state":true}]`))
	})
	f := &follower{Cluster: c, changed: func(server.Ref) {}}
	for range 2 {
		if err := f.instances(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !c.Has("a") || !c.known["b"].stopped() || c.known["c"].stopped() {
		t.Errorf("%+v", c.known)
	}
}

// TestLongLists: an honest list is read as it is, in pieces of whatever size it comes.
func TestLongLists(t *testing.T) {
	const n = 20_000
	var text strings.Builder
	text.WriteString("[")
	for i := range n {
		fmt.Fprintf(&text, `%s{"name":"snf-%d","uuid":"u","tags":["cyclades:user:a"],"admin_state":"up","hvparams":{"x":"%s"}}`, map[bool]string{true: ", "}[i > 0], i, strings.Repeat("y", 1000))
	}
	text.WriteString("]")
	seen := 0
	c := &Cluster{cfg: Config{URL: "https://far", Log: slog.New(slog.DiscardHandler)}}
	if err := list(c, iotest.HalfReader(strings.NewReader(text.String())), maxSmall, func(i *remoteInstance) error {
		if i.Name != fmt.Sprintf("snf-%d", seen) {
			return fmt.Errorf("%s is not %d", i.Name, seen)
		}
		seen++
		return nil
	}); err != nil || seen != n {
		t.Errorf("%d things, %v", seen, err)
	}
	if err := list(c, iotest.TimeoutReader(strings.NewReader(text.String())), maxSmall, func(*remoteInstance) error { return nil }); !strings.Contains(fmt.Sprint(err), "does not finish") {
		t.Errorf("one that ends early: %v", err)
	}
	if err := list(c, strings.NewReader(text.String()[:5000]), maxSmall, func(*remoteInstance) error { return nil }); err == nil {
		t.Error("one that is cut short is believed")
	}
	var odd atomic.Bool
	if err := list(c, strings.NewReader(`{}`), maxSmall, func(*remoteInstance) error { odd.Store(true); return nil }); err == nil || odd.Load() {
		t.Errorf("no list: %v", err)
	}
}
