package jobfilter

import (
	"cmp"
	"container/heap"
	"fmt"
	"iter"
	"slices"

	"github.com/drover-project/drover/internal/job"
)

// PastForecast tells what a rule would have done to jobs that have ended.
type PastForecast struct {
	// Jobs counts the jobs looked at; From and To are when the first and the
	// last of them were submitted.
	Jobs int      `json:"jobs"`
	From job.Time `json:"from"`
	To   job.Time `json:"to"`
	// Affected are the jobs that the rule would have decided on.
	Affected []PastJob `json:"affected"`
	// Peak is how many of them ran at once at most, and PeakAt when; with a
	// rate limit Delayed counts those that would have waited for a place,
	// TotalDelay and MaxDelay how long, in seconds.
	Peak       int      `json:"peak"`
	PeakAt     job.Time `json:"peak_at"`
	Delayed    int      `json:"delayed"`
	TotalDelay float64  `json:"total_delay"`
	MaxDelay   float64  `json:"max_delay"`
}

// PastJob is a job that the rule would have decided on.
type PastJob struct {
	ID      job.ID     `json:"id"`
	Status  job.Status `json:"status"`
	Summary []string   `json:"summary"`
	Started job.Time   `json:"started"`
	Ended   job.Time   `json:"ended"`
	// Delay is how long a rate limit would have delayed it, in seconds.
	Delay float64 `json:"delay"`
}

// foretell tries a rule of a chain on jobs of the past.
func foretell(chain *Chain, candidate Rule, past iter.Seq[*job.Job]) PastForecast {
	p := PastForecast{Affected: []PastJob{}}
	for j := range past {
		p.Jobs++
		if p.Jobs == 1 || j.Received < p.From {
			p.From = j.Received
		}
		p.To = max(p.To, j.Received)
		if d := chain.Decide(int64(j.ID), j.Inputs()); d.Rule != nil && d.Rule.UUID == candidate.UUID {
			p.Affected = append(p.Affected, PastJob{ID: j.ID, Status: j.Status(), Summary: j.Summary(), Started: j.Started, Ended: j.Ended})
		}
	}
	p.peak()
	if candidate.Action.Kind == RateLimit {
		p.delay(candidate.Action.Limit)
	}
	slices.SortFunc(p.Affected, func(a, b PastJob) int { return cmp.Compare(a.ID, b.ID) })
	return p
}

func lowest(past iter.Seq[*job.Job]) int64 {
	least := job.ID(0)
	for j := range past {
		if least == 0 || j.ID < least {
			least = j.ID
		}
	}
	return int64(least)
}

// ran reports whether the job took part in the competition for places.
func (j *PastJob) ran() bool { return j.Started != 0 && j.Ended >= j.Started }

// peak finds the greatest number of affected jobs that ran at once. One that
// ends at the moment another starts does not count with it.
func (p *PastForecast) peak() {
	type step struct {
		at    job.Time
		delta int
	}
	var steps []step
	for i := range p.Affected {
		if j := &p.Affected[i]; j.ran() {
			steps = append(steps, step{j.Started, 1}, step{j.Ended, -1})
		}
	}
	slices.SortFunc(steps, func(a, b step) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.delta, b.delta)) })
	running := 0
	for _, s := range steps {
		if running += s.delta; running > p.Peak {
			p.Peak, p.PeakAt = running, s.at
		}
	}
}

// delay lets the affected jobs run again, each as long as it did, with as many
// places as the limit gives, first come first served.
func (p *PastForecast) delay(limit int) {
	slices.SortFunc(p.Affected, func(a, b PastJob) int {
		return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.ID, b.ID))
	})
	var places freeAt
	for i := range p.Affected {
		j := &p.Affected[i]
		if !j.ran() {
			continue
		}
		start := j.Started
		if len(places) == limit {
			start = max(start, heap.Pop(&places).(job.Time))
		}
		heap.Push(&places, start+j.Ended-j.Started)
		if start > j.Started {
			j.Delay = float64(start-j.Started) / 1e6
			p.Delayed++
			p.TotalDelay += j.Delay
			p.MaxDelay = max(p.MaxDelay, j.Delay)
		}
	}
}

// freeAt holds the times at which the taken places become free.
type freeAt []job.Time

func (h freeAt) Len() int           { return len(h) }
func (h freeAt) Less(i, j int) bool { return h[i] < h[j] }
func (h freeAt) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *freeAt) Push(x any)        { *h = append(*h, x.(job.Time)) }
func (h *freeAt) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

func (p *PastForecast) headline(a Action) string {
	s := fmt.Sprintf("of %s that have ended it would have ", jobs(p.Jobs))
	n := len(p.Affected)
	switch a.Kind {
	case Reject:
		return s + fmt.Sprintf("rejected %d", n)
	case Pause:
		return s + fmt.Sprintf("held %d", n)
	case RateLimit:
		return s + fmt.Sprintf("limited %d, of which %d ran at once at most, and delayed %d of them by %.1f s at most, %.1f s in all",
			n, p.Peak, p.Delayed, p.MaxDelay, p.TotalDelay)
	case Accept:
		return s + fmt.Sprintf("accepted %d before any other rule was asked", n)
	}
	return s + "decided on none, since it is switched off"
}
