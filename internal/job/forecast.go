package job

import "fmt"

// Forecast says what a request about one job would do: whether it would be
// answered as done, and a sentence for a person.
type Forecast struct {
	OK      bool
	Message string
}

// ForecastCancel says what a request to cancel a job with this status would do.
// The queue answers a request for a job that has ended as one for a job that it
// does not know.
func ForecastCancel(id ID, s Status, kill bool) Forecast {
	switch {
	case s == Queued || s == Waiting:
		return Forecast{true, fmt.Sprintf("Job %d would be cancelled", id)}
	case s.Final():
		return notInQueue(id)
	case kill:
		return Forecast{true, fmt.Sprintf("Job %d is %s: its opcode would be told to end", id, s)}
	default:
		return Forecast{false, fmt.Sprintf("Job %d is %s: its present opcode would complete, the rest would be cancelled", id, s)}
	}
}

// ForecastPriority says what a change of the priority would do.
func ForecastPriority(id ID, s Status, priority int) Forecast {
	if s.Final() {
		return notInQueue(id)
	}
	return Forecast{true, fmt.Sprintf("Priorities of pending opcodes for job %d would be changed to %d", id, priority)}
}

// ForecastArchive says whether a job would move into the archive.
func ForecastArchive(id ID, s Status, archived bool) Forecast {
	switch {
	case archived:
		return Forecast{false, fmt.Sprintf("Job %d is in the archive already", id)}
	case !s.Final():
		return Forecast{false, fmt.Sprintf("Job %d is %s; only jobs that have ended can be archived", id, s)}
	}
	return Forecast{true, fmt.Sprintf("Job %d would be archived", id)}
}

func notInQueue(id ID) Forecast { return Forecast{false, fmt.Sprintf("Job %d not found in queue", id)} }
