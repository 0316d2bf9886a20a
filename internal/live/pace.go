package live

import (
	"iter"
	"time"
)

// A query that has taken longer than short rests while jobs are on the move:
// between the pieces of its answer, each a third of a millisecond of computing, and
// whenever it has looked at some thousand rows, a tenth of a millisecond. It rests
// for rest at a time and up to maxRests times, so a query that always has to rest
// still gets some hundredths of a processor. One that is over before that holds
// jobs up less than its rests would hold up whoever asks. Who has rested manyRests
// times rests once at a time from then on: a list of all there is of a queue that is
// never still would else take fifteen times as long, and may do so for hours.
const (
	short    = 10 * time.Millisecond
	rest     = time.Millisecond
	maxRests = 5
	// manyRests are some five seconds.
	manyRests = 5000
	// looksPerRest is how many looks whether it is interrupted a query takes
	// between two rests; it looks once for each block of rows.
	looksPerRest = 64
)

// pacer lets jobs go before one query. A list of all fields of many instances
// computes for seconds, and whoever submits jobs meanwhile should not notice.
type pacer struct {
	writes func() uint64 // grows while jobs are on the move
	pause  func()
	seen   uint64
	rested int
	short  func() bool // whether the query has taken little time so far
}

func (q *Querier) newPacer() *pacer {
	writes := func() uint64 { return 0 } // what others write holds up nobody here
	if q.Queue != nil {
		writes = q.Queue.Writes
	}
	begun := time.Now()
	return &pacer{writes: writes, pause: func() { time.Sleep(rest) }, seen: writes(), short: func() bool { return time.Since(begun) < short }}
}

// giveWay pauses as long as something is written.
func (p *pacer) giveWay() {
	if p.short() {
		return
	}
	most := maxRests
	if p.rested >= manyRests {
		most = 1
	}
	for range most {
		now := p.writes()
		if now == p.seen {
			return
		}
		p.seen = now
		p.rested++
		p.pause()
	}
}

// Paced yields the pieces of an answer and lets jobs go first in between. An
// answer of one piece is not held up, nor is any while the queue writes
// nothing.
func (q *Querier) Paced(pieces iter.Seq[[]byte]) iter.Seq[[]byte] { return q.newPacer().paced(pieces) }

func (p *pacer) paced(pieces iter.Seq[[]byte]) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		first := true
		for piece := range pieces {
			if !first {
				p.giveWay()
			}
			first = false
			if !yield(piece) {
				return
			}
		}
	}
}

// pacing adds rests to the looks whether a query is interrupted.
func (p *pacer) pacing(interrupted func() error) func() error {
	looks := 0
	return func() error {
		if looks++; looks%looksPerRest == 0 {
			p.giveWay()
		}
		return interrupted()
	}
}
