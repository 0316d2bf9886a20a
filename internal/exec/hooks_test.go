package exec

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hooks"
	"github.com/drover-project/drover/internal/job"
)

// script puts a hook on a node.
func (r *rig) script(node, dir, name, text string) {
	r.Helper()
	at := filepath.Join(r.dir, node, "hooks", dir)
	err := os.MkdirAll(at, 0o750)
	if err == nil {
		err = os.WriteFile(filepath.Join(at, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700)
	}
	if err != nil {
		r.Fatal(err)
	}
}

// recorder puts hooks on nodes that keep what they are told; told returns it by node and directory.
func (r *rig) recorder(nodes []string, dirs ...string) (told func() map[string]map[string]string) {
	r.Helper()
	said := r.TempDir()
	for _, node := range nodes {
		for _, dir := range dirs {
			r.script(node, dir, "10", "env >>"+filepath.Join(said, node+":"+dir))
		}
	}
	return func() map[string]map[string]string {
		out := map[string]map[string]string{}
		for _, node := range nodes {
			for _, dir := range dirs {
				text, err := os.ReadFile(filepath.Join(said, node+":"+dir))
				if err != nil {
					continue
				}
				env := map[string]string{}
				for line := range strings.Lines(string(text)) {
					name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
					env[name] = value
				}
				out[node+":"+dir] = env
			}
		}
		return out
	}
}

// Scripts of the master and of both nodes of a mirrored instance are told what it was before and is behind, on no other node.
func TestHooksAreTold(t *testing.T) {
	r := killable(t)
	told := r.recorder([]string{"node1", "node2", "node3"}, "instance-stop-pre.d", "instance-stop-post.d")
	r.must("null", "OP_INSTANCE_SHUTDOWN", params{"instance_name": "pair", "timeout": 5})
	got := told()
	inst := r.keeper.Snapshot().InstanceNamed("pair")
	var want []string
	for _, uuid := range append([]string{r.keeper.Snapshot().Cluster().MasterNode}, instanceNodes(inst)...) {
		for _, dir := range []string{"instance-stop-pre.d", "instance-stop-post.d"} {
			if name := nodeName(r.keeper.Snapshot(), uuid) + ":" + dir; !slices.Contains(want, name) {
				want = append(want, name)
			}
		}
	}
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, slices.Sorted(slices.Values(want))) {
		t.Fatalf("they ran as %q, want %q", keys, want)
	}
	for at, env := range got {
		_, dir, _ := strings.Cut(at, ":")
		phase := strings.TrimSuffix(strings.TrimPrefix(dir, "instance-stop-"), ".d")
		for name, value := range map[string]string{"GANETI_OP_CODE": "OP_INSTANCE_SHUTDOWN", "GANETI_HOOKS_PHASE": phase, "GANETI_HOOKS_PATH": "instance-stop", "GANETI_OP_TARGET": "pair",
			"GANETI_CLUSTER": "cluster.example", "GANETI_MASTER": "node1", "GANETI_INSTANCE_STATUS": "up", "GANETI_TIMEOUT": "5", "PATH": hooks.SearchPath} {
			if env[name] != value {
				t.Errorf("%s: %s is %q, want %q", at, name, env[name], value)
			}
		}
		if status, is := env["GANETI_POST_INSTANCE_STATUS"]; is != (phase == "post") || is && status != "down" {
			t.Errorf("%s: behind it is %q", at, status)
		}
	}
}

// A script that fails before has the opcode refused, as clients know it, and nothing changed: also in a dry run, but not where one only looks.
func TestHooksRefuse(t *testing.T) {
	for id, p := range map[string]params{
		"OP_INSTANCE_STARTUP": {"instance_name": "down"}, "OP_GROUP_ADD": {"group_name": "new"}, "OP_INSTANCE_CREATE": samples["OP_INSTANCE_CREATE"], "OP_INSTANCE_REMOVE": {"instance_name": "up"},
		"OP_GROUP_EVACUATE": {"group_name": "empty"},
	} {
		t.Run(id, func(t *testing.T) {
			r := killable(t)
			dir := hooks.Dir(hooks.Of(id).Path, hooks.Pre)
			r.script("node1", dir, "10no", "echo no way; echo second line; exit 1")
			r.script("node1", dir, "20no", "exit 1")
			before, nodes := r.dump(), r.nodeStates()
			master := r.keeper.Snapshot().Cluster().MasterNode
			want := fmt.Sprintf(`["HooksAbort",[[["%[1]s","%[2]s/10no","no way\\nsecond line"],["%[1]s","%[2]s/20no",""]]]]`, master, dir)
			dry := maps.Clone(p)
			dry["dry_run"] = true
			for _, p := range []params{p, dry} {
				if _, err := r.run(id, p); err == nil || string(job.EncodeError(err)) != want {
					t.Errorf("it came to %v, want %s", err, want)
				} else if text := string(job.EncodeError(err)); text != want {
					t.Errorf("clients get %s", text)
				}
				if r.dump() != before || r.nodeStates() != nodes || len(r.submitted) > 0 {
					t.Fatal("something was changed")
				}
			}
			_, steps, err := r.all.Check(t.Context(), r.env(r.opcode(id, p)))
			if err != nil || len(steps) < 2 || steps[0].Text != "run the hooks "+dir+" on node1" {
				t.Errorf("a look tells of %+v, %v", steps, err)
			}
		})
	}
}

