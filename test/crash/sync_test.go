//go:build soak

package crash

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

var (
	writesLog = regexp.MustCompile(`pwrite64\(\d+<[^>]*drover\.db-wal>`)
	syncsLog  = regexp.MustCompile(`f(data)?sync\(\d+<[^>]*drover\.db-wal>`)
	writesAck = regexp.MustCompile(` write\(1<`)
)

// TestNothingIsAcknowledgedBeforeItIsSynced watches the system calls of a
// process that writes to a store: no acknowledgement may leave it while something written to the
// log has not been synced. Killing a process cannot show this, for the kernel keeps
// what was written; only a loss of power would.
func TestNothingIsAcknowledgedBeforeItIsSynced(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.CommandContext(t.Context(), "strace", "-f", "-y", "-e", "trace=fdatasync,fsync,pwrite64,write", "-o", trace, os.Args[0])
	cmd.Env = append(os.Environ(), "DROVER_CRASH_CHILD=store", "DROVER_CRASH_DIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	const enough = 20_000
	readLines(out, func(n int) {
		if n == enough {
			_ = out.Close() // the child ends when it cannot write any more
		}
	})
	_ = cmd.Wait() // so it does not end well
	checkTrace(t, trace)
}

func checkTrace(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	dirty, syncs, acknowledged := false, 0, 0
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		switch line := lines.Bytes(); {
		case writesLog.Match(line):
			dirty = true
		case syncsLog.Match(line):
			dirty = false
			syncs++
		case writesAck.Match(line):
			acknowledged++
			if dirty {
				t.Fatalf("acknowledgement %d left before what was written was synced", acknowledged)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if syncs == 0 || acknowledged == 0 {
		t.Errorf("saw %d syncs and %d acknowledgements", syncs, acknowledged)
	}
	t.Logf("%d acknowledgements after %d syncs, none too early", acknowledged, syncs)
}
