package jobfilter_test

import (
	"fmt"
	"testing"

	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/reason"
)

// benchRules are n rules of the kinds that operators write, of which only the
// very last concerns any job: every job is held against all of them.
func benchRules(t testing.TB, n int) []jobfilter.Rule {
	t.Helper()
	kinds := []string{
		`[["opcode", ["=", "OP_ID", "OP_CLUSTER_VERIFY"]]]`,
		`[["jobid", [">", "id", "watermark"]], ["not", ["reason", ["=~", "reason", "maintenance pink bunny"]]]]`,
		`[["opcode", ["&", ["=~", "OP_ID", "^OP_INSTANCE_"], ["==", "instance_name", "nosuch.example.com"]]]]`,
		`[["reason", ["=~", "reason", "^OPS-12345"]]]`,
		`[["opcode", ["|", ["==", "OP_ID", "OP_NODE_ADD"], ["==", "OP_ID", "OP_NODE_EVACUATE"], ["==", "OP_ID", "OP_NODE_REMOVE"]]]]`,
		`[["opcode", ["==", "pnode", "node7.example.com"]]]`,
		`[["reason", ["==", "source", "nightly"]]]`,
	}
	rules := make([]jobfilter.Rule, n)
	for i := range rules {
		rules[i] = rule(t, i, 1_000_000, jobfilter.Pause, kinds[i%len(kinds)])
	}
	rules[n-1] = rule(t, n, 0, jobfilter.RateLimit, `[["jobid", [">", "id", 0]]]`)
	return rules
}

func benchJobs(n int) [][]*opcode.Opcode {
	jobs := make([][]*opcode.Opcode, n)
	for i := range jobs {
		jobs[i] = []*opcode.Opcode{{
			ID:     "OP_INSTANCE_STARTUP",
			Params: map[string]any{"instance_name": fmt.Sprintf("web%d.example.com", i), "force": false, "startup_paused": false, "ignore_offline_nodes": false},
			Reason: reason.Trail{
				{Source: "gnt:client:gnt-instance", Reason: "start", Time: int64(i)},
				{Source: "user", Reason: "Startup after the power cut", Time: int64(i)},
				{Source: "gnt:opcode:instance_startup", Reason: fmt.Sprintf("job=%d;index=0", i), Time: int64(i)},
			},
		}}
	}
	return jobs
}

// BenchmarkDecide measures one job against 50 rules; 100,000 such decisions on
// two cores have 250 ms, which is 5 µs each.
func BenchmarkDecide(b *testing.B) {
	c := chain(b, benchRules(b, 50)...)
	jobs := benchJobs(100_000)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if c.Decide(int64(i+1), jobs[i%len(jobs)]).Rule == nil {
			b.Fatal("no rule applies")
		}
	}
}

func BenchmarkExplain(b *testing.B) {
	c := chain(b, benchRules(b, 50)...)
	jobs := benchJobs(1000)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		c.Explain(int64(i+1), jobs[i%len(jobs)])
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	c := chain(t, benchRules(t, 50)...)
	ops := benchJobs(1)[0]
	if n := testing.AllocsPerRun(100, func() { c.Decide(7, ops) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
