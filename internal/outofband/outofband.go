// Package outofband decides what is asked of the management controllers of nodes, by programs of the operator's (the node parameter oob_program):
// which nodes are meant, what is refused, and what an answer says.
//
// Invariants:
//   - The master is neither switched off nor reset (TestTheMasterStaysOn).
//   - A node that is not marked offline is not switched off, unless its state is to be ignored (TestNodesInServiceStayOn).
//   - An answer is what the command has by the reference's description, or an error (TestAnswers).
package outofband

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
)

// Command is what a management controller is asked.
type Command string

// The commands.
const (
	On     Command = "power-on"
	Off    Command = "power-off"
	Cycle  Command = "power-cycle"
	Status Command = "power-status"
	Health Command = "health"
)

// Changes reports whether a command changes something.
func (c Command) Changes() bool { return c == On || c == Off || c == Cycle }

// endsWhatRuns reports whether nothing runs on the node behind it.
func (c Command) endsWhatRuns() bool { return c == Off || c == Cycle }

// Powered is what a node is recorded to be when a command was carried out; nil for commands that leave that as it is.
func (c Command) Powered() *bool {
	switch c {
	case On, Off:
		on := c == On
		return &on
	}
	return nil
}

// Target is a node that is meant, with the program that asks its management controller; empty if it has none.
type Target struct {
	Node    *cluster.Node
	Program string
}

// Program is the program for a node; empty for none.
func Program(snap *cluster.Snapshot, node *cluster.Node) string {
	program, _ := snap.Cluster().FillND(snap.Group(node.Group), node)["oob_program"].(string)
	return program
}

// Targets are the nodes that are meant, by name: those that are named, each once, or all. WrongState or Invalid if something may not be done to one of them.
func Targets(snap *cluster.Snapshot, command Command, named []*cluster.Node, ignoreStatus bool) ([]Target, error) {
	master := snap.Cluster().MasterNode
	nodes := slices.Clone(named)
	if len(named) == 0 {
		for n := range snap.Nodes() {
			if !command.endsWhatRuns() || n.UUID != master {
				nodes = append(nodes, n)
			}
		}
	}
	var out []Target
	same := func(a, b *cluster.Node) bool { return a.UUID == b.UUID } // names that differ in zeros alone have no order
	slices.SortStableFunc(nodes, func(a, b *cluster.Node) int {
		return cmp.Or(cluster.CompareNames(a.Name, b.Name), cmp.Compare(a.UUID, b.UUID))
	})
	for _, n := range slices.CompactFunc(nodes, same) {
		t := Target{Node: n, Program: Program(snap, n)}
		switch {
		case command.endsWhatRuns() && n.UUID == master && t.Program == "":
			return nil, notTheMaster(n, command, "it does not support out-of-band operations")
		case command.endsWhatRuns() && n.UUID == master:
			return nil, notTheMaster(n, command, fmt.Sprintf("run '%s %s %s' if you want to operate on the master regardless", t.Program, command, n.Name))
		case command == Off && !ignoreStatus && !n.Offline:
			return nil, fault.New(fault.WrongState, "Cannot power off node %s because it is not marked offline", n.Name).
				WithHint("drover node offline %s marks it; --ignore-status switches it off in spite of what runs there", n.Name)
		}
		out = append(out, t)
	}
	return out, nil
}

func notTheMaster(n *cluster.Node, command Command, further string) error {
	return fault.New(fault.Invalid, "Operating on the master node %s is not allowed for %s; %s", n.Name, command, further)
}

// healths are what the health of a part may be.
var healths = []string{"OK", "WARNING", "CRITICAL", "UNKNOWN"}

// Answer is what a program said. Payload is what the reference's clients read: nil for commands that answer nothing.
type Answer struct {
	Payload any
	// Alarms are the parts that are not well, with what they are.
	Alarms [][2]string
	// Powered is what a question about that was answered with.
	Powered bool
}

// Read reads what a program said: fault.Failed if that is no answer to the command.
func Read(command Command, said []byte) (a Answer, err error) {
	text := []byte(strings.TrimSpace(string(said)))
	switch command {
	case Health:
		return readHealth(text)
	case Status:
		var m struct {
			Powered *bool `json:"powered"`
		}
		if err := intake.ReadOpen(text, &m); err != nil {
			return a, fault.New(fault.Failed, "%s is to say whether the node is powered, and said %s: %w", command, shown(text), err)
		}
		if m.Powered == nil {
			return a, fault.New(fault.Failed, "%s is to say whether the node is powered, and said %s", command, shown(text))
		}
		return Answer{Payload: map[string]any{"powered": *m.Powered}, Powered: *m.Powered}, nil
	}
	if len(text) > 0 && string(text) != "null" {
		return a, fault.New(fault.Failed, "%s is expected to say nothing, and said %s", command, shown(text))
	}
	return a, nil
}

func readHealth(text []byte) (a Answer, err error) {
	var parts []json.RawMessage
	if err := intake.ReadOpen(text, &parts); err != nil || parts == nil {
		return a, fault.New(fault.Failed, "%s is to say a list of parts, each with its state, and said %s", Health, shown(text))
	}
	payload := make([][2]string, len(parts))
	for i, part := range parts {
		var pair []string
		if err := intake.ReadOpen(part, &pair); err != nil || len(pair) != 2 {
			return a, fault.New(fault.Failed, "%s is to say of each part its name and state, and said %s", Health, shown(part))
		}
		if !slices.Contains(healths, pair[1]) {
			return a, fault.New(fault.Failed, "health item '%s' has invalid status '%s'", fault.Clip(pair[0], 100), fault.Clip(pair[1], 100))
		}
		payload[i] = [2]string{pair[0], pair[1]}
		if pair[1] == "WARNING" || pair[1] == "CRITICAL" {
			a.Alarms = append(a.Alarms, payload[i])
		}
	}
	a.Payload = payload
	return a, nil
}

// shown is the beginning of what was said.
func shown(text []byte) string {
	if len(text) == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%.200q", text)
}
