package effect

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestDecide is the whole table of what may stand in the way.
func TestDecide(t *testing.T) {
	script := func(epoch int64) *Effect { return &Effect{Name: "a", Kind: Script, Epoch: epoch} }
	task := func(epoch int64) *Effect { return &Effect{Name: "a", Kind: Task, Epoch: epoch} }
	for _, tc := range []struct {
		follows, epoch int64
		runs           *Effect
		name           string
		kind           Kind
		want           Move
	}{
		{0, 1, nil, "a", Script, Go},
		{3, 3, nil, "a", Script, Go},
		{3, 2, nil, "a", Script, Refuse},
		{3, 2, nil, "", "", Refuse},
		{3, 2, task(1), "a", Task, Refuse},
		{3, 3, task(4), "a", Task, Refuse}, // whoever began it was followed
		{1, 2, task(1), "a", Task, Join},
		{2, 2, task(2), "a", Task, Join},
		{1, 2, task(1), "b", Task, End},
		{1, 2, task(1), "a", Script, End},
		{1, 2, task(1), "", "", End},
		{2, 2, task(2), "b", Task, Await},
		{1, 2, script(1), "a", Script, End}, // scripts are never joined
		{2, 2, script(2), "a", Script, Await},
		{1, 2, script(1), "", "", End},
		{2, 2, script(1), "", "", End},
		{2, 2, script(2), "", "", Await},
	} {
		c := &Claim{Order: Order{Epoch: tc.epoch}, Name: tc.name, Kind: tc.kind, What: "do it"}
		v := Decide(tc.follows, tc.runs, c)
		if v.Do != tc.want || (v.Why == "") != (v.Do == Go) {
			t.Errorf("following %d, %v runs, %s %q of epoch %d: %d, %q, want %d", tc.follows, tc.runs, tc.kind, tc.name, tc.epoch, v.Do, v.Why, tc.want)
		}
	}
}

// histories is how many lives of a thing the model goes through.
const histories = 100_000

// TestHistoriesOfAThing has leaders come and go who order things of one thing: at any moment one of their orders goes a step on, so
// that any may rest for as long as the others like. Processes end by themselves, some do not end when they are
// told to, controllers die and lose the lead without learning of it.
func TestHistoriesOfAThing(t *testing.T) {
	reached := map[string]int{}
	for seed := range uint64(histories) {
		w := &world{random: rand.New(rand.NewPCG(seed, 1)), reached: reached}
		if err := w.live(); err != nil {
			t.Fatalf("history %d: %v\n%s", seed, err, strings.Join(w.past, "\n"))
		}
	}
	for _, rare := range []string{"refused", "refused while it waited", "joined", "ended another's", "awaited", "gave up", "begun again", "joined another's"} {
		if reached[rare] < histories/1000 {
			t.Errorf("%q: only %d times", rare, reached[rare])
		}
	}
	t.Log(reached)
}

// world is a node with one thing, and all that gives it orders.
type world struct {
	random  *rand.Rand
	reached map[string]int
	past    []string

	follows int64
	noted   *worker // the effect that is on disk
	workers []*worker
	holder  *errand // whoever acts, or decides
	errands []*errand
	epoch   int64 // the newest
	// results are the names of tasks that left a status.
	results map[string]bool
	wrong   error
}

// worker is what works on the thing.
type worker struct {
	Effect

	alive    bool
	killed   bool // it was told to end
	stubborn bool // it does not
	owner    *errand
}

// errand is an order on its way.
type errand struct {
	claim Claim
	at    func(*errand) (over bool)
	dead  bool // its controller is
	acts  bool // itself, on the thing
}

func (w *world) notef(format string, args ...any) {
	w.past = append(w.past, fmt.Sprintf(format, args...))
}

func (w *world) live() error {
	w.results = map[string]bool{}
	w.epoch = 1
	const steps = 60
	for range steps {
		w.happen()
		if err := w.check(); err != nil {
			return err
		}
	}
	return nil
}

// happen lets one thing happen.
func (w *world) happen() {
	switch n := w.random.IntN(20); {
	case n == 0:
		w.epoch++
		w.notef("epoch %d", w.epoch)
	case n == 1 && len(w.errands) > 0: // a controller dies; all of its epoch with it
		w.die(w.errands[w.random.IntN(len(w.errands))].claim.Order.Epoch)
	case n <= 4 && len(w.errands) < 5:
		w.order()
	case n <= 9 && len(w.workers) > 0:
		w.end(w.workers[w.random.IntN(len(w.workers))])
	case len(w.errands) > 0:
		i := w.random.IntN(len(w.errands))
		if e := w.errands[i]; e.at(e) {
			w.errands = append(w.errands[:i:i], w.errands[i+1:]...)
		}
	}
}

// order has a leader give an order, mostly the newest.
func (w *world) order() {
	e := &errand{at: w.enter}
	e.claim.Order.Epoch = w.epoch - int64(w.random.IntN(2)*w.random.IntN(int(w.epoch)))
	switch w.random.IntN(3) {
	case 0:
		e.claim.Kind, e.claim.Name = Script, fmt.Sprint("script ", w.random.IntN(2))
	case 1:
		e.claim.Kind, e.claim.Name = Task, fmt.Sprint("task ", w.random.IntN(2))
	}
	e.claim.What = fmt.Sprintf("%q of epoch %d", e.claim.Name, e.claim.Order.Epoch)
	w.errands = append(w.errands, e)
}

