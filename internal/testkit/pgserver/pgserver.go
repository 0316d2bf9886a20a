// Package pgserver runs a PostgreSQL server of Debian's packages for a test: as
// an ordinary user, with a data directory and a socket of its own and no TCP
// port, ended by its process id.
//
// Invariants:
//   - A server belongs to one test and ends with it, also when the test's process
//     dies.
//   - Where the packages are not installed the test is skipped, visibly, unless
//     $DROVER_SKIP_NOTHING says that nothing may be skipped.
package pgserver

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
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

// Server is a running server.
type Server struct {
	tb   testing.TB
	dir  string
	bin  string
	args []string
	cred *syscall.Credential // nil: the test's own user

	mu      sync.Mutex
	process *exec.Cmd
}

// Start makes a server and starts it; it is stopped and removed when the test
// ends. With durable the server flushes what it commits, as in production;
// without, it is faster, and kills of the server lose data.
func Start(tb testing.TB, durable bool) *Server {
	tb.Helper()
	s := &Server{tb: tb, bin: binaries(tb), cred: User(tb)}
	dir, err := os.MkdirTemp("", "drover-pg-") //nolint:usetesting // the server's user cannot enter the test's directory
	if err != nil {
		tb.Fatal(err)
	}
	s.dir = dir
	tb.Cleanup(func() {
		s.Kill(syscall.SIGINT)
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	if s.cred != nil {
		if err := os.Chown(dir, int(s.cred.Uid), int(s.cred.Gid)); err != nil {
			tb.Fatal(err)
		}
	}
	s.lay()
	s.args = []string{
		"-D", s.data(), "-c", "listen_addresses=", "-k", dir, "-c", "max_connections=300",
		"-c", "fsync=" + map[bool]string{true: "on", false: "off"}[durable],
	}
	s.Up()
	return s
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// lay makes the data directory: a copy of the one that the first test made which needed any, for to make one takes a processor more than a second, and
// there are dozens.
func (s *Server) lay() {
	s.tb.Helper()
	first := s.first()
	if err := copyTree(first, s.data(), s.cred); err == nil {
		return
	} else if !errors.Is(err, fs.ErrNotExist) {
		s.tb.Fatal(err)
	}
	s.run("initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync", "-D", s.data())
	whole, err := os.MkdirTemp(filepath.Dir(first), "new-") // it is there whole or not at all
	if err != nil {
		s.tb.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(whole) }()
	if err := copyTree(s.data(), filepath.Join(whole, "data"), nil); err != nil {
		s.tb.Fatal(err)
	}
	_ = os.Rename(filepath.Join(whole, "data"), first) // another test may have been earlier
}

// first is where the data directory is kept that others are copies of: of this program, made by this user.
func (s *Server) first() string {
	s.tb.Helper()
	program, err := os.Stat(filepath.Join(s.bin, "postgres"))
	if err != nil {
		s.tb.Fatal(err)
	}
	dir := filepath.Join(testkit.Root(s.tb), ".cache", "test")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.tb.Fatal(err)
	}
	return filepath.Join(dir, fmt.Sprintf("postgresql-%x-%d", program.ModTime().UnixNano(), os.Getuid()))
}

// copyTree makes a copy of a directory that another user may have; it is the test's own without one.
func copyTree(from, to string, owner *syscall.Credential) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	files := root.FS()
	return fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.Join(to, path)
		if entry.IsDir() {
			err = os.Mkdir(name, 0o700)
		} else {
			var content []byte
			if content, err = fs.ReadFile(files, path); err == nil {
				err = os.WriteFile(name, content, 0o600)
			}
		}
		if err == nil && owner != nil {
			err = os.Chown(name, int(owner.Uid), int(owner.Gid))
		}
		return err
	})
}

// binaries returns the directory of the newest server installed.
func binaries(tb testing.TB) string {
	tb.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		tb.Fatal(err)
	}
	if len(found) == 0 {
		testkit.Missingf(tb, "no PostgreSQL server is installed (Debian's package postgresql)")
	}
	return filepath.Dir(found[len(found)-1])
}

// User is the user that servers run as, for they refuse to run as root; nil for the
// test's own. Where no server is installed the test is skipped.
func User(tb testing.TB) *syscall.Credential {
	tb.Helper()
	_ = binaries(tb)
	return testkit.UserOf(tb, "postgres")
}

// command is a program of the server, run as its user and ended with the test.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...) //nolint:noctx // it ends by a signal, not with a context
	cmd.Dir = s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Pdeathsig: syscall.SIGQUIT}
	return cmd
}

func (s *Server) run(name string, args ...string) (output string) {
	s.tb.Helper()
	out, err := s.command(name, args...).CombinedOutput()
	if err != nil {
		s.tb.Fatalf("%s: %v\n%s", name, err, out)
	}
	return strings.TrimSpace(string(out))
}

// SQL has the server carry out statements, as somebody whom no store knows, and returns what the last of them tells.
// Several in one text are one transaction.
func (s *Server) SQL(statements ...string) (told string) {
	s.tb.Helper()
	args := []string{"-X", "-q", "-A", "-t", "-h", s.dir, "-U", "postgres", "-v", "ON_ERROR_STOP=1"}
	for _, text := range statements {
		args = append(args, "-c", text)
	}
	return s.run("psql", args...)
}

// startTime bounds how long a server may take to be ready, recovery included.
const startTime = 60 * time.Second

// Up starts the server and returns when it takes connections.
func (s *Server) Up() {
	s.tb.Helper()
	cmd := s.command("postgres", s.args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		s.tb.Fatal(err)
	}
	s.mu.Lock()
	s.process = cmd
	s.mu.Unlock()
	testkit.StartDaemon(s.tb, cmd, stderr, "database system is ready to accept connections", startTime)
}

// Kill sends the server a signal and waits for its end: SIGINT stops it in an
// orderly way, SIGQUIT as a crash does. It does nothing to one that does not
// run.
func (s *Server) Kill(sig os.Signal) {
	s.tb.Helper()
	s.mu.Lock()
	cmd := s.process
	s.process = nil
	s.mu.Unlock()
	if cmd == nil || cmd.Process == nil { // it was never started
		return
	}
	if err := cmd.Process.Signal(sig); err != nil {
		s.tb.Error(err)
	}
	_ = cmd.Wait() // a server that was killed says so
}

// URL names a schema of the server's database, as store URLs do.
func (s *Server) URL(schema string) string {
	q := url.Values{"host": {s.dir}, "user": {"postgres"}, "dbname": {"postgres"}, "search_path": {schema}}
	return "postgres:///?" + q.Encode()
}
