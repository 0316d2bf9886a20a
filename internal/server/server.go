// Package server holds the servers that users have over the Compute API, as
// values: what each is to be, which instance of a cluster it is, what is being
// done to it, and its tags.
//
// Invariants:
//   - A Server never changes once made; With and its siblings return others.
//   - A server is one instance for all of its life: the one that its creation made,
//     known by its UUID from then on, whatever its name becomes. Another one that has the name is a
//     stranger's: nothing is done to it, and nothing of it is shown. Where nobody can
//     tell which it is the server is unmatched, until an operator says it (identity.go).
//   - That its instance is not there drops no wish: the tags that a server is to have are kept until its user takes them
//     back, and are put on the instance that it is again, if it ever is one.
//   - What is done to a server is recorded before its job is submitted, so that a
//     crash in between loses nothing and does nothing twice.
package server

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/servertag"
)

// Server is one server of a user.
type Server struct {
	// ID is a UUID; Number is the same for clients that know numbers only, and
	// makes the instance's name.
	ID     string `json:"id"`
	Number int64  `json:"number"`
	// Name and Description are the user's, and need not be unique.
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	Told        Told              `json:"told,omitzero"`
	// Project owns it; User made it. Both are ids.
	Project string `json:"project"`
	User    string `json:"user"`
	// Flavor is its size, Before the one that it has again when its user does not want that one; nil when the size is settled.
	Flavor Flavor  `json:"flavor"`
	Before *Flavor `json:"before,omitempty"`
	Image  Image   `json:"image"`
	// NICs is how many network interfaces it was made with, Nets where the first of them are.
	NICs int   `json:"nics"`
	Nets []Net `json:"nets,omitempty"`
	// Guest is what its machine is told at the first start; nil for nothing.
	Guest *Guest `json:"guest,omitempty"`
	// Backend is the cluster that it is on; empty for Drover's own. Instance is
	// its name there, as it was seen last.
	Backend  string `json:"backend,omitempty"`
	Instance string `json:"instance"`
	// UUID is that of its instance, as its cluster tells it; empty until it was seen.
	UUID    string   `json:"uuid,omitempty"`
	Created job.Time `json:"created"`
	Updated job.Time `json:"updated"`
	// Built is when its instance was first seen, Deleted since when there is none
	// any more. Zero: not yet.
	// Unmatched is since when nobody can tell which instance it is.
	Built     job.Time `json:"built,omitempty"`
	Unmatched job.Time `json:"unmatched,omitempty"`
	Deleted   job.Time `json:"deleted,omitempty"`
	// Gone is why it is known that there is none; empty where there is one.
	Gone string `json:"gone,omitempty"`
	// Stopped: the instance is not to run.
	Stopped bool `json:"stopped,omitempty"`
	// Tasks are being done to it, one after the other; the first may be under way.
	Tasks []Task `json:"tasks,omitempty"`
	// Serial is that of the newest task.
	Serial int64 `json:"serial,omitempty"`
	// Done is what was done to it, the oldest first.
	Done []Act `json:"done,omitempty"`
	// Fault is why the newest task failed; nil when it did not. Broken is why what is on its disk is nobody knows what: it could not be rebuilt.
	Fault  *Fault        `json:"fault,omitempty"`
	Broken *Fault        `json:"broken,omitempty"`
	Tags   servertag.Set `json:"tags,omitzero"`
	// Lock keeps users from having something done to it; nil without one. It is stored beside the server.
	Lock *Lock `json:"-"`
}

// Told is what users tell of a server for other programs to read: it is kept and
// shown, and nothing is done by it.
type Told struct {
	// IPv4 and IPv6 are the addresses at which the server is reached.
	IPv4 string `json:"ipv4,omitempty"`
	IPv6 string `json:"ipv6,omitempty"`
	// Disk is who makes the partitions, AUTO or MANUAL; empty if nothing was said.
	Disk string `json:"disk,omitempty"`
}

