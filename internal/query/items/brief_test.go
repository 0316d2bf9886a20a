package items

import (
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/reason"
)

// endedJobs have results so large that a table keeps little of them.
func endedJobs() []*job.Job {
	result := json.RawMessage(`"` + strings.Repeat("x", 5<<20) + `"`)
	op := func(why string) job.Op {
		return job.Op{Status: job.Success, Result: result, Start: 2e6, Exec: 3e6, End: 4e6, Input: &opcode.Opcode{
			ID: "OP_INSTANCE_STARTUP", Params: map[string]any{"instance_name": "web1"}, DryRun: why == "try",
			Reason: reason.Trail{{Source: "user", Reason: why, Time: 1}, {Source: "gnt:opcode:instance_startup", Reason: "job=1;index=0", Time: 2}},
		}}
	}
	failed := op("long: " + strings.Repeat("because ", 100))
	failed.Status = job.Error
	return []*job.Job{
		{ID: 1, Received: 1e6, Started: 2e6, Ended: 4e6, Ops: []job.Op{op("OPS-1")}},
		{ID: 2, Received: 2e6, Started: 2e6, Ended: 5e6, Ops: []job.Op{op("OPS-2"), op("OPS-3")}},
		{ID: 3, Received: 3e6, Started: 4e6, Ended: 4e6, Ops: []job.Op{op("try")}},
		{ID: 4, Received: 3e6, Started: 4e6, Ended: 6e6, Ops: []job.Op{failed}},
	}
}

// sourcesOf are the same jobs once whole, and once as a table keeps them.
func sourcesOf(t *testing.T, jobs []*job.Job) (whole, brief *query.Source) {
	t.Helper()
	table := job.NewTable(jobs...)
	for j := range table.All() {
		if j.Brief() == nil {
			t.Fatalf("job %d is whole", j.ID)
		}
	}
	get := func(id job.ID) (*job.Job, error) {
		for _, j := range jobs {
			if j.ID == id {
				return j, nil
			}
		}
		return nil, nil
	}
	return &query.Source{Inventory: cluster.Empty(), Job: get, Jobs: func(bool) iter.Seq2[*job.Job, error] { return readable(slices.Values(jobs)) }},
		&query.Source{Inventory: cluster.Empty(), Job: get, Jobs: func(bool) iter.Seq2[*job.Job, error] { return readable(table.All()) }, JobTable: table}
}

// What queries answer does not depend on how much of a job is in memory.
func TestBriefJobsAnswerAsWholeOnes(t *testing.T) {
	whole, brief := sourcesOf(t, endedJobs())
	for what, filters := range map[string][]string{
		"job": {
			"", `status == "error"`, `reason =~ m/OPS-[12]/`, `reason =~ m/because/`, `dry_run`, `end_ts >= 5`, `received_ts < 3`, `start_ts == 4`,
			`status == "success" and end_ts < 5`, `id == 2`, `id == 2 or id == 4`,
		},
		"opcode": {"", `job == 2`, `job_status == "error"`},
		"reason": {"", `job == 3`, `source == "user"`},
	} {
		defs, err := All.Fields(what, nil)
		if err != nil {
			t.Fatal(err)
		}
		var fields []string
		for _, d := range defs {
			if !slices.Contains([]string{"opresult", "result"}, d.Name) {
				fields = append(fields, d.Name)
			}
		}
		for _, filter := range filters {
			r := query.Request{What: what, Fields: fields}
			if filter != "" {
				r.Filter = mustParse(t, filter)
			}
			want, err := All.Run(whole, r.What, r.Fields, r.Filter, r.Options)
			if err != nil {
				t.Fatal(err)
			}
			got, err := All.Run(brief, r.What, r.Fields, r.Filter, r.Options)
			if err != nil {
				t.Fatal(err)
			}
			if g, w := string(got.AppendJSON(nil)), string(want.AppendJSON(nil)); g != w || got.Len() == 0 {
				t.Errorf("%s %s: %d rows\n%s\nwant %d\n%s", what, filter, got.Len(), g, want.Len(), w)
			}
		}
	}
	got, err := All.Run(brief, "job", []string{"opresult"}, nil, query.Options{})
	if err != nil || len(got.AppendJSON(nil)) < 5*(5<<20) {
		t.Errorf("the results have %d bytes, %v", len(got.AppendJSON(nil)), err)
	}
}

// What a filter needs and the store cannot tell is an error; in a row that is
// known otherwise it is a value that is not there.
func TestBriefJobsThatCannotBeRead(t *testing.T) {
	_, brief := sourcesOf(t, endedJobs())
	away := errors.New("the disk is away")
	brief.Job = func(job.ID) (*job.Job, error) { return nil, away }
	if _, err := All.Run(brief, "opcode", []string{"job"}, nil, query.Options{}); !errors.Is(err, away) {
		t.Errorf("all opcodes: %v", err)
	}
	if _, err := All.Run(brief, "job", []string{"id"}, mustParse(t, `reason =~ m/because/`), query.Options{}); !errors.Is(err, away) {
		t.Errorf("by a reason that is not kept: %v", err)
	}
	got, err := All.Run(brief, "job", []string{"id", "status", "summary", "opstatus"}, mustParse(t, `id == 1`), query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(got.AppendJSON(nil)); !strings.Contains(text, `[[0,1],[0,"success"],[0,["INSTANCE_STARTUP(web1)"]],[2,null]]`) {
		t.Errorf("a list: %s", text)
	}
}

// A list keeps its rows until their turn comes. Of jobs that have ended it keeps what
// tells them apart, and no more, whether they are archived or not.
func TestLongListsKeepRowsSmall(t *testing.T) {
	_, brief := sourcesOf(t, endedJobs())
	old := endedJobs()
	for _, j := range old {
		j.Archived = true
	}
	archived, _ := sourcesOf(t, old)
	for what, src := range map[string]*query.Source{"brief": brief, "archived": archived} {
		v := query.NewView(src, nil)
		rows := slices.Collect(jobTable.All(v))
		if len(rows) != 4 || v.Failed != nil {
			t.Fatalf("%s: %d rows, %v", what, len(rows), v.Failed)
		}
		for _, r := range rows {
			r = jobTable.Shorten(r)
			if r.j != nil {
				t.Errorf("%s: job %d is kept", what, r.id)
			}
			if again := jobTable.Restore(v, r); again.j == nil || again.j.ID != r.id || (again.j.Brief() != nil) != (src == brief) {
				t.Errorf("%s: job %d comes back as %+v", what, r.id, again)
			}
		}
		opcodes := slices.Collect(opcodeTable.All(v))
		if len(opcodes) != 5 || v.Failed != nil {
			t.Fatalf("%s: %d opcodes, %v", what, len(opcodes), v.Failed)
		}
		for _, r := range opcodes {
			r = opcodeTable.Shorten(r)
			if again := opcodeTable.Restore(v, r); r.j != nil || again.j == nil || again.j.ID != r.id || again.index != r.index {
				t.Errorf("%s: opcode %s is kept as %+v and comes back as %+v", what, r.identity(), r, again)
			}
		}
	}
}
