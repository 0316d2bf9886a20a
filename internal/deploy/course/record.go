package course

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/deploy/environment"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/reason"
)

// Digest names a stored part of a state by its contents, for who has a key: nobody else can try whether a text is the one.
type Digest string

// Environment is what is stored of an environment. Its state is in parts, which many environments and deployments share.
type Environment struct {
	Name   string `json:"name"`
	Status string `json:"status,omitempty"`
	// Graphs are the names of stored graphs; later ones override and extend earlier ones. Those of a type, which a
	// deployment has to ask for, are TYPE=NAME.
	Graphs   []string        `json:"graphs"`
	Settings json.RawMessage `json:"settings,omitempty"`
	// Secrets say which values are secret, besides the usual ones.
	Secrets []string `json:"secrets,omitempty"`
	Common  Digest   `json:"common"`
	Nodes   []Node   `json:"nodes"`
	// Generation counts the changes from 1.
	Generation int64 `json:"generation"`
	// Created and Modified are in nanoseconds since the epoch; By and Trail tell who changed it last, and why.
	Created  int64        `json:"created"`
	Modified int64        `json:"modified"`
	By       string       `json:"by"`
	Trail    reason.Trail `json:"trail,omitempty"`
}

// Shown returns what is told of the environment: without values of its state, which may be secret.
func (e *Environment) Shown() *Environment {
	x := *e
	x.Settings = nil
	return &x
}

// Node is a node of an environment.
type Node struct {
	UID   string   `json:"uid"`
	Roles []string `json:"roles"`
	// Host is the node of the cluster whose agent carries tasks out.
	Host string `json:"host,omitempty"`
	Part Digest `json:"part"`
	// Machine is what the host was when a deployment was planned; nil in environments, and where earlier versions planned it.
	Machine *Identity `json:"machine,omitempty"`
}

// Node returns the node with a UID, nil if there is none.
func (e *Environment) Node(uid string) *Node {
	for i := range e.Nodes {
		if e.Nodes[i].UID == uid {
			return &e.Nodes[i]
		}
	}
	return nil
}

// GraphType divides what an environment calls one of its graphs into the type, which is empty for the usual one, and the name.
func GraphType(graph string) (kind, name string) {
	if kind, name, typed := strings.Cut(graph, "="); typed {
		return kind, name
	}
	return "", graph
}

// GraphsOf returns the names of the graphs of a type; "default" is the usual one, as is no type.
func (e *Environment) GraphsOf(kind string) []string {
	if kind == usualType {
		kind = ""
	}
	var out []string
	for _, g := range e.Graphs {
		of, name := GraphType(g)
		if of == usualType {
			of = ""
		}
		if of == kind {
			out = append(out, name)
		}
	}
	return out
}

// usualType is the name of the type of graphs that need none.
const usualType = "default"

// Graph is a stored graph: files of tasks, in the order in which they override one another.
type Graph struct {
	Name        string       `json:"name"`
	Files       []File       `json:"files"`
	Tasks       int          `json:"tasks"`
	Expressions int          `json:"expressions"`
	Generation  int64        `json:"generation"`
	Modified    int64        `json:"modified"`
	By          string       `json:"by"`
	Trail       reason.Trail `json:"trail,omitempty"`
}

// Brief returns the graph without its files.
func (g *Graph) Brief() *Graph {
	x := *g
	x.Files = nil
	return &x
}

// File is a file of tasks.
type File struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// Status is the status of a deployment.
type Status string

// The statuses of deployments.
const (
	Planned  Status = "planned"  // it may be run as long as what it was computed from stands
	Running  Status = "running"  //
	Stopping Status = "stopping" // somebody asked for a stop; what runs comes to its end
	Halted   Status = "stopped"  // it may be resumed
	Done     Status = "ready"    // all went well
	Broken   Status = "error"    // some task did not succeed; those may be retried
)

// Active tells whether tasks may be running.
func (s Status) Active() bool { return s == Running || s == Stopping }

// Mode says how tasks are carried out.
type Mode string

