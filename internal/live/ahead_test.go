package live

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/sqlite"
)

// counted counts how often single objects are read.
type counted struct {
	store.Store

	reads int
}

func (c *counted) Get(ctx context.Context, key store.Key) (store.Object, error) {
	c.reads++
	return c.Store.Get(ctx, key)
}

// A query that asks for one ended job after the other reads them together, and gets
// what it would get from each alone.
func TestEndedJobsAreReadTogether(t *testing.T) {
	s, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })                                    // nothing is to be kept
	const jobs, large, damaged, archived, absent = 300, 100, 120, 140, 160 // from 200 on all are archived
	op, err := opcode.Parse([]byte(`{"OP_ID":"OP_TEST_DELAY","duration":1}`), opcode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tx := store.Tx{}
	for id := job.ID(1); id <= jobs; id++ {
		key := store.Key{Kind: queue.KindJob, ID: id.String()}
		head := job.New(id, []*opcode.Opcode{op}, "", time.Unix(int64(id), 0)).BeginWait(0, 1).BeginRun(0, 2).Succeed(0, []byte(`"`+strings.Repeat("x", 100)+`"`), 3).Head()
		switch {
		case id == large:
			head = job.New(id, []*opcode.Opcode{op}, "", time.Unix(1, 0)).Succeed(0, []byte(`"`+strings.Repeat("x", 2*readTogetherBytes)+`"`), 3).Head()
		case id == damaged:
			head = []byte(`{"id":120,"ops":"gone"}`)
		case id == archived || id >= 200:
			key.Kind = queue.KindArchived
		case id == absent:
			continue
		}
		tx.Put = append(tx.Put, store.Put{Key: key, At: 3, Value: head})
	}
	if _, err := store.Commit(t.Context(), s, tx); err != nil {
		t.Fatal(err)
	}
	alone, c := queue.NewStored(s), &counted{Store: s}
	together := newReadAhead(queue.NewStored(c))
	ask := func(id job.ID) {
		t.Helper()
		want, wrong := alone.Job(t.Context(), id)
		got, err := together.job(t.Context(), id)
		switch damage, isDamage := errors.AsType[*job.DamageError](err); {
		case id == absent:
			if got != nil || err != nil {
				t.Errorf("job %d: %v, %v", id, got, err)
			}
		case id == damaged:
			if !isDamage || damage.ID != id {
				t.Errorf("job %d: %v", id, err)
			}
		case wrong != nil || err != nil || !bytes.Equal(got.Encode(), want.Encode()) || got.Archived != want.Archived:
			t.Errorf("job %d: %v, want %v, %v", id, err, want, wrong)
		}
	}
	for id := job.ID(1); id <= jobs; id++ {
		ask(id)
	}
	// The first one, and three for that which is not there: whether it was pruned is asked, too.
	if c.reads > 4 {
		t.Errorf("%d jobs took %d reads of one", jobs, c.reads)
	}
	for _, id := range []job.ID{7, 290, 291, 3, 3, 2, 299, 290} {
		ask(id)
	}
}
