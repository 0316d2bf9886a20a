package hostile

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
)

// TestReadersThatDoNotRead has clients ask for lists of many megabytes and take no
// more than the beginning. The rest is not kept for them in memory, and they keep
// nobody from working, the store's log from being emptied, or the controller from stopping.
func TestReadersThatDoNotRead(t *testing.T) {
	const (
		jobs    = 500
		readers = 20
		maxLog  = 24 << 20
	)
	t.Setenv("GOGC", "20") // memory is to tell what is held
	g := start(t, testkit.Build(t), t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g.makeHistory(ctx, t, jobs)
	g.archive(ctx, t, jobs)
	g.makeHistory(ctx, t, jobs)
	before, _ := g.memory(t)
	g.forgetPeak()
	for range readers {
		g.beginList(ctx, t, `{"method":"Query","args":["job",["id","archived","ops","opresult","oplog"],null]}`)
	}
	g.bystander(t)
	_, peak := g.memory(t)
	t.Logf("with %d lists that are not read the process grew by %d MiB", readers, (peak-before)>>20)
	if size := int64(readers * jobs * reasonSize); peak-before > size/2 {
		t.Errorf("that is more than half of the %d MiB that the lists have", size>>20)
	}
	g.beginBulk(ctx, t, readers)
	g.makeHistory(ctx, t, jobs)
	g.archive(ctx, t, jobs)
	log, err := os.Stat(filepath.Join(g.data, "store", "drover.db-wal"))
	if err != nil {
		t.Fatal(err)
	}
	if log.Size() > maxLog {
		t.Errorf("the store's log has %d MiB", log.Size()>>20)
	}
	g.Terminate()
	if err := g.Gone(); err != nil {
		t.Errorf("it did not stop in good order: %v", err)
	}
}

// reasonSize is the size of each job's reason, in bytes.
const reasonSize = 16 << 10

// makeHistory has so many jobs done.
func (g *target) makeHistory(ctx context.Context, t *testing.T, jobs int) {
	t.Helper()
	client := g.dial(ctx, t)
	const together = 100
	submission := make([]json.RawMessage, together)
	for i := range submission {
		submission[i] = json.RawMessage("[" + trailed(strings.Repeat("ab", reasonSize/2)) + "]")
	}
	for range jobs / together {
		var made [][2]any
		if err := client.Call(ctx, "SubmitManyJobs", []any{submission}, &made); err != nil {
			t.Fatal(err)
		}
		ids := make([]any, len(made))
		for i, one := range made {
			ids[i] = one[1]
		}
		ended(ctx, t, client, ids)
	}
}

// ended waits for the end of jobs.
func ended(ctx context.Context, t *testing.T, client *luxiwire.Client, ids []any) {
	t.Helper()
	for {
		var rows [][]any
		if err := client.Call(ctx, "QueryJobs", []any{ids, []string{"status"}}, &rows); err != nil {
			t.Fatal(err)
		}
		last := slices.IndexFunc(rows, func(row []any) bool { return row[0] != "success" })
		if last < 0 {
			return
		}
		var ignored json.RawMessage
		if err := client.Call(ctx, "WaitForJobChange", []any{ids[last], []string{"status"}, rows[last], nil, 10}, &ignored); err != nil {
			t.Fatal(err)
		}
	}
}

// archive archives all jobs that have ended, at least so many.
func (g *target) archive(ctx context.Context, t *testing.T, jobs int) {
	t.Helper()
	var done [2]int
	if err := g.dial(ctx, t).Call(ctx, "AutoArchiveJobs", []any{0, 100}, &done); err != nil || done[0] < jobs || done[1] != 0 {
		t.Fatalf("archived %d jobs, %d are left, %v", done[0], done[1], err)
	}
}

func (g *target) dial(ctx context.Context, t *testing.T) *luxiwire.Client {
	t.Helper()
	client, err := luxiwire.Dial(ctx, g.Ready.LUXI)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() }) // it has its answers
	return client
}

// beginList sends a request over LUXI and reads the beginning of the answer.
func (g *target) beginList(ctx context.Context, t *testing.T, message string) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", g.Ready.LUXI)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // it is cut off in mid-answer
	if _, err := io.WriteString(conn, message+string(rune(luxiwire.Terminator))); err != nil {
		t.Fatal(err)
	}
	beginning(t, conn, `{"success":true`)
}

// beginBulk asks for the list of all jobs over RAPI, on so many connections, and reads the beginning.
func (g *target) beginBulk(ctx context.Context, t *testing.T, readers int) {
	t.Helper()
	for range readers {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.Ready.RAPI+"/2/jobs?bulk=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := g.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() }) // as above
		beginning(t, answer.Body, `[{"`)
	}
}

// beginning reads the first kB of an answer.
func beginning(t *testing.T, answer io.Reader, want string) {
	t.Helper()
	first := make([]byte, 1024)
	if _, err := io.ReadFull(answer, first); err != nil || !strings.HasPrefix(string(first), want) {
		t.Fatalf("the answer begins with %.600q, %v", first, err)
	}
}
