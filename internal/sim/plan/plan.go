// Package plan says what a simulated history is made of: how large it is, what goes wrong
// in it and when, and from which numbers all that is drawn. A plan is a value: it is drawn
// from a seed, written as JSON, and cut down to what a failure needs.
//
// Invariants:
//   - The same seed and shape are the same plan, and a plan is all that a history depends
//     on, beside the code.
//   - Who draws has a stream of its own, by name: when one draws more, or a fault is left
//     out, nobody else draws anything else.
package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// Plan is what a history is made of.
type Plan struct {
	// Seed is what its parts draw from.
	Seed uint64 `json:"seed"`
	// Order is which order of goroutines it is, of the many that a seed could have.
	Order uint64 `json:"order,omitempty"`
	Size  Size   `json:"size"`
	// Work is what is asked for beside jobs about instances.
	Work []Work `json:"work,omitempty"`
	// Faults are what goes wrong, those at times first.
	Faults []Fault `json:"faults"`
}

// Work is what somebody asks of a group.
type Work string

// The kinds of work. What there is none of in a history costs it nothing.
const (
	// Rules are filter rules: put, changed, deleted, ending by themselves.
	Rules Work = "rules"
	// Tags are those of instances and of the cluster, by jobs.
	Tags Work = "tags"
	// Servers are those of the Compute API with their tags, on a cluster of another kind.
	Servers Work = "servers"
	// Deployments run tasks on the nodes.
	Deployments Work = "deployments"
	// Events are told to a broker.
	Events Work = "events"
	// Group is asked of all controllers of a group alike: who stands by answers, or forwards.
	Group Work = "group"
	// Strangers are on nodes, and instances among those of servers, under names that somebody
	// asks for: nobody's job made them. What jobs left is cleared beside them.
	Strangers Work = "strangers"
	// Short names of instances, without their domains, are used, and come to mean two.
	Short Work = "short"
	// Witness: with whole controllers, somebody changes something at whoever leads, and at once reads it at the others. It is drawn where that is
	// all that is asked for.
	Witness Work = "witness"
)

// works are the kinds of work of which any may be drawn, in order.
var works = []Work{Rules, Tags, Servers, Deployments, Events, Group, Strangers, Short}

// Has tells whether a plan has a kind of work.
func (p Plan) Has(w Work) bool { return slices.Contains(p.Work, w) }

// Size is how large a history is.
type Size struct {
	Controllers int `json:"controllers"`
	Nodes       int `json:"nodes"`
	Instances   int `json:"instances"`
	Clients     int `json:"clients"`
	// Requests are those of each client.
	Requests int `json:"requests"`
	// Trouble is how long something may go wrong. After it everything is healed.
	Trouble Span `json:"trouble"`
}

// Fault is one thing that goes wrong.
type Fault struct {
	// At is when, since the beginning. Zero stands for a fault at a crossing.
	At Span `json:"at,omitempty"`
	// Port and Nth name a crossing: the Nth of the port by whomever it is.
	Port Port `json:"port,omitempty"`
	Nth  int  `json:"nth,omitempty"`
	// Who is what it strikes at a time: a controller, Leader, Standby, All, Cluster, Broker or Tasks. At a
	// crossing it is whoever crosses.
	Who string `json:"who,omitempty"`
	Do  Kind   `json:"do"`
	// For is how long it lasts.
	For Span `json:"for"`
}

// Leader stands for whoever leads, Standby for one who does not, and All for every controller, as when the database is
// away.
const (
	Leader  = "leader"
	Standby = "standby"
	All     = "all"
)

// Cluster is the cluster that servers are on, and Broker who is told of events: each may be
// away. Tasks are the commands of tasks that run on nodes: what waits for their end there
// may be killed.
const (
	Cluster = "cluster"
	Broker  = "broker"
	Tasks   = "tasks"
)

// outside are the kinds of faults that strike what is no controller, and of which work
// that is.
var outside = map[string]struct {
	of   Work
	does Kind
}{Cluster: {Servers, Reset}, Broker: {Events, Reset}, Tasks: {Deployments, Kill}}

// Kind is what goes wrong.
type Kind string

