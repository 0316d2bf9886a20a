package servertag

import (
	"fmt"

	"github.com/drover-project/drover/internal/job"
)

// Wait is what keeps a change of a tag from being in force.
type Wait struct {
	// Job is the job that it waits for; zero for none.
	Job job.ID
	// Until is when there will be another try, zero if it does not wait for that.
	Until job.Time
	// Why says it for a person; empty when the tag waits for nothing.
	Why string
}

// WaitOf tells what a tag of the set waits for.
func (s *Set) WaitOf(t *Tag) Wait {
	doing := s.Changing(t.Raw)
	switch {
	case !t.Pending():
		return Wait{}
	case doing != nil && doing.ID == 0:
		return Wait{Why: fmt.Sprintf("the cluster has not taken the job yet that is to %s it", doing.Action)}
	case doing != nil && (doing.Action == Add) != t.Wanted:
		return Wait{Job: doing.ID, Why: fmt.Sprintf("job %d, which was to %s it, has to end first", doing.ID, doing.Action)}
	case doing != nil:
		return Wait{Job: doing.ID, Why: fmt.Sprintf("job %d is to %s it", doing.ID, doing.Action)}
	case t.Failure != nil && t.Failure.Final:
		return Wait{Why: "somebody to ask for something else: another try would fail like the last one"}
	case t.Retry != 0 && t.Failure != nil:
		return Wait{Until: t.Retry, Why: "the time of the next try"}
	}
	return Wait{Why: "its turn: another job about tags of this server, or the server's own, has to end first"}
}
