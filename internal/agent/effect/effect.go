// Package effect is what stands on a node between the orders of one leader and those of the next: it follows the newest
// leader, and keeps what orders began in processes of their own. Such a piece of work is an effect: the script that
// installs an operating system, the command of a task.
//
// Invariants:
//   - Orders of a controller that another has followed are refused. Orders about one thing follow one another, also those of
//     agents in several processes.
//   - An effect is on disk under the epoch of its order, flushed, before it does anything.
//   - Nothing acts on a thing while an effect of an earlier epoch works on it. The first order of a newer epoch joins the effect
//     of its own name, if one of that kind can be joined; any other it ends, and waits for its end and its lock. The
//     lock is inherited by all that the effect starts: what cannot be ended is named, and the order fails.
//   - A script ends with the process of its agent, however that ends, and before the lead of its controller can be
//     another's (Lead). A task goes on, and ends only when it is told to.
//   - Nobody is killed because of a number alone: a process is known by its number, its start and the boot of its machine.
package effect

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Kind is what an effect is, and with it how it ends.
type Kind string

// The kinds of effects. An order that begins nothing has none.
const (
	// Script is a script of an operating system. It cannot be joined, and ends with its agent.
	Script Kind = "script"
	// Task is a command of a task. It outlives its agent, and is joined by the next.
	Task Kind = "task"
)

// joins tells whether the order of a newer leader can go on with an effect, since its results are on disk. Such an effect
// outlives the agent that began it.
func (k Kind) joins() bool { return k == Task }

// Effect is what an order began on a node, as the node keeps it.
type Effect struct {
	// Name says which piece of work it is, the same whoever orders it: of a script job, opcode, verb and UUID, of a task deployment,
	// step, attempt and try. It is never a count of orders, which another run of the opcode may give otherwise.
	Name string `json:"name"`
	// Of is the thing that it works on. One effect at a time works on a thing.
	Of   string `json:"of"`
	Kind Kind   `json:"kind"`
	// Epoch is that of the leader to whom it belongs: who began it, or joined it last.
	Epoch int64 `json:"epoch"`
	// Begun is when it began, for people.
	Begun time.Time `json:"begun"`
	// Group is its group of processes, as the host knows it.
	Group Group `json:"group"`
	// Files is the path that its lock, and on its end its exit status, are beside.
	Files string `json:"files"`
}

// String says what it is.
func (e *Effect) String() string { return fmt.Sprintf("%s (%s of epoch %d)", e.Name, e.Kind, e.Epoch) }

// Group is a group of processes by the number of the one that leads it. The number may come again, so its start tells it from others.
type Group struct {
	PID int `json:"pid"`
	// Start is when the process started, in ticks since the machine did, and Boot which start of the machine that was.
	Start uint64 `json:"start"`
	Boot  string `json:"boot"`
}

// Command is what an effect runs.
type Command struct {
	Args []string
	// Dir is the directory that it runs in.
	Dir string
	// Env is its environment; nil is that of the agent.
	Env []string
	// Input is the path of its standard input; empty for none.
	Input string
	// Output takes what a script writes, while it runs.
	Output io.Writer
	// Log is the path of the file that keeps the beginning of what a task writes, Keep bytes of it.
	Log  string
	Keep int64
	// Files is the path that lock and exit status are beside; empty for one of the host's.
	Files string
}

// Exit is how an effect ended.
type Exit struct {
	// Status is its exit status; 128 and more of a command that a signal ended.
	Status int
	// Known is false if it left no status: it was killed with all that it started.
	Known bool
}

// Host is where effects run: the operating system, or what a test pretends in its place. Everything that it keeps outlives the agent,
// and is shared by all agents of the node.
type Host interface {
	// Hold waits until the caller alone, of all agents of the node, may act on a thing. When ctx ends first it returns
	// fault.Busy and names who may. A hold ends with the agent's process.
	Hold(ctx context.Context, of string) (release func(), err error)
	// Follows returns the epoch of the leader that the node follows, 0 if it never followed one. What is damaged is an error: who
	// took it for none would follow a leader of old.
	Follows() (int64, error)
	// Follow has the node follow the leader of an epoch from now on. The caller holds what is called Leader.
	Follow(epoch int64) error
	// Noted returns the effect of a thing that was begun and is not forgotten; nil for none. It may have ended.
	Noted(of string) (*Effect, error)
	// All returns the noted effects of all things.
	All() ([]Effect, error)
	// Note keeps an effect in place of what is noted of its thing.
	Note(e Effect) error
	// Forget removes what is noted of a thing.
	Forget(e Effect) error
	// Begin notes an effect, and lets its command begin unless the node follows a newer leader by then: fault.Fenced. (That one
	// ends what is noted.) The caller holds the thing, and no other effect of it runs.
	Begin(e Effect, c Command) (Process, error)
	// Find returns the processes of a noted effect, whoever began it.
	Find(e Effect) Process
}

// Leader is what is held while it is decided which leader a node follows.
const Leader = "leader"

// Process is the processes of an effect.
type Process interface {
	// Effect is what they are of.
	Effect() Effect
	// Ended tells whether the effect has ended, and how: its command left an exit status, or nothing of it is left that holds its
	// lock. Of what a command left behind that ended well the lock counts no more.
	Ended() (Exit, bool)
	// Wait waits for the end; its error is the cause of ctx.
	Wait(ctx context.Context) (Exit, error)
	// Kill ends all that the effect started, unless it left the group of processes; it does not wait.
	Kill()
	// Holders names the processes that hold the lock.
	Holders() string
	// Age is how long ago the effect began, by a clock that nobody sets.
	Age() time.Duration
}
