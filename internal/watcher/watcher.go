// Package watcher decides what a cluster needs that nobody has to ask for: that machines which are to run and do not are started again, and that one which was
// shut down from within counts as stopped. It is what Ganeti's watcher does with instances (lib/watcher), in its words where clients see them.
// What it decides is carried out by app/watch.go.
//
// Invariants:
//   - Look is a function of its arguments: what was tried is in a Book, which it returns anew and does not change (TestLook).
//   - Nothing is begun for an instance that a job works on, or whose last attempt has not ended (TestLook).
//   - One that does not stay up is tried MaxTries times, with longer and longer pauses, and then left alone for Forget, as is said in a Note (TestGivingUp).
package watcher

import (
	"fmt"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/backoff"
)

const (
	// MaxTries is how often an instance is tried, as there.
	MaxTries = 5
	// Forget is how long after the last attempt those before it no longer count, as there.
	Forget = 8 * time.Hour
	// StayUp is how long after the last attempt one has to be as it should be for the attempts to count no more: a machine that goes down again and again does not
	// begin anew each time. (There it does.)
	StayUp = 10 * time.Minute
	// longestPause is that between two attempts. There it is five minutes each time.
	longestPause = 15 * time.Minute
)

// Instance is one as it was seen, by the words of the field "status" in queries.
type Instance struct {
	UUID, Name, Status string
	// Wanted: it is to run.
	Wanted bool
	// Busy: a job works on it.
	Busy bool
}

// Action is what is done about an instance.
type Action string

// The actions.
const (
	// Start starts one that is to run and does not.
	Start Action = "start"
	// Cleanup marks one as stopped that was shut down from within.
	Cleanup Action = "cleanup"
)

// needs says what is done about an instance of a status.
var needs = map[string]Action{"ERROR_down": Start, "USER_down": Cleanup}

// helpless are the statuses of instances of which nobody can tell whether they run: their node is away.
var helpless = []string{"ERROR_nodedown", "ERROR_nodeoffline"}

// Book is what was tried, by the UUIDs of instances.
type Book map[string]Attempts

// Attempts are those for one instance since it last was as it should be.
type Attempts struct {
	Name  string
	Do    Action
	Count int
	// Job is that of the last attempt, and Last when that was.
	Job  int64
	Last time.Time
	// GaveUp: there are no more until Forget has passed.
	GaveUp bool
}

// Task is something to be done.
type Task struct {
	UUID, Name string
	Do         Action
	// Attempt counts from 1.
	Attempt int
	// Why is the reason for people.
	Why string
}

// Note is what came of attempts.
type Note struct {
	Name string
	// GaveUp, or else it is as it should be by now.
	GaveUp bool
	Text   string
}

// Look goes through what was seen. Ended reports whether a job has; a first pause, which is doubled each time, is between two attempts.
func Look(b Book, seen []Instance, ended func(job int64) bool, first time.Duration, now time.Time) (tasks []Task, notes []Note, next Book) {
	next = Book{}
	pauses := backoff.Pauses{First: first, Longest: longestPause}
	for _, i := range seen {
		do, tried := needs[i.Status], b[i.UUID]
		since := now.Sub(tried.Last)
		switch {
		case since >= Forget || do != "" && tried.Do != do:
			tried = Attempts{}
		case do == "" && !slices.Contains(helpless, i.Status) && (tried.GaveUp || since >= StayUp):
			notes = append(notes, Note{Name: i.Name, Text: fmt.Sprintf("%s by now, after %s", i.Status, times(tried.Count))})
			tried = Attempts{}
		}
		switch {
		case do == "" || !i.Wanted || i.Busy || tried.GaveUp:
		case tried.Count > 0 && (!ended(tried.Job) || since < pauses.After(tried.Count)):
		case tried.Count == MaxTries:
			tried.GaveUp = true
			notes = append(notes, Note{Name: i.Name, GaveUp: true, Text: fmt.Sprintf("still %s after %s", i.Status, times(MaxTries))})
		default:
			tried = Attempts{Name: i.Name, Do: do, Count: tried.Count + 1, Last: now}
			tasks = append(tasks, Task{UUID: i.UUID, Name: i.Name, Do: do, Attempt: tried.Count, Why: why(do, i.Name, tried.Count)})
		}
		if tried.Count > 0 {
			next[i.UUID] = tried
		}
	}
	return tasks, notes, next
}

// Untried takes back a task that could not be begun: it does not count, and what was tried before does.
func (b Book) Untried(t Task, before Book) {
	delete(b, t.UUID)
	if tried, was := before[t.UUID]; was {
		b[t.UUID] = tried
	}
}

// why is the reason of a task, which begins as there.
func why(do Action, name string, attempt int) string {
	if do == Cleanup {
		return "Cleaning up instance " + name
	}
	if attempt == 1 {
		return "Restarting instance " + name
	}
	return fmt.Sprintf("Restarting instance %s (attempt %d of %d)", name, attempt, MaxTries)
}

func times(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}
