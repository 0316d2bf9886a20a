package querier

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

// JobChange is what a client that waits for a job gets to see.
type JobChange struct {
	// Values is the JSON list of the values of the fields.
	Values json.RawMessage
	// Log holds the entries that the client does not have.
	Log []job.LogEntry
}

// JobChange returns as soon as the values of a live job's fields differ from
// the known ones (JSON, in any spelling), there are log entries after the
// serial, or the job has ended, and else when ctx ends. With an unknown field
// all values are null, which is a change for every client. Errors:
// fault.NotFound for a job that is unknown or archived.
func (q *Querier) JobChange(ctx context.Context, id job.ID, fields []string, known json.RawMessage, serial int64) (JobChange, error) {
	before := decoded(known)
	j, err := q.Queue.Wait(ctx, id, func(j *job.Job) bool {
		return j.Final() || j.LastSerial() > serial || !reflect.DeepEqual(decoded(q.values(j, fields)), before)
	})
	if err != nil {
		return JobChange{}, err
	}
	return JobChange{Values: q.values(j, fields), Log: j.LogAfter(serial)}, nil
}

// values returns the values of a job's fields as a JSON list.
func (q *Querier) values(j *job.Job, fields []string) json.RawMessage {
	src := &query.Source{Inventory: q.Inventory.Snapshot(), Job: func(job.ID) *job.Job { return j }}
	only := &qlang.Compare{Op: qlang.Eq, Field: "id", Value: qlang.IntValue(int64(j.ID))}
	result, err := query.Run(src, "job", fields, only, query.Options{})
	if err != nil || result.Len() != 1 {
		return nil
	}
	for _, def := range result.Fields {
		if def.Kind == query.KindUnknown {
			return nulls(len(fields))
		}
	}
	rows := result.AppendValues(nil)
	return rows[1 : len(rows)-1]
}

func nulls(n int) json.RawMessage {
	return append(append([]byte{'['}, bytes.TrimSuffix(bytes.Repeat([]byte("null,"), n), []byte(","))...), ']')
}

// decoded returns JSON as values that compare equal when they mean the same.
func decoded(text json.RawMessage) any {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return nil
	}
	return v
}
