package service

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// member starts a controller of a group over a database, with no more files than a
// number.
func member(t *testing.T, bin, url, name string, files int, more ...string) *testkit.Dev {
	t.Helper()
	dir, err := os.MkdirTemp("", "drv") //nolint:usetesting // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	args := append([]string{
		"-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, files), "sh", bin, "serve", "--store", url, "--data", dir, "--name", name,
		"--luxi", filepath.Join(dir, "luxi"), "--rapi", "127.0.0.1:0", "--peer", "127.0.0.1:0",
	}, more...)
	cmd := exec.CommandContext(t.Context(), "sh", args...)
	cmd.Stderr = t.Output()
	return testkit.Start(t, cmd, dir)
}

// silent opens connections that say nothing, as many as are wanted, and keeps them
// open for as long as the test lasts.
func silent(t *testing.T, network, address string, n int) (conns []net.Conn) {
	t.Helper()
	for range n {
		var dialer net.Dialer
		conn, err := dialer.DialContext(t.Context(), network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		conns = append(conns, conn)
	}
	return conns
}

// free is an address of this machine that nobody uses.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// asked sends a question over LUXI.
func asked(t *testing.T, socket string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client, err := luxiwire.Dial(ctx, socket)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	var jobs []any
	return client.Call(ctx, "QueryJobs", []any{nil, []string{"id"}}, &jobs)
}

// TestSilentConnectionsTakeNothingFromOthers fills every listener of a leader, and its
// control socket, with connections that say nothing, many more than the process
// has files: it stays, each listener goes on for those who are elsewhere, and who is
// one too many is told so.
func TestSilentConnectionsTakeNothingFromOthers(t *testing.T) {
	const files, many = 200, 260
	bin, url := testkit.Build(t), pgserver.Start(t, false).URL("drover")
	mond := free(t)
	leader := member(t, bin, url, "c1", files, "--mond", mond, "--compute", "127.0.0.1:0")
	if err := asked(t, leader.Ready.LUXI); err != nil { // it leads
		t.Fatal(err)
	}
	standby := member(t, bin, url, "c2", files)

	for _, address := range []string{
		leader.Ready.Peer, mond, strings.TrimPrefix(leader.Ready.RAPI, "https://"), strings.Split(strings.TrimPrefix(leader.Ready.Compute, "http://"), "/")[0],
	} {
		_ = silent(t, "tcp", address, many)
		if err := asked(t, leader.Ready.LUXI); err != nil {
			t.Errorf("beside silent connections to %s the socket of the leader answers %v", address, err)
		}
		if err := asked(t, standby.Ready.LUXI); err != nil {
			t.Errorf("beside silent connections to %s a standby answers %v", address, err)
		}
	}
	// From another address of this machine RAPI is there.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}).DialContext}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, leader.Ready.RAPI+"/readyz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("RAPI answers %s", answer.Status)
	}

	for _, at := range []*testkit.Dev{leader, standby} {
		conns := silent(t, "unix", at.Ready.LUXI, files/2*2/16) // in a group half of the files are shared out
		if err := asked(t, at.Ready.LUXI); !fault.Is(err, fault.Busy) {
			t.Errorf("a socket that is full answers %v", err)
		}
		for _, conn := range conns {
			_ = conn.Close()
		}
		for limit := time.Now().Add(patience); ; {
			err := asked(t, at.Ready.LUXI)
			if err == nil {
				break
			}
			if time.Now().After(limit) {
				t.Fatal(err)
			}
		}
	}
	for _, d := range []*testkit.Dev{leader, standby} {
		d.Terminate()
		if err := d.Gone(); err != nil {
			t.Error(err)
		}
	}
}