// A script that fails behind is told, and changes nothing of what was done.
func TestHooksBehindAreHeardOnly(t *testing.T) {
	r := killable(t)
	r.script("node1", "group-rename-post.d", "10no", "echo post no; exit 1")
	r.script("node1", "group-rename-post.d", "20no", "exit 1")
	r.must(`"other"`, "OP_GROUP_RENAME", params{"group_name": "empty", "new_name": "other"})
	master := r.keeper.Snapshot().Cluster().MasterNode
	want := []string{" - WARNING: On " + master + " script group-rename-post.d/10no failed, output: post no", " - WARNING: On " + master + " script group-rename-post.d/20no failed, output: (no output)"}
	if !slices.Equal(r.log, want) || r.keeper.Snapshot().GroupNamed("other") == nil {
		t.Errorf("it tells %q, want %q", r.log, want)
	}
}

// What scripts behind a verification find is its result.
func TestHooksVerify(t *testing.T) {
	r := newRig(t)
	r.must("true", "OP_CLUSTER_VERIFY_GROUP", params{"group_name": "default"})
	if last := r.log[len(r.log)-1]; last != "* Hooks Results" {
		t.Errorf("it ends with %q", last)
	}
	r.script("node1", "cluster-verify-post.d", "10", "echo found something; exit 1")
	r.must("false", "OP_CLUSTER_VERIFY_GROUP", params{"group_name": "default"})
	master := r.keeper.Snapshot().Cluster().MasterNode
	want := []string{" - WARNING: On " + master + " script cluster-verify-post.d/10 failed, output: found something", "* Hooks Results",
		"  - ERROR: node " + master + ": Script cluster-verify-post.d/10 failed, output:", "      found something"}
	if got := r.log[len(r.log)-len(want):]; !slices.Equal(got, want) {
		t.Errorf("it tells %q, want %q", got, want)
	}
	r.must("true", "OP_CLUSTER_VERIFY_GROUP", params{"group_name": "default", "ignore_errors": []any{"ENODEHOOKS"}})
}

// A node that cannot be asked refuses nothing, as there.
func TestHooksOfANodeThatDoesNotAnswer(t *testing.T) {
	r := killable(t)
	r.script("node2", "instance-stop-pre.d", "10", "exit 1")
	r.wrap = func(n Node) Node { return mute{n} }
	r.must("null", "OP_INSTANCE_SHUTDOWN", params{"instance_name": "pair"})
	if !slices.ContainsFunc(r.log, func(line string) bool { return strings.Contains(line, "Communication failure to node") }) {
		t.Errorf("it tells %q", r.log)
	}
}

// Wherever controllers are killed, opcodes with hooks come to what they come to undisturbed, scripts that may refuse never run behind the beginning, and those
// behind run at least once.
func TestKilledAnywhereWithHooks(t *testing.T) {
	for _, id := range []string{"OP_INSTANCE_CREATE", "OP_INSTANCE_STARTUP", "OP_INSTANCE_REMOVE", "OP_GROUP_RENAME", "OP_NETWORK_ADD"} {
		path := hooks.Of(id).Path
		t.Run(id, func(t *testing.T) {
			var said []string
			killedAnywhere(t, func(t *testing.T) *rig {
				r := killable(t)
				file := filepath.Join(t.TempDir(), strconv.Itoa(len(said)))
				said = append(said, file)
				r.script("node1", hooks.Dir(path, hooks.Pre), "10", "echo pre >>"+file)
				r.script("node1", hooks.Dir(path, hooks.Post), "10", "echo post >>"+file)
				return r
			}, id, samples[id], false)
			for _, file := range said[:len(said)-1] {
				text, err := os.ReadFile(file)
				if words := strings.Fields(string(text)); err != nil || !slices.IsSortedFunc(words, func(a, b string) int { return strings.Compare(b, a) }) || len(words) < 2 || words[0] != "pre" || words[len(words)-1] != "post" {
					t.Errorf("scripts ran as %q, %v", words, err)
				}
			}
		})
	}
}

// What an opcode without hooks costs: nothing is ordered, and nothing is kept more.
func TestNoHooksNoSteps(t *testing.T) {
	r := killable(t)
	r.script("node3", "instance-stop-pre.d", "10", "exit 1") // of another node
	_, steps, err := r.all.Check(t.Context(), r.env(r.opcode("OP_INSTANCE_SHUTDOWN", params{"instance_name": "pair"})))
	if err != nil || slices.ContainsFunc(steps, func(s job.Step) bool { return s.Verb == runHooks }) {
		t.Errorf("its steps are %+v, %v", steps, err)
	}
}

// mute is a node that does not answer when it is to run hooks.
type mute struct{ anyNode }

func (mute) RunHooks(context.Context, agent.Order, agent.Hooks) ([]hooks.Result, error) {
	return nil, fault.New(fault.Unavailable, "no answer came")
}
