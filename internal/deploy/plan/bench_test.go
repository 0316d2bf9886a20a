package plan_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/yaql"
)

// synthetic makes an environment of n nodes after the recorded one: a primary controller, two controllers, three nodes
// with mongo, a tenth with ceph-osd, and the rest compute.
func synthetic(t testing.TB, n int) *yaql.Dict {
	t.Helper()
	text, err := os.ReadFile(testkit.FuelNodes(t, "fuel-env-ceph.json"))
	if err != nil {
		t.Fatal(err)
	}
	doc, _, err := document.Parse("env", text)
	if err != nil {
		t.Fatal(err)
	}
	env := document.Sorted(doc.Value()).(*yaql.Dict)
	metadata := at(env, "common", "network_metadata")
	templates := at(metadata, "nodes")
	common, nodes, described := replaced(at(env, "common")), yaql.NewDict(n+1), yaql.NewDict(n)
	master, _ := at(env, "nodes").Get("master")
	_ = nodes.Set("master", master)
	for i := range n {
		template := templateOf(i, n)
		uid := strconv.Itoa(1000 + i)
		rename := renaming(at(templates, "node-"+template), template, uid, i)
		_ = nodes.Set(uid, rewritten(at(env, "nodes", template), rename))
		_ = described.Set("node-"+uid, rewritten(at(templates, "node-"+template), rename))
	}
	changed := replaced(metadata)
	_ = changed.Set("nodes", described)
	_ = common.Set("network_metadata", changed)
	out := yaql.NewDict(2)
	_ = out.Set("common", common)
	_ = out.Set("nodes", nodes)
	return document.Sorted(out).(*yaql.Dict)
}

// templateOf returns the recorded node that node i is made after.
func templateOf(i, n int) string {
	switch {
	case i == 0:
		return "126" // primary-controller
	case i < 3:
		return "129" // controller
	case i == 3:
		return "131" // primary-mongo
	case i < 6:
		return "132" // mongo
	case i < 6+n/10:
		return "128" // ceph-osd
	}
	return "127" // compute
}

func at(d *yaql.Dict, path ...string) *yaql.Dict {
	for _, key := range path {
		v, _ := d.Get(key)
		d = v.(*yaql.Dict)
	}
	return d
}

func replaced(d *yaql.Dict) *yaql.Dict {
	out := yaql.NewDict(d.Len())
	d.Range(func(k, v any) bool {
		_ = out.Set(k, v)
		return true
	})
	return out
}

// renaming gives a node its own name and addresses.
func renaming(described *yaql.Dict, template, uid string, i int) *strings.Replacer {
	pairs := []string{"node-" + template, "node-" + uid}
	at(described, "network_roles").Range(func(_, v any) bool {
		if ip, ok := v.(string); ok && strings.Count(ip, ".") == 3 {
			parts := strings.Split(ip, ".")
			pairs = append(pairs, ip, fmt.Sprintf("%s.%s.%d.%d", parts[0], parts[1], 100+i/200, 1+i%200))
		}
		return true
	})
	return strings.NewReplacer(append(pairs, "\x00"+template, uid)...)
}

func rewritten(v any, r *strings.Replacer) any {
	switch x := v.(type) {
	case string:
		return strings.TrimPrefix(r.Replace(x), "\x00")
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = rewritten(x[i], r)
		}
		return out
	case *yaql.Dict:
		out := yaql.NewDict(x.Len())
		x.Range(func(k, e any) bool {
			if k == "uid" {
				e = "\x00" + e.(string)
			}
			_ = out.Set(k, rewritten(e, r))
			return true
		})
		return out
	}
	return v
}

// BenchmarkPlan computes plans of the real graph. One operation is a plan with its order, of states as they are read: what is
// remembered of them is made anew. Processor time per step tells whether what all nodes share is evaluated once.
func BenchmarkPlan(b *testing.B) {
	language := newLanguage(b)
	tasks := libraryGraph(b, language, "deployment")
	for _, n := range []int{10, 200, 1000} {
		env := synthetic(b, n)
		for _, name := range []string{"first", "unchanged"} {
			b.Run(fmt.Sprintf("nodes=%d/%s", n, name), func(b *testing.B) {
				steps := 0
				before := processorTime(b)
				for b.Loop() {
					steps = planOf(b, language, tasks, env, name == "unchanged")
				}
				b.ReportMetric(float64(processorTime(b)-before)/float64(b.N)/float64(steps), "us-cpu/step")
			})
		}
	}
}

// processorTime is what the process has used so far, in microseconds.
func processorTime(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return (u.Utime.Nano() + u.Stime.Nano()) / 1000
}

// planOf computes a plan and its order and returns the number of its steps. The old state, if there is one, is equal
// to the new one but is not the same values.
func planOf(b *testing.B, language *expression.Language, tasks []*graph.Task, env *yaql.Dict, unchanged bool) int {
	b.Helper()
	in := plan.Input{Space: state.NewSpace(), Tasks: tasks}
	in.Common, in.Parts = parts(in.Space, env)
	in.Nodes = resolvable(in.Parts)
	if unchanged {
		common, nodes := parts(in.Space, env)
		in.OldCommon = common
		in.Old = func(_, uid string) (*state.Part, *state.Part, bool) { return common, nodes[uid], true }
	}
	p, err := plan.Build(b.Context(), language, in)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := p.Order(); err != nil {
		b.Fatal(err)
	}
	return len(p.Steps)
}

// TestWriteSynthetic writes environments to the files that $DROVER_WRITE_SYNTHETIC names without their number of nodes,
// to measure the command with.
func TestWriteSynthetic(t *testing.T) {
	file := os.Getenv("DROVER_WRITE_SYNTHETIC")
	if file == "" {
		t.Skip("$DROVER_WRITE_SYNTHETIC is not set")
	}
	for _, n := range []int{10, 200, 1000} {
		if err := os.WriteFile(fmt.Sprint(file, n, ".json"), []byte(plan.Canonical(synthetic(t, n))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