// The modes. Only a deployment in earnest counts as a success of its tasks.
const (
	Earnest Mode = "run"
	Noop    Mode = "noop"    // tasks run in the way of their type that changes nothing
	DryRun  Mode = "dry-run" // nodes only report what they would do
)

// Basis is what a plan was computed from. A plan is refused when it is no longer what there is.
type Basis struct {
	Environment int64   `json:"environment"` // generation
	Graphs      []int64 `json:"graphs"`      // generations
	// Functions are the files of the operator's own functions, with their versions.
	Functions []string `json:"functions,omitempty"`
	// Latest is the latest deployment in earnest of the environment, LatestEnded when it ended: each of its successes changes
	// what a plan says.
	Latest      int64 `json:"latest"`
	LatestEnded int64 `json:"latest_ended,omitempty"`
}

// Equal tells whether two plans would be computed from the same.
func (b Basis) Equal(other Basis) bool {
	return b.Environment == other.Environment && b.Latest == other.Latest && b.LatestEnded == other.LatestEnded &&
		slices.Equal(b.Graphs, other.Graphs) && slices.Equal(b.Functions, other.Functions)
}

// Deployment is a plan and what became of it.
type Deployment struct {
	ID          int64    `json:"id"`
	Environment string   `json:"environment"`
	Graphs      []string `json:"graphs"`
	Basis       Basis    `json:"basis"`
	Mode        Mode     `json:"mode"`
	// Force: conditions were evaluated as in a first deployment. Only are the tasks that were selected; empty for all.
	// Drift: machines were asked, and what differs on them runs.
	Force bool     `json:"force,omitempty"`
	Drift bool     `json:"drift,omitempty"`
	Only  []string `json:"only,omitempty"`
	// Events and Refreshed are what made tasks run besides their conditions, or in place of them.
	Events    []string `json:"events,omitempty"`
	Refreshed []string `json:"refreshed,omitempty"`

	Status Status `json:"status"`
	Why    string `json:"why,omitempty"`
	// Attempt counts from 1 how often it was begun, resumed or retried; failures before the attempt Retried count no
	// more.
	Attempt int `json:"attempt"`
	Retried int `json:"retried"`
	// Common, Settings and Nodes are the state to be reached.
	Common   Digest          `json:"common"`
	Settings json.RawMessage `json:"settings,omitempty"`
	Secrets  []string        `json:"secrets,omitempty"`
	Nodes    []Node          `json:"nodes"`
	// Absent are the nodes of the environment that take no part, which expressions see as well; Some tells that there are any, also in brief.
	// EnvironmentStatus is how far the environment had come before. Deployments that earlier versions planned tell of none of these: a task
	// whose condition compares them with what was then is done again.
	Absent            []Node             `json:"absent,omitempty"`
	Some              bool               `json:"some,omitempty"`
	EnvironmentStatus environment.Status `json:"environment_status,omitempty"`
	// Steps is the number of tasks on nodes, Runs of those that the plan lets run, Chunks of the objects that hold them.
	Steps  int           `json:"steps"`
	Runs   int           `json:"runs"`
	Chunks int           `json:"chunks"`
	Counts map[State]int `json:"counts,omitempty"` // at the end
	// Cancelled are the steps whose jobs were cancelled in the attempt that is over: of them no record tells. It is not in the picture.
	Cancelled []int32 `json:"cancelled,omitempty"`
	// Created, Begun and Ended are in nanoseconds since the epoch, 0 for not yet. By and Trail tell who wants it, and why.
	Created int64        `json:"created"`
	Begun   int64        `json:"begun,omitempty"`
	Ended   int64        `json:"ended,omitempty"`
	By      string       `json:"by"`
	Trail   reason.Trail `json:"trail,omitempty"`
}

// Key is the number of the deployment as the store knows it.
func (d *Deployment) Key() string { return strconv.FormatInt(d.ID, 10) }

// Node returns the node with a UID, nil if there is none.
func (d *Deployment) Node(uid string) *Node {
	for i := range d.Nodes {
		if d.Nodes[i].UID == uid {
			return &d.Nodes[i]
		}
	}
	return nil
}

// Shown returns what is told of the deployment: without values of its state, which may be secret.
func (d *Deployment) Shown() *Deployment {
	x := *d
	x.Settings, x.Absent, x.Cancelled = nil, nil, nil
	return &x
}

