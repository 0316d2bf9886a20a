package items

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/recordedcluster"
)

// recordedSource is the state in which the recordings were made: the inventory
// out of the recorded configuration, live data and jobs out of recorded answers.
func recordedSource(t testing.TB) *query.Source {
	t.Helper()
	jobs := recordedJobs(t)
	rules := recordedRules(t)
	inv := asRecorded(t, recordedcluster.Inventory(t))
	live := recordedLive(t, inv)
	return &query.Source{
		Inventory: inv,
		Jobs:      func(bool) iter.Seq2[*job.Job, error] { return readable(slices.Values(jobs)) },
		Job: func(id job.ID) (*job.Job, error) {
			if i := slices.IndexFunc(jobs, func(j *job.Job) bool { return j.ID == id }); i >= 0 {
				return jobs[i], nil
			}
			return nil, nil
		},
		Rules: func() []*jobfilter.Rule { return rules },
		Live: func(need query.Need, _ []string) map[string]query.NodeState {
			if need == query.NeedExports {
				return nil // that call failed when it was recorded
			}
			return live
		},
	}
}

// asRecorded returns the inventory as it was when the answers were recorded:
// the configuration was recorded later, after more changes were made.
func asRecorded(t testing.TB, inv *cluster.Snapshot) *cluster.Snapshot {
	t.Helper()
	for _, m := range columnsOf(t, "Query_instance_all_fields.json") {
		i := inv.Instance(m["uuid"].(string)).Clone()
		i.MTime, i.Serial = recordedcluster.Nanoseconds(m["mtime"]), m["serial_no"].(int64)
		i.OSParams, _ = m["custom_osparams"].(map[string]any)
		inv = inv.With(cluster.Put(i))
	}
	return inv
}

// columnsOf returns the rows of a recorded answer by field name.
func columnsOf(t testing.TB, name string) []map[string]any {
	t.Helper()
	var rec recording
	conformance(t, "golden/luxi/"+name, &rec)
	res := rec.Response.Result.(map[string]any)
	var out []map[string]any
	for _, row := range res["data"].([]any) {
		m := map[string]any{}
		for i, f := range res["fields"].([]any) {
			m[f.(map[string]any)["name"].(string)] = cluster.Canonical(row.([]any)[i].([]any)[1])
		}
		out = append(out, m)
	}
	return out
}

func recordedLive(t testing.TB, inv *cluster.Snapshot) map[string]query.NodeState {
	t.Helper()
	n := columnsOf(t, "Query_node_all_fields.json")[0]
	num := func(name string) int64 { return n[name].(int64) }
	state := query.NodeState{
		BootID: n["bootid"].(string),
		Hypervisor: &query.HypervisorState{
			MemoryTotal: num("mtotal"), MemoryNode: num("mnode"), MemoryFree: num("mfree"),
			CPUs: num("ctotal"), CPUNodes: num("cnodes"), CPUSockets: num("csockets"), CPUsReserved: num("cnos"),
		},
		Storage:   &query.Space{Total: num("dtotal"), Free: num("dfree")},
		Instances: map[string]query.InstanceState{}, Consoles: map[string]map[string]any{},
	}
	for _, i := range columnsOf(t, "Query_instance_all_fields.json") {
		uuid := i["uuid"].(string)
		if memory, ok := i["oper_ram"].(int64); ok {
			state.Instances[uuid] = query.InstanceState{Memory: memory, VCPUs: i["oper_vcpus"].(int64)}
		}
		state.Consoles[uuid], _ = i["console"].(map[string]any)
	}
	out := map[string]query.NodeState{}
	for node := range inv.Nodes() {
		out[node.UUID] = state
	}
	return out
}

func recordedJobs(t testing.TB) []*job.Job {
	t.Helper()
	var out []*job.Job
	for _, m := range columnsOf(t, "Query_job_all_fields.json") {
		j := &job.Job{ID: job.ID(m["id"].(int64)), Received: recordedTime(m["received_ts"]), Started: recordedTime(m["start_ts"]),
			Ended: recordedTime(m["end_ts"]), Archived: m["archived"] == true}
		for i, v := range m["ops"].([]any) {
			in, err := opcode.Parse(query.AppendValue(nil, v), opcode.Options{})
			if err != nil {
				t.Fatalf("job %d: %v", j.ID, err)
			}
			part := func(name string) any { return m[name].([]any)[i] }
			op := job.Op{Input: in, Status: job.Status(part("opstatus").(string)), Priority: int(part("oppriority").(int64)),
				Start: recordedTime(part("opstart")), Exec: recordedTime(part("opexec")), End: recordedTime(part("opend")),
				Result: query.AppendValue(nil, part("opresult"))}
			for _, e := range part("oplog").([]any) {
				e := e.([]any)
				op.Log = append(op.Log, job.LogEntry{Serial: e[0].(int64), Time: recordedTime(e[1]), Type: e[2].(string), Payload: query.AppendValue(nil, e[3])})
			}
			j.Ops = append(j.Ops, op)
		}
		out = append(out, j)
	}
	return out
}

