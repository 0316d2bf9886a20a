package server

import (
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/servertag"
)

// Which instance of a cluster a server is.

// Ref says which instance is meant: by its UUID, and as long as nobody knows that by its name.
type Ref struct{ UUID, Name string }

// Ref is which instance the server is.
func (s *Server) Ref() Ref { return Ref{s.UUID, s.Instance} }

// Mark is the tag that the instance of a server gets on another cluster when it is made: it tells whose it is, also where
// nobody heard what became of the creation. It is in none of the namespaces of servers' tags, so users neither see nor reach it.
func Mark(id string) string { return servertag.MarkPrefix + id }

// marks are the ids of the servers whose mark is among tags.
func marks(tags []string) (ids []string) {
	for _, raw := range tags {
		if id, is := strings.CutPrefix(raw, servertag.MarkPrefix); is {
			ids = append(ids, id)
		}
	}
	return ids
}

// Sight is what is known of a server on its cluster.
type Sight struct {
	servertag.Sight
	// UUID and Name are those of the instance.
	UUID, Name string
	// Made is when the instance was made, by the cluster's clock.
	Made job.Time
	// Stopped: the instance is not to run.
	Stopped bool
	// Creation is how the server's creation ended, where that was asked for (Unknown) and found out.
	Creation servertag.Outcome
	// Absent is why it is known that the instance which is meant is not there: of what, and when, it is not part. Empty where one was seen.
	Absent string
	// Proven: nobody was asked for that, the inventory itself was looked into.
	Proven bool
	// Doubt: there is an instance of the server's name, and nobody can tell whether it is the server's.
	Doubt bool
}

// Unknown reports whether the server was made, and its record does not say which instance it is: it is of a version that
// remembered no UUIDs. Whoever looks at it finds out how its creation ended, too.
func (s *Server) Unknown() bool {
	return s.UUID == "" && s.Built != 0 && s.Deleted == 0 && s.Unmatched == 0
}

// Own returns what was seen of the server itself: a sight without an instance if
// the one that was seen is another's, or may be.
func (s *Server) Own(sight Sight) Sight {
	if !sight.Instance || s.owns(sight) {
		return sight
	}
	sight.Doubt = s.UUID == "" && s.Built != 0 && s.Deleted == 0
	sight.Instance, sight.Tags, sight.UUID, sight.Name, sight.Stopped = false, nil, "", "", false
	return sight
}

// owns reports whether the instance of a sight is the server's: the one that is
// known to be, or one that its creation has made. A creation that failed may
// have made it, too, if it was made while that ran.
func (s *Server) owns(sight Sight) bool {
	switch {
	case s.UUID != "":
		return s.UUID == sight.UUID
	case s.Built != 0:
		return sight.Creation.OK && sight.Creation.Began != 0 && made(sight.Creation, sight.Made)
	}
	task := s.Doing()
	if task != nil && task.Do == Create {
		outcome, over := sight.Ended[task.Job]
		if task.Job == 0 || !over {
			return false
		}
		if !task.Marked {
			return made(outcome, sight.Made)
		}
	}
	return s.Backend != "" && slices.Contains(sight.Tags, Mark(s.ID))
}

// made reports whether a creation made an instance, by when it ran.
func made(creation servertag.Outcome, at job.Time) bool {
	if creation.Began == 0 { // it is not known, or never ran
		return creation.OK
	}
	return creation.Began <= at && at <= creation.Ended
}

// Trouble is why the server is in error; nil if it is not.
func (s *Server) Trouble() *Fault {
	switch {
	case s.Deleted != 0:
		return nil
	case s.Unmatched != 0:
		return &Fault{Text: "which instance of its cluster the server is cannot be told, so it is left alone until an operator says it", Time: s.Unmatched}
	case s.Built == 0:
		return s.Fault
	}
	return s.Broken
}

// Match is the server as the instance of a sight. Errors: WrongState for a server that is being changed, or that
// has its instance (own is what was seen of it); NotFound where none was seen; Exists for an instance that is another
// server's, by its UUID (holder) or by its mark (marked tells which servers there are). What the server is to have, the instance gets.
func (s *Server) Match(own, sight Sight, holder *Server, marked func(id string) bool) (*Server, error) {
	switch {
	case len(s.Tasks) > 0:
		return nil, fault.New(fault.WrongState, "server %s is being changed: %s by %s", s.ID, s.Tasks[0].Do, s.Tasks[0].Asked).WithHint("try again when that is done")
	case own.Instance:
		return nil, fault.New(fault.WrongState, "server %s has its instance, %s with the UUID %s", s.ID, own.Name, own.UUID)
	case !sight.Instance:
		return nil, fault.New(fault.NotFound, "there is no such instance on the server's cluster").At("instance")
	case holder != nil:
		return nil, fault.New(fault.Exists, "instance %s is server %s", sight.Name, holder.ID).At("instance")
	}
	for _, id := range marks(sight.Tags) {
		if id != s.ID && marked(id) {
			return nil, fault.New(fault.Exists, "instance %s was made for server %s, as its tag %s says", sight.Name, id, Mark(id)).At("instance").
				WithHint("where that is wrong, remove the tag on the cluster")
		}
	}
	next := *s
	next.UUID, next.Instance, next.Unmatched, next.Deleted, next.Gone, next.Fault, next.Broken, next.Stopped = sight.UUID, sight.Name, 0, 0, "", nil, nil, sight.Stopped
	next.Tags = next.Tags.Unseen() // what was seen was another one's
	if next.Built == 0 {
		next.Built = sight.Now
	}
	next.Updated = sight.Now
	return &next, nil
}
