package service

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/csv"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// rolling is three controllers over one database behind an HAProxy, with the configuration that comes with Drover.
type rolling struct {
	*testing.T
	bin, dir, store string
	// ports are those of RAPI, and front is that of the proxy.
	ports []string
	front string
	runs  []*testkit.Dev
}

func newRolling(t *testing.T) *rolling {
	t.Helper()
	dir, err := os.MkdirTemp("", "drvr") //nolint:usetesting // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r := &rolling{T: t, bin: testkit.Build(t), dir: dir, store: pgserver.Start(t, false).URL("drover"), ports: testkit.FreePorts(t, 3), runs: make([]*testkit.Dev, 3)}
	r.write("users", "op secret write\n")
	for i := range r.runs {
		r.start(i)
	}
	r.startProxy()
	return r
}

func (r *rolling) path(name string) string { return filepath.Join(r.dir, name) }

func (r *rolling) write(name, text string) {
	r.Helper()
	if err := os.WriteFile(r.path(name), []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
}

// key is the file with the certificate that the first controller makes, and all use.
func (r *rolling) key() string { return r.path("c1/rapi/rapi.pem") }

func name(i int) string { return fmt.Sprintf("c%d", i+1) }

// start starts a controller where it was.
func (r *rolling) start(i int) {
	r.Helper()
	data := r.path(name(i))
	cmd := exec.CommandContext(r.Context(), r.bin, "serve", "--name", name(i), "--data", data, "--luxi", data+".sock", "--rapi", "127.0.0.1:"+r.ports[i],
		"--peer", "127.0.0.1:0", "--store", r.store, "--rapi-users", r.path("users"), "--node-data", r.path("nodes"), "--nodes", "2", "--shutdown-delay", "1s")
	if _, err := os.Stat(r.key()); err == nil { // they are on one machine, and those that are made of themselves would all have its name
		cmd.Args = append(cmd.Args, "--rapi-certificate", r.key())
	}
	cmd.Stderr = r.Output()
	r.runs[i] = testkit.Start(r, cmd, data)
}

// stop ends a controller as a service manager does.
func (r *rolling) stop(i int) {
	r.Helper()
	r.runs[i].Terminate()
	if err := r.runs[i].Gone(); err != nil {
		r.Errorf("%s did not end in good order: %v", name(i), err)
	}
}

// certificate is that of the controllers, without its key.
func (r *rolling) certificate() string {
	r.Helper()
	text, err := os.ReadFile(r.key())
	if err != nil {
		r.Fatal(err)
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return string(pem.EncodeToMemory(block))
		}
	}
	r.Fatal("there is no certificate")
	return ""
}

// startProxy starts HAProxy with the file of packaging: with other addresses, and checks each 200 ms.
func (r *rolling) startProxy() {
	r.Helper()
	program := "/usr/sbin/haproxy"
	if _, err := os.Stat(program); err != nil {
		testkit.Missingf(r, "haproxy: not installed")
	}
	text, err := os.ReadFile(filepath.Join(testkit.Root(r), "packaging", "haproxy", "haproxy.cfg"))
	if err != nil {
		r.Fatal(err)
	}
	config := string(text)
	r.front = testkit.FreePorts(r, 1)[0]
	changes := [][2]string{
		{"log /dev/log local0", "log stdout format raw local0\n    stats socket " + r.path("stats")},
		{":5080 ssl crt /etc/haproxy/drover.pem", "127.0.0.1:" + r.front + " ssl crt " + r.key()},
		{"/etc/haproxy/controllers.pem", r.path("controllers.pem")},
		{"inter 1s", "inter 200ms"},
	}
	for i, port := range r.ports {
		changes = append(changes, [2]string{fmt.Sprintf("10.0.0.%d:5080", i+1), "127.0.0.1:" + port})
	}
	for _, c := range changes {
		if !strings.Contains(config, c[0]) {
			r.Fatalf("the configuration has no %q", c[0])
		}
		config = strings.ReplaceAll(config, c[0], c[1])
	}
	r.write("controllers.pem", r.certificate())
	r.write("haproxy.cfg", config)
	cmd := exec.CommandContext(r.Context(), program, "-db", "-f", r.path("haproxy.cfg"))
	log, err := os.Create(r.path("haproxy.log"))
	if err != nil {
		r.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, r.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended by itself: then requests failed
		_ = cmd.Wait()
		_ = log.Close()
	})
	for i := range r.runs {
		r.awaitUp(i)
	}
}

// stats are what HAProxy counts, a row for each server.
func (r *rolling) stats() (rows []map[string]string) {
	conn, err := (&net.Dialer{}).DialContext(r.Context(), "unix", r.path("stats"))
	if err != nil {
		return nil // it is not there yet
	}
	defer func() { _ = conn.Close() }()
	if _, err = conn.Write([]byte("show stat\n")); err != nil {
		return nil
	}
	all, err := csv.NewReader(conn).ReadAll()
	if err != nil || len(all) == 0 {
		return nil
	}
	for _, row := range all[1:] {
		of := map[string]string{}
		for i, key := range all[0] {
			of[strings.TrimPrefix(key, "# ")] = row[i]
		}
		rows = append(rows, of)
	}
	return rows
}

