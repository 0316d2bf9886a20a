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
	Job         int64  `json:"job,omitempty"`
	// Held is the filter rule that holds the job, by its UUID; HeldWhy says what rule that is.
	Held    string `json:"held,omitempty"`
	HeldWhy string `json:"held_why,omitempty"`
	// Running: the job has begun.
	Running bool  `json:"running,omitempty"`
	Begun   int64 `json:"begun,omitempty"`
	Ended   int64 `json:"ended,omitempty"`
}
