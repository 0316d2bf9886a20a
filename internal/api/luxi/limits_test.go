package luxi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
)

func TestLimitsOfRequestsAreNamed(t *testing.T) {
	r := newRig(t)
	op := func(more string) string { return `[{"OP_ID":"OP_TEST_DELAY","duration":0.001,` + more + `}]` }
	for name, tc := range map[string]struct {
		request, text string
		code          fault.Code
	}{
		"opcode":          {`{"method":"SubmitJob","args":[` + op(`"reason":[],"comment":"`+strings.Repeat("<", opcode.MaxBytes)+`"`) + `]}`, "the limit is 1048576", fault.TooLarge},
		"reason":          {`{"method":"SubmitJob","args":[` + op(`"reason":[["me","`+strings.Repeat("<", reason.MaxReason+1)+`",1]]`) + `]}`, "the limit is 16384", fault.TooLarge},
		"hops":            {`{"method":"SubmitJob","args":[` + op(`"reason":[`+strings.Repeat(`["me","",1],`, reason.MaxEntries)+`["me","",1]]`) + `]}`, "the limit is 100", fault.TooLarge},
		"source":          {`{"method":"SubmitJob","args":[` + op(`"reason":[["gnt\u200b:opcode:x","",1]]`) + `]}`, "reserved source", fault.Invalid},
		"key":             {`{"method":"SubmitJob","args":[` + op(`"reason":[]`) + `,"a\u0001b"]}`, "submission key", fault.Invalid},
		"ids":             {`{"method":"QueryJobs","args":[[` + strings.Repeat("1,", maxIDs) + `1],["id"]]}`, "the limit is 100000", fault.TooLarge},
		"values":          {`{"method":"QueryJobs","args":[[` + strings.Repeat("1,", 1_000_000) + `1],["id"]]}`, "more than 1000000 values", fault.TooLarge},
		"priority":        {`{"method":"ReplaceFilter","args":[null,1099511627776,[],"PAUSE",[]]}`, "the largest is 2147483647", fault.Invalid},
		"tested priority": {`{"method":"TestFilter","args":[{"priority":1099511627776},0]}`, "the largest is 2147483647", fault.Invalid},
		"rule":            {`{"method":"ReplaceFilter","args":[null,1,[],"PAUSE",[["me","` + strings.Repeat("<", 1<<20) + `",1]]]}`, "the limit is 1048576", fault.TooLarge},
		"rule reason":     {`{"method":"ReplaceFilter","args":[null,1,[],"PAUSE",[["me","` + strings.Repeat("<", reason.MaxReason+1) + `",1]]]}`, "the limit is 16384", fault.TooLarge},
		"patterns":        {`{"method":"ReplaceFilter","args":[null,1,[["reason",["=~","reason","a{1000}b{1000}c{1000}d{1000}e{1000}f{1000}g{1000}h{1000}i{1000}"]]],"PAUSE",[]]}`, "the limit is 8000", fault.TooLarge},
		"unknown key":     {`{"method":"SubmitJob","args":[` + op(`"reason":[],"`+strings.Repeat("<", 500<<10)+`":1`) + `]}`, "Superfluous", fault.Invalid},
		"unknown method":  {`{"method":"` + strings.Repeat("<", 1<<20) + `","args":[]}`, "Unable to parse LUXI request method", fault.Invalid},
	} {
		got := r.dial().ask(tc.request)
		if got.Success || got.Fault == nil || got.Fault.Code != tc.code || !strings.Contains(fmt.Sprint(got.Result), tc.text) {
			t.Errorf("%s: %.400v %.400v", name, got.Result, got.Fault)
		}
		if len(fmt.Sprint(got.Result)) > 100<<10 {
			t.Errorf("%s: an answer of %d bytes", name, len(fmt.Sprint(got.Result)))
		}
	}
	if n := r.queue.Jobs().Len(); n != 0 {
		t.Errorf("they made %d jobs", n)
	}
}

