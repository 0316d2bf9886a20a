package hostile

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
)

// spareFiles is how many files a process has left when a flood of connections begins.
const spareFiles = 3

// TestOutOfFiles takes a controller the files for further connections: jobs of those who are there go on, it says what is missing, turns no processor
// around, and all of its surfaces serve again when there are files.
func TestOutOfFiles(t *testing.T) {
	bin := testkit.Build(t)
	g := &target{Dev: testkit.StartDev(t, bin, t.TempDir(), "--agent-address", "127.0.0.1:0", "--web", "127.0.0.1:0")}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client, err := luxiwire.Dial(ctx, g.Ready.LUXI)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }() // it has its answers
	surfaces := []string{g.Ready.RAPI, g.Ready.Compute, g.Ready.Web, "agents://" + g.Ready.AgentAddress}
	g.done(ctx, t, client)

	usual := g.limitFiles(t, g.open(t)+spareFiles)
	for _, at := range surfaces {
		for range 2 * spareFiles {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", host(t, at))
			if err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			defer func() { _ = conn.Close() }() // with the test
		}
	}
	for range 20 {
		g.done(ctx, t, client)
	}
	for starved := []string{}; len(starved) == 0; {
		var report struct {
			Lines []struct{ State, Part, What, Why string }
		}
		if err := client.Call(ctx, "QueryHealth", nil, &report); err != nil {
			t.Fatal(err)
		}
		for _, l := range report.Lines {
			if l.State == "problem" && strings.Contains(l.What, "no file or memory left for further clients") && l.Why == "too many open files" {
				starved = append(starved, l.What)
			}
		}
	}
	before := g.processor(t)
	const quiet = 2 * time.Second
	<-time.After(quiet)
	if took := g.processor(t) - before; took > quiet/2 {
		t.Errorf("in %v without files it took %v of a processor", quiet, took)
	}

	g.limitFiles(t, usual)
	for _, at := range surfaces {
		if err := serves(ctx, t, at); err != nil {
			t.Errorf("%s does not serve when there are files: %v", at, err)
		}
	}
	g.bystander(t)
}

func host(t *testing.T, at string) string {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// serves tells whether a surface answers a client that comes now.
func serves(ctx context.Context, t *testing.T, at string) error {
	t.Helper()
	insecure := &tls.Config{InsecureSkipVerify: true} // its certificate is its own
	if strings.HasPrefix(at, "agents:") {
		conn, err := (&tls.Dialer{Config: insecure}).DialContext(ctx, "tcp", host(t, at))
		if err != nil {
			return err
		}
		return conn.Close()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: insecure, DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// done has a job done over a connection that is there.
func (g *target) done(ctx context.Context, t *testing.T, client *luxiwire.Client) {
	t.Helper()
	id, err := handIn(ctx, client, urgent)
	if err != nil {
		t.Fatal(err)
	}
	ended(ctx, t, client, []any{id})
}

// open is how many files the process has open.
func (g *target) open(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", g.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// limitFiles sets how many files the process may open, and returns how many it might before.
func (g *target) limitFiles(t *testing.T, most int) (before int) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Prlimit(g.Cmd.Process.Pid, unix.RLIMIT_NOFILE, nil, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prlimit(g.Cmd.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(most), Max: was.Max}, nil); err != nil {
		t.Fatal(err)
	}
	return int(was.Cur)
}

// processor is how long the process has had a processor.
func (g *target) processor(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", g.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	const user, system = 11, 12 // behind the name, which may have blanks (proc(5))
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	sum := 0
	for _, at := range []int{user, system} {
		n, err := strconv.Atoi(fields[at])
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	const tick = 10 * time.Millisecond
	return time.Duration(sum) * tick
}