// Brief returns what lists show of the deployment, and what is decided by: all but the state to be reached, which never changes, and which
// tasks were cancelled.
func (d *Deployment) Brief() *Deployment { return d.With(&Deployment{}) }

// With returns the deployment with what Brief leaves out, of another value of it, which is not brief.
func (d *Deployment) With(whole *Deployment) *Deployment {
	x := *d
	x.Settings, x.Secrets, x.Nodes, x.Absent, x.Cancelled = whole.Settings, whole.Secrets, whole.Nodes, whole.Absent, whole.Cancelled
	return &x
}

// Course is the plan of a deployment as it is carried out.
type Course struct {
	// Hidden are the secrets that the plan was computed from, in the forms in which they are looked for in texts.
	Hidden []string
	Steps  []Step
	// After tells for each step, and then for each point in time, which of them it comes after.
	After [][]int32
	// Turns are those of After that a step needs not to succeed: it has its turn when they have ended, however that was. Nil where
	// there are none, as in plans that earlier versions stored, which stop behind a failure.
	Turns  [][]int32
	Groups []Group
}

// Step is a task on a node.
type Step struct {
	Task string `json:"task"`
	Node string `json:"node"`
	Type string `json:"type"`
	Run  bool   `json:"run"`
	// Tolerated: a failure is none of the node.
	Tolerated  bool            `json:"tolerated,omitempty"`
	Parameters json.RawMessage `json:"parameters,omitempty"`
	Why        string          `json:"why"`
}

// Group is a group of nodes of which some may fail.
type Group struct {
	Name      string   `json:"name"`
	Nodes     []string `json:"nodes"`
	Tolerance int      `json:"tolerance"`
}

// chunk is a stored piece of a course.
type chunk struct {
	Hidden []string  `json:"hidden,omitempty"`
	Steps  []Step    `json:"steps,omitempty"`
	After  [][]int32 `json:"after,omitempty"`
	Turns  []turn    `json:"turns,omitempty"` // earlier versions pass them over, and have all of After succeed
	Groups []Group   `json:"groups,omitempty"`
}

// turn tells which steps one has to let end before it.
type turn struct {
	Step   int32   `json:"step"`
	Behind []int32 `json:"behind"`
}

// needs tells for each step and point which of them have to succeed before it: all that it comes after but those whose turn is before.
func (c *Course) needs() [][]int32 {
	if c.Turns == nil {
		return c.After
	}
	out := slices.Clone(c.After)
	for i, behind := range c.Turns {
		if len(behind) > 0 {
			out[i] = slices.DeleteFunc(slices.Clone(out[i]), func(a int32) bool { return slices.Contains(behind, a) })
		}
	}
	return out
}

// takesTurn has a step wait for the end of another one, unless it waits for its success anyhow.
func (c *Course) takesTurn(step, behind int32) {
	if slices.Contains(c.After[step], behind) {
		return
	}
	if c.Turns == nil {
		c.Turns = make([][]int32, len(c.After))
	}
	c.After[step] = append(c.After[step], behind)
	c.Turns[step] = append(c.Turns[step], behind)
}

// chunkSteps is how many steps a chunk holds.
const chunkSteps = 500

// Encode returns the course in pieces that a store takes.
func (c *Course) Encode() ([][]byte, error) {
	var out [][]byte
	for from := 0; from < len(c.After) || from == 0; from += chunkSteps {
		piece := chunk{After: c.After[from:min(from+chunkSteps, len(c.After))]}
		if from < len(c.Steps) {
			piece.Steps = c.Steps[from:min(from+chunkSteps, len(c.Steps))]
		}
		if from == 0 {
			piece.Groups, piece.Hidden = c.Groups, c.Hidden
		}
		if from < len(c.Turns) {
			for i, behind := range c.Turns[from:min(from+chunkSteps, len(c.Turns))] {
				if len(behind) > 0 {
					piece.Turns = append(piece.Turns, turn{int32(from + i), behind})
				}
			}
		}
		text, err := json.Marshal(piece)
		if err != nil {
			return nil, fault.New(fault.Internal, "a plan cannot be encoded: %w", err)
		}
		out = append(out, text)
	}
	return out, nil
}