// Guest is what a machine is told at its first start.
type Guest struct {
	// KeyName is the user's name of the key pair, PublicKey its line of authorized_keys.
	KeyName   string `json:"key_name,omitempty"`
	PublicKey string `json:"public_key,omitempty"`
	// UserData may hold secrets: it is sealed in the store, shown to nobody, and forgotten when the machine was made, or could not be.
	UserData string `json:"user_data,omitempty"`
}

// forget returns what is kept of it when the machine was told.
func (g *Guest) forget() *Guest {
	if g == nil || g.UserData == "" {
		return g
	}
	next := *g
	next.UserData = ""
	return &next
}

// KeyName is the user's name of the key pair that the server was made with; empty without one.
func (s *Server) KeyName() string {
	if s.Guest == nil {
		return ""
	}
	return s.Guest.KeyName
}

// Do names what may be done to a server.
type Do string

// What may be done.
const (
	Create Do = "create"
	Delete Do = "delete"
	Start  Do = "start"
	Stop   Do = "stop"
	Reboot Do = "reboot"
	// RebootHard switches the instance off and on.
	RebootHard Do = "reboot-hard"
)

// Task is a job about the server as a whole, under way or about to be
// submitted.
type Task struct {
	Serial int64           `json:"serial"`
	Do     Do              `json:"do"`
	Asked  servertag.Asked `json:"asked"`
	// Job is zero until the cluster is known to have taken it.
	Job job.ID `json:"job,omitempty"`
	// Marked: what a creation makes has the server's mark.
	Marked bool `json:"marked,omitempty"`
	// Flavor is the size that the server gets by it; nil where it gets none.
	Flavor *Flavor `json:"flavor,omitempty"`
	// Anew is what a rebuild needs beside; nil of anything else.
	Anew *Anew `json:"anew,omitempty"`
}

// Fault is why a task failed.
type Fault struct {
	Do   Do       `json:"do"`
	Job  job.ID   `json:"job,omitempty"`
	Text string   `json:"text"`
	Time job.Time `json:"time"`
}

// Status is what users see of a server, in the words of the Compute API.
type Status string

// The statuses.
const (
	Build     Status = "BUILD"
	Active    Status = "ACTIVE"
	Shutoff   Status = "SHUTOFF"
	Rebooting Status = "REBOOT"
	Failed    Status = "ERROR"
	Gone      Status = "DELETED"
)

// Status derives what users see.
func (s *Server) Status() Status {
	sizing := s.sizing()
	switch {
	case s.Deleted != 0:
		return Gone
	case s.Built == 0 && s.Fault != nil, s.Unmatched != 0:
		return Failed
	case s.Built == 0, len(s.Tasks) > 0 && s.Tasks[0].Do == Create:
		return Build
	case len(s.Tasks) > 0 && (s.Tasks[0].Do == Reboot || s.Tasks[0].Do == RebootHard):
		return Rebooting
	case len(s.Tasks) > 0 && s.Tasks[0].Do == Rebuild:
		return Rebuilding
	case s.Broken != nil:
		return Failed
	case sizing != "":
		return sizing
	case s.Stopped:
		return Shutoff
	}
	return Active
}

// PendingTags is since when its cluster does not show a tag as it is wanted; zero where it shows all, and where nobody can
// do anything about that: its instance is gone.
func (s *Server) PendingTags() job.Time {
	if s.Deleted != 0 {
		return 0
	}
	return s.Tags.OldestPending()
}

// TagsDue is since when a tag of the server is not as it is wanted that another try may bring about, without anybody's doing; zero where there is none.
func (s *Server) TagsDue() (since job.Time) {
	for i := range s.Tags.Tags {
		t := &s.Tags.Tags[i]
		if s.TagPending(t) && (t.Failure == nil || !t.Failure.Final) && (since == 0 || t.Asked.Time < since) {
			since = t.Asked.Time
		}
	}
	return since
}

// TagPending reports whether that is so of one tag of the server.
func (s *Server) TagPending(t *servertag.Tag) bool { return s.Deleted == 0 && t.Pending() }

// WaitOf tells what a tag of the server waits for.
func (s *Server) WaitOf(t *servertag.Tag) servertag.Wait {
	if s.Deleted != 0 && t.Pending() {
		return servertag.Wait{Why: "an instance: that of the server is gone"}
	}
	return s.Tags.WaitOf(t)
}

