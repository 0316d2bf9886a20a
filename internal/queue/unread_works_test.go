package queue_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/hypervisor/fake"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/store/sqlite"
)

// What was kept of an opcode stays while its job cannot be read: whoever mends that finds how far it came, and the opcode goes on from
// there.
func TestWhatIsKeptOfAnUnreadableJobStays(t *testing.T) {
	l := newLives(t, format.Steps)
	l.check(l.Close())
	l.stop = fake.Call{Method: "rename"}
	reached, die := l.open()
	id := l.submit("OP_INSTANCE_RENAME", map[string]any{"instance_name": "one", "new_name": "two", "name_check": false, "ip_check": false})
	<-reached
	kept := l.records()
	ended := make(chan error, 1)
	go func() { ended <- l.Close() }()
	l.check(l.Queue.Failed(l.Context()))
	die()
	l.check(<-ended)
	l.stop = fake.Call{}

	head := store.Key{Kind: queue.KindJob, ID: id.String()}
	var whole store.Object
	write := func(value func(whole []byte) []byte) {
		t.Helper()
		s, err := sqlite.Open(filepath.Join(l.dir, "store"), sqlite.Options{})
		l.check(err)
		if whole.Value == nil {
			whole, err = s.Get(t.Context(), head)
			l.check(err)
		}
		_, err = store.Commit(t.Context(), s, store.Tx{Put: []store.Put{{Key: head, At: whole.At, Value: value(whole.Value)}}})
		l.check(err)
		l.check(s.Close())
	}
	write(func([]byte) []byte { return []byte(`{"id":`) })
	l.open()
	l.ends(l.submit("OP_TEST_DELAY", map[string]any{"duration": 0.001})) // behind what the start wrote
	if left := l.records(); len(kept) == 0 || !slices.Equal(left, kept) {
		t.Errorf("of %v is left %v", kept, left)
	}
	l.check(l.Close())
	write(func(whole []byte) []byte { return whole })
	l.open()
	if j := l.ends(id); j.Status() != job.Success || l.Keeper.Snapshot().InstanceNamed("two") == nil {
		t.Errorf("once mended it ends as %s", j.Encode())
	}
}