func TestOverlongFrameIsRefusedWithItsLimit(t *testing.T) {
	_, path := echoServer(t, nil)
	c := dialRaw(t, path)
	sent := make(chan error, 1)
	go func() { // far more than the socket's buffer, and no end of the message
		_, err := c.Write([]byte(`{"method":"Echo","args":["` + strings.Repeat("x", 2_000_000)))
		sent <- err
	}()
	r, ok := c.receive()
	if message, _ := r.Result.(string); !ok || !strings.Contains(message, "limit of 100000 bytes") {
		t.Errorf("got %+v, %v", r, ok)
	}
	if _, ok := c.receive(); ok {
		t.Error("the connection goes on")
	}
	if err := <-sent; err != nil {
		t.Errorf("the client was cut off before it could read why: %v", err)
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	s, _ := echoServer(t, nil)
	path := listenAt(t, s, gate.Surface{Most: 2, Share: 16, Local: true})
	first, second := dialRaw(t, path), dialRaw(t, path)
	for _, c := range []*conn{first, second} {
		if got := c.ask(`{"method":"Echo","args":[1]}`); !got.Success {
			t.Fatal(got)
		}
	}
	refused := dialRaw(t, path)
	if got, ok := refused.receive(); !ok || got.Success || got.Fault.Code != fault.Busy || !strings.Contains(fmt.Sprint(got.Result), "already 2 connections") {
		t.Errorf("a third client: %v, %v", got, ok)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; {
		c := dialRaw(t, path)
		if _, err := c.Write([]byte(`{"method":"Echo","args":[1]}` + "\x03")); err == nil {
			if got, ok := c.receive(); ok && got.Success {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the place of a client that left stays taken")
		}
	}
}

// TestAThousandClients: so many are connected at once, each is answered, and the next one is told why it is not.
func TestAThousandClients(t *testing.T) {
	const thousand, ends = 1000, 2
	if room := gate.Files(); room < ends*thousand+100 {
		t.Skipf("this process may open %d files", room)
	}
	s, _ := echoServer(t, nil)
	limits := gate.LUXI
	limits.Share = 16 // both ends are in this process
	path := listenAt(t, s, limits)
	for i := range thousand {
		if got := dialRaw(t, path).ask(`{"method":"Echo","args":[1]}`); !got.Success {
			t.Fatalf("client %d: %v", i, got)
		}
	}
	if got, ok := dialRaw(t, path).receive(); !ok || got.Success || got.Fault.Code != fault.Busy || !strings.Contains(fmt.Sprint(got.Result), "already 1000 connections") {
		t.Errorf("one more: %v, %v", got, ok)
	}
}

func TestUnfinishedRequestsAreBoundedInTime(t *testing.T) {
	_, path := echoServer(t, nil, func(s *Server) { s.begun = 100 * time.Millisecond })
	slow := dialRaw(t, path)
	slow.send(`{"method":`)
	if got, ok := slow.receive(); ok {
		t.Errorf("a request that does not go on is answered: %v", got)
	}
}

func TestRequestsInFlightShareTheirMemory(t *testing.T) {
	block := make(chan struct{})
	_, path := echoServer(t, block, func(s *Server) {
		s.maxFrame, s.memory = 1<<20, intake.NewBudget(800<<10)
	})
	long := strings.Repeat("x", 300<<10)
	first := dialRaw(t, path)
	first.send(`{"method":"Block","args":[],"more":"` + long + `"}` + "\x03")
	block <- struct{}{} // it has been read, and all that it takes is taken
	if got := dialRaw(t, path).ask(`{"method":"Echo","args":["` + long + `"]}`); got.Success || got.Fault.Code != fault.Busy {
		t.Errorf("beside a long request: %v", got.Fault)
	}
	if got := dialRaw(t, path).ask(`{"method":"Echo","args":["short"]}`); !got.Success {
		t.Errorf("a short request beside it: %v", got.Fault)
	}
	close(block)
	if got, ok := first.receive(); !ok || !got.Success {
		t.Errorf("the long request: %v, %v", got, ok)
	}
	if got := first.ask(`{"method":"Echo","args":["` + long + `"]}`); !got.Success {
		t.Errorf("afterwards: %v", got.Fault)
	}
}
