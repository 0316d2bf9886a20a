package rollout

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/testkit"
)

// realEnvironment is a recorded environment, all of whose nodes are simulated by one.
func realEnvironment(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(testkit.FuelNodes(t, name))
	if err != nil {
		t.Fatal(err)
	}
	var env map[string]json.RawMessage
	var nodes map[string]json.RawMessage
	if err := json.Unmarshal(text, &env); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(env["nodes"], &nodes); err != nil {
		t.Fatal(err)
	}
	hosts := map[string]string{}
	for uid := range nodes {
		hosts[uid] = "node1"
	}
	out, err := json.Marshal(map[string]any{"common": env["common"], "nodes": env["nodes"], "hosts": hosts})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestTheRealGraphRunsToItsEnd deploys the real environment, again with nothing changed, and with a controller added.
func TestTheRealGraphRunsToItsEnd(t *testing.T) {
	first, added := realEnvironment(t, "fuel-env-ceph.json"), realEnvironment(t, "fuel-env-ceph-added.json")
	var files []course.File
	err := filepath.WalkDir(testkit.FuelLibrary(t, "deployment"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != "tasks.yaml" && d.Name() != "deployment_tasks.yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		files = append(files, course.File{Path: path, Text: string(text)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, 1)
	if _, err := r.engine.PutGraph("deployment", files, by); err != nil {
		t.Fatal(err)
	}
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
