// Package hostile sends the program what nobody should send, over all of its
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
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
)

// maxGrowth is by how much the process may grow by anything that one client
// sends, in bytes.
const maxGrowth = 64 << 20

// patience is how long an answer may take before the test gives up; it says
// nothing about speed.
var patience = 4 * testkit.Patience()

// target is a controller that is attacked.
type target struct {
	*testkit.Dev

	http *http.Client
	data string

	token  func() (string, error) // of the account for servers
	victim func() (victim, error) // a server of that account
}

// victim is a server that is there, and what it was made of.
type victim struct{ id, flavor, image string }

// What stands in paths and bodies for the victim and what it was made of.
const (
	someServer = "{server}"
	someFlavor = "{flavor}"
	someImage  = "{image}"
)

// aimed puts the victim into a request.
func (g *target) aimed(r request) (path, body string, err error) {
	if !strings.Contains(r.path, someServer) && !strings.Contains(r.body, someImage) {
		return r.path, r.body, nil
	}
	v, err := g.victim()
	if r.api == cyclades {
		v.id = "1" // it numbers them
	}
	names := strings.NewReplacer(someServer, v.id, someFlavor, v.flavor, someImage, v.image)
	return names.Replace(r.path), names.Replace(r.body), err
}

func start(t *testing.T, bin, data string) *target {
	t.Helper()
	insecure := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // its certificate is its own
	t.Cleanup(insecure.CloseIdleConnections)
	g := &target{Dev: testkit.StartDev(t, bin, data), http: &http.Client{Transport: insecure}, data: data}
	g.token, g.victim = sync.OnceValues(g.logIn), sync.OnceValues(g.makeServer)
	return g
}

// request is one thing that a client sends, over one of the surfaces.
type request struct {
	luxi string // a message, without what ends it

	// api is whose path it is.
	api                api
	method, path, body string
	header             http.Header
	anonymous          bool
	// unread: it is refused before all of it was read, and whoever goes on sending
	// may never see the answer.
	unread bool
}

// api is one of the surfaces over HTTP.
type api uint8

const (
	remote api = iota
	compute
	cyclades
	identity
)

// root is what the paths of a surface are below.
func (g *target) root(of api) string {
	switch of {
	case compute:
		return g.Ready.Compute
	case cyclades:
		return strings.TrimSuffix(g.Ready.Compute, "v2.1") + "v2.0"
	case identity:
		return g.Ready.Identity
	case remote:
	}
	return g.Ready.RAPI
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
	path, body, err := g.aimed(r)
	if err != nil {
		return answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, r.method, g.root(r.api)+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	switch {
	case r.anonymous:
	case r.api == remote:
		req.SetBasicAuth(g.Ready.User, g.Ready.Password)
	default:
		token, err := g.token()
		if err != nil {
			return answer{}, err
		}
		req.Header.Set("X-Auth-Token", token)
	}
	maps.Copy(req.Header, r.header)
	resp, err := g.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return answer{}, ctx.Err()
		}
		return answer{verdict: "closed", text: err.Error()}, nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	_ = resp.Body.Close() // it was read
	if err != nil && r.unread {
		return answer{verdict: "closed", text: err.Error()}, nil
	}
	verdict := strconv.Itoa(resp.StatusCode)
	if resp.StatusCode/100 == 2 {
		verdict = "ok"
	}
	return answer{verdict, string(text)}, err
}

// logIn gets a token for the account that servers are made with.
func (g *target) logIn() (string, error) {
	body := fmt.Sprintf(`{"auth":{"identity":{"methods":["password"],"password":{"user":{"name":%s,"password":%s,"domain":{"id":"default"}}}},"scope":{"project":{"name":%s,"domain":{"id":"default"}}}}}`,
		quote(g.Ready.ComputeUser), quote(g.Ready.ComputePassword), quote(g.Ready.ComputeProject))
	resp, err := g.http.Post(g.Ready.Identity+"/auth/tokens", "application/json", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // only the header matters
	if resp.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("no token: %s", resp.Status)
	}
	return resp.Header.Get("X-Subject-Token"), nil
}

// makeServer makes the victim.
func (g *target) makeServer() (victim, error) {
	ctx := context.Background() // it is for all requests, whose contexts end
	first := map[string]string{}
	for _, kind := range []string{"flavors", "images"} {
		got, err := g.send(ctx, request{api: compute, method: http.MethodGet, path: "/" + kind})
		var list map[string][]struct {
			ID string `json:"id"`
		}
		if err := errors.Join(err, json.Unmarshal([]byte(got.text), &list)); err != nil || len(list[kind]) == 0 {
			return victim{}, fmt.Errorf("no %s: %v, %w", kind, got, err)
		}
		first[kind] = list[kind][0].ID
	}
	v := victim{flavor: first["flavors"], image: first["images"]}
	got, err := g.send(ctx, request{api: compute, method: http.MethodPost, path: "/servers",
		body: fmt.Sprintf(`{"server":{"name":"victim","flavorRef":%q,"imageRef":%q,"networks":"none"}}`, v.flavor, v.image)})
	var made struct {
		Server struct {
			ID string `json:"id"`
		} `json:"server"`
	}
	if err := errors.Join(err, json.Unmarshal([]byte(got.text), &made)); err != nil || made.Server.ID == "" {
		return victim{}, fmt.Errorf("no server: %v, %w", got, err)
	}
	v.id = made.Server.ID
	return v, nil
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

// urgent is the same, before all that waits.
var urgent = strings.Replace(nothing, `"duration"`, `"priority":-10,"duration"`, 1)

// handIn hands in a job, and does what the answer says while the queue is full: it tries
// again when others may have ended.
func handIn(ctx context.Context, client *luxiwire.Client, op string) (id int, err error) {
	for {
		err = client.Call(ctx, "SubmitJob", []any{[]any{json.RawMessage(op)}}, &id)
		if !fault.Is(err, fault.Full) {
			return id, err
		}
		select {
		case <-ctx.Done():
			return 0, err
		case <-time.After(time.Millisecond):
		}
	}
}

// bystander is another client, who only wants a job done, and before the hundred
// thousands that a flood may have left.
func (g *target) bystander(t testing.TB) {
	t.Helper()
	client, err := luxiwire.Dial(t.Context(), g.Ready.LUXI)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }() // it has its answers
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	id, err := handIn(ctx, client, urgent)
	if err != nil {
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
