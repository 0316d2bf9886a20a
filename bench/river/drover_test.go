package river

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/inventory"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/store/image"
	"github.com/drover-project/drover/internal/store/postgres"
	"github.com/drover-project/drover/internal/testkit"
)

// droverSetting is how the queue is configured.
type droverSetting struct {
	// slots are max_running_jobs of the cluster.
	slots int64
	// before has all jobs handed in while a rule holds them; the time begins with the end of that rule.
	before bool
}

// run has jobs done as a controller that leads does: with its lease, the real executors, and a picture of everything.
func (d droverSetting) run(b *testing.B, url string, n int, timed func(func())) {
	b.Helper()
	s, err := postgres.Open(b.Context(), url, postgres.Options{})
	check(b, err)
	defer func() { check(b, s.Close()) }()
	lease, err := s.AcquireLease(b.Context(), image.LeaderLease, "benchmark", time.Hour)
	check(b, err)
	shown := picture.New()
	keeper, err := inventory.Open(b.Context(), s, lease.Epoch, shown)
	check(b, err)
	defer keeper.Close()
	check(b, keeper.Bootstrap(b.Context(), inventory.Setup{
		Name: "benchmark", Nodes: []string{"node1"}, Hypervisors: []string{"fake"}, DiskTemplates: []string{"diskless"}, Now: time.Now(), NewUUID: testkit.NewUUID,
	}))
	check(b, keeper.Update(b.Context(), func(s *cluster.Snapshot) ([]cluster.Change, error) {
		c := *s.Cluster()
		c.MaxRunningJobs = d.slots
		return []cluster.Change{cluster.Put(&c)}, nil
	}))
	q, err := queue.Open(b.Context(), queue.Config{
		Store: s, Epoch: lease.Epoch, Inventory: keeper, Picture: shown, Executors: exec.All(nil, exec.Names{}),
		Nodes: func(string) (exec.Node, error) { return nil, fault.New(fault.Unavailable, "no nodes here") },
		Now:   time.Now, NewUUID: testkit.NewUUID, Log: slog.New(slog.DiscardHandler),
	})
	check(b, err)
	defer q.Close()
	q.Run()
	begin := func() { submit(b, q, n) }
	if d.before {
		held, _, err := q.PutFilter(b.Context(), "", jobfilter.Rule{Action: jobfilter.Action{Kind: jobfilter.Pause}}, queue.By{})
		check(b, err)
		begin()
		begin = func() { check(b, q.DeleteFilter(b.Context(), held, queue.By{})) }
	}
	timed(func() {
		begin()
		for changed := shown.Changed(); q.Jobs().CountIn(job.Success) < n; changed = shown.Changed() {
			<-changed
		}
	})
}

// submit hands in jobs as a transport does: it parses each.
func submit(b *testing.B, q *queue.Queue, n int) {
	b.Helper()
	hand(b, n, func(n int) error {
		jobs := make([]queue.Submission, n)
		for i := range jobs {
			op, err := opcode.Parse([]byte(`{"OP_ID":"OP_TEST_DELAY","duration":1e-9}`), opcode.Options{})
			if err != nil {
				return err
			}
			jobs[i].Ops = []*opcode.Opcode{op}
		}
		outcomes, err := q.SubmitMany(context.Background(), jobs)
		for _, o := range outcomes {
			if err == nil {
				err = o.Err
			}
		}
		return err
	})
}
