package querier

import (
	"iter"
	"time"
)

// A long answer rests between its pieces while jobs are on the move, for rest
// at a time and up to maxRests times. A piece takes about a third of a
// millisecond to compute, so a list that always has to rest still gets some
// hundredths of a processor.
const (
	rest     = time.Millisecond
	maxRests = 5
)

// Paced yields the pieces of an answer and lets jobs go first: a list of all
// fields of many instances computes for seconds, and whoever submits jobs
// meanwhile should not notice. An answer of one piece is not held up, nor is
// any while the queue writes nothing.
func (q *Querier) Paced(pieces iter.Seq[[]byte]) iter.Seq[[]byte] {
	return paced(pieces, q.Queue.Writes, func() { time.Sleep(rest) })
}

// paced pauses as long as writes grows.
func paced(pieces iter.Seq[[]byte], writes func() uint64, pause func()) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		seen := writes()
		first := true
		for piece := range pieces {
			for n := 0; !first && n < maxRests; n++ {
				now := writes()
				if now == seen {
					break
				}
				seen = now
				pause()
			}
			first = false
			if !yield(piece) {
				return
			}
		}
	}
}
