package plan

import (
	"cmp"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Shape is what plans of many seeds have in common.
type Shape struct {
	// Largest bounds the sizes.
	Largest Size
	// Faults is how many there are at the most.
	Faults int
	// Crossings is about how often each port is crossed in such a history.
	Crossings map[Port]int
}

// The shapes.
var (
	// Small is three controllers with few nodes.
	Small = Shape{
		Largest: Size{Controllers: 3, Nodes: 5, Instances: 6, Clients: 3, Requests: 10, Trouble: Span(90 * time.Second)}, Faults: 5,
		Crossings: map[Port]int{Commit: 120, Answer: 120, Order: 60, Done: 60, Told: 36, Publish: 50, Wish: 20},
	}
	// Large is three controllers with fifty nodes.
	Large = Shape{
		Largest: Size{Controllers: 3, Nodes: 50, Instances: 30, Clients: 10, Requests: 12, Trouble: Span(90 * time.Second)}, Faults: 5,
		Crossings: map[Port]int{Commit: 300, Answer: 300, Order: 200, Done: 200, Told: 120, Publish: 150, Wish: 24},
	}
)

// largeEvery is which part of the seeds are large.
const largeEvery = 16

// Draw draws the plan of a seed: a small one mostly.
func Draw(seed uint64) Plan {
	if seed%largeEvery == largeEvery-1 {
		return DrawOf(seed, Large)
	}
	return DrawOf(seed, Small)
}

// DrawOf draws the plan of a seed, of a shape. Which kinds of faults there are at all, and
// where they strike, differs from seed to seed: where each may happen, some never happen.
func DrawOf(seed uint64, s Shape) Plan {
	r := NewStreams(seed).Of("plan")
	p := Plan{Seed: seed, Size: s.Largest}
	p.Size.Clients = 1 + r.IntN(s.Largest.Clients)
	p.Size.Requests = s.Largest.Requests/2 + r.IntN(s.Largest.Requests/2+1)
	if p.Size.Clients < s.Largest.Clients { // those that there are ask more
		p.Size.Requests += p.Size.Requests / 2
	}
	kinds := some(r, timely)
	places := some(r, ports)
	for range 1 + r.IntN(s.Faults) {
		if r.IntN(2) == 0 {
			p.Faults = append(p.Faults, s.timely(r, kinds, p.Size))
		} else {
			p.Faults = append(p.Faults, s.crossing(r, places))
		}
	}
	s.drawWork(&p)
	if p.Has(Group) {
		p.Size.Trouble = groupFor
		for i := range p.Faults {
			p.Faults[i].At = s.earlier(p.Faults[i].At)
		}
	}
	slices.SortStableFunc(p.Faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.At, b.At), cmp.Compare(a.Nth, b.Nth))
	})
	return p
}

// workIn is one of how many histories has each kind of work. One with whole controllers is
// as dear as many others, and shorter.
const (
	workIn   = 4
	groupIn  = 12
	groupFor = Span(30 * time.Second)
)

// drawWork draws what is asked for beside jobs, and what of it goes wrong outside of
// controllers.
func (s Shape) drawWork(p *Plan) {
	r := NewStreams(p.Seed).Of("work")
	for _, w := range works {
		in := workIn
		if w == Group {
			in = groupIn
		}
		if r.IntN(in) == 0 {
			p.Work = append(p.Work, w)
		}
	}
	for _, who := range slices.Sorted(maps.Keys(outside)) {
		x := outside[who]
		if p.Has(x.of) && r.IntN(2) == 0 {
			p.Faults = append(p.Faults, Fault{At: s.moment(r), Who: who, Do: x.does, For: lasting(r)})
		}
	}
	if p.Has(Deployments) && r.IntN(2) == 0 { // nobody can tell what became of the end of a task, and who asks leads on
		long := doubtful(r)
		p.Faults = append(p.Faults, Fault{Port: Answer, Nth: 1 + r.IntN(s.Crossings[Answer]), Do: Silence, For: long})
	}
	if p.Has(Events) && r.IntN(2) == 0 {
		p.Faults = append(p.Faults, s.crossing(r, []Port{Publish}))
	}
	s.drawTogether(p)
}

// doubts is how many changes of servers there are of which nobody can tell, where they are drawn.
const doubts = 3