// Add takes up the next piece of an encoded course.
func (c *Course) Add(text []byte) error {
	var piece chunk
	if err := json.Unmarshal(text, &piece); err != nil {
		return fault.New(fault.Internal, "a stored plan cannot be read: %w", err)
	}
	c.Steps = append(c.Steps, piece.Steps...)
	c.After = append(c.After, piece.After...)
	for _, t := range piece.Turns {
		if int(t.Step) >= len(c.After) {
			return fault.New(fault.Internal, "a stored plan cannot be read: it has no step %d", t.Step)
		}
		for len(c.Turns) < len(c.After) {
			c.Turns = append(c.Turns, nil)
		}
		c.Turns[t.Step] = t.Behind
	}
	c.Groups = append(c.Groups, piece.Groups...)
	c.Hidden = append(c.Hidden, piece.Hidden...)
	return nil
}

// Record is what became of a task on a node that ran.
type Record struct {
	Deployment int64  `json:"deployment"`
	Step       int32  `json:"step"`
	Task       string `json:"task"`
	Node       string `json:"node"`
	State      State  `json:"state"` // Ready, Failed or Tolerated
	Attempt    int    `json:"attempt"`
	Job        int64  `json:"job"`
	Begun      int64  `json:"begun"` // nanoseconds since the epoch
	Ended      int64  `json:"ended"`
	// Error says what went wrong, and Output what the task printed last, line by line, as it may be told; of a success nothing is kept.
	Error  string   `json:"error,omitempty"`
	Output []string `json:"output,omitempty"`
}

// Key names the record in the store.
func (r *Record) Key() string { return RecordKey(r.Deployment, r.Step) }

// RecordKey names the record of a step of a deployment.
func RecordKey(deployment int64, step int32) string {
	return RecordPrefix(deployment) + strconv.Itoa(int(step))
}

// RecordPrefix is what the names of the records of a deployment begin with.
func RecordPrefix(deployment int64) string { return strconv.FormatInt(deployment, 10) + "/" }

// StepOf returns the step that a record is of, by the record's name; ok is false for what is none.
func StepOf(key string) (deployment int64, step int32, ok bool) {
	first, second, ok := strings.Cut(key, "/")
	deployment, err := strconv.ParseInt(first, 10, 64)
	n, wrong := strconv.ParseInt(second, 10, 32)
	return deployment, int32(n), ok && err == nil && wrong == nil && n >= 0
}

// Counts tells whether the record still counts in an attempt of its deployment: failures do until they are retried.
func (r *Record) Counts(d *Deployment) bool { return r.State.Passed() || r.Attempt >= d.Retried }

// Success tells which deployment a task last succeeded in on a node.
type Success struct {
	Environment string `json:"environment"`
	Task        string `json:"task"`
	Node        string `json:"node"`
	Deployment  int64  `json:"deployment"`
	// Machine is the one on which it did; empty where nobody knows, as of successes that earlier versions kept.
	Machine Identity `json:"machine,omitzero"`
}

// Key names the success in the store.
func (s Success) Key() string { return SuccessOn(s.Environment, s.Node) + s.Task }

// SuccessOn is what the names of the successes on a node of an environment begin with.
func SuccessOn(environment, node string) string { return SuccessPrefix(environment) + node + "/" }

// Identity is what carries tasks of a node out, by what a machine that takes its place does not have: the UUID under which the cluster knows it, and the
// key with which its agent has joined, if it did and that is known.
type Identity struct {
	UUID string `json:"uuid,omitempty"`
	Key  string `json:"key,omitempty"`
}

// Same tells whether they may be those of one machine: nothing that is known of both differs.
func (m Identity) Same(other Identity) bool {
	differ := func(a, b string) bool { return a != "" && b != "" && a != b }
	return !differ(m.UUID, other.UUID) && !differ(m.Key, other.Key)
}

// SuccessPrefix is what the names of the successes in an environment begin with.
func SuccessPrefix(environment string) string { return environment + "/" }
