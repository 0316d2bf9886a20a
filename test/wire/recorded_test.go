package wire

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/testkit"
)

// recorded is a call and what the reference answered.
type recorded struct {
	Call   *call   `json:"call"`
	Answer *answer `json:"answer"`
}

// TestConformanceCalls makes the recorded calls to Drover: each is answered as the
// reference answered it, but for what the ledger names. $DROVER_WIRE_REPLAY names
// another recording.
func TestConformanceCalls(t *testing.T) {
	t.Parallel()
	paths := []string{os.Getenv("DROVER_WIRE_REPLAY")}
	if paths[0] == "" {
		paths = []string{testkit.Conformance(t, "ganeti-calls.jsonl"), testkit.Conformance(t, "ganeti-calls-2.jsonl")}
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			replay(t, path)
		})
	}
}

// replay makes the calls of one recording, to a Drover of its own.
func replay(t *testing.T, path string) {
	t.Helper()
	data := t.TempDir()
	dev := testkit.StartDev(t, testkit.Build(t), data, "--nodes", "1")
	drover := newSide(filepath.Join(data, "luxi.sock"), dev.Ready.RAPI, dev.Ready.User, dev.Ready.Password, nil)
	drover.holdTime = 4 * time.Second
	reference, all := newMemory(), newAccounts(readLedger(t))
	for _, rec := range readRecorded(t, path) {
		reference.note(rec.Call.ID, rec.Answer)
		got, err := drover.ask(t.Context(), rec.Call, slices.ContainsFunc(rec.Answer.Jobs, ended.held))
		if err != nil {
			t.Fatalf("%s (%s): %v", rec.Call, rec.Call.ID, err)
		}
		if rec.Call.Prepare {
			continue
		}
		found, err := compare(rec.Call, rec.Answer, got, drover.memory, reference)
		if err != nil {
			t.Fatalf("%s (%s): %v", rec.Call, rec.Call.ID, err)
		}
		all.add(rec.Call, found)
	}
	report(t, all)
	t.Logf("%s: %d calls and %d looks at the state", filepath.Base(path), all.calls.calls, all.states.calls)
}

func readRecorded(t *testing.T, path string) []recorded {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	var out []recorded
	for lines.Scan() {
		var r recorded
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%s, line %d: %v", path, len(out)+1, err)
		}
		out = append(out, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