func recordedTime(v any) job.Time {
	pair, ok := v.([]any)
	if !ok {
		return 0
	}
	return job.Time(pair[0].(int64)*1e6 + pair[1].(int64))
}

func recordedRules(t testing.TB) []*jobfilter.Rule {
	t.Helper()
	var out []*jobfilter.Rule
	for _, m := range columnsOf(t, "Query_filter_all.json") {
		r := &jobfilter.Rule{}
		if err := json.Unmarshal(query.AppendValue(nil, m), r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// notComparable are recordings that show a moment whose state was not recorded
// with them.
var notComparable = map[string]string{
	"Query_lock_all_fields.json":   "the locks of a moment",
	"Query_lock_held.json":         "the locks of a moment",
	"Query_filter_all_fields.json": "there were no rules yet",
}

// TestQueryRecordingsConformance asks what the recordings of the reference
// asked, of the same inventory, and compares the answers as data.
func TestQueryRecordingsConformance(t *testing.T) {
	src := recordedSource(t)
	files, err := filepath.Glob(filepath.Join(testkit.Conformance(t, "golden/luxi"), "Query_*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	passed, total := 0, 0
	for _, path := range files {
		name := filepath.Base(path)
		if notComparable[name] != "" {
			continue
		}
		total++
		var rec recording
		conformance(t, "golden/luxi/"+name, &rec)
		got, want := withoutDebugLevel(ask(src, rec.Header.Request.Args)), withoutDebugLevel(recordedAnswer(rec))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: asked %v\n got %s\nwant %s", name, clipped(rec.Header.Request.Args), difference(got, want), difference(want, got))
			continue
		}
		passed++
	}
	t.Logf("golden/luxi/Query_*: %d of %d recordings passed", passed, total)
}

// withoutDebugLevel takes the level 0 out of opcodes: the reference leaves it out
// of those that no daemon has looked at, and it is always there here.
func withoutDebugLevel(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, part := range x {
			if k != "debug_level" || fmt.Sprint(part) != "0" {
				out[k] = withoutDebugLevel(part)
			}
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i, part := range x {
			out[i] = withoutDebugLevel(part)
		}
		return out
	}
	return v
}

// anyList returns texts as JSON values have them.
func anyList(texts []string) []any {
	out := make([]any, len(texts))
	for i, s := range texts {
		out[i] = s
	}
	return out
}

func clipped(v any) string {
	s := string(query.AppendValue(nil, cluster.Canonical(v)))
	return s[:min(len(s), 300)]
}

// difference shows what a has that b has not.
func difference(a, b any) string {
	listA, okA := a.([]any)
	listB, okB := b.([]any)
	if !okA || !okB || len(listA) != len(listB) {
		return clipped(a)
	}
	for i := range listA {
		if !reflect.DeepEqual(listA[i], listB[i]) {
			return "[" + strconv.Itoa(i) + "]" + difference(listA[i], listB[i])
		}
	}
	return "the same"
}

// recordedAnswer is the rows of an answer, or its error.
func recordedAnswer(rec recording) any {
	result := cluster.Canonical(rec.Response.Result)
	if !rec.Response.Success {
		if s, ok := result.(string); ok {
			_, after, _ := strings.Cut(s, "error: ")
			return after
		}
		return result
	}
	return result.(map[string]any)["data"]
}

func ask(src *query.Source, args []any) any {
	n, err := qlang.FromValue(args[2])
	if err != nil {
		return failure(err)
	}
	var fields []string
	for _, f := range args[1].([]any) {
		fields = append(fields, f.(string))
	}
	res, err := All.Run(src, args[0].(string), fields, n, query.Options{})
	if err != nil {
		return failure(err)
	}
	var answer map[string]any
	dec := json.NewDecoder(strings.NewReader(string(res.AppendJSON(nil))))
	dec.UseNumber()
	if err := dec.Decode(&answer); err != nil {
		return err.Error()
	}
	return cluster.Canonical(answer["data"])
}

func failure(err error) any {
	if e, ok := errors.AsType[*query.Error](err); ok {
		return []any{e.Class, anyList(e.Args)}
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Message
	}
	return err.Error()
}
