// Package servertag holds what a tag of a server is, as values: what users
// want, what was seen on the cluster, and what has to be done next about the
// difference. Engines carry that out; nothing here waits or writes.
//
// A tag has a name, which users see, and belongs to a namespace, which they do
// not: on the cluster it is written as the namespace's prefix with the encoded
// name behind it (encoding.go).
//
// Invariants:
//   - What a user wants changes at once and is never forgotten before the
//     cluster shows it or the user wants something else: a tag that is to go
//     stays in the set, unwanted, until the cluster lacks it.
//   - Only what the cluster shows confirms a change. The outcome of a job says
//     when to look, and why not.
//   - The outcome of a job counts only for the generation of a tag that the job
//     was made for.
//   - Of each server at most one job that adds tags and one that removes tags is
//     under way, and no tag is in both.
//   - Tags without one of the prefixes belong to others and are never touched.
package servertag

import (
	"cmp"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/job"
)

// Namespace says to whom a tag belongs.
type Namespace string

// The namespaces. Users see and change their own only.
const (
	User   Namespace = "user"
	System Namespace = "system"
	// Placed has what says beside which others an instance runs, which placement reads (placement.CompanyPrefix). What is found of it on a cluster is not adopted: it
	// may be an operator's own.
	Placed Namespace = "placed"
)

// Status is what a tag's life comes to.
type Status string

// The statuses. PENDADD and ACTIVE are the design's words; users see no tag
// that is to go.
const (
	// Active: wanted, and on the cluster.
	Active Status = "ACTIVE"
	// PendAdd: wanted, and not yet seen on the cluster.
	PendAdd Status = "PENDADD"
	// PendDel: no longer wanted, and not yet gone from the cluster.
	PendDel Status = "PENDDEL"
	// Error: the change failed too often, or in a way that another try will not
	// help; Tag.Failure says why.
	Error Status = "ERROR"
)

// Seen is what the cluster showed of a tag when it was last looked at while no
// job of ours was changing it.
type Seen string

// What may have been seen. Unknown: it was not looked since the tag changed.
const (
	Unknown Seen = ""
	Present Seen = "present"
	Absent  Seen = "absent"
)

// Asked tells who wanted a change, and by which request.
type Asked struct {
	// User is the account's name; Front is by which interface it came: "compute",
	// "cli", or "cluster" for a tag that was found there.
	User  string `json:"user"`
	Front string `json:"front"`
	// ID is that of the account, where what is kept tells of it: tasks do, tags do not.
	ID string `json:"id,omitempty"`
	// Request is the id of the request, empty where there was none.
	Request string `json:"request,omitempty"`
	// From is the address that the request came from, if that is known.
	From string   `json:"from,omitempty"`
	Time job.Time `json:"time"`
}

// Tag is one tag of a server with its life.
type Tag struct {
	Namespace Namespace `json:"namespace"`
	// Name is what users call it, Raw how it is written on the cluster.
	Name string `json:"name"`
	Raw  string `json:"raw"`
	// Wanted is what users want of it: to be there, or to be gone.
	Wanted bool `json:"wanted"`
	Seen   Seen `json:"seen,omitempty"`
	// Generation counts the changes of what is wanted, over all tags of a server:
	// a greater one is newer.
	Generation int64 `json:"generation"`
	Asked      Asked `json:"asked"`
	// Tries counts the jobs that failed for this generation. Retry is before when
	// there is no other, zero when there may be one at once.
	Tries int      `json:"tries,omitempty"`
	Retry job.Time `json:"retry,omitempty"`
	// Failure is why the last of them failed; nil when none did.
	Failure *Failure `json:"failure,omitempty"`
	// Alone: a job with several tags failed, one of which may be bad; this one is
	// tried by itself.
	Alone bool `json:"alone,omitempty"`
	// Life is what happened to it, the newest last; at most MaxLife events.
	Life []Event `json:"life,omitempty"`
}

// Failure is why a change did not take effect.
type Failure struct {
	Job  job.ID   `json:"job,omitempty"`
	Text string   `json:"text"`
	Time job.Time `json:"time"`
	// Final: another try would fail too, so there is none.
	Final bool `json:"final,omitempty"`
}

// MaxLife is how many events of its life a tag remembers.
const MaxLife = 16

// Event is something that happened to a tag.
type Event struct {
	Time job.Time `json:"time"`
	// What is one of the words below.
	What string `json:"what"`
	// Job is the job that it is about; zero for none.
	Job job.ID `json:"job,omitempty"`
	// Text says more: who asked, what the cluster said.
	Text string `json:"text,omitempty"`
}

// The words for what happened to a tag.
const (
	WasWanted    = "wanted"
	WasUnwanted  = "unwanted"
	WasSubmitted = "submitted"
	WasRefused   = "failed"
	WasSeen      = "seen"
	WasAdopted   = "adopted"
	WasMissed    = "missing"
)

// maxTries is after how many failed jobs a change is reported as an error. It
// is tried on, ever more rarely.
const maxTries = 5

// Status derives what the tag's life comes to.
func (t *Tag) Status() Status {
	switch {
	case t.Wanted && t.Seen == Present:
		return Active
	case t.Failure != nil && (t.Failure.Final || t.Tries >= maxTries):
		return Error
	case t.Wanted:
		return PendAdd
	}
	return PendDel
}

// Pending reports whether the cluster does not show yet what is wanted.
func (t *Tag) Pending() bool { return !t.Wanted || t.Seen != Present }