// Doing returns what is being done to the server now; nil when nothing is.
func (s *Server) Doing() *Task {
	if len(s.Tasks) == 0 {
		return nil
	}
	return &s.Tasks[0]
}

// Deleting reports whether the server is to be deleted.
func (s *Server) Deleting() bool {
	return slices.ContainsFunc(s.Tasks, func(t Task) bool { return t.Do == Delete })
}

// Begin records what is to be done. WrongState while something else is, but a
// deletion waits for that.
func (s *Server) Begin(do Do, by servertag.Asked) (*Server, error) {
	switch status := s.Status(); {
	case s.Deleting() && do == Delete:
		return s, nil
	case s.Unmatched != 0 && s.Deleted == 0:
		return nil, fault.New(fault.WrongState, "Cannot '%s' instance %s: %s", do, s.ID, s.Trouble().Text)
	case do == Delete, do == Create:
	case len(s.Tasks) > 0:
		return nil, fault.New(fault.WrongState, "Cannot '%s' instance %s while it is being changed: %s by %s", do, s.ID, s.Tasks[0].Do, s.Tasks[0].Asked)
	case status == Resized && do != Confirm && do != Revert:
		return nil, fault.New(fault.WrongState, "Cannot '%s' instance %s while it is in vm_state resized", do, s.ID).WithHint("confirm its new size first, or have the one of before again")
	case status == Failed && !s.mends(do) || status == Gone, status != Resized && (do == Confirm || do == Revert):
		return nil, fault.New(fault.WrongState, "Cannot '%s' instance %s while it is in vm_state %s", do, s.ID, strings.ToLower(string(status)))
	case do == Start && status == Active, do == Stop && status == Shutoff, do == Reboot && status == Shutoff:
		return nil, fault.New(fault.WrongState, "Cannot '%s' instance %s while it is in vm_state %s", do, s.ID, strings.ToLower(string(status)))
	}
	next := *s
	next.Serial++
	next.Tasks = append(slices.Clone(s.Tasks), Task{Serial: next.Serial, Do: do, Asked: by, Marked: do == Create && s.Backend != ""})
	next.Updated = by.Time
	return &next, nil
}

// Submitted records the id of the job of a task.
func (s *Server) Submitted(serial int64, id job.ID) *Server {
	next := *s
	next.Tasks = slices.Clone(s.Tasks)
	for i := range next.Tasks {
		if next.Tasks[i].Serial == serial {
			next.Tasks[i].Job = id
		}
	}
	return &next
}

// Refused records that the cluster does not take the job of a task.
func (s *Server) Refused(serial int64, text string, now job.Time) *Server {
	next := *s
	next.Tasks = slices.DeleteFunc(slices.Clone(s.Tasks), func(t Task) bool {
		if t.Serial == serial {
			next.Fault = &Fault{Do: t.Do, Text: text, Time: now}
			next.Done = s.over(Act{Task: t, Ended: now, Failed: text})
			next.settleDisk(t.Do, next.Fault)
			next.settleGuest(t.Do)
		}
		return t.Serial == serial
	})
	next.Tasks = withoutRestart(next.Tasks)
	return &next
}

// settleGuest takes in that a task is over, behind which the server's machine was told what it is told, or never will be.
func (s *Server) settleGuest(do Do) {
	if do == Create || do == Rebuild {
		s.Guest = s.Guest.forget()
	}
}

// over returns what was done to the server, with an act that is.
func (s *Server) over(a Act) []Act {
	if a.Do == Restart {
		return restarted(s.Done, a.Ended, a.Failed)
	}
	return noted(s.Done, a)
}

// WithTags returns the server with other tags.
func (s *Server) WithTags(tags servertag.Set) *Server {
	next := *s
	next.Tags = tags
	return &next
}