// drawTogether draws what goes wrong together. Users are not told what became of a change for so long that nobody can tell, while who
// asked leads on. And the leader is cut off from the store, so that another takes the lead, while one who stands by is, too, and
// hears of neither; in half of these that is all there is, but for a witness: any change that is asked of that leader calls off what it granted.
func (s Shape) drawTogether(p *Plan) {
	r := NewStreams(p.Seed).Of("together")
	if p.Has(Servers) && r.IntN(2) == 0 {
		for range doubts {
			p.Faults = append(p.Faults, Fault{Port: Wish, Nth: 1 + r.IntN(s.Crossings[Wish]), Do: Silence, For: doubtful(r)})
		}
	}
	if p.Has(Group) && r.IntN(2) == 0 {
		at, long := s.moment(r), doubtful(r)
		if r.IntN(2) == 0 {
			p.Work, p.Faults, p.Size.Clients, p.Size.Requests = []Work{Group, Witness}, nil, 1, 1
		}
		p.Faults = append(p.Faults, Fault{At: at, Who: Standby, Do: Silence, For: long}, Fault{At: at, Who: Leader, Do: Reset, For: long})
	}
}

// doubtful is longer than a store looks for the outcome of a commit, and shorter than a lease.
func doubtful(r *rand.Rand) Span { return Span(time.Duration(5_500+r.IntN(6_000)) * time.Millisecond) }

// earlier is when something goes wrong in a shorter history that would at a time; zero stays what it is.
func (s Shape) earlier(at Span) Span {
	if at == 0 {
		return 0
	}
	const second = Span(time.Second)
	return Span(quiet) + (at-Span(quiet))*((groupFor-Span(quiet))/second)/((s.Largest.Trouble-Span(quiet))/second)
}

// moment is when something may go wrong.
func (s Shape) moment(r *rand.Rand) Span {
	at := quiet + time.Duration(r.Int64N(int64(time.Duration(s.Largest.Trouble)-quiet)))
	return Span(at.Round(time.Millisecond))
}

// some are at least one of what there is.
func some[T any](r *rand.Rand, all []T) (chosen []T) {
	for _, x := range all {
		if r.IntN(2) == 0 {
			chosen = append(chosen, x)
		}
	}
	if len(chosen) == 0 {
		chosen = append(chosen, all[r.IntN(len(all))])
	}
	return chosen
}

// quiet is how long nothing goes wrong at the beginning.
const quiet = 5 * time.Second

func (s Shape) timely(r *rand.Rand, kinds []Kind, size Size) Fault {
	who, do := Leader, kinds[r.IntN(len(kinds))]
	switch n := r.IntN(16); {
	case n < 7:
		who = Controller(r.IntN(size.Controllers))
	case n == 15:
		who, do = All, outages[r.IntN(len(outages))]
	}
	return Fault{At: s.moment(r), Who: who, Do: do, For: lasting(r)}
}

func (s Shape) crossing(r *rand.Rand, places []Port) Fault {
	port := places[r.IntN(len(places))]
	kinds := strikes[port]
	return Fault{Port: port, Nth: 1 + r.IntN(s.Crossings[port]), Do: kinds[r.IntN(len(kinds))], For: lasting(r)}
}

// lasting is how long a fault lasts: some are over before anybody notices, some last
// longer than a lease, and a few longer than anybody's patience.
func lasting(r *rand.Rand) Span {
	switch n := r.IntN(16); {
	case n < 8:
		return Span(time.Duration(100+r.IntN(12_000)) * time.Millisecond)
	case n < 15:
		return Span(time.Duration(10_000+r.IntN(15_000)) * time.Millisecond)
	}
	return Span(time.Duration(30_000+r.IntN(30_000)) * time.Millisecond)
}

// Controller names a controller by its number from 0.
func Controller(i int) string { return "c" + string(rune('1'+i)) }

// Streams are what the parts of a history draw from, each its own. It is safe for
// concurrent use.
type Streams struct {
	seed uint64

	mu sync.Mutex
	of map[string]*rand.Rand
}

// NewStreams returns the streams of a seed.
func NewStreams(seed uint64) *Streams { return &Streams{seed: seed, of: map[string]*rand.Rand{}} }

// Of is the stream of a name, for one goroutine.
func (s *Streams) Of(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = io.WriteString(h, name) // never fails
	return rand.New(rand.NewPCG(s.seed, h.Sum64()))
}

// IntN draws a number below n from the stream of a name.
func (s *Streams) IntN(name string, n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.of[name]
	if r == nil {
		r = s.Of(name)
		s.of[name] = r
	}
	return r.IntN(n)
}

// Between draws a length of time from the stream of a name, in microseconds.
func (s *Streams) Between(name string, least, most time.Duration) time.Duration {
	return least + time.Duration(s.IntN(name, int((most-least)/time.Microsecond)+1))*time.Microsecond
}
