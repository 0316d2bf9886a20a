package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/cli"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/nodedriver"
	"github.com/drover-project/drover/internal/testkit"
)

// The scripts in testdata/script call the program under all its names.
func TestMain(m *testing.M) {
	program := func() { os.Exit(run()) }
	testscript.Main(m, map[string]func(){
		"drover": program, "gnt-job": program, "gnt-filter": program, "gnt-instance": program,
		"gnt-node": program, "gnt-group": program, "gnt-os": program, "gnt-cluster": program, "gnt-debug": program, "gnt-storage": program,
	})
}

// TestScripts runs each script against a cluster of its own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", Setup: startCluster,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "follows": follows, "screen": onScreen, "examples": examples, "asdata": asdata, "hides": hides}})
}

// examples runs the examples of what the table of verbs has asked: examples. There is
// nobody to ask, so each must end with a question as its only effect.
func examples(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: examples")
	}
	asked := 0
	for _, v := range cli.Verbs() {
		if v.Question == "" {
			continue
		}
		err := ts.Exec("drover", strings.Fields(v.Example)...)
		status := 0
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			status = exit.ExitCode()
		}
		said := ts.ReadFile("stderr")
		switch {
		case status == shell.ExitNotConfirmed && strings.Contains(said, "Give --yes to go on."):
			asked++
		case status == 0 && v.Path == "cluster format raise": // the cluster is new, and has nothing to raise
		default:
			ts.Fatalf("%s ends with status %d: %s", v.Example, status, said)
		}
	}
	const fewest = 20
	if asked < fewest {
		ts.Fatalf("only %d examples asked", asked)
	}
}

// follows runs a program that shows changes, carries out another when the first
// pattern was shown, and waits for the second: follows FIRST SECOND PROGRAM
// [ARG...] : PROGRAM [ARG...]. The program must go on until it is interrupted.
func follows(ts *testscript.TestScript, neg bool, args []string) {
	colon := slices.Index(args, ":")
	if neg || colon < 3 || colon == len(args)-1 {
		ts.Fatalf("usage: follows FIRST SECOND PROGRAM [ARG...] : PROGRAM [ARG...]")
	}
	ctx, stop := context.WithTimeout(context.Background(), 2*testkit.Patience())
	defer stop()
	cmd := exec.CommandContext(ctx, programIn(ts, args[2]), args[3:colon]...)
	for _, name := range []string{"DROVER_LUXI", "PATH", "TZ"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	lines := bufio.NewScanner(out)
	awaitLine(ts, lines, args[0])
	ts.Check(ts.Exec(args[colon+1], args[colon+2:]...))
	awaitLine(ts, lines, args[1])
	ts.Check(cmd.Process.Signal(os.Interrupt))
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		ts.Fatalf("interrupted, it ended with %v", err)
	}
}

// programIn finds a program as the script does.
func programIn(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	ts.Fatalf("there is no program %s", name)
	return ""
}

func awaitLine(ts *testscript.TestScript, lines *bufio.Scanner, pattern string) {
	re, err := regexp.Compile(pattern)
	ts.Check(err)
	var seen []string
	for lines.Scan() {
		if re.MatchString(lines.Text()) {
			return
		}
		seen = append(seen, lines.Text())
	}
	ts.Fatalf("no line matches %s:\n%s", pattern, strings.Join(seen, "\n"))
}

// exits runs a program that must end with a status: exits STATUS PROGRAM ...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	if err != nil || neg {
		ts.Fatalf("usage: exits STATUS PROGRAM [ARG...]")
	}
	status := 0
	if exit, ok := errors.AsType[*exec.ExitError](ts.Exec(args[1], args[2:]...)); ok {
		status = exit.ExitCode()
	}
	if status != want {
		ts.Fatalf("status %d, want %d", status, want)
	}
}

// startCluster runs an empty cluster until the script ends.
func startCluster(env *testscript.Env) error {
	if err := os.Chmod(filepath.Dir(env.WorkDir), 0o711); err != nil { // nodes take files that everybody reaches
		return err
	}
	dir, stop, err := cluster(2)
	env.Defer(func() {
		if err := stop(); err != nil {
			env.T().Log(err)
		}
	})
	if err != nil {
		return err
	}
	env.Setenv("DROVER_LUXI", filepath.Join(dir, "luxi.sock"))
	env.Setenv("DATA", dir)
	env.Setenv("TZ", "UTC")
	env.Setenv("GORACE", "atexit_sleep_ms=10") // with the race detector each of a thousand commands would rest for a second before it ends
	return setCloud(env, filepath.Join(dir, "ready.json"))
}

// cluster starts a cluster of so many nodes, and returns its directory and what ends it.
func cluster(nodes int) (dir string, stop func() error, err error) {
	dir, err = os.MkdirTemp("", "drv") // sockets need short paths
	if err != nil {
		return "", func() error { return nil }, err
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err = errors.Join(err, os.Mkdir(filepath.Join(dir, "providers"), 0o700)); err != nil {
		return dir, func() error { return os.RemoveAll(dir) }, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(readiness, 1), make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, app.Options{Data: dir, RAPI: "127.0.0.1:0", Compute: "127.0.0.1:0", Mond: "127.0.0.1:0", AgentAddress: "127.0.0.1:0", Nodes: nodes, Tasks: true,
			Driver: nodedriver.Settings{Commands: filepath.Join(dir, "commands"), Providers: filepath.Join(dir, "providers")}, OutOfBand: filepath.Join(dir, "oob"),
			Out: ready, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	}()
	stop = func() error {
		cancel()
		return errors.Join(<-ended, log.Close(), os.RemoveAll(dir))
	}
	select {
	case <-ready:
	case err = <-ended:
		ended <- nil
	case <-time.After(2 * testkit.Patience()):
		err = context.DeadlineExceeded
	}
	return dir, stop, err
}

// setCloud sets the variables by which clients of OpenStack find the cluster.
func setCloud(env *testscript.Env, readyFile string) error {
	text, err := os.ReadFile(readyFile)
	if err != nil {
		return err
	}
	var ready app.Ready
	if err := json.Unmarshal(text, &ready); err != nil {
		return err
	}
	env.Setenv("OS_AUTH_URL", ready.Identity)
	env.Setenv("OS_USERNAME", ready.OSUsername)
	env.Setenv("OS_PASSWORD", ready.OSPassword)
	env.Setenv("OS_PROJECT_NAME", ready.OSProject)
	return nil
}

// readiness is where the cluster says that it is ready.
type readiness chan struct{}

func (r readiness) Write(text []byte) (int, error) {
	select {
	case r <- struct{}{}:
	default:
	}
	return len(text), nil
}

var _ io.Writer = readiness(nil)