// with returns the tag with an event at the end of its life.
func (t Tag) with(e Event) Tag {
	life := append(slices.Clone(t.Life), e)
	if over := len(life) - MaxLife; over > 0 {
		life = life[over:]
	}
	t.Life = life
	return t
}

// Action is what a job does to tags.
type Action string

// The actions.
const (
	Add    Action = "add"
	Remove Action = "remove"
)

// Job is a job of ours that is under way, or about to be submitted.
type Job struct {
	// Serial numbers the jobs of a server; with the server it is the job's
	// identity before it has an id.
	Serial int64 `json:"serial"`
	// ID is zero until the cluster is known to have taken the job.
	ID     job.ID   `json:"id,omitempty"`
	Action Action   `json:"action"`
	Time   job.Time `json:"time"`
	// Tags are those that it changes, with the generations that it was made for.
	Tags []Ref `json:"tags"`
}

// Ref names a tag at one generation.
type Ref struct {
	Raw        string `json:"raw"`
	Generation int64  `json:"generation"`
}

func (j *Job) has(raw string) bool {
	return slices.ContainsFunc(j.Tags, func(r Ref) bool { return r.Raw == raw })
}

// Set is all tags of one server. It is a value: what changes it returns
// another.
type Set struct {
	// Tags are ordered by namespace and name.
	Tags []Tag `json:"tags,omitempty"`
	// Jobs are under way: at most one of each action.
	Jobs []Job `json:"jobs,omitempty"`
	// Effects are those that are in force, or on their way there or back.
	Effects []Applied `json:"effects,omitempty"`
	// Serial is that of the newest job.
	Serial int64 `json:"serial,omitempty"`
	// Generation is that of the newest change.
	Generation int64 `json:"generation,omitempty"`
}

func (t *Tag) compare(ns Namespace, name string) int {
	return cmp.Or(strings.Compare(string(t.Namespace), string(ns)), strings.Compare(t.Name, name))
}

func (s *Set) search(ns Namespace, name string) (int, bool) {
	return slices.BinarySearchFunc(s.Tags, name, func(t Tag, name string) int { return t.compare(ns, name) })
}

// Find returns a tag that is in the set, wanted or not; nil if it is not there.
// The caller must not change it.
func (s *Set) Find(ns Namespace, name string) *Tag {
	if i, found := s.search(ns, name); found {
		return &s.Tags[i]
	}
	return nil
}

// Has reports whether the tag is wanted.
func (s *Set) Has(ns Namespace, name string) bool {
	t := s.Find(ns, name)
	return t != nil && t.Wanted
}

// Wanted returns the tags of a namespace that are wanted, by name. The caller
// must not change them.
func (s *Set) Wanted(ns Namespace) []*Tag {
	var out []*Tag
	for i := range s.Tags {
		if t := &s.Tags[i]; t.Namespace == ns && t.Wanted {
			out = append(out, t)
		}
	}
	return out
}

// Names returns the names of the tags of a namespace that are wanted, in order.
func (s *Set) Names(ns Namespace) []string {
	out := []string{}
	for _, t := range s.Wanted(ns) {
		out = append(out, t.Name)
	}
	return out
}

// OldestPending is when the oldest change was asked for that the cluster does
// not show yet; zero if there is none.
func (s *Set) OldestPending() job.Time {
	var oldest job.Time
	for i := range s.Tags {
		if t := &s.Tags[i]; t.Pending() && (oldest == 0 || t.Asked.Time < oldest) {
			oldest = t.Asked.Time
		}
	}
	return oldest
}

// Changing returns the job that is changing a tag, nil if none is.
func (s *Set) Changing(raw string) *Job {
	for i := range s.Jobs {
		if s.Jobs[i].has(raw) {
			return &s.Jobs[i]
		}
	}
	return nil
}

// UnderWay returns the job of an action that is under way, nil if none is.
func (s *Set) UnderWay(a Action) *Job {
	for i := range s.Jobs {
		if s.Jobs[i].Action == a {
			return &s.Jobs[i]
		}
	}
	return nil
}

// Same reports whether nothing happened between two values of one set.
func (s *Set) Same(other *Set) bool {
	return s.Generation == other.Generation && s.Serial == other.Serial &&
		slices.EqualFunc(s.Jobs, other.Jobs, func(a, b Job) bool { return a.Serial == b.Serial && a.ID == b.ID }) &&
		slices.EqualFunc(s.Tags, other.Tags, func(a, b Tag) bool {
			return a.Raw == b.Raw && a.Generation == b.Generation && a.Seen == b.Seen && a.Tries == b.Tries && a.Alone == b.Alone
		}) &&
		slices.EqualFunc(s.Effects, other.Effects, func(a, b Applied) bool {
			return a.same(&b.Effect) && a.InForce == b.InForce && a.Serial == b.Serial && a.ID == b.ID && a.Tries == b.Tries
		})
}

func (s *Set) clone() Set {
	c := *s
	c.Tags, c.Jobs, c.Effects = slices.Clone(s.Tags), slices.Clone(s.Jobs), slices.Clone(s.Effects)
	return c
}

// put sets a tag in a set that is not shared yet.
func (s *Set) put(t Tag) {
	i, found := s.search(t.Namespace, t.Name)
	if found {
		s.Tags[i] = t
		return
	}
	s.Tags = slices.Insert(s.Tags, i, t)
}