// Settle takes in what was seen of the server itself (Own): whether there is an
// instance, what became of the tasks, and all about tags. It returns s itself when nothing is new, and
// nil when the server is done with: its user deleted it, and it is gone. Where another cluster says that there is no instance, its deletion
// is handed in even so: what is told is no proof, and an instance that nobody has in his books stays for ever.
func (s *Server) Settle(p *servertag.Policy, sight Sight) *Server {
	next := *s
	deleted := next.settleTask(sight)
	doing := next.Doing()
	switch {
	case sight.Doubt:
		if next.Unmatched == 0 {
			next.Unmatched = sight.Now
		}
	case sight.Instance:
		if next.Deleted != 0 {
			next.Tags = next.Tags.Unseen()
		}
		next.Deleted, next.Gone, next.Stopped, next.UUID, next.Unmatched = 0, "", sight.Stopped, sight.UUID, 0
		if sight.Name != "" {
			next.Instance = sight.Name
		}
		if next.Built == 0 {
			next.Built, next.Fault = sight.Now, nil
		}
	case deleted, doing != nil && doing.Do == Delete && doing.Job == 0 && (sight.Proven || next.UUID == ""):
		return nil
	case next.Deleted == 0 && (next.Built != 0 || doing == nil && next.Fault == nil):
		next.Deleted, next.Gone, next.Unmatched = sight.Now, sight.Absent, 0
		next.Tags = next.Tags.Missed(sight.Now, sight.Absent)
	}
	if !next.Deleting() {
		next.Tags = next.Tags.Settle(p, sight.Sight)
	}
	if next.same(s) {
		return s
	}
	next.Updated = sight.Now
	return &next
}

// settleTask takes in what became of what is being done. It reports whether a deletion has ended, behind which the server is
// done with if its instance is not there: one that failed says nothing of that, unless it found none.
func (s *Server) settleTask(sight Sight) (deleted bool) {
	task := s.Doing()
	if task == nil || task.Job == 0 {
		return false
	}
	outcome, over := sight.Ended[task.Job]
	if !over {
		return false
	}
	s.Fault = nil
	if !outcome.OK {
		s.Fault = &Fault{Do: task.Do, Job: task.Job, Text: outcome.Text, Time: sight.Now}
	}
	act := Act{Task: *task, Began: outcome.Began, Ended: cmp.Or(outcome.Ended, sight.Now)}
	if !outcome.OK {
		act.Failed = cmp.Or(outcome.Text, "the job did not succeed")
	}
	s.Tasks, s.Done = s.Tasks[1:], s.over(act)
	s.settleSize(task, outcome.OK)
	s.settleDisk(task.Do, s.Fault)
	s.settleGuest(task.Do)
	return task.Do == Delete && (outcome.OK || outcome.Missing || sight.Proven)
}

func (s *Server) same(other *Server) bool {
	return len(s.Tasks) == len(other.Tasks) && s.Fault == other.Fault && s.Built == other.Built && s.Deleted == other.Deleted &&
		s.UUID == other.UUID && s.Instance == other.Instance && s.Unmatched == other.Unmatched && s.Stopped == other.Stopped && s.Tags.Same(&other.Tags)
}

// Jobs returns the ids of the jobs that are under way.
func (s *Server) Jobs() []job.ID {
	var out []job.ID
	if task := s.Doing(); task != nil && task.Job != 0 {
		out = append(out, task.Job)
	}
	for i := range s.Tags.Jobs {
		if id := s.Tags.Jobs[i].ID; id != 0 {
			out = append(out, id)
		}
	}
	for i := range s.Tags.Effects {
		if id := s.Tags.Effects[i].ID; id != 0 {
			out = append(out, id)
		}
	}
	return out
}

// Encode returns the server as it is stored.
func (s *Server) Encode() ([]byte, error) {
	out, err := json.Marshal(s)
	if err != nil {
		return nil, fault.New(fault.Internal, "a server that cannot be written: %w", err)
	}
	return out, nil
}

// Decode reads a stored server.
func Decode(text []byte) (*Server, error) {
	s := &Server{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fault.New(fault.Internal, "a stored server cannot be read: %w", err)
	}
	return s, nil
}

// InstanceName is the name of the instance of a server. Programs that know the
// messages about instances take the number from it.
func InstanceName(prefix string, number int64) string { return prefix + strconv.FormatInt(number, 10) }
