package items

import (
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/query"
)

// RecordedSource is the state in which the recordings of the control socket
// were made.
func RecordedSource(t testing.TB) *query.Source {
	t.Helper()
	return recordedSource(t)
}

// NewField reports whether the reference lacks a field.
func NewField(what, name string) bool { return slices.Contains(newFields[what], name) }

// ListedJobs are the jobs of a recorded job list, of which each has id and
// status. What a list does not show of jobs is taken from the recorded answers,
// and of those that had none, opcodes are made from their summaries.
func ListedJobs(t testing.TB, list []ListedJob) []*job.Job {
	t.Helper()
	known := map[job.ID]*job.Job{}
	for _, j := range recordedJobs(t) {
		known[j.ID] = j
	}
	var out []*job.Job
	for _, l := range list {
		j := known[l.ID]
		if j == nil {
			j = &job.Job{ID: l.ID, Received: l.Received, Ended: l.Ended}
			for summary := range strings.SplitSeq(l.Summary, ",") {
				if summary != "" {
					j.Ops = append(j.Ops, job.Op{Input: summarized(summary)})
				}
			}
		}
		if string(j.Status()) != l.Status {
			for i := range j.Ops {
				j.Ops[i].Status = job.Status(l.Status)
			}
		}
		j.Archived = l.Archived
		out = append(out, j)
	}
	return out
}

// ListedJob is what a recorded list shows of a job.
type ListedJob struct {
	ID              job.ID
	Status, Summary string
	Received, Ended job.Time
	Archived        bool
}

// summarized returns an opcode with such a summary.
func summarized(summary string) *opcode.Opcode {
	name, value, _ := strings.Cut(strings.TrimSuffix(summary, ")"), "(")
	o := &opcode.Opcode{ID: "OP_" + name, Params: map[string]any{}}
	switch {
	case name == "TEST_DELAY":
		o.Params["duration"] = map[string]float64{"1.0e-3": 0.001, "-1.0": -1, "0.0": 0, "5.0": 5}[value]
	case strings.HasPrefix(name, "NODE_"):
		o.Params["node_name"] = value
	case value != "":
		o.Params["instance_name"] = value
	}
	return o
}

// WithJobs puts jobs in the place of all others.
func WithJobs(src *query.Source, jobs []*job.Job) {
	live := slices.DeleteFunc(slices.Clone(jobs), func(j *job.Job) bool { return j.Archived })
	src.Jobs = func(archived bool) iter.Seq2[*job.Job, error] {
		if archived {
			return readable(slices.Values(jobs))
		}
		return readable(slices.Values(live))
	}
	src.Job = func(id job.ID) (*job.Job, error) {
		if i := slices.IndexFunc(jobs, func(j *job.Job) bool { return j.ID == id }); i >= 0 {
			return jobs[i], nil
		}
		return nil, nil
	}
}

// WithRulesOf leaves only those rules that a recorded list shows.
func WithRulesOf(src *query.Source, list string) {
	rules := slices.DeleteFunc(src.Rules(), func(r *jobfilter.Rule) bool { return !strings.Contains(list, r.UUID) })
	src.Rules = func() []*jobfilter.Rule { return rules }
}

// WithRecordedLocks adds the locks of the recorded moment in which one job held
// the lock of a node and two waited for it.
func WithRecordedLocks(t testing.TB, src *query.Source) {
	t.Helper()
	var out []lock.State
	for _, m := range columnsOf(t, "Query_lock_held.json") {
		level, item, _ := strings.Cut(m["name"].(string), "/")
		s := lock.State{Name: lock.Name{Level: lockLevels[level], Item: item}, Mode: lockMode(m["mode"])}
		var holders []lock.Owner
		for _, o := range m["owner"].([]any) {
			holders = append(holders, lockOwner(t, o))
		}
		s.Holders = lock.OwnersOf(holders...)
		for _, p := range m["pending"].([]any) {
			pair := p.([]any)
			s.Pending = append(s.Pending, lock.Pending{Mode: lockMode(pair[0]), Owner: lockOwner(t, pair[1].([]any)[0])})
		}
		out = append(out, s)
	}
	src.Locks = func() []lock.State { return out }
}

var lockLevels = map[string]lock.Level{"cluster": lock.Cluster, "node": lock.Node}

func lockMode(v any) lock.Mode {
	if v == "exclusive" {
		return lock.Exclusive
	}
	return lock.Shared
}

func lockOwner(t testing.TB, v any) lock.Owner {
	t.Helper()
	id, err := job.ParseID(v.(string))
	if err != nil {
		t.Fatal(err)
	}
	return lock.Owner(id)
}