// die ends a controller: its hold is free, its scripts are told to end, and nobody waits for its tasks.
func (w *world) die(epoch int64) {
	w.notef("the controller of epoch %d dies", epoch)
	left := w.errands[:0:0]
	for _, e := range w.errands {
		if e.claim.Order.Epoch != epoch {
			left = append(left, e)
			continue
		}
		e.dead = true
		if w.holder == e {
			w.holder = nil
		}
	}
	w.errands = left
	for _, x := range w.workers {
		if x.owner.dead && x.Kind == Script {
			x.killed = true
		}
	}
}

// end lets a process end: by itself, or since it was told to.
func (w *world) end(x *worker) {
	if !x.alive || x.killed && x.stubborn && w.random.IntN(20) > 0 {
		return
	}
	x.alive = false
	if !x.killed && x.Kind == Task {
		w.results[x.Name] = true
	}
	w.notef("%s has ended", x.Effect.String())
}

// enter takes the hold, and decides.
func (w *world) enter(e *errand) bool {
	if w.holder != nil {
		return false
	}
	if e.claim.Kind == Task && w.results[e.claim.Name] {
		return true // its result is there
	}
	w.holder = e
	var runs *Effect
	if w.noted != nil && w.noted.alive {
		runs = &w.noted.Effect
	}
	v := Decide(w.follows, runs, &e.claim)
	w.notef("%s: %d, %s", e.claim.What, v.Do, v.Why)
	if v.Do == Refuse {
		w.reached["refused"]++
		if e.claim.Order.Epoch < w.epoch && runs != nil {
			w.reached["refused while it waited"]++
		}
		w.holder = nil
		return true
	}
	w.follows = max(w.follows, e.claim.Order.Epoch)
	switch v.Do {
	case Go:
		e.at = w.act
	case Join:
		w.reached["joined"]++
		if w.noted.Name != e.claim.Name || w.noted.Kind == Script {
			w.wrong = fmt.Errorf("%s joins %s", e.claim.What, &w.noted.Effect)
		}
		if w.noted.Epoch < e.claim.Order.Epoch {
			w.reached["joined another's"]++
		}
		w.noted.Epoch, w.noted.owner = e.claim.Order.Epoch, e
		w.holder = nil
		e.at = w.follow
	case End:
		w.reached["ended another's"]++
		w.noted.killed = true
		e.at = w.await
	case Await:
		w.reached["awaited"]++
		e.at = w.await
	}
	return false
}

// await waits for the end of what stands in the way, for some time.
func (w *world) await(e *errand) bool {
	if !w.noted.alive {
		e.at = w.act
		return false
	}
	if w.random.IntN(10) > 0 {
		return false
	}
	w.reached["gave up"]++
	w.holder = nil
	return true
}

// act begins an effect, or is itself what works on the thing until it lets go.
func (w *world) act(e *errand) bool {
	if e.claim.Kind == "" {
		w.notef("%s acts", e.claim.What)
		e.acts, e.at = true, func(*errand) bool { w.holder = nil; return true }
		return false
	}
	if w.results[e.claim.Name] {
		w.wrong = fmt.Errorf("%s begins, and has ended before", e.claim.What)
	}
	if w.noted != nil && w.noted.Name == e.claim.Name && e.claim.Kind == Task {
		w.reached["begun again"]++ // it was killed
	}
	x := &worker{Effect: Effect{Name: e.claim.Name, Kind: e.claim.Kind, Epoch: e.claim.Order.Epoch}, alive: true, stubborn: w.random.IntN(10) == 0, owner: e}
	w.notef("%s begins", x.Effect.String())
	w.noted = x
	w.workers = append(w.workers, x)
	w.holder = nil
	e.at = w.follow
	return false
}

// follow waits for the end of an effect, or ends it: on request, at its time-out, at the end of the lead.
func (w *world) follow(e *errand) bool {
	mine := w.noted != nil && w.noted.owner == e
	if mine && w.noted.alive && w.random.IntN(10) == 0 {
		w.noted.killed = true
		return true
	}
	return !mine || !w.noted.alive
}

// check: one at a time works on the thing, and nobody for a leader that another has followed who could not be joined.
func (w *world) check() error {
	at := 0
	for _, x := range w.workers {
		if x.alive {
			at++
		}
	}
	if w.holder != nil && w.holder.acts {
		at++
		if w.holder.claim.Order.Epoch < w.follows {
			return fmt.Errorf("%s acts while epoch %d is followed", w.holder.claim.What, w.follows)
		}
	}
	if at > 1 {
		return fmt.Errorf("%d work on it", at)
	}
	for _, x := range w.workers {
		if x.alive && x.Epoch > w.follows {
			return fmt.Errorf("%s runs, and epoch %d is followed", &x.Effect, w.follows)
		}
	}
	return w.wrong
}
