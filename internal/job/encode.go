package job

import (
	"encoding/json"
	"strconv"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

// Encode returns the job as the store keeps it. The form is ours alone (clients
// see jobs through queries), so times are plain microseconds and zero values
// are left out.
func (j *Job) Encode() []byte {
	b := make([]byte, 0, 256+384*len(j.Ops))
	b = append(b, `{"id":`...)
	b = strconv.AppendInt(b, int64(j.ID), 10)
	b = appendTime(b, "received", j.Received)
	b = appendTime(b, "started", j.Started)
	b = appendTime(b, "ended", j.Ended)
	if j.Key != "" {
		b = append(append(b, `,"key":`...), quote(j.Key)...)
	}
	if j.CancelReason != "" {
		b = append(append(b, `,"cancel":`...), quote(j.CancelReason)...)
	}
	b = append(b, `,"ops":[`...)
	for i := range j.Ops {
		if i > 0 {
			b = append(b, ',')
		}
		b = j.Ops[i].append(b)
	}
	return append(b, "]}"...)
}

func (op *Op) append(b []byte) []byte {
	b = op.Input.ForStore().AppendJSON(append(b, `{"input":`...))
	b = append(append(append(b, `,"status":"`...), op.Status...), '"')
	b = append(b, `,"priority":`...)
	b = strconv.AppendInt(b, int64(op.Priority), 10)
	b = appendTime(b, "start", op.Start)
	b = appendTime(b, "exec", op.Exec)
	b = appendTime(b, "end", op.End)
	if op.Result != nil {
		b = append(append(b, `,"result":`...), op.Result...)
	}
	for i, e := range op.Log {
		if i == 0 {
			b = append(b, `,"log":[`...)
		} else {
			b = append(b, ',')
		}
		b = e.append(b)
	}
	if len(op.Log) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

func (e LogEntry) append(b []byte) []byte {
	b = strconv.AppendInt(append(b, '['), e.Serial, 10)
	b = strconv.AppendInt(append(b, ','), int64(e.Time), 10)
	b = append(append(b, ','), quote(e.Type)...)
	return append(append(append(b, ','), e.Payload...), ']')
}

func appendTime(b []byte, name string, t Time) []byte {
	if t == 0 {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":`...)
	return strconv.AppendInt(b, int64(t), 10)
}

// stored mirrors the form that Encode writes.
type stored struct {
	ID           ID         `json:"id"`
	Received     Time       `json:"received"`
	Started      Time       `json:"started"`
	Ended        Time       `json:"ended"`
	Key          string     `json:"key"`
	CancelReason string     `json:"cancel"`
	Ops          []storedOp `json:"ops"`
}

type storedOp struct {
	Input    json.RawMessage `json:"input"`
	Status   Status          `json:"status"`
	Priority int             `json:"priority"`
	Start    Time            `json:"start"`
	Exec     Time            `json:"exec"`
	End      Time            `json:"end"`
	Result   json.RawMessage `json:"result"`
	Log      []LogEntry      `json:"log"`
}

// UnmarshalJSON reads the form [serial, microseconds, type, payload].
func (e *LogEntry) UnmarshalJSON(data []byte) error {
	fields := []any{&e.Serial, &e.Time, &e.Type, &e.Payload}
	want := len(fields)
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	if len(fields) != want {
		return fault.New(fault.Internal, "a stored log entry has %d parts", len(fields))
	}
	return nil
}

// Decode reads what Encode wrote.
func Decode(data []byte) (*Job, error) {
	var s stored
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fault.New(fault.Internal, "a stored job cannot be read: %w", err)
	}
	j := &Job{ID: s.ID, Received: s.Received, Started: s.Started, Ended: s.Ended, Key: s.Key,
		CancelReason: s.CancelReason, Ops: make([]Op, len(s.Ops))}
	for i := range s.Ops {
		o := &s.Ops[i]
		in, err := opcode.Parse(o.Input, opcode.Options{})
		if err != nil {
			return nil, fault.New(fault.Internal, "opcode %d of the stored job %d cannot be read: %w", i, s.ID, err)
		}
		j.Ops[i] = Op{Input: in, Status: o.Status, Result: o.Result, Log: o.Log, Priority: o.Priority,
			Start: o.Start, Exec: o.Exec, End: o.End}
	}
	return j, nil
}
