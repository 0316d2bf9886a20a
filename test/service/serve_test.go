// Package service tests `drover serve` as a service manager meets it: a process
// that is told things by signals and files, and tells how it goes.
package service

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
)

// patience is how long anything here may take, on a machine that has much to do.
var patience = 4 * testkit.Patience()

// service is a running `drover serve`.
type service struct {
	*testing.T
	dir    string
	cmd    *exec.Cmd
	said   bytes.Buffer // on standard output; to be read when it has ended
	told   chan string  // what the service manager is told, line by line
	logged chan map[string]any
}

// serve starts the program with a configuration, as a service manager would.
func serve(t *testing.T, bin, config string) *service {
	t.Helper()
	dir, err := os.MkdirTemp("", "drv") //nolint:usetesting // sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &service{T: t, dir: dir, told: make(chan string, 10_000), logged: make(chan map[string]any, 10_000)}
	s.configure(config)
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = notify.Close() })
	go s.listen(notify)
	s.cmd = exec.CommandContext(t.Context(), bin, "serve", "--config", filepath.Join(dir, "drover.toml"))
	s.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(dir, "notify"), "WATCHDOG_USEC=400000")
	s.cmd.Stdout = &s.said
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			var line map[string]any
			if json.Unmarshal(lines.Bytes(), &line) == nil {
				s.logged <- line
			}
		}
		close(s.logged)
	}()
	return s
}

// configure writes the configuration file.
func (s *service) configure(text string) {
	s.Helper()
	config := fmt.Sprintf("data = %q\nluxi = %q\nrapi = \"127.0.0.1:0\"\nlog-format = \"json\"\n%s\n",
		filepath.Join(s.dir, "data"), filepath.Join(s.dir, "luxi"), text)
	if err := os.WriteFile(filepath.Join(s.dir, "drover.toml"), []byte(config), 0o600); err != nil {
		s.Fatal(err)
	}
}

func (s *service) listen(notify *net.UnixConn) {
	message := make([]byte, 4096)
	for {
		n, err := notify.Read(message)
		if err != nil {
			return
		}
		for line := range strings.Lines(string(message[:n])) {
			s.told <- strings.TrimSpace(line)
		}
	}
}

// awaitTold waits until the service manager is told something that begins so.
func (s *service) awaitTold(prefix string) {
	s.Helper()
	for limit := time.After(patience); ; {
		select {
		case line := <-s.told:
			if strings.HasPrefix(line, prefix) {
				return
			}
		case <-limit:
			s.Fatalf("the service manager was not told %s", prefix)
		}
	}
}

// awaitLogged waits for a line of the log with this message, and returns it.
func (s *service) awaitLogged(message string) map[string]any {
	s.Helper()
	return s.awaitAllLogged(message)[message]
}

// awaitAllLogged returns the next line of each message, in whatever order they come.
func (s *service) awaitAllLogged(messages ...string) map[string]map[string]any {
	s.Helper()
	found := map[string]map[string]any{}
	for limit := time.After(patience); ; {
		select {
		case line, more := <-s.logged:
			if !more {
				s.Fatalf("it ended without saying all of %q, but %v", messages, found)
			}
			message, _ := line["msg"].(string)
			if found[message] == nil && slices.Contains(messages, message) {
				found[message] = line
			}
			if len(found) == len(messages) {
				return found
			}
		case <-limit:
			s.Fatalf("it did not say all of %q, but %v", messages, found)
		}
	}
}

func (s *service) signal(sig syscall.Signal) {
	s.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.Fatal(err)
	}
}

// rapi returns the address of RAPI.
func (s *service) rapi() string {
	s.Helper()
	var ready struct {
		RAPI string `json:"rapi"`
		Mond map[string]string
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "data", "ready.json"))
	if err == nil {
		err = json.Unmarshal(text, &ready)
	}
	if err != nil {
		s.Fatal(err)
	}
	if len(ready.Mond) != 0 {
		s.Errorf("monitoring agents run that nobody asked for: %v", ready.Mond)
	}
	return ready.RAPI
}

