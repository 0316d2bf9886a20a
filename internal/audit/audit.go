// Package audit holds the record of what people and programs did to a
// cluster that is no job: rules added, changed and removed, jobs cancelled,
// archived and moved in the line, the queue drained, environments and task
// graphs stored, deployments begun and stopped, consoles typed on, controllers drained. Jobs record themselves.
//
// Invariants:
//   - An event is written in the transaction of the change that it tells of:
//     neither is there without the other. One that tells of no change of the store is there before what it tells of.
//   - An event never changes.
package audit

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/reason"
)

// Verb says what was done.
type Verb string

// The verbs.
const (
	FilterAdd         Verb = "filter.add"
	FilterReplace     Verb = "filter.replace"
	FilterModify      Verb = "filter.modify"
	FilterDelete      Verb = "filter.delete"
	FilterExpire      Verb = "filter.expire"
	JobCancel         Verb = "job.cancel"
	JobKill           Verb = "job.kill"
	JobPriority       Verb = "job.change-priority"
	JobArchive        Verb = "job.archive"
	ArchivePrune      Verb = "archive.prune"
	EventPrune        Verb = "event.prune"
	QueueDrain        Verb = "queue.drain"
	QueueUndrain      Verb = "queue.undrain"
	WatcherPause      Verb = "watcher.pause"
	WatcherGoOn       Verb = "watcher.continue"
	FormatRaise       Verb = "format.raise"
	ControllerDrain   Verb = "controller.drain"
	ControllerUndrain Verb = "controller.undrain"
	ControllerForget  Verb = "controller.forget"
	ServerMatch       Verb = "server.match"
	ServerLock        Verb = "server.lock"
	ServerUnlock      Verb = "server.unlock"
	FlavorAdd         Verb = "flavor.add"
	FlavorModify      Verb = "flavor.modify"
	FlavorRemove      Verb = "flavor.remove"
	QuotaSet          Verb = "quota.set"
	QuotaUnset        Verb = "quota.unset"
	ConsoleType       Verb = "console.type"
	ConsoleTake       Verb = "console.take"
	ConsoleOpen       Verb = "console.open"
	ConsoleRefuse     Verb = "console.refuse"

	EnvironmentPut    Verb = "environment.put"
	EnvironmentDelete Verb = "environment.delete"
	EnvironmentReveal Verb = "environment.reveal"
	EnvironmentForget Verb = "environment.forget"
	GraphPut          Verb = "task-graph.put"
	GraphDelete       Verb = "task-graph.delete"
	DeploymentBegin   Verb = "deployment.begin"
	DeploymentResume  Verb = "deployment.resume"
	DeploymentRetry   Verb = "deployment.retry"
	DeploymentStop    Verb = "deployment.stop"
	DeploymentDelete  Verb = "deployment.delete"

	// Unreadable stands in place of what a damaged event told.
	Unreadable Verb = "unreadable"
)

