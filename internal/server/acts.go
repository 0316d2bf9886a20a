package server

import (
	"encoding/json"
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
)

// What was done to a server is kept with it, and outlasts it: a task that is over moves there in the change that takes its end in.

// Act is something that was done to a server, or is being done.
type Act struct {
	Task
	// Began and Ended are when its job ran; Ended is zero while the act is not over, Began where no job ran, or nobody knows when.
	Began job.Time `json:"began,omitempty"`
	Ended job.Time `json:"ended,omitempty"`
	// Failed is why it came to nothing; empty if it did not.
	Failed string `json:"failed,omitempty"`
}

// MaxActs is how much of what was done to a server is kept: how it was made, and the newest of the rest.
const MaxActs = 30

// noted returns acts with one more.
func noted(acts []Act, a Act) []Act {
	a.Marked, a.Flavor, a.Anew = false, nil, nil // they say something to who carries a task out
	next := append(slices.Clone(acts), a)
	if len(next) > MaxActs {
		next = slices.Delete(next, 1, 2)
	}
	return next
}

// Acts returns what was done to the server and what is being done, the oldest first.
func (s *Server) Acts() []Act {
	out := slices.Clone(s.Done)
	for i, t := range s.Tasks {
		switch {
		case t.Do != Restart:
			out = append(out, Act{Task: t})
		case i == 0:
			if of := lastSized(out); of >= 0 { // what it belongs to is not over yet
				out[of].Ended = 0
			}
		}
	}
	return out
}

// Past is what is kept of a server that is done with.
type Past struct {
	ID      string   `json:"id"`
	Number  int64    `json:"number"`
	Name    string   `json:"name"`
	Project string   `json:"project"`
	User    string   `json:"user"`
	Created job.Time `json:"created"`
	Deleted job.Time `json:"deleted"`
	Done    []Act    `json:"done,omitempty"`
}

// Past is what is to be kept of the server when a sight shows that it is done with.
func (s *Server) Past(sight Sight) *Past {
	next := *s
	next.settleTask(sight)
	for _, t := range next.Tasks {
		next.Done = next.over(Act{Task: t, Ended: sight.Now})
	}
	if n := len(next.Done); n > 0 && next.Done[n-1].Do == Delete { // it is gone, whatever its job came upon
		next.Done[n-1].Failed = ""
	}
	return &Past{ID: s.ID, Number: s.Number, Name: s.Name, Project: s.Project, User: s.User, Created: s.Created, Deleted: sight.Now, Done: next.Done}
}

// Encode returns it as it is stored.
func (p *Past) Encode() []byte {
	out, err := json.Marshal(p)
	if err != nil {
		panic(fault.New(fault.Internal, "a server that cannot be written: %w", err))
	}
	return out
}

// DecodePast reads what is stored of a server that is done with.
func DecodePast(text []byte) (*Past, error) {
	p := &Past{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, fault.New(fault.Internal, "what is stored of a deleted server cannot be read: %w", err)
	}
	return p, nil
}
