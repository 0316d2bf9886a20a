package course

// Task is a task of a deployment on a node, as it is now.
type Task struct {
	Deployment  int64  `json:"deployment"`
	Environment string `json:"environment"`
	Step        int32  `json:"step"`
	Task        string `json:"task"`
	Node        string `json:"node"`
	Type        string `json:"type"`
	State       State  `json:"state"`
	Why         string `json:"why"`
	Error       string `json:"error,omitempty"`
	// Output is what a task that failed printed last, line by line.
	Output []string `json:"output,omitempty"`
	// Blocks is how many tasks cannot run for this one did not succeed; only a Progress tells.
	Blocks int   `json:"blocks,omitempty"`
	Job    int64 `json:"job,omitempty"`
	// Held is the filter rule that holds the job, by its UUID; HeldWhy says what rule that is.
	Held    string `json:"held,omitempty"`
	HeldWhy string `json:"held_why,omitempty"`
	// Wait is what keeps the job from beginning that others have; nil if nothing does.
	Wait *Wait `json:"waits_for,omitempty"`
	// Running: the job has begun.
	Running bool  `json:"running,omitempty"`
	Begun   int64 `json:"begun,omitempty"`
	Ended   int64 `json:"ended,omitempty"`
}

// Wait is a lock that a job waits for.
type Wait struct {
	Lock string `json:"lock"`
	// Job is one that has the lock, What it does, and Since when it runs, in nanoseconds since the epoch; 0 where the lock is free, and others
	// are before.
	Job   int64  `json:"job,omitempty"`
	What  string `json:"what,omitempty"`
	Since int64  `json:"since,omitempty"`
}

// Task tells of a step of a deployment, with what is known of it beside the plan.
func (c *Course) Task(d *Deployment, step int32, k Known) Task {
	s := &c.Steps[step]
	t := Task{Deployment: d.ID, Environment: d.Environment, Step: step, Task: s.Task, Node: s.Node, Type: s.Type, State: Waiting, Why: s.Why}
	switch x := k.Record; {
	case !s.Run:
		t.State = Skipped
	case x != nil && (x.Counts(d) || !d.Status.Active()):
		t.State, t.Error, t.Output, t.Job, t.Begun, t.Ended = x.State, x.Error, x.Output, x.Job, x.Begun, x.Ended
	case k.State != "":
		t.State, t.Job = k.State, k.Job
	}
	return t
}

// Tasks tells of all steps of a deployment, in the order of the plan.
func (c *Course) Tasks(d *Deployment, known func(step int32) Known) []Task {
	out := make([]Task, len(c.Steps))
	for i := range c.Steps {
		out[i] = c.Task(d, int32(i), known(int32(i)))
	}
	if !d.Status.Active() && d.Status != Planned {
		c.MarkBlocked(out)
	}
	return out
}
