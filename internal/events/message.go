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
	"crypto/sha256"
	"encoding/hex"
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
	// opcode in the job and status, joined by colons. It has at most MaxText bytes.
	ID string
	// Key is the routing key, of at most MaxText bytes.
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
	// LeftOut are the keys above whose values made the message too large, and are not in it.
	LeftOut []string `json:"left_out,omitempty"`
}

// What a message may have, in bytes: a broker that is given more refuses it however often it comes, and all behind it would wait.
const (
	// MaxText is what AMQP allows an id and a routing key.
	MaxText = 255
	// maxBody is half of what RabbitMQ takes unless it is told otherwise.
	maxBody = 8 << 20
)

// spared is what a message goes without that is too large, one after the other until it is not.
var spared = []struct {
	key string
	out func(*Event)
}{
	{"result", func(e *Event) { e.Result = nil }},
	{"job_fields", func(e *Event) { e.Fields = map[string]any{} }},
	{"logmsg", func(e *Event) { e.Log = nil }},
	{"tags", func(e *Event) { e.Tags = []string{} }},
	{"instance_hvparams", func(e *Event) { e.HVParams = nil }},
	{"instance_nics", func(e *Event) { e.NICs = nil }},
	{"instance_disks", func(e *Event) { e.Disks = nil }},
	{"instance", func(e *Event) { e.Instance = "" }},
	{"network", func(e *Event) { e.Network = "" }},
}

// text is the body of a message, without what makes it too large, and without a result that is no JSON, which no store would have taken.
func (e *Event) text() ([]byte, error) {
	body, err := json.Marshal(e)
	for _, part := range spared {
		if err == nil && len(body) <= maxBody {
			break
		}
		part.out(e)
		e.LeftOut = append(e.LeftOut, part.key)
		body, err = json.Marshal(e)
	}
	return body, err
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
	body, err := e.text()
	if err != nil {
		return Message{}, false
	}
	return Message{ID: idOf(cluster, j.ID, index, op.Status), Key: key, Body: body}, true
}

// idOf is the id of a message. A cluster whose name has no room in it stands there by the sum of that name.
func idOf(cluster string, id job.ID, index int, status job.Status) string {
	rest := ":" + strings.Join([]string{id.String(), strconv.Itoa(index), string(status)}, ":")
	if len(cluster)+len(rest) > MaxText {
		sum := sha256.Sum256([]byte(cluster))
		cluster = hex.EncodeToString(sum[:])
	}
	return cluster + rest
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
// without the prefix of a name, and so has what is about one whose prefix has no room in it.
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
		return keyOf(e.Network, "event.network")
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
	return keyOf(e.Instance, "event.op")
}

func (e *Event) repeat(op *opcode.Opcode, fields map[string]string) {
	for param, name := range fields {
		if v, ok := op.Params[param]; ok {
			e.Fields[name] = v
		}
	}
}

// keyOf is a routing key with what programs tell the objects of one installation by: the name up to the first dash.
func keyOf(name, kind string) string {
	prefix, _, _ := strings.Cut(name, "-")
	key := "ganeti." + prefix + "." + kind
	if len(key) > MaxText {
		return "ganeti." + kind
	}
	return key
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
