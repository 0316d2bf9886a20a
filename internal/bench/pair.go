package bench

import (
	"context"
	"crypto/rand"
	"net"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// Times are what one thing took at each of two controllers, in the same order.
type Times struct {
	Name        string
	Before, Now []time.Duration
}

// Ratio is how many times as long the second takes as the first, by the medians.
func (t Times) Ratio() float64 { return float64(Median(t.Now)) / float64(Median(t.Before)) }

// Median is the one in the middle; zero of none.
func Median(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(took))
	return sorted[len(sorted)/2]
}

// Amount is how much two controllers are asked for.
type Amount struct {
	Cycles    int // how often; what is dear is asked for in some of them, but at least three times
	Instances int // that are there, for lists
	Jobs      int // that several clients share
}

// side is one of the two controllers.
type side struct {
	*runner
	luxi *client
	conn net.Conn
	rapi *rapi
}

// Pair asks two controllers for the same, in turns, whose order is drawn: so what the machine and its disk do to one they do to the other, and a
// hundredth can be told. Each is named by its ready file.
func Pair(ctx context.Context, before, now string, much Amount) ([]Times, error) {
	var sides [2]*side
	for i, file := range []string{before, now} {
		s, err := newSide(ctx, file, much)
		if err != nil {
			return nil, err
		}
		defer s.close()
		sides[i] = s
	}
	out := make([]Times, 0, len(pairs))
	for _, p := range pairs {
		t := Times{Name: p.name}
		for range max(much.Cycles/p.rarer, 3) {
			took, err := p.inTurns(ctx, sides)
			if err != nil {
				return nil, err
			}
			t.Before, t.Now = append(t.Before, took[0]), append(t.Now, took[1])
		}
		out = append(out, t)
	}
	return out, nil
}

func newSide(ctx context.Context, readyFile string, much Amount) (*side, error) {
	c, err := find(readyFile)
	if err != nil {
		return nil, err
	}
	r := &runner{options: options{instances: much.Instances, jobs: much.Jobs}, controller: c, label: "bench " + rand.Text()}
	if err := r.fill(ctx); err != nil {
		return nil, err
	}
	s := &side{runner: r, rapi: r.newRAPI()}
	if s.luxi, err = r.dial(ctx); err != nil {
		return nil, err
	}
	if s.conn, err = r.connect(ctx); err != nil {
		s.luxi.close()
		return nil, err
	}
	return s, nil
}

func (s *side) close() {
	s.luxi.close()
	_ = s.conn.Close() // it only read
	s.rapi.http.CloseIdleConnections()
}

// paired is one thing that both are asked for.
type paired struct {
	name  string
	rarer int // one of so many cycles has it
	do    func(ctx context.Context, s *side) (time.Duration, error)
}

// inTurns has both do it, one after the other.
func (p paired) inTurns(ctx context.Context, sides [2]*side) (took [2]time.Duration, err error) {
	first := int(rand.Text()[0]) % 2
	for _, i := range []int{first, 1 - first} {
		if took[i], err = p.do(ctx, sides[i]); err != nil {
			return took, fault.New(fault.Failed, "%s: %w", p.name, err)
		}
	}
	return took, nil
}

// pairs are what is measured; one entry adds one thing.
var pairs = []paired{
	{"a submission over LUXI", 1, submission},
	{"a no-op job to its end", 1, wholeJob},
	{"a submission over RAPI", 1, submissionOverRAPI},
	{"a rule that holds a job: in force", 2, ruleInForce},
	{"a held job cancelled", 2, heldCancelled},
	{"a held job to its end", 2, heldReleased},
	{"8 fields of all instances, filtered", 1, filteredList},
	{"all fields of all instances", 10, wholeList},
	{"many no-op jobs of 8 clients", 20, manyJobs},
	{"many submissions over RAPI by 8 clients", 40, manySubmissions},
}

// timed is how long something takes.
func timed(do func() error) (time.Duration, error) {
	start := time.Now()
	err := do()
	return time.Since(start), err
}

func submission(ctx context.Context, s *side) (took time.Duration, err error) {
	var id int64
	if took, err = timed(func() (err error) { id, err = s.luxi.submit(ctx); return err }); err != nil {
		return took, err
	}
	return took, s.luxi.succeeded(ctx, id)
}

func wholeJob(ctx context.Context, s *side) (time.Duration, error) {
	return timed(func() error {
		id, err := s.luxi.submit(ctx)
		if err != nil {
			return err
		}
		return s.luxi.succeeded(ctx, id)
	})
}

func submissionOverRAPI(ctx context.Context, s *side) (took time.Duration, err error) {
	var id int64
	if took, err = timed(func() (err error) { id, err = s.rapi.submit(ctx); return err }); err != nil {
		return took, err
	}
	return took, s.luxi.succeeded(ctx, id)
}

// underRule is a turn with a rule that holds two jobs: how long it took to be in force, one to be cancelled, the other to end when it was deleted.
func (s *side) underRule(ctx context.Context) (force, cancelled, released time.Duration, err error) {
	var rule string
	if force, err = timed(func() (err error) { rule, err = s.luxi.pause(ctx, s.label); return err }); err != nil {
		return 0, 0, 0, err
	}
	var release, cancel []time.Duration
	if err := s.held(ctx, s.luxi, rule, &release, &cancel); err != nil {
		_ = s.luxi.call(ctx, "DeleteFilter", nil, rule) // the first error says more
		return 0, 0, 0, err
	}
	return force, cancel[0], release[0], nil
}

func ruleInForce(ctx context.Context, s *side) (time.Duration, error) {
	took, _, _, err := s.underRule(ctx)
	return took, err
}

func heldCancelled(ctx context.Context, s *side) (time.Duration, error) {
	_, took, _, err := s.underRule(ctx)
	return took, err
}

func heldReleased(ctx context.Context, s *side) (time.Duration, error) {
	_, _, took, err := s.underRule(ctx)
	return took, err
}

func filteredList(ctx context.Context, s *side) (time.Duration, error) {
	l, err := someFields([]any{"=", "admin_state", "down"})
	if err != nil {
		return 0, err
	}
	_, took, _, err := l.read(ctx, s.conn)
	return took, err
}

func wholeList(ctx context.Context, s *side) (time.Duration, error) {
	l, _, err := allFields()
	if err != nil {
		return 0, err
	}
	_, took, _, err := l.read(ctx, s.conn)
	return took, err
}

func manyJobs(ctx context.Context, s *side) (time.Duration, error) {
	return timed(func() error { return s.throughput(ctx, s.jobs) })
}

func manySubmissions(ctx context.Context, s *side) (took time.Duration, err error) {
	var ids []int64
	if took, err = timed(func() (err error) { ids, err = s.submissions(ctx, s.jobs); return err }); err != nil {
		return took, err
	}
	return took, s.luxi.succeeded(ctx, ids...)
}
