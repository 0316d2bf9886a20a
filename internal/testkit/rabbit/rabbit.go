// Package rabbit runs a RabbitMQ broker of Debian's packages for a test: as an
// ordinary user, under a node name and on ports of its own, with its own port
// mapper and data directory, ended by its process id.
//
// Invariants:
//   - A broker belongs to one test and ends with it, also when the test's process
//     dies.
//   - Where the packages are not installed the test is skipped, visibly, unless
//     $DROVER_SKIP_NOTHING says that nothing may be skipped.
package rabbit

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
)

// program is what starts a broker.
const program = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// Broker is a broker of a test.
type Broker struct {
	tb   testing.TB
	dir  string
	port string
	env  []string
	cred *syscall.Credential // nil: the test's own user

	mu      sync.Mutex
	process *exec.Cmd
	mapper  *exec.Cmd
}

// Start makes a broker and starts it; it is stopped and removed when the test
// ends. Settings are words of the command line of Erlang: "-rabbit", "heartbeat", "5".
func Start(tb testing.TB, settings ...string) *Broker {
	tb.Helper()
	if _, err := os.Stat(program); err != nil {
		testkit.Missingf(tb, "no RabbitMQ is installed (Debian's package rabbitmq-server)")
	}
	dir, err := os.MkdirTemp("", "drover-mq-") //nolint:usetesting // the broker's user cannot enter the test's directory
	if err != nil {
		tb.Fatal(err)
	}
	b := &Broker{tb: tb, dir: dir, cred: testkit.UserOf(tb, "rabbitmq")}
	tb.Cleanup(func() {
		b.Kill(syscall.SIGKILL)
		b.end(b.mapper, syscall.SIGKILL)
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	// Made by the broker itself it is everybody's for a moment, and one that is killed in that moment never starts again.
	cookie := filepath.Join(dir, ".erlang.cookie")
	if err := os.WriteFile(cookie, []byte(rand.Text()), 0o400); err != nil {
		tb.Fatal(err)
	}
	for _, path := range []string{dir, cookie} {
		if b.cred == nil {
			break
		}
		if err := os.Chown(path, int(b.cred.Uid), int(b.cred.Gid)); err != nil {
			tb.Fatal(err)
		}
	}
	ports := testkit.FreePorts(tb, 3)
	b.port = ports[0]
	b.env = []string{
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + dir, "LANG=C.UTF-8",
		"RABBITMQ_NODENAME=drover" + ports[0] + "@localhost", "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1", "RABBITMQ_NODE_PORT=" + ports[0],
		"RABBITMQ_DIST_PORT=" + ports[1], "ERL_EPMD_PORT=" + ports[2], "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_MNESIA_BASE=" + filepath.Join(dir, "data"), "RABBITMQ_LOG_BASE=" + filepath.Join(dir, "log"), "RABBITMQ_LOGS=-",
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(dir, "plugins"), "RABBITMQ_CONF_ENV_FILE=" + filepath.Join(dir, "env"),
		"RABBITMQ_CONFIG_FILE=" + filepath.Join(dir, "rabbitmq"), "RABBITMQ_PID_FILE=" + filepath.Join(dir, "pid"),
		// Without it a shell stands between the test and the broker.
		"RABBITMQ_ALLOW_INPUT=yes", "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-noinput -kernel inet_dist_use_interface {127,0,0,1} " + strings.Join(settings, " "),
	}
	b.mapper = b.command("/usr/bin/epmd", "-port", ports[2])
	if err := b.mapper.Start(); err != nil {
		tb.Fatal(err)
	}
	b.Up()
	return b
}

// command is a program of the broker, run as its user and ended with the test.
func (b *Broker) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...) //nolint:noctx // it ends by a signal, not with a context
	cmd.Dir, cmd.Env = b.dir, b.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: b.cred, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// startTime bounds how long a broker may take to be ready.
const startTime = 4 * time.Minute

// Up starts the broker and returns when it takes connections.
func (b *Broker) Up() {
	b.tb.Helper()
	cmd := b.command(program)
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.tb.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	b.mu.Lock()
	b.process = cmd
	b.mu.Unlock()
	testkit.StartDaemon(b.tb, cmd, out, "Server startup complete", startTime)
}

// Kill sends the broker a signal and waits for its end: SIGTERM stops it in an
// orderly way, SIGKILL as a crash does. It does nothing to one that does not run.
func (b *Broker) Kill(sig os.Signal) {
	b.tb.Helper()
	b.mu.Lock()
	cmd := b.process
	b.process = nil
	b.mu.Unlock()
	b.end(cmd, sig)
}

func (b *Broker) end(cmd *exec.Cmd, sig os.Signal) {
	if cmd == nil || cmd.Process == nil {
		return
	}
	if err := cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		b.tb.Error(err)
	}
	_ = cmd.Wait() // what was killed says so
}

// URL is where the broker takes connections.
func (b *Broker) URL() string { return "amqp://guest:guest@127.0.0.1:" + b.port + "/" }