// awaitUp waits until HAProxy gives a controller requests.
func (r *rolling) awaitUp(i int) {
	r.Helper()
	for limit := time.After(patience); ; {
		if slices.ContainsFunc(r.stats(), func(row map[string]string) bool {
			return row["svname"] == name(i) && row["status"] == "UP" && row["check_status"] == "L7OK"
		}) {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-limit:
			r.Fatalf("HAProxy does not take %s for one that can be asked: %v", name(i), r.stats())
		}
	}
}

// load is what clients did and were told.
type load struct {
	mu      sync.Mutex
	n       int
	longest time.Duration
	what    string // took longest
	ids     []int
}

// newClient is a client that takes no other certificate.
func (r *rolling) newClient() *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(r.certificate()))
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}, Timeout: patience}
}

// client asks one thing after the other, so many a second, until ctx ends: every second time it has a job made, and then it looks.
func (r *rolling) client(ctx context.Context, k int, every time.Duration, all *load) {
	client := r.newClient()
	defer client.CloseIdleConnections()
	tick := time.NewTicker(every)
	defer tick.Stop()
	id := 0
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		method, path := http.MethodPut, fmt.Sprintf("/2/tags?tag=t%d", k)
		if n%2 == 1 {
			method, path = http.MethodGet, fmt.Sprintf("/2/jobs/%d", id)
		}
		begun := time.Now()
		text, err := r.ask(client, method, path)
		took := time.Since(begun)
		if err != nil {
			r.Errorf("%s %s, after %v: %v", method, path, took, err)
			return
		}
		all.mu.Lock()
		if all.n++; took > all.longest {
			all.longest, all.what = took, fmt.Sprintf("%s %s at %s", method, path, begun.Format("15:04:05.000"))
		}
		if method == http.MethodPut {
			if id, err = strconv.Atoi(strings.TrimSpace(text)); err != nil {
				r.Error(err)
			}
			all.ids = append(all.ids, id)
		}
		all.mu.Unlock()
	}
}

// ask sends a request through the proxy; whatever is no success is an error.
func (r *rolling) ask(client *http.Client, method, path string) (text string, err error) {
	request, err := http.NewRequestWithContext(r.Context(), method, "https://127.0.0.1:"+r.front+path, http.NoBody)
	if err != nil {
		return "", err
	}
	request.SetBasicAuth("op", "secret")
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}
	return string(body), err
}

// TestRollingRestart: three controllers behind HAProxy are stopped and started one after the other, while clients ask 200 times a second: nobody is
// refused, what was acknowledged is there, and the proxy heard of it before a controller was gone.
func TestRollingRestart(t *testing.T) {
	r := newRolling(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	const clients, every = 20, 100 * time.Millisecond
	var all load
	var parts sync.WaitGroup
	for k := range clients {
		parts.Go(func() { r.client(ctx, k, every, &all) })
	}
	begun := time.Now()
	for i := range r.runs {
		r.stop(i)
		r.start(i)
		r.awaitUp(i)
	}
	took := time.Since(begun)
	stop()
	parts.Wait()
	t.Logf("%d requests, %d of them changes, in %v: the longest took %v (%s)", all.n, len(all.ids), took, all.longest, all.what)
	r.checkThere(all.ids)
	log, err := os.ReadFile(r.path("haproxy.log"))
	if err != nil {
		t.Fatal(err)
	}
	// A machine that is very busy may keep HAProxy from looking twice in time, but not thrice in a row.
	if !strings.Contains(string(log), "is DOWN, reason: Layer7 wrong status, code: 503") {
		t.Error("no controller said that it was leaving before it was gone")
	}
	if t.Failed() {
		t.Logf("HAProxy:\n%s", log)
	}
}

// checkThere checks that jobs are there.
func (r *rolling) checkThere(ids []int) {
	r.Helper()
	text, err := r.ask(r.newClient(), http.MethodGet, "/2/jobs?bulk=1")
	var jobs []struct{ ID int }
	if err == nil {
		err = json.Unmarshal([]byte(text), &jobs)
	}
	if err != nil {
		r.Fatal(err)
	}
	there := map[int]bool{}
	for _, j := range jobs {
		there[j.ID] = true
	}
	known := map[int]bool{}
	for _, id := range ids {
		if !there[id] || known[id] {
			r.Errorf("job %d was acknowledged, and is not there, or was acknowledged twice", id)
		}
		known[id] = true
	}
	if len(ids) == 0 {
		r.Error("nothing was acknowledged")
	}
}
