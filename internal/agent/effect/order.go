package effect

import (
	"sync"

	"github.com/drover-project/drover/internal/job"
)

// Order says on whose behalf a node changes something. With it, an order that
// arrives twice is carried out once, and a controller that lost the lead orders
// nothing any more. The zero Order belongs to nobody and is never a repetition.
type Order struct {
	// Epoch is that of the leader's lease.
	Epoch int64
	// Life is that of the store (package store/life), since jobs of another one have the same ids.
	Life string
	// Job, Opcode and Step name the order: the opcode by its position in its job,
	// and the step by counting the opcode's orders from 1.
	Job    job.ID
	Opcode int
	Step   int
}

// opcode is the order without its step.
func (o Order) opcode() Order {
	o.Step = 0
	return o
}

// orders is what an agent remembers of its orders: of each thing which steps of the
// latest opcode were carried out. A repeated order is answered from that as long as nothing else was
// ordered of the thing. What failed is not remembered; it may be tried again.
//
// An opcode that another leader resumes is no repetition, but a new decision upon what
// the leader found. So this memory need not outlive the agent.
type orders struct {
	mu     sync.Mutex
	latest map[string]carried
	names  []string // of the things in latest, the oldest first
}

// carried are the steps of one opcode that were carried out on a thing.
type carried struct {
	opcode Order
	steps  map[int]bool
}

// maxLatest is of how many things a node remembers the latest orders.
const maxLatest = 4096

// repeated tells whether an order was carried out before.
func (l *orders) repeated(o Order, of string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, known := l.latest[of]
	if known && c.opcode == o.opcode() {
		return o.Job != 0 && c.steps[o.Step]
	}
	if !known {
		l.names = append(l.names, of)
	}
	l.latest[of] = carried{opcode: o.opcode(), steps: map[int]bool{}}
	if len(l.names) > maxLatest {
		delete(l.latest, l.names[0])
		l.names = l.names[1:]
	}
	return false
}

// enter remembers that an order was carried out.
func (l *orders) enter(o Order, of string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.latest[of]; c.opcode == o.opcode() && c.steps != nil {
		c.steps[o.Step] = true
	}
}
