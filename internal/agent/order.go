package agent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
)

// Order says on whose behalf a node changes something. With it, an order that
// arrives twice is carried out once, and a controller that lost the lead orders
// nothing any more. The zero Order belongs to nobody and is never a repetition.
type Order struct {
	// Epoch is that of the leader's lease.
	Epoch int64
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

// ledger is what an agent remembers of its orders: the controller that it
// follows, and of each instance which steps of the latest opcode were carried
// out. A repeated order is answered from that as long as nothing else was
// ordered of the instance. What failed is not remembered; it may be tried again.
//
// An opcode that another leader resumes is no repetition, but a new decision upon what
// the leader found. So the memory of orders need not outlive the agent; that of
// the leader does, in a file.
type ledger struct {
	file string

	mu     sync.Mutex
	epoch  int64 // the newest that gave an order; also in the file
	latest map[string]carried
	names  []string // of the instances in latest, the oldest first
}

// carried are the steps of one opcode that were carried out on an instance.
type carried struct {
	opcode Order
	steps  map[int]bool
}

// maxLatest is of how many instances a node remembers the latest orders.
const maxLatest = 4096

const epochFile = "epoch"

func openLedger(dir string) (*ledger, error) {
	l := &ledger{file: filepath.Join(dir, epochFile), latest: map[string]carried{}}
	var err error
	l.epoch, err = readEpoch(l.file)
	return l, err
}

// readEpoch reads the epoch of the controller that the node follows, 0 if it
// never followed one.
func readEpoch(file string) (epoch int64, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err == nil {
		epoch, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	}
	if err != nil {
		return 0, fault.New(fault.Environment, "cannot tell which controller the node follows: %w", err)
	}
	return epoch, nil
}

// admit decides about an order: whether it was carried out before. Fenced for
// an order of a controller that another has followed.
func (l *ledger) admit(o Order, instance, what string) (done bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.follow(o, what+" instance "+instance); err != nil {
		return false, err
	}
	c, known := l.latest[instance]
	if known && c.opcode == o.opcode() {
		return o.Job != 0 && c.steps[o.Step], nil
	}
	if !known {
		l.names = append(l.names, instance)
	}
	l.latest[instance] = carried{opcode: o.opcode(), steps: map[int]bool{}}
	if len(l.names) > maxLatest {
		delete(l.latest, l.names[0])
		l.names = l.names[1:]
	}
	return false, nil
}

// follow decides whether the controller that gave an order is the one to follow, from now on if it is a newer one.
// The caller holds mu.
func (l *ledger) follow(o Order, what string) error {
	// The agent of another process may have followed another controller meanwhile.
	stored, err := readEpoch(l.file)
	if err != nil {
		return err
	}
	l.epoch = max(l.epoch, stored)
	if o.Epoch < l.epoch {
		return fault.New(fault.Fenced, "the order to %s was given under epoch %d, but the node follows a controller of epoch %d",
			what, o.Epoch, l.epoch)
	}
	if o.Epoch > l.epoch {
		if err := replaceFile(l.file, []byte(strconv.FormatInt(o.Epoch, 10)+"\n")); err != nil {
			return fault.New(fault.Environment, "cannot remember the controller that the node follows: %w", err)
		}
		l.epoch = o.Epoch
	}
	return nil
}

// enter remembers that an order was carried out.
func (l *ledger) enter(o Order, instance string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.latest[instance]; c.opcode == o.opcode() && c.steps != nil {
		c.steps[o.Step] = true
	}
}
