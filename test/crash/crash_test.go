// Package crash kills what it tests, again and again at moments that nobody
// chose, and checks that nothing acknowledged is lost and nothing is done twice.
//
// A short run is part of the normal tests. DROVER_SOAK=10m (make soak) runs each
// test for that long, and for soakRounds at least.
package crash

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// shortRounds is how often the normal tests kill, soakRounds how often a soak
// kills at least.
const (
	shortRounds = 5
	soakRounds  = 200
)

// rounds calls one for every round, until the rounds of a normal run, or the rounds and
// the time of a soak, are over.
func rounds(t *testing.T, one func(round int)) {
	t.Helper()
	soak := os.Getenv("DROVER_SOAK")
	if soak == "" {
		for round := range shortRounds {
			one(round)
		}
		return
	}
	long, err := time.ParseDuration(soak)
	if err != nil {
		t.Fatalf("DROVER_SOAK: %v", err)
	}
	for round, end := 0, time.Now().Add(long); round < soakRounds || time.Now().Before(end); round++ {
		one(round)
	}
}

// children are the programs that this test binary turns into when it is started with
// DROVER_CRASH_CHILD set to their names.
var children = map[string]func(dir string) error{
	"store": storeChild,
}

func TestMain(m *testing.M) {
	child, ok := children[os.Getenv("DROVER_CRASH_CHILD")]
	if !ok {
		os.Exit(m.Run())
	}
	if err := child(os.Getenv("DROVER_CRASH_DIR")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// killAfter runs a child on a directory, kills it once it has written so many
// lines, and returns all lines it wrote.
func killAfter(t *testing.T, child, dir string, lines int) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "DROVER_CRASH_CHILD="+child, "DROVER_CRASH_DIR="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	got := readLines(out, func(n int) {
		if n == lines {
			_ = cmd.Process.Kill()
		}
	})
	_ = cmd.Wait() // it was killed
	if len(got) < lines {
		t.Fatalf("the child ended by itself after %d lines", len(got))
	}
	return got
}

// readLines reads to the end; a last line that was cut off does not count.
func readLines(r io.Reader, each func(n int)) []string {
	var lines []string
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return lines
		}
		lines = append(lines, line[:len(line)-1])
		each(len(lines))
	}
}
