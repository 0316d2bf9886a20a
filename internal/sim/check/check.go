// Package check is what a simulated history is held to: invariants that hold at every
// moment, each told what happens and what it says of it, and counters of the rare places
// that histories must come by for it to mean anything.
//
// Invariants:
//   - A check knows values alone: nothing of the world that tells it.
//   - What is broken has a name, so that two histories can be said to fail alike.
package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Broken is an invariant that did not hold.
type Broken struct {
	// At is when, since the beginning.
	At time.Duration
	// Invariant is its name.
	Invariant string
	// Text says what happened.
	Text string
}

// String says it for people.
func (b Broken) String() string { return fmt.Sprintf("%s: %s", b.Invariant, b.Text) }

// The names of invariants.
const (
	Revisions     = "revisions have no gaps"
	EpochInForce  = "what is committed is made under an epoch in force"
	OneHolder     = "an epoch has one holder"
	TakenLease    = "a lease is taken from nobody who has it"
	FencedStops   = "a leader that was fenced stops"
	OneEffect     = "one effect at a time works on a thing"
	OldEpoch      = "nothing begins for a leader that another has followed"
	OneJob        = "one job at a time acts on an instance"
	NoneBetween   = "what had begun goes on before others act on its instance"
	RunOnce       = "what cannot be repeated does not run again"
	Acknowledged  = "what was acknowledged is there"
	OneJobAKey    = "a key has one job"
	JobsEnd       = "jobs end when all is well"
	PictureStored = "the leader shows what is stored"
	OnItsNode     = "an instance is where the inventory says, once"
	DoneOnce      = "what a job did is done once"
	Answers       = "what clients are told agrees"
	OldAnswers    = "old answers are not older than they say"
	Standbys      = "who stands by shows what is stored"
	NothingLeft   = "nothing runs that nobody owns"
	Answered      = "when all is well requests are answered"
	Refused       = "nothing refuses what clients may ask for"
	RuleHolds     = "a rule holds for jobs that came after it"
	RuleEnds      = "a rule ends at its time"
	TagsWanted    = "the cluster has the tags that are wanted"
	Published     = "each opcode that ended is published"
	BasisMoved    = "a plan is carried out only upon what it was computed from"
	PlanOutcome   = "a deployment comes to what its plan says"
	TaskOrder     = "a task begins after what it needs"
	LeftAlone     = "what nobody's job made is left alone"
	LeftTold      = "a job tells what it leaves"
	UponStored    = "a server is changed upon what is stored of it"
	Cleared       = "what jobs left is cleared when somebody asks for it"
	RebuiltOnce   = "a rebuild is handed in once, and done or told"
	InGroups      = "a server is in the groups that there are, and its instance has their tags"
	FormatRaised  = "a group raises the format of its store as far as all know it"
)

// Verdict collects what is broken. It is safe for concurrent use.
type Verdict struct {
	// Since tells the time since the beginning.
	Since func() time.Duration
	// Tell is told each broken invariant; nil for nobody.
	Tell func(Broken)

	mu     sync.Mutex
	broken []Broken
}

// Breakf says that an invariant does not hold.
func (v *Verdict) Breakf(invariant, format string, args ...any) {
	b := Broken{At: v.Since(), Invariant: invariant, Text: fmt.Sprintf(format, args...)}
	v.mu.Lock()
	v.broken = append(v.broken, b)
	v.mu.Unlock()
	if v.Tell != nil {
		v.Tell(b)
	}
}

// Broken returns what is broken, in the order of time.
func (v *Verdict) Broken() []Broken {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.broken)
}

// Reached counts visits of rare places. It is safe for concurrent use.
type Reached struct {
	mu    sync.Mutex
	times map[string]int
}

// Add counts a visit.
func (r *Reached) Add(place string) { r.AddN(place, 1) }

// AddN counts several.
func (r *Reached) AddN(place string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.times == nil {
		r.times = map[string]int{}
	}
	r.times[place] += n
}

// Times returns the visits by place.
func (r *Reached) Times() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.times)
}

// String lists the places.
func (r *Reached) String() string {
	times := r.Times()
	var all []string
	for _, place := range slices.Sorted(maps.Keys(times)) {
		all = append(all, fmt.Sprintf("%s: %d", place, times[place]))
	}
	return strings.Join(all, "; ")
}
