// Package lock decides who may hold which lock of the cluster, and says for
// each waiter what it waits for. It is a table of values without goroutines:
// the queue calls it under its own mutex and wakes the jobs that it names.
//
// Invariants:
//   - Locks are taken one after the other in one order (by level, then the
//     lockset before its members, then by name), so waiting in a circle is
//     impossible.
//   - At one lock, waiters are served by priority, then by arrival; nobody
//     overtakes a waiter that is more urgent or came first.
//   - A lockset lock implies its members: whoever wants a member announces it
//     at the lockset first.
package lock

import (
	"slices"
	"strings"
)

// Level is a class of locks. Lower levels are taken first.
type Level uint8

// The levels in the order of acquisition.
const (
	Cluster Level = iota
	Instance
	NodeGroup
	Node
	NodeRes
	Network
	Image
)

var levelNames = [...]string{"cluster", "instance", "nodegroup", "node", "node-res", "network", "image"}

// String returns the level's name as clients see it in lock names.
func (l Level) String() string { return levelNames[l] }

// All is the item of a level's lockset: the lock that implies every member.
const All = "[lockset]"

// BGL is the item of the one cluster lock that nearly every opcode shares.
const BGL = "BGL"

// Name is one lock. Instances are named by their name; nodes, groups and
// networks by their UUID.
type Name struct {
	Level Level
	Item  string
}

// String returns the name as clients see it, for example "instance/web1" or
// "node/[lockset]".
func (n Name) String() string { return n.Level.String() + "/" + n.Item }

func (n Name) compare(o Name) int {
	if n.Level != o.Level {
		return int(n.Level) - int(o.Level)
	}
	if a, b := n.Item == All, o.Item == All; a != b {
		if a {
			return -1
		}
		return 1
	}
	return strings.Compare(n.Item, o.Item)
}

// Mode says with whom a lock can be held at the same time.
type Mode uint8

// The modes. The intention modes are for locksets only and are taken by the
// table itself when somebody wants a member.
const (
	intendShared Mode = iota
	intendExclusive
	Shared
	Exclusive
	modes // how many there are
)

// String returns "shared" or "exclusive".
func (m Mode) String() string {
	if m == Exclusive || m == intendExclusive {
		return "exclusive"
	}
	return "shared"
}

// compatible[a] lists the modes that may be held beside a.
var compatible = [modes][modes]bool{
	intendShared:    {intendShared: true, intendExclusive: true, Shared: true},
	intendExclusive: {intendShared: true, intendExclusive: true},
	Shared:          {intendShared: true, Shared: true},
	Exclusive:       {},
}

// Want is one lock in one mode.
type Want struct {
	Name Name
	Mode Mode
}

// Request is what an opcode needs before it may run. Order and duplicates do
// not matter.
type Request []Want

// Equal reports whether two requests ask for the same locks, in any order.
func (r Request) Equal(o Request) bool { return slices.Equal(r.plan(), o.plan()) }

// plan returns the wants in the order of acquisition: duplicates merged to the
// stronger mode, intentions added, members dropped where their lockset implies
// them.
func (r Request) plan() []Want {
	strongest := make(map[Name]Mode, len(r)+2)
	add := func(n Name, m Mode) {
		if have, ok := strongest[n]; !ok || m > have {
			strongest[n] = m
		}
	}
	for _, w := range r {
		add(w.Name, w.Mode)
		if w.Name.Item != All && w.Name.Level != Cluster {
			intent := intendShared
			if w.Mode == Exclusive {
				intent = intendExclusive
			}
			add(Name{w.Name.Level, All}, intent)
		}
	}
	plan := make([]Want, 0, len(strongest))
	for n, m := range strongest {
		if n.Item != All && n.Level != Cluster {
			set := strongest[Name{n.Level, All}]
			if set == Exclusive || set == Shared && m == Shared {
				continue
			}
		}
		// A shared lockset with an exclusive member: the whole set at once is
		// the simplest mode that covers both.
		if n.Item == All && m == Shared && hasExclusiveMember(r, n.Level) {
			m = Exclusive
		}
		plan = append(plan, Want{n, m})
	}
	slices.SortFunc(plan, func(a, b Want) int { return a.Name.compare(b.Name) })
	return plan
}

func hasExclusiveMember(r Request, l Level) bool {
	return slices.ContainsFunc(r, func(w Want) bool {
		return w.Name.Level == l && w.Name.Item != All && w.Mode == Exclusive
	})
}
