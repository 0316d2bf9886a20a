// Package hostile sends the program what nobody should send, over both of its
// surfaces: everything that once stopped, stalled or swelled it (attacks_test.go),
// random requests at and around every limit (fuzz_test.go), and floods of both
// beside a client that only wants its jobs done (flood_test.go).
//
// What must hold after each request: the process is there, an answer came that
// blames the request and not the controller, memory has not grown by more than
// maxGrowth, and another client's job is taken and done. How long that client
// waits is reported, and asserted only in a soak (DROVER_SOAK), because it is
// the machine's figure too.
package hostile

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
)

// maxGrowth is by how much the process may grow by anything that one client
// sends, in bytes.
const maxGrowth = 64 << 20

// patience is how long an answer may take before the test gives up; it says
// nothing about speed.
const patience = 2 * time.Minute

// target is a controller that is attacked.
type target struct {
	*testkit.Dev

	http *http.Client
	data string
}

func start(t *testing.T, bin, data string) *target {
	t.Helper()
	insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // its certificate is its own
	t.Cleanup(insecure.CloseIdleConnections)
	return &target{Dev: testkit.StartDev(t, bin, data), http: &http.Client{Transport: insecure}, data: data}
}

// request is one thing that a client sends, over one of the surfaces.
type request struct {
	luxi string // a message, without what ends it

	method, path, body string
	header             http.Header
	anonymous          bool
}

func (r request) String() string {
	text := r.luxi
	if text == "" {
		text = r.method + " " + r.path + " " + r.body
	}
	if len(text) > 300 {
		return fmt.Sprintf("%s... (%d bytes)", text[:300], len(text))
	}
	return text
}

// answer is what came back: "ok", the code of a fault or a status in digits, and
// the text. A connection that was closed without an answer has verdict "closed".
type answer struct{ verdict, text string }

// blamesUs tells whether the answer says that the controller is at fault.
func (a answer) blamesUs() bool {
	return a.verdict == "internal" || a.verdict == "500" || a.verdict == "502" || a.verdict == "closed"
}

func (g *target) send(ctx context.Context, r request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if r.luxi != "" {
		return g.sendLUXI(ctx, r.luxi)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, g.Ready.RAPI+r.path, strings.NewReader(r.body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	maps.Copy(req.Header, r.header)
	if !r.anonymous {
		req.SetBasicAuth(g.Ready.User, g.Ready.Password)
	}
	resp, err := g.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return answer{}, ctx.Err()
		}
		return answer{verdict: "closed", text: err.Error()}, nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	_ = resp.Body.Close() // it was read
	verdict := strconv.Itoa(resp.StatusCode)
	if resp.StatusCode == http.StatusOK {
		verdict = "ok"
	}
	return answer{verdict, string(text)}, err
}

func (g *target) sendLUXI(ctx context.Context, message string) (answer, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", g.Ready.LUXI)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = conn.Close() }() // nothing is left to be said
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(conn, message+string(rune(luxiwire.Terminator))); err != nil && ctx.Err() != nil {
		return answer{}, ctx.Err()
	} // else there may be an answer to what was sent
	var out bytes.Buffer
	piece := make([]byte, 64<<10)
	for {
		n, err := conn.Read(piece)
		if n > 0 && out.Len() < 1<<20 {
			out.Write(piece[:n])
		}
		switch {
		case n > 0 && piece[n-1] == luxiwire.Terminator:
			return readLUXI(out.Bytes()), nil
		case err != nil && ctx.Err() != nil:
			return answer{}, ctx.Err()
		case err != nil:
			return answer{verdict: "closed", text: err.Error()}, nil
		}
	}
}

func readLUXI(text []byte) answer {
	text = bytes.TrimSuffix(text, []byte{luxiwire.Terminator})
	var a struct {
		Success bool
		Fault   struct{ Code string }
	}
	switch err := json.Unmarshal(text, &a); {
	case bytes.HasPrefix(text, []byte(`{"success":true`)): // perhaps cut by us
		return answer{"ok", string(text)}
	case err != nil:
		return answer{"internal", fmt.Sprintf("an answer that is no JSON: %q", text)}
	}
	return answer{a.Fault.Code, string(text)}
}

// memory is how much memory the process has in use now, and the most that it had
// since the last call of forgetPeak, in bytes.
func (g *target) memory(t testing.TB) (now, peak int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.Cmd.Process.Pid))
	if err != nil {
		t.Fatalf("the process is gone: %v", err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			now = kib << 10
		case "VmHWM":
			peak = kib << 10
		}
	}
	return now, peak
}

// forgetPeak begins to measure the most anew. Where the kernel cannot, the most
// of the whole run stands.
func (g *target) forgetPeak() {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", g.Cmd.Process.Pid), []byte("5"), 0)
}

// nothing is an opcode that does nothing.
const nothing = `{"OP_ID":"OP_TEST_DELAY","duration":0.000001,"on_master":true,"on_nodes":[],"reason":[["gnt:user","bystander",1]]}`

// bystander is another client, who only wants a job done.
func (g *target) bystander(t testing.TB) {
	t.Helper()
	client, err := luxiwire.Dial(t.Context(), g.Ready.LUXI)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }() // it has its answers
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var id int
	if err := client.Call(ctx, "SubmitJob", []any{[]any{json.RawMessage(nothing)}}, &id); err != nil {
		t.Fatalf("another client's job is not taken: %v", err)
	}
	for status := ""; status != "success"; {
		var rows [][]any
		if err := client.Call(ctx, "QueryJobs", []any{[]int{id}, []string{"status"}}, &rows); err != nil {
			t.Fatal(err)
		}
		status, _ = rows[0][0].(string)
		switch status {
		case "success":
		case "error", "canceled":
			t.Fatalf("another client's job ended as %s", status)
		default:
			var ignored json.RawMessage
			if err := client.Call(ctx, "WaitForJobChange", []any{id, []string{"status"}, []any{status}, 0, 10}, &ignored); err != nil {
				t.Fatal(err)
			}
		}
	}
}