// Verbs lists all verbs with what they mean, for help texts.
func Verbs() map[Verb]string {
	return map[Verb]string{
		FilterAdd: "a filter rule was added", FilterReplace: "all parts of a filter rule were replaced",
		FilterModify: "parts of a filter rule were changed", FilterDelete: "a filter rule was removed",
		FilterExpire: "a filter rule ended because its time was over",
		JobCancel:    "a job was asked to end", JobKill: "the running opcode of a job was asked to end",
		JobPriority: "the urgency of a job was changed", JobArchive: "jobs were moved into the archive", ArchivePrune: "jobs of the archive were removed", EventPrune: "old events were removed",
		QueueDrain: "the queue was told to take no new jobs", QueueUndrain: "the queue takes jobs again",
		WatcherPause: "watchers were told to do nothing for a time", WatcherGoOn: "watchers may go on",
		ServerMatch: "an operator said which instance a server is", ServerLock: "an operator kept a user from having something done to a server",
		ServerUnlock: "an operator let users have something done to a server again",
		FlavorAdd:    "a size of servers was made", FlavorModify: "the description of a size of servers was changed, or who may choose it",
		FlavorRemove: "a size of servers was taken away; servers that have it keep it",
		QuotaSet:     "limits of a project were set, or the default of all", QuotaUnset: "limits of a project, or those set as the default of all, were taken away",
		ConsoleType:     "somebody began to type on the serial line of an instance",
		ConsoleTake:     "somebody took the keyboard of a serial line over from who typed there",
		ConsoleOpen:     "the console of an instance was opened with a ticket",
		ConsoleRefuse:   "a ticket for a console was refused: it had been used, was over, or was for another one",
		FormatRaise:     "the format of the store was raised: programs that do not know it cannot lead on it any more",
		ControllerDrain: "a controller was told to leave the lead to others", ControllerUndrain: "a controller may lead again",
		ControllerForget: "a controller that is lost was removed from those of the group",
		EnvironmentPut:   "the state to be reached of an environment, or of a node of it, was set", EnvironmentDelete: "an environment was removed",
		EnvironmentReveal: "the state of an environment was shown with its secrets", EnvironmentForget: "what was done on a node of an environment counts no more",
		GraphPut: "a task graph was stored", GraphDelete: "a task graph was removed",
		DeploymentBegin: "a plan was begun to be carried out", DeploymentResume: "a deployment was let go on",
		Unreadable:      "the stored event cannot be read: what was done is lost",
		DeploymentRetry: "what had failed in a deployment was tried again", DeploymentStop: "a deployment was told to begin nothing more",
		DeploymentDelete: "a deployment that was over, or a plan that was not begun, was removed",
	}
}

// By is who wants something and why.
type By struct {
	Account reason.Account
	// Trail is what the client says about it, hop by hop; it may be empty.
	Trail reason.Trail
}

// Event is something that was done.
type Event struct {
	// ID numbers the events of a cluster, from 1.
	ID int64 `json:"id"`
	// Time is when it was done, in nanoseconds since the epoch.
	Time int64 `json:"time"`
	What Verb  `json:"what"`
	// Object is what it was done to: the UUID of a rule, the number of a job or a
	// deployment, the name of an environment or a task graph; empty for the queue
	// as a whole. Name is what people call it.
	Object string `json:"object,omitempty"`
	Name   string `json:"name,omitempty"`
	// Who is the account, Surface and From how and from where it came.
	Who     string `json:"who"`
	Surface string `json:"surface"`
	From    string `json:"from,omitempty"`
	// Trail tells why.
	Trail reason.Trail `json:"trail,omitempty"`
	// Before and After are the object before and after, as JSON; nil where there
	// was none, or where the verb says it all.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// New returns an event that is not numbered yet.
func New(what Verb, object string, by By) Event {
	return Event{
		What: what, Object: object,
		Who: by.Account.Name, Surface: by.Account.Surface, From: by.Account.From, Trail: by.Trail,
	}
}

// Why is the reason that the client gave: the last one of the trail that has
// words.
func (e *Event) Why() string {
	for _, hop := range slices.Backward(e.Trail) {
		if hop.Reason != "" {
			return hop.Reason
		}
	}
	return ""
}

// Key is the event's id as the store knows it.
func (e *Event) Key() string { return strconv.FormatInt(e.ID, 10) }

// Encode returns the event as it is stored.
func (e *Event) Encode() []byte {
	out, err := json.Marshal(e)
	if err != nil {
		panic(fault.New(fault.Internal, "an event that cannot be written: %w", err))
	}
	return out
}

// Damaged is the event in place of one that cannot be read.
func Damaged(key string, err error) *Event {
	id, _ := strconv.ParseInt(key, 10, 64) // 0 for what never was an event
	return &Event{ID: id, What: Unreadable, Trail: reason.Trail{{Source: "gnt:store", Reason: err.Error()}}}
}

// Decode reads a stored event.
func Decode(text []byte) (*Event, error) {
	var e Event
	if err := json.Unmarshal(text, &e); err != nil {
		return nil, fault.New(fault.Internal, "a stored event cannot be read: %w", err)
	}
	return &e, nil
}
