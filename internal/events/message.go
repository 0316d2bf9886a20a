// Package events publishes how opcodes ended, for other programs and other
// controllers, in the shape and under the routing keys of Synnefo's event daemon,
// so that its consumers understand them.
//
// Invariants:
//   - Every opcode that ended is published at least once, in the order in which
//     jobs became durable, cancelled ones too. A message that is published again
//     has the same id.
//   - Only what is durable is published, and how far it got is kept in the store:
//     with the broker away messages wait there, however long.
//   - Events speed things up. Nothing depends on one arriving.
package events

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
)

// The types of messages.
const (
	typeOp      = "ganeti-op-status"
	typeNetwork = "ganeti-network-status"
	typeCluster = "ganeti-cluster-status"
)

// Message is one event on its way.
type Message struct {
	// ID is the same whenever the event is published: cluster, job, place of the
	// opcode in the job and status, joined by colons.
	ID string
	// Key is the routing key.
	Key string
	// Body is JSON.
	Body []byte
}

// Event is what a message says. The keys are those of Synnefo's event daemon.
type Event struct {
	Type string `json:"type"`
	// Instance and Network name what it is about; at most one of them is there.
	Instance  string     `json:"instance,omitempty"`
	Network   string     `json:"network,omitempty"`
	Operation string     `json:"operation"`
	Status    job.Status `json:"status"`
	Job       job.ID     `json:"jobId"`
	// Time is when the opcode ended, as seconds and microseconds.
	Time    [2]int64 `json:"event_time"`
	Cluster string   `json:"cluster"`
	// Tags are those that the opcode was about, none for most.
	Tags   []string       `json:"tags"`
	Fields map[string]any `json:"job_fields"`
	// NICs, Disks and HVParams are those of an instance that was made or started, as
	// it is when the message is made.
	NICs     []NIC          `json:"instance_nics,omitzero"`
	Disks    []Disk         `json:"instance_disks,omitzero"`
	HVParams map[string]any `json:"instance_hvparams,omitzero"`
	// Log is the last message that the opcode left; nil for none.
	Log    *string         `json:"logmsg"`
	Result json.RawMessage `json:"result"`
}

// tellsMachine names the instance that a message about an opcode tells more of:
// one that was made or started.
func tellsMachine(op *job.Op) (instance string, tells bool) {
	return op.Input.Str("instance_name"), op.Status == job.Success && (op.Input.ID == "OP_INSTANCE_CREATE" || op.Input.ID == "OP_INSTANCE_STARTUP")
}

// Of makes the message about an opcode of a job that has ended; false while it
// has not. The instance that it tells of may be nil.
func Of(cluster string, j *job.Job, index int, machine *Machine) (Message, bool) {
	op := &j.Ops[index]
	if !op.Status.Final() {
		return Message{}, false
	}
	end := op.End
	if end == 0 {
		end = j.Ended
	}
	e := Event{Operation: op.Input.ID, Status: op.Status, Job: j.ID, Time: [2]int64{int64(end) / 1e6, int64(end) % 1e6}, Cluster: cluster,
		Tags: op.Input.Strings("tags"), Fields: map[string]any{}, Log: lastWords(op), Result: op.Result}
	if e.Tags == nil {
		e.Tags = []string{}
	}
	if machine != nil {
		e.NICs, e.Disks, e.HVParams = machine.NICs, machine.Disks, machine.HVParams
	}
	key := e.about(op.Input.ForDisplay())
	body, err := json.Marshal(e)
	if err != nil { // a result that is no JSON, which no store would have taken
		e.Result = nil
		if body, err = json.Marshal(e); err != nil {
			return Message{}, false
		}
	}
	id := strings.Join([]string{cluster, j.ID.String(), strconv.Itoa(index), string(op.Status)}, ":")
	return Message{ID: id, Key: key, Body: body}, true
}

// lastWords is the last message of an opcode's log.
func lastWords(op *job.Op) *string {
	if len(op.Log) == 0 {
		return nil
	}
	payload := op.Log[len(op.Log)-1].Payload
	var text string
	if json.Unmarshal(payload, &text) != nil {
		text = string(payload)
	}
	return &text
}

// instanceFields and networkFields are the parameters that messages repeat, by
// the name that they have there.
var (
	instanceFields = map[string]string{"nics": "nics", "disks": "disks", "beparams": "beparams", "hvparams": "hvparams"}
	networkFields  = map[string]string{"network": "subnet", "gateway": "gateway", "add_reserved_ips": "add_reserved_ips",
		"remove_reserved_ips": "remove_reserved_ips", "group_name": "group_name"}
)

// about fills in what the opcode is about, and returns the routing key. What is
// about neither an instance, a network nor the cluster as a whole has a key
// without the prefix of a name.
func (e *Event) about(op *opcode.Opcode) (key string) {
	_, rest, _ := strings.Cut(op.ID, "_")
	noun, _, _ := strings.Cut(rest, "_")
	e.Type = typeOp
	switch {
	case noun == "CLUSTER":
		e.Type = typeCluster
		return "ganeti.event.cluster"
	case noun == "NETWORK":
		e.Type, e.Network = typeNetwork, op.Str("network_name")
		e.repeat(op, networkFields)
		return "ganeti." + prefix(e.Network) + ".event.network"
	case noun == "TAGS" && op.Str("kind") == "instance":
		e.Instance = op.Str("name")
		e.Fields["dry_run"] = op.DryRun
	case noun == "INSTANCE":
		e.Instance = op.Str("instance_name")
		if op.ID == "OP_INSTANCE_CREATE" && e.Status == job.Error {
			e.Fields = op.Params
		} else {
			e.repeat(op, instanceFields)
		}
	}
	if e.Instance == "" {
		return "ganeti.event.op"
	}
	return "ganeti." + prefix(e.Instance) + ".event.op"
}

func (e *Event) repeat(op *opcode.Opcode, fields map[string]string) {
	for param, name := range fields {
		if v, ok := op.Params[param]; ok {
			e.Fields[name] = v
		}
	}
}

// prefix is what programs tell the objects of one installation by.
func prefix(name string) string {
	before, _, _ := strings.Cut(name, "-")
	return before
}

// Parse reads a message. fault.Invalid for what is none.
func Parse(body []byte) (*Event, error) {
	e := &Event{}
	if err := json.Unmarshal(body, e); err != nil {
		return nil, fault.New(fault.Invalid, "the message cannot be read: %w", err)
	}
	if e.Type == "" || e.Operation == "" {
		return nil, fault.New(fault.Invalid, "the message names no type or no operation")
	}
	return e, nil
}
