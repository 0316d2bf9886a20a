package queue

import (
	"context"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue/machine"
)

// Explanation says why a job is where it is.
type Explanation = machine.Explanation

// Census is how many jobs are where in the queue.
type Census = machine.Census

// Count is how many jobs are in a place, and which of them is there for the longest time.
type Count = machine.Count

// Census counts the jobs that have not ended by what they wait for. It asks a
// clone of the machine and holds up nobody.
func (q *Queue) Census() Census { return q.look().Census() }

// Around is what a job waits for, in the end, and who waits for it.
type Around = machine.Around

// Around tells what a job waits for and who waits for it; of one that has ended there is nothing. It asks a clone of the machine and holds
// up nobody. Errors: fault.NotFound.
func (q *Queue) Around(ctx context.Context, id job.ID) (Around, error) {
	if a, waits := q.look().Around(id); waits {
		return a, nil
	}
	_, err := q.Job(ctx, id)
	return Around{Points: []machine.Point{}, Links: []machine.Link{}}, err
}

// Explain says why a job is where it is. For a job that has ended it says how
// it ended and what the rules in force now would say. It asks a clone of the
// machine and holds up nobody. Errors: fault.NotFound.
func (q *Queue) Explain(ctx context.Context, id job.ID) (Explanation, error) {
	m := q.look()
	if x, waits := m.Explain(id); waits {
		x.Expected = m.Expect(id, machine.DurationsOf(q.Jobs().Whole()), q.cfg.Now())
		return x, nil
	}
	j, err := q.Job(ctx, id)
	if err != nil {
		return Explanation{}, err
	}
	return m.ExplainEnded(j), nil
}