// certificate is the one that RAPI shows to a new connection.
func (s *service) certificate(address string) string {
	s.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(address, "https://"), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	return string(conn.ConnectionState().PeerCertificates[0].Raw)
}

// ask asks something over RAPI, as request mine-1, with the account of the first start or as a stranger.
func (s *service) ask(url string, known bool) (status int, header http.Header) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("X-Request-ID", "mine-1")
	if known {
		r.SetBasicAuth("drover", s.secret("rapi/password"))
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode, answer.Header
}

// secret is a password that the first start made.
func (s *service) secret(file string) string {
	s.Helper()
	password, err := os.ReadFile(filepath.Join(s.dir, "data", file))
	if err != nil || len(password) < 10 {
		s.Fatalf("%q, %v", password, err)
	}
	return strings.TrimSpace(string(password))
}

// TestStrangersLearnNothing: a service answers nobody without an account but those who watch over it, and tells its passwords
// to nothing that keeps what it is told.
func TestStrangersLearnNothing(t *testing.T) {
	s := serve(t, testkit.Build(t), `compute = "127.0.0.1:0"`)
	s.awaitTold("READY=1")
	address := s.rapi()
	for path, want := range map[string]int{"/2/info": 401, "/2/jobs": 401, "/2/environments": 401, "/version": 401, "/": 401,
		"/metrics": 200, "/healthz": 200, "/readyz": 200} {
		if got, _ := s.ask(address+path, false); got != want {
			t.Errorf("a stranger who asks for %s gets %d, not %d", path, got, want)
		}
	}
	if got, _ := s.ask(address+"/2/info", true); got != http.StatusOK {
		t.Errorf("the account of the first start gets %d", got)
	}
	s.signal(syscall.SIGTERM)
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	for _, file := range []string{"rapi/password", "os_password"} {
		if text := s.said.String(); strings.Contains(text, s.secret(file)) || !strings.Contains(text, file) {
			t.Errorf("where %s is, is not told, or what it holds is:\n%s", file, text)
		}
	}
}

