package rapi

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
)

// jobWait is the longest time that a request waits for a job to change.
const jobWait = 10 * time.Second

// singleJob answers 404 for a job that is not there, as the documentation has
// it; queries know such a job by its id alone.
func singleJob(r *request) (any, error) {
	id, err := r.jobID()
	if err != nil {
		return nil, err
	}
	fields := append(append([]string{}, jobItem.bulk...), jobItem.single...)
	filter := &qlang.Compare{Op: qlang.Eq, Field: "id", Value: qlang.IntValue(int64(id))}
	result, err := r.Querier.Query(r.Context(), query.Request{What: "job", Fields: fields, Filter: filter})
	if err != nil {
		return nil, err
	}
	row := make([]query.Cell, len(fields))
	if result.Len() == 1 {
		result.Row(0, row)
	}
	if row[2].Status != query.Normal || row[2].Value == nil {
		return nil, fault.New(fault.NotFound, "there is no job %d", id)
	}
	return json.RawMessage(result.AppendObject(nil, 0)), nil
}

// cancelJob answers with whether the job could be cancelled, and why. With
// dry-run=1 it tells what would come of it.
func cancelJob(r *request) (any, error) {
	id, err := r.jobID()
	if err != nil {
		return nil, err
	}
	dry, err := r.flag("dry-run")
	if err != nil {
		return nil, err
	}
	if dry {
		j, err := r.Queue.Job(r.Context(), id)
		if fault.Is(err, fault.NotFound) {
			return [2]any{false, fmt.Sprintf("Job %d not found in queue", id)}, nil
		}
		if err != nil {
			return nil, err
		}
		f := job.ForecastCancel(id, j.Status(), false)
		return [2]any{f.OK, f.Message}, nil
	}
	answer, err := r.Queue.Cancel(r.Context(), id, false, r.who())
	return [2]any{answer.OK, answer.Message}, err
}

// explainJob tells why a job is where it is.
func explainJob(r *request) (any, error) {
	if err := r.checkParameters(); err != nil {
		return nil, err
	}
	id, err := r.jobID()
	if err != nil {
		return nil, err
	}
	return r.Queue.Explain(r.Context(), id)
}

// waitForJob waits until a job changes. What to wait for is in the body,
// although the method is GET.
func waitForJob(r *request) (any, error) {
	id, err := r.jobID()
	if err != nil {
		return nil, err
	}
	body, err := r.requiredObject()
	if err != nil {
		return nil, err
	}
	list, ok := body["fields"].([]any)
	switch _, given := body["fields"]; {
	case !given:
		return nil, badRequest("Required parameter 'fields' is missing")
	case !ok:
		return nil, badRequest("The 'fields' parameter should be a list")
	}
	fields, err := textList("fields", list)
	if err != nil {
		return nil, err
	}
	previous := body["previous_job_info"]
	if _, ok := previous.([]any); !ok && previous != nil {
		return nil, badRequest("The 'previous_job_info' parameter should be a list")
	}
	serial, ok := body["previous_log_serial"].(int64)
	if !ok && body["previous_log_serial"] != nil {
		return nil, badRequest("The 'previous_log_serial' parameter should be a number")
	}
	values := items.JobValues(fields)
	ctx, cancel := context.WithTimeout(r.Context(), jobWait)
	defer cancel()
	j, err := r.Queue.Wait(ctx, id, func(j *job.Job) bool {
		return j.Final() || j.LastSerial() > serial || !sameJSON(previous, values(nil, j))
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"job_info": json.RawMessage(values(nil, j)), "log_entries": logEntries(j.LogAfter(serial))}, nil
}

// sameJSON compares a decoded value with JSON text.
func sameJSON(v any, text []byte) bool {
	decoded, err := opcode.ParseValue(text)
	return err == nil && reflect.DeepEqual(v, decoded)
}

// logEntries are lists [serial, time, type, payload].
func logEntries(entries []job.LogEntry) [][4]any {
	out := make([][4]any, len(entries))
	for i, e := range entries {
		out[i] = [4]any{e.Serial, e.Time.Pair(), e.Type, e.Payload}
	}
	return out
}
