package main

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/drover-project/drover/internal/testkit"
)

// onScreen carries a program out on a terminal of 80 columns and 24 lines, and takes keys and
// patterns in turn: screen STATUS PATTERN [KEYS PATTERN...] KEYS : PROGRAM [ARG...]. Keys are
// pressed when the pattern before them was shown since the last ones; in place of keys "!PROGRAM ARG..." is
// carried out beside. The program must end after the last keys, with the status.
func onScreen(ts *testscript.TestScript, neg bool, args []string) {
	colon := slices.Index(args, ":")
	if neg || colon < 3 || colon%2 == 0 || colon == len(args)-1 {
		ts.Fatalf("usage: screen STATUS PATTERN [KEYS PATTERN...] KEYS : PROGRAM [ARG...]")
	}
	steps, command := args[:colon], args[colon+1:]
	const limit = time.Minute
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	ours, theirs, err := testkit.Terminal()
	ts.Check(err)
	defer ours.Close() //nolint:errcheck // nothing was kept in it
	cmd := exec.CommandContext(ctx, programIn(ts, command[0]), command[1:]...)
	for _, name := range []string{"DROVER_LUXI", "PATH", "TZ"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Env = append(cmd.Env, "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	ts.Check(cmd.Start())
	ts.Check(theirs.Close())
	shown := newPrinted(ours)
	for i := 1; i < len(steps); i += 2 {
		if !shown.until(ctx, regexp.MustCompile(steps[i])) {
			_ = cmd.Process.Kill() // it is over
			ts.Fatalf("%s was not shown, but %q", steps[i], shown.text())
		}
		if beside, is := strings.CutPrefix(steps[i+1], "!"); is {
			words := strings.Fields(beside)
			ts.Check(ts.Exec(words[0], words[1:]...))
			continue
		}
		_, err := ours.WriteString(keyOf(steps[i+1]))
		ts.Check(err)
	}
	status := 0
	if err := cmd.Wait(); err != nil {
		status = cmd.ProcessState.ExitCode()
	}
	if strconv.Itoa(status) != steps[0] {
		ts.Fatalf("it ended with %d, not %s; shown was %q", status, steps[0], shown.text())
	}
}

// keyOf is what a terminal sends for a key.
func keyOf(name string) string {
	if sent, ok := map[string]string{"up": "\x1b[A", "down": "\x1b[B", "enter": "\r", "tab": "\t", "ctrl-c": "\x03"}[name]; ok {
		return sent
	}
	return name
}

// printed is what a program has shown, without the commands to the terminal.
type printed struct {
	mu   sync.Mutex
	all  strings.Builder
	seen int
	news chan struct{}
}

func newPrinted(from *os.File) *printed {
	p := &printed{news: make(chan struct{}, 1)}
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := from.Read(buffer)
			p.mu.Lock()
			p.all.Write(buffer[:n])
			p.mu.Unlock()
			select {
			case p.news <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	return p
}

// commands are those to the terminal.
var commands = regexp.MustCompile("\x1b(\\[[0-9;?<>=]*[ $]?[A-Za-z]|\\][^\x07]*\x07)")

// overwritten is what a program went back over: where keys come faster than frames, a
// word on the screen is written in several pieces, each over the cursor of the last.
var overwritten = regexp.MustCompile("[^\b\r\n]\b")

func (p *printed) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return overwritten.ReplaceAllString(commands.ReplaceAllString(p.all.String(), ""), "")
}

// until waits until a pattern is shown behind what was shown at the last one.
func (p *printed) until(ctx context.Context, pattern *regexp.Regexp) bool {
	for {
		text := p.text()
		if at := pattern.FindStringIndex(text[min(p.seen, len(text)):]); at != nil {
			p.seen += at[1]
			return true
		}
		select {
		case <-p.news:
		case <-ctx.Done():
			return false
		}
	}
}
