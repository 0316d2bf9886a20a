package picture_test

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/state"
)

// aJob returns a job without opcodes whose last number is told by its times.
func aJob(id job.ID, received job.Time) *job.Job { return &job.Job{ID: id, Received: received} }

func TestPublishShowsAllThatWasCommitted(t *testing.T) {
	p := picture.New()
	before := p.Load()
	p.Committed(&state.Change{Revision: 1, Jobs: []*job.Job{aJob(1, 1)}})
	p.Committed(&state.Change{Revision: 2, Jobs: []*job.Job{aJob(1, 2), aJob(2, 2)}})
	if p.Load() != before {
		t.Fatal("committed changes show before they are published")
	}
	p.Publish()
	now := p.Load()
	if now.Revision != 2 || now.Jobs.Len() != 2 || now.Jobs.Get(1).Received != 2 {
		t.Fatalf("revision %d, %d jobs", now.Revision, now.Jobs.Len())
	}
	if before.Revision != 0 || before.Jobs.Len() != 0 {
		t.Error("a picture changed after it was made")
	}
	p.Publish()
	if p.Load() != now {
		t.Error("a picture was replaced though nothing changed")
	}
}

// TestReadersSeeWholeRevisions has two writers commit in the order of revisions,
// as the store reports them, and publish each as it likes. Transaction n sets
// job 1 of the one writer and job 2 of the other to n: a reader at a revision
// must find that very value, and no older one of the other writer.
func TestReadersSeeWholeRevisions(t *testing.T) {
	p := picture.New()
	const rounds = 2000
	turn := make(chan int64, 1) // the store: one transaction at a time
	turn <- 0
	done := make(chan struct{})
	var writers, readers sync.WaitGroup
	for who := range job.ID(2) {
		writers.Go(func() {
			for range rounds {
				n := 1 + <-turn
				p.Committed(&state.Change{Revision: n, Jobs: []*job.Job{aJob(1+who, job.Time(n))}})
				turn <- n
				p.Publish()
				if got := p.Load().Revision; got < n {
					t.Errorf("published %d, and the picture is at %d", n, got)
				}
			}
		})
	}
	readers.Go(func() {
		for last := int64(0); ; {
			select {
			case <-done:
				return
			default:
			}
			s := p.Load()
			newest := job.Time(0)
			for j := range s.Jobs.All() {
				newest = max(newest, j.Received)
			}
			if int64(newest) != s.Revision || s.Revision < last {
				t.Errorf("revision %d after %d, its newest content is of %d", s.Revision, last, newest)
				return
			}
			last = s.Revision
		}
	})
	writers.Wait()
	close(done)
	readers.Wait()
}

func TestWaitForARevision(t *testing.T) {
	p := picture.New()
	p.Committed(&state.Change{Revision: 5})
	p.Publish()
	if s, err := p.Wait(t.Context(), 5); err != nil || s.Revision != 5 {
		t.Fatalf("%v, %v", s, err)
	}
	waits := make(chan *state.State)
	go func() {
		s, _ := p.Wait(t.Context(), 7)
		waits <- s
	}()
	for revision := int64(6); revision <= 7; revision++ {
		p.Committed(&state.Change{Revision: revision})
		p.Publish()
	}
	if s := <-waits; s == nil || s.Revision != 7 {
		t.Fatalf("waited for 7, got %+v", s)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Wait(ended, 8); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a revision that does not come: %v", err)
	}
}

func TestWaitForAJob(t *testing.T) {
	p := picture.New()
	publish := func(c state.Change) {
		p.Committed(&c)
		p.Publish()
	}
	publish(state.Change{Revision: 1, Jobs: []*job.Job{aJob(1, 1)}})
	if j := p.WaitJob(t.Context(), 9, func(*job.Job) bool { return false }); j != nil {
		t.Errorf("waited for a job that is not there, got %v", j)
	}
	seen := make(chan job.Time, 10)
	got := make(chan *job.Job)
	go func() {
		got <- p.WaitJob(t.Context(), 1, func(j *job.Job) bool { seen <- j.Received; return j.Received == 3 })
	}()
	<-seen
	publish(state.Change{Revision: 2, Jobs: []*job.Job{aJob(2, 2)}}) // another one: nobody is woken
	publish(state.Change{Revision: 3, Jobs: []*job.Job{aJob(1, 3)}})
	if j := <-got; j == nil || j.Received != 3 {
		t.Fatalf("got %v", j)
	}
	if n := len(seen); n != 1 {
		t.Errorf("looked at the job %d times more, want once", n)
	}
	go func() { got <- p.WaitJob(t.Context(), 1, func(j *job.Job) bool { seen <- j.Received; return false }) }()
	<-seen
	<-seen
	publish(state.Change{Revision: 4, Archived: []*job.Job{aJob(1, 3)}})
	if j := <-got; j != nil {
		t.Errorf("a job that was archived meanwhile: %v", j)
	}
}

// BenchmarkPublish is the life of no-op jobs in the picture, beside a thousand that
// ended last: a commit in which so many come and begin, and one in which they end.
func BenchmarkPublish(b *testing.B) {
	const before = 1000
	for _, atOnce := range []int{1, 20} {
		b.Run(strconv.Itoa(atOnce), func(b *testing.B) {
			p := picture.New()
			input := &opcode.Opcode{ID: "OP_TEST_DELAY"}
			revision := int64(0)
			publish := func(first job.ID, n int, values ...job.Status) {
				revision++
				c := &state.Change{Revision: revision}
				for _, status := range values {
					for id := first; id < first+job.ID(n); id++ {
						j := &job.Job{ID: id, Ops: []job.Op{{Input: input, Status: status}}, Received: job.Time(id)}
						if j.Final() {
							j.Started, j.Ended = job.Time(id)+1, job.Time(id)+2
						}
						c.Jobs = append(c.Jobs, j)
					}
				}
				p.Committed(c)
				p.Publish()
			}
			publish(1, before, job.Success)
			b.ReportAllocs()
			for id := job.ID(before + 1); b.Loop(); id += job.ID(atOnce) {
				publish(id, atOnce, job.Queued, job.Running)
				publish(id, atOnce, job.Success)
			}
		})
	}
}
