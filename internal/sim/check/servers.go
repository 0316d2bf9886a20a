package check

import "maps"

// Wishes are what is stored of what users want of a server, and of what is done about it.
type Wishes struct {
	// Generation is that of the newest change of its tags, and Tags are those that are wanted.
	Generation int64
	Tags       string
	// Newest are the serials of the newest task, and of the newest job about tags.
	Newest [2]int64
	// Jobs are those that are under way: whether the cluster is known to have taken each.
	Jobs map[string]bool
}

// Servers holds what is stored of servers to what was stored before: a change that was made upon something older takes back what
// came in between. It is told of commits in order, by one goroutine at a time.
type Servers struct {
	verdict *Verdict
	stored  map[string]*wishes // by server
}

// wishes are those of a server, with how far each of its jobs ever came.
type wishes struct {
	Wishes

	stages map[string]stage
}

// stage is how far a job came.
type stage int

// The stages.
const (
	begun stage = iota
	taken       // by the cluster
	over
)

// NewServers returns the checks while there are no servers.
func NewServers(v *Verdict) *Servers { return &Servers{verdict: v, stored: map[string]*wishes{}} }

// Stored says what is stored of a server from now on.
func (s *Servers) Stored(id string, now Wishes) {
	was := s.stored[id]
	if was == nil {
		was = &wishes{now, map[string]stage{}}
		s.stored[id] = was
	}
	back := now.Generation < was.Generation || now.Generation == was.Generation && now.Tags != was.Tags || now.Newest[0] < was.Newest[0] || now.Newest[1] < was.Newest[1]
	if was.jobs(now.Jobs) || back {
		s.verdict.Breakf(UponStored, "of server %s there is stored %+v, after %+v", id, now, was.Wishes)
	}
	was.Wishes = now
}

// jobs takes in the jobs that are stored now. It tells whether one is behind what was stored of it before.
func (w *wishes) jobs(now map[string]bool) (back bool) {
	for name, is := range now {
		at := begun
		if is {
			at = taken
		}
		back = back || at < w.stages[name]
		w.stages[name] = max(at, w.stages[name])
	}
	for name := range maps.Keys(w.Jobs) {
		if _, still := now[name]; !still {
			w.stages[name] = over
		}
	}
	return back
}

// Gone says that nothing is stored of the wishes for a server any more.
func (s *Servers) Gone(id string) { delete(s.stored, id) }