// The kinds of faults.
const (
	// Kill ends a controller as kill -9 does. It starts anew when the fault is over.
	Kill Kind = "kill"
	// Pause has a controller stand still, as SIGSTOP does: it does nothing that others see.
	Pause Kind = "pause"
	// Reset cuts a controller from the store: its connections break, and new ones are refused.
	Reset Kind = "reset"
	// Silence cuts it from the store without a word: nothing arrives either way.
	Silence Kind = "silence"
	// Slow has the store take long for all that the controller asks.
	Slow Kind = "slow"
	// Lose loses one message, and the connection with it.
	Lose Kind = "lose"
	// Apart cuts a controller from the others of its group without a word.
	Apart Kind = "apart"
)

// Port is where a controller touches what is outside of it.
type Port string

// The ports at whose crossings something may go wrong.
const (
	// Commit is before a commit takes effect, and Answer after it, before anybody is told.
	Commit Port = "commit"
	Answer Port = "answer"
	// Order is before a node gets an order, and Done after it was carried out, before the
	// controller hears of it.
	Order Port = "order"
	Done  Port = "done"
	// Told is before a client hears the answer to a request.
	Told Port = "told"
	// Publish is before the broker gets a message.
	Publish Port = "publish"
	// Wish is in the midst of a change of what a user wants of a server.
	Wish Port = "wish"
)

// strikes are the kinds that may strike at a port.
var strikes = map[Port][]Kind{
	Commit: {Kill, Pause, Reset, Silence, Lose},
	Answer: {Kill, Pause, Reset, Reset, Silence, Silence, Lose},
	Order:  {Kill, Pause, Pause},
	Done:   {Kill, Pause},
	Told:   {Kill, Pause, Lose},
	// The broker goes away with it: nothing else does at this port.
	Publish: {Kill, Reset, Reset},
	Wish:    {Silence},
}

// ports are all ports that there are in each history, in order.
var ports = []Port{Commit, Answer, Order, Done, Told}

// timely are the kinds that may strike at a time.
var timely = []Kind{Kill, Pause, Reset, Silence, Slow, Apart}

// outages are those that may strike all at once.
var outages = []Kind{Reset, Silence, Slow}

// String says it for people.
func (f Fault) String() string {
	when := fmt.Sprintf("at %v %s", f.At, f.Who)
	if f.Port != "" {
		when = fmt.Sprintf("at %s %d", f.Port, f.Nth)
	}
	return fmt.Sprintf("%s: %s for %v", when, f.Do, f.For)
}

// check refuses a fault that cannot happen.
func (f Fault) check() error {
	kinds := timely
	if x, there := outside[f.Who]; there {
		kinds = []Kind{x.does}
	}
	if f.Port != "" {
		kinds = strikes[f.Port]
	}
	if (f.Port == "") != (f.Nth == 0) || (f.Port == "") != (f.At > 0) || (f.Port == "") != (f.Who != "") {
		return fault.New(fault.Invalid, "%+v has to have either a time and a controller, or a port and a number", f)
	}
	if !slices.Contains(kinds, f.Do) {
		return fault.New(fault.Invalid, "%s does not happen %s", f.Do, cmp.Or(string(f.Port), "at times"))
	}
	return nil
}

// Parse reads a plan that was written as JSON.
func Parse(text []byte) (p Plan, err error) {
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fault.New(fault.Invalid, "the plan cannot be read: %w", err)
	}
	for _, n := range []int{p.Size.Controllers, p.Size.Nodes, p.Size.Instances, p.Size.Clients, p.Size.Requests} {
		if n < 1 {
			return p, fault.New(fault.Invalid, "the plan has a size of %+v, and each has to be 1 at least", p.Size).At("size")
		}
	}
	for _, w := range p.Work {
		if w != Witness && !slices.Contains(works, w) {
			return p, fault.New(fault.Invalid, "there is no work %q, but %v and %v", w, works, Witness).At("work")
		}
	}
	for _, f := range p.Faults {
		if err := f.check(); err != nil {
			return p, err
		}
	}
	return p, nil
}

// JSON is the plan as text.
func (p Plan) JSON() []byte {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		panic(err) // there is nothing in it that could not be written
	}
	return append(text, '\n')
}

// Span is a length of time, written as Go does.
type Span time.Duration

// String is that of a duration.
func (s Span) String() string { return time.Duration(s).String() }

// MarshalText implements encoding.TextMarshaler.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*s = Span(d)
	return err
}
