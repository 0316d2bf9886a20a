package rollout

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/fuel"
	"github.com/drover-project/drover/yaql"
)

// realEnvironment is an environment of nodes like those that were recorded, all of which are simulated by one node of the cluster.
func realEnvironment(t testing.TB, like ...string) string {
	t.Helper()
	env := fuel.Environment(t, like...)
	nodes, _ := env.Get("nodes")
	hosts := yaql.NewDict(0)
	nodes.(*yaql.Dict).Range(func(uid, _ any) bool {
		_ = hosts.Set(uid, "node1")
		return true
	})
	_ = env.Set("hosts", hosts)
	return plan.Canonical(env)
}

// realGraph keeps the whole real graph, by the name deployment.
func (r *rig) realGraph() {
	r.Helper()
	var files []course.File
	err := filepath.WalkDir(testkit.FuelLibrary(r, "deployment"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != "tasks.yaml" && d.Name() != "deployment_tasks.yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		files = append(files, course.File{Path: path, Text: string(text)})
		return err
	})
	if err != nil {
		r.Fatal(err)
	}
	if _, err := r.engine.PutGraph(r.Context(), "deployment", files, by); err != nil {
		r.Fatal(err)
	}
}

// TestTheRealGraphRunsToItsEnd deploys an environment of three controllers, five computes and three storage nodes by the whole
// real graph, again with nothing changed, and with a controller added.
func TestTheRealGraphRunsToItsEnd(t *testing.T) {
	first, added := realEnvironment(t, fuel.Cloud(3)...), realEnvironment(t, fuel.Cloud(4)...) // each with five computes and three storage nodes
	r := newRig(t, 1)
	r.realGraph()
	r.environment("fuel", first, "deployment")
	ran := map[string]bool{}
	for _, round := range []string{"first", "unchanged", "added"} {
		if round == "added" {
			r.environment("fuel", added)
		}
		id := r.start(Wish{Environment: "fuel"})
		if p := r.end(id); p.Status != course.Done {
			t.Fatalf("%s: %s %s", round, p.Status, p.Why)
		}
		tasks, err := r.engine.Tasks(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var asked []string
		for _, x := range tasks {
			name := x.Node + "/" + x.Task
			if x.State == course.Skipped {
				continue
			}
			asked = append(asked, name)
			if changed := strings.Contains(x.Why, "->") || strings.Contains(x.Why, "came") || strings.Contains(x.Why, "never there"); round == "unchanged" && changed && ran[name] {
				t.Errorf("%s ran though nothing changed: %s", name, x.Why)
			}
		}
		began := r.began(id)
		for _, name := range began {
			ran[name] = true
		}
		slices.Sort(asked)
		slices.Sort(began)
		if !slices.Equal(asked, began) {
			t.Errorf("%s: the conditions ask for %d tasks, %d ran", round, len(asked), len(began))
		}
		t.Logf("%s: %d of %d tasks ran", round, len(began), len(tasks))
	}
}