// TestService goes through the life of a service: it says when it is ready, that
// it lives, and that it stops; it takes up what can be taken up, and keeps what
// it has when the file has mistakes.
func TestService(t *testing.T) {
	s := serve(t, testkit.Build(t), "")
	s.awaitTold("READY=1")
	s.awaitTold("STATUS=leads with epoch 1")
	s.awaitTold("WATCHDOG=1")
	s.awaitTold("WATCHDOG=1")
	address := s.rapi()
	first := s.certificate(address)

	// The level of the log, and another certificate.
	if err := os.Remove(filepath.Join(s.dir, "data", "rapi", "rapi.pem")); err != nil {
		t.Fatal(err)
	}
	s.configure(`log-level = "debug"`)
	s.signal(syscall.SIGHUP)
	s.awaitTold("RELOADING=1")
	s.awaitTold("READY=1")
	if line := s.awaitLogged("not everything could be read anew; what could not stays as it was"); !strings.Contains(fmt.Sprint(line["error"]), "rapi.pem") {
		t.Errorf("without its certificate it says %v", line)
	}
	if s.certificate(address) != first {
		t.Error("the certificate is gone")
	}

	// A request and its job can be found in the log together.
	_, header := s.ask(address+"/version", true)
	if got := header.Get("X-Request-ID"); got != "mine-1" {
		t.Errorf("the answer names request %q", got)
	}
	if line := s.awaitLogged("request"); line["request"] != "mine-1" {
		t.Errorf("the log has %v", line)
	}
	luxi, err := luxiwire.Dial(t.Context(), filepath.Join(s.dir, "luxi"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = luxi.Close() }()
	var id int
	if err := luxi.Call(t.Context(), "SubmitJob", []any{[]any{map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.001, "reason": [][]any{{"user", "trying", 1}}}}}, &id); err != nil {
		t.Fatal(err)
	}
	lines := s.awaitAllLogged("a request handed in a job", "an opcode ended") // the job may end before its request is told
	if line := lines["a request handed in a job"]; line["job"] != float64(id) || line["request"] == nil {
		t.Errorf("the log has %v", line)
	}
	if line := lines["an opcode ended"]; line["job"] != float64(id) || line["opcode"] != "OP_TEST_DELAY" || line["status"] != "success" {
		t.Errorf("the log has %v", line)
	}

	// Mistakes change nothing, and what needs a restart is named.
	s.configure("log-level = \"silent\"")
	s.signal(syscall.SIGHUP)
	s.awaitLogged("not everything could be read anew; what could not stays as it was")
	s.configure("log-level = \"debug\"\nnodes = 9")
	s.signal(syscall.SIGHUP)
	if line := s.awaitLogged("some settings that changed need a restart"); line["settings"] != "nodes" {
		t.Errorf("the log has %v", line)
	}

	s.signal(syscall.SIGTERM)
	s.awaitTold("STOPPING=1")
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestSecondSignal: the first signal waits for what runs as long as the grace
// lasts, and a second ends the process at once.
func TestSecondSignal(t *testing.T) {
	s := serve(t, testkit.Build(t), "stop-grace = \"1h\"\nlog-level = \"debug\"")
	s.awaitTold("READY=1")
	luxi, err := luxiwire.Dial(t.Context(), filepath.Join(s.dir, "luxi"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = luxi.Close() }()
	if err := luxi.Call(t.Context(), "SubmitJob", []any{[]any{map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 3600, "reason": []any{}}}}, new(int)); err != nil {
		t.Fatal(err)
	}
	s.awaitLogged("a job began")
	s.signal(syscall.SIGTERM)
	s.awaitTold("STOPPING=1")
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	again, limit := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer again.Stop()
	for { // the first is still being dealt with when it is told
		select {
		case <-again.C:
			_ = s.cmd.Process.Signal(syscall.SIGTERM) // unless it has ended
		case <-limit:
			t.Fatal("the second signal did not end it")
		case err := <-ended:
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
				t.Errorf("it ended with %v", err)
			}
			return
		}
	}
}

// TestUnit holds the unit to what the program needs and can bear.
func TestUnit(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "packaging", "systemd", "drover.service"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"Type=notify", "ExecStart=/usr/bin/drover serve", "ExecReload=/bin/kill -HUP $MAINPID", "User=drover", "StateDirectory=drover",
		"RuntimeDirectory=drover", "WatchdogSec=30", "NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet=",
		"MemoryDenyWriteExecute=yes", "SystemCallFilter=@system-service", "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
		"StartLimitIntervalSec=0", "Restart=always", "RestartPreventExitStatus=2", // nothing that passes leaves it dead
		"KillMode=process", // tasks outlive the controller, and are joined
	} {
		if !strings.Contains(string(text), "\n"+line+"\n") {
			t.Errorf("the unit lacks %s", line)
		}
	}
	if strings.Contains(string(text), "\nProcSubset=") { // which boot of the machine it is stands in /proc/sys
		t.Error("the unit hides what tells a process from one of another boot")
	}
}

// TestWhatTheUnitHasToAllow holds the additions that the pages give to what systemd takes: a user namespace of the unit's own leaves it no capability
// of the machine's and no group of others, and its filter ends who gives a file to a group.
func TestWhatTheUnitHasToAllow(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, block := range strings.Split(string(text), "# systemctl edit drover\n")[1:] {
		blocks++
		block, _, _ = strings.Cut(block, "\n\n")
		for line, needs := range map[string]string{"AmbientCapabilities=": "PrivateUsers=no", "SystemCallFilter=@chown": "PrivateUsers=no"} {
			if strings.Contains(block, line) && !strings.Contains(block, needs) {
				t.Errorf("%s does nothing without %s:\n%s", line, needs, block)
			}
		}
	}
	if blocks != 3 {
		t.Errorf("the page has %d additions to the unit", blocks)
	}
}
