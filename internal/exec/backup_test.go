package exec

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agent/exports"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/export"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/reason"
)

// exportsOn are the exports of a node.
func (r *rig) exportsOn(node string) []string {
	r.Helper()
	a, err := r.fleet.Agent(node)
	var names []string
	if err == nil {
		names, err = a.Exports(r.Context())
	}
	if err != nil {
		r.Fatal(err)
	}
	return names
}

// says is what an export of a node says.
func (r *rig) says(node, name string) export.Export {
	r.Helper()
	a, err := r.fleet.Agent(node)
	var e export.Export
	if err == nil {
		e, err = a.Export(r.Context(), name)
	}
	if err != nil {
		r.Fatal(err)
	}
	return e
}

// nothingStaged holds that nothing is left on a node of what was to become an export.
func (r *rig) nothingStaged(node string) {
	r.Helper()
	if left, _ := filepath.Glob(filepath.Join(r.dir, node, "export", ".staged", "*")); len(left) > 0 {
		r.Errorf("%s still has %v", node, left)
	}
}

// TestExportAndImport takes an instance to another node and back, under another name and under its own.
func TestExportAndImport(t *testing.T) {
	r := newRig(t, "node1", "node2", "node3")
	r.create("one", true)
	r.must("null", "OP_TAGS_SET", params{"kind": "instance", "name": "one", "tags": []any{"red"}})
	was := r.instance("one")
	r.must(`[true,[true]]`, "OP_BACKUP_EXPORT", one(params{"target_node": "node3", "long_sleep": true}))
	r.must(`[true,[true]]`, "OP_BACKUP_EXPORT", one(params{"target_node": "node2", "long_sleep": true}))
	if r.state("node1", "one") != hypervisor.Running || r.instance("one").AdminState != cluster.AdminUp {
		t.Error("it does not run again")
	}
	if len(r.exportsOn("node3")) != 0 || !slices.Equal(r.exportsOn("node2"), []string{"one"}) {
		t.Errorf("node2 has %v, node3 %v", r.exportsOn("node2"), r.exportsOn("node3"))
	}
	e := r.says("node2", "one")
	if e.Name != "one" || e.OS != "noop+default" || len(e.Disks) != 1 || e.Disks[0].Form != export.Pretended || e.NICs[0].MAC != was.NICs[0].MAC || e.BEParams["maxmem"] == "" {
		t.Errorf("it says %+v", e)
	}
	r.refuses("OpPrereqError", "MAC address "+was.NICs[0].MAC+" already in use in cluster", "OP_INSTANCE_CREATE",
		params{"instance_name": "two", "mode": "import", "src_path": "one", "pnode": "node1", "disk_template": "file", "disks": []any{}, "nics": []any{}})
	r.must(`["node3"]`, "OP_INSTANCE_CREATE", params{"instance_name": "two", "mode": "import", "src_path": "/var/lib/ganeti/export/one", "src_node": "node2", "pnode": "node3",
		"disk_template": "file", "disks": []any{}, "nics": []any{params{"mac": "auto"}}, "start": false, "identify_defaults": true})
	if two := r.instance("two"); two.Disks[0].Size != was.Disks[0].Size || len(two.HVParams) != 0 || len(two.BEParams) != 0 || !slices.Equal(two.Tags, was.Tags) || two.OS != was.OS {
		t.Errorf("it came as %+v", two)
	}
	r.must(`[true,[true]]`, "OP_BACKUP_EXPORT", one(params{"target_node": "node2", "remove_instance": true}))
	if r.keeper.Snapshot().InstanceNamed("one") != nil || r.state("node1", "one") != "" {
		t.Error("it is still there")
	}
	r.must(`["node2"]`, "OP_INSTANCE_CREATE", params{"instance_name": "one", "mode": "import", "pnode": "node2", "src_node": "node2", "disk_template": "file", "disks": []any{}, "nics": []any{params{"mac": "auto", "name": "first"}}})
	if got := r.instance("one"); got.NICs[0].Name != "first" || got.NICs[0].MAC != was.NICs[0].MAC || r.state("node2", "one") != hypervisor.Running || len(got.BEParams) == 0 {
		t.Errorf("it came as %+v", got)
	}
	r.must("null", "OP_BACKUP_REMOVE", one(nil))
	r.must("null", "OP_BACKUP_REMOVE", one(nil))
	for _, node := range []string{"node1", "node2", "node3"} {
		if r.nothingStaged(node); len(r.exportsOn(node)) > 0 {
			t.Errorf("%s still has %v", node, r.exportsOn(node))
		}
	}
}

func TestWhatCannotBeExported(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.create("one", true)
	for _, c := range []struct {
		text   string
		params params
	}{
		{"Not all disks could be snapshotted, and you requested a live export; aborting (node node1 makes no snapshots of disks of the template file: let the instance be stopped, and allow that with long_sleep (--long-sleep))",
			params{"shutdown": false}},
		{"Not all disks could be snapshotted, and you did not allow the instance to remain offline for a longer time through the --long-sleep option; aborting" +
			" (node node1 makes no snapshots of disks of the template file; with --long-sleep the instance stands still until its disks are dumped on its own node, and is started again then)", nil},
		{"Can not remove instance without shutting it down before", params{"shutdown": false, "remove_instance": true}},
		{"The long sleep option only makes sense when the instance can be shut down.", params{"shutdown": false, "long_sleep": true}},
		{"Instances can't be exported to other clusters (export to a node (mode local), copy the directory of the export below export/ of a node of the other cluster, and import it there)",
			params{"mode": "remote", "target_node": []any{}}},
		{"Dumps are not compressed on their way, and \"gzip\" was asked for (leave it out, or say none)", params{"compress": "gzip"}},
		{"An export with zero_free_space is not supported (leave it out; dumps have holes where the disk has zeros, and nothing is compressed, so there is nothing to be zeroed)",
			params{"zero_free_space": true, "long_sleep": true}},
		{"Node 'node7' not known", params{"target_node": "node7"}},
	} {
		p := one(params{"target_node": "node2"})
		maps.Copy(p, c.params)
		r.refuses("OpPrereqError", c.text, "OP_BACKUP_EXPORT", p)
	}
	if len(r.exportsOn("node2")) > 0 || r.state("node1", "one") != hypervisor.Running {
		t.Error("something was done")
	}
	r.must("null", "OP_BACKUP_PREPARE", one(params{"mode": "local"}))
	r.refuses("OpPrereqError", "Instances can't be exported to other clusters (export to a node (mode local), copy the directory of the export below export/ of a node of the other cluster, and import it there)",
		"OP_BACKUP_PREPARE", one(params{"mode": "remote"}))
}

// TestAnExportOfWhatRuns has a snapshot dumped, with the instance stopped for a moment or not at all, and lets go of it whatever happens.
func TestAnExportOfWhatRuns(t *testing.T) {
	r := newRig(t, "node1", "node2")
	create := creating(params{"disk_template": "plain", "disks": []any{params{"size": 8}, params{"size": 8}}})
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", create)
	var orders []string
	verbs := func(p params) []string {
		orders = nil
		r.wrap = func(n Node) Node { return noting{n, &orders} }
		defer func() { r.wrap = nil }()
		r.must(`[true,[true,true]]`, "OP_BACKUP_EXPORT", one(p))
		return orders
	}
	for _, c := range []struct {
		p    params
		want string
	}{
		{params{"target_node": "node1"}, "stop start+snapshot dump-snapshot dump-snapshot release"},
		{params{"target_node": "node1", "long_sleep": true}, "stop start+snapshot dump-snapshot dump-snapshot release"},
		{params{"target_node": "node2", "shutdown": false}, "snapshot dump-snapshot dump-snapshot release"},
	} {
		if got := strings.Join(verbs(c.p), " "); got != c.want {
			t.Errorf("%v: %s; want %s", c.p, got, c.want)
		}
		if is := r.state("node1", "one"); is != hypervisor.Running {
			t.Errorf("%v: the instance is %s", c.p, is)
		}
	}
	r.wrap = func(n Node) Node { return noting{full{n}, &orders} }
	for _, shutdown := range []bool{true, false} {
		orders = nil
		if _, err := r.run("OP_BACKUP_EXPORT", one(params{"target_node": "node2", "shutdown": shutdown})); !fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "there is no room") {
			t.Errorf("without room: %v", err)
		}
		if !slices.Contains(orders, "release") || r.state("node1", "one") != hypervisor.Running {
			t.Errorf("%v are given, and it is %s", orders, r.state("node1", "one"))
		}
		r.nothingStaged("node1")
	}
	r.wrap = nil
	if got := r.exportsOn("node2"); !slices.Equal(got, []string{"one"}) {
		t.Errorf("the export before is not kept: %v", got)
	}
	a, err := r.fleet.Agent("node1")
	if err == nil {
		err = a.DumpDisk(t.Context(), agent.Order{Epoch: 99, Job: 99}, hypervisor.Spec{Name: "one", UUID: r.instance("one").UUID, Disks: []hypervisor.Disk{{UUID: r.instance("one").Disks[0].UUID}}},
			agent.Dump{Place: exports.Place{ID: "x", File: "d"}, Form: export.Pretended, Snapshot: true}, nil, func(string) {})
	}
	if !fault.Is(err, fault.WrongState) {
		t.Errorf("a snapshot is left: %v", err)
	}
}

// noting is a node that notes what is ordered for an export.
type noting struct {
	anyNode

	orders *[]string
}

func (n noting) note(what string, more bool, then string) {
	if more {
		what += then
	}
	*n.orders = append(*n.orders, what)
}

func (n noting) Stop(ctx context.Context, order agent.Order, of hypervisor.Thing, how hypervisor.Stop, trail reason.Trail) error {
	n.note("stop", false, "")
	return n.anyNode.Stop(ctx, order, of, how, trail)
}

func (n noting) Start(ctx context.Context, order agent.Order, spec hypervisor.Spec, trail reason.Trail) error {
	n.note("start", spec.Snapshot != "", "+snapshot")
	return n.anyNode.Start(ctx, order, spec, trail)
}

func (n noting) SnapshotDisks(ctx context.Context, order agent.Order, of hypervisor.Thing, id string) error {
	n.note("snapshot", false, "")
	return n.anyNode.SnapshotDisks(ctx, order, of, id)
}

func (n noting) ReleaseSnapshot(ctx context.Context, order agent.Order, of hypervisor.Thing, id string) error {
	n.note("release", false, "")
	return n.anyNode.ReleaseSnapshot(ctx, order, of, id)
}

func (n noting) DumpDisk(ctx context.Context, order agent.Order, spec hypervisor.Spec, d agent.Dump, params map[string]string, log func(string)) error {
	n.note("dump", d.Snapshot, "-snapshot")
	return n.anyNode.DumpDisk(ctx, order, spec, d, params, log)
}

// TestAnExportOfWhatRunsKilledAnywhere comes to what it comes to undisturbed.
func TestAnExportOfWhatRunsKilledAnywhere(t *testing.T) {
	begin := func(t *testing.T) *rig {
		r := newRig(t, "node1", "node2", "node3")
		r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"disk_template": "plain"}))
		r.keeper.OnChange(func(*cluster.Snapshot) { _ = r.called() })
		return r
	}
	for _, shutdown := range []bool{true, false} {
		killedAnywhere(t, begin, "OP_BACKUP_EXPORT", one(params{"target_node": "node2", "shutdown": shutdown}), shutdown && !testing.Short())
	}
}

// TestAnExportThatFailsLeavesTheOneBefore, and has the instance run again.
func TestAnExportThatFailsLeavesTheOneBefore(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.create("one", true)
	p := one(params{"target_node": "node2", "long_sleep": true})
	r.must(`[true,[true]]`, "OP_BACKUP_EXPORT", p)
	before := r.says("node2", "one").ID
	r.wrap = func(n Node) Node { return failing{n} }
	if _, err := r.run("OP_BACKUP_EXPORT", p); !fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "Could not copy the dumps of instance one from node1 to node2") {
		t.Fatal(err)
	}
	r.wrap = nil
	if r.says("node2", "one").ID != before || r.state("node1", "one") != hypervisor.Running {
		t.Errorf("the export is %+v, the instance %s", r.says("node2", "one"), r.state("node1", "one"))
	}
	r.nothingStaged("node1")
	r.nothingStaged("node2")
}

// TestAnExportThatCannotDumpStartsTheInstanceAgain, which it has stopped.
func TestAnExportThatCannotDumpStartsTheInstanceAgain(t *testing.T) {
	r := newRig(t)
	r.create("one", true)
	r.wrap = func(n Node) Node { return full{n} }
	if _, err := r.run("OP_BACKUP_EXPORT", one(params{"target_node": "node1", "long_sleep": true})); !fault.Is(err, fault.Failed) ||
		!strings.Contains(err.Error(), "Could not dump disk 0 of instance one on node node1") {
		t.Fatal(err)
	}
	if is := r.state("node1", "one"); is != hypervisor.Running {
		t.Errorf("the instance is %s", is)
	}
	r.nothingStaged("node1")
}

// full is a node without room for dumps.
type full struct{ anyNode }

func (full) DumpDisk(context.Context, agent.Order, hypervisor.Spec, agent.Dump, map[string]string, func(string)) error {
	return fault.New(fault.Exhausted, "there is no room")
}

// TestScriptsDumpAndImport with an operating system that has the scripts for it.
func TestScriptsDumpAndImport(t *testing.T) {
	r := newRig(t, "node1", "node2")
	for _, node := range []string{"node1", "node2"} {
		dir := filepath.Join(r.dir, node, "os", "own")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"create": "#!/bin/sh\n", "export": "#!/bin/sh\necho note >&2\necho \"$INSTANCE_NAME $EXPORT_INDEX\"\n",
			"import": "#!/bin/sh\n{ cat; echo \"for $INSTANCE_NAME $IMPORT_INDEX\"; } >>" + r.dir + "/imported\n",
			"rename": "#!/bin/sh\necho \"was $OLD_INSTANCE_NAME\" >>" + r.dir + "/imported\n", "ganeti_api_version": "20\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", params{"instance_name": "one", "mode": "create", "pnode": "node1", "disk_template": "file",
		"disks": []any{params{"size": 8}, params{"size": 8}}, "nics": []any{}, "os_type": "own", "start": false})
	r.must(`[true,[true,true]]`, "OP_BACKUP_EXPORT", one(params{"target_node": "node1"}))
	bring := params{"instance_name": "two", "mode": "import", "src_path": "one", "pnode": "node2", "disk_template": "file", "disks": []any{}, "nics": []any{}, "start": false}
	r.must(`["node2"]`, "OP_INSTANCE_CREATE", bring)
	text, err := os.ReadFile(filepath.Join(r.dir, "imported"))
	if want := "one 0\nfor two 0\none 1\nfor two 1\nwas one\n"; err != nil || string(text) != want {
		t.Errorf("%q, %v; want %q", text, err, want)
	}
	if err := os.Remove(filepath.Join(r.dir, "node2", "os", "own", "import")); err != nil {
		t.Fatal(err)
	}
	r.toldItsName()
	bring["instance_name"] = "three"
	r.refuses("OpPrereqError", "The dumps were made by the export script of the OS 'own', and node node2 has no import script of it", "OP_INSTANCE_CREATE", bring)
	if err := os.WriteFile(filepath.Join(r.dir, "node1", "os", "own", "export"), []byte("#!/bin/sh\necho broken >&2; exit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err = r.run("OP_BACKUP_EXPORT", one(params{"target_node": "node2"}))
	if !fault.Is(err, fault.Failed) || !strings.HasSuffix(err.Error(), "OS export script failed (exited with exit code 3), last lines in the log file:\nbroken") {
		t.Error(err)
	}
	r.nothingStaged("node1")
	r.nothingStaged("node2")
}

// toldItsName: who renames an instance has its system told, by the script of its node; what that does not do, does not undo the new name. The others of a
// definition without the script are not asked for it.
func (r *rig) toldItsName() {
	r.Helper()
	rename := filepath.Join(r.dir, "node2", "os", "own", "rename")
	r.must(`"four"`, "OP_INSTANCE_RENAME", params{"instance_name": "two", "new_name": "four", "name_check": false, "ip_check": false})
	text, err := os.ReadFile(filepath.Join(r.dir, "imported"))
	if err != nil || !strings.HasSuffix(string(text), "was one\nwas two\n") {
		r.Errorf("%q, %v", text, err)
	}
	if err := os.WriteFile(rename, []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
		r.Fatal(err)
	}
	r.log = nil
	r.must(`"five"`, "OP_INSTANCE_RENAME", params{"instance_name": "four", "new_name": "five", "name_check": false, "ip_check": false})
	if said := strings.Join(r.log, "\n"); !strings.Contains(said, "Failed to run rename script for five on node node2") {
		r.Errorf("it is said %q", said)
	}
	if err := os.Remove(rename); err != nil {
		r.Fatal(err)
	}
	r.log = nil
	r.must(`"two"`, "OP_INSTANCE_RENAME", params{"instance_name": "five", "new_name": "two", "name_check": false, "ip_check": false})
	if len(r.log) > 0 {
		r.Errorf("it is said %q", r.log)
	}
}

// TestScriptsThatFailTellNoSecrets: what a script was given in secret and prints is neither in the error of the opcode nor in its log.
func TestScriptsThatFailTellNoSecrets(t *testing.T) {
	r := newRig(t, "node1", "node2")
	script := func(name, text string) {
		t.Helper()
		for _, node := range []string{"node1", "node2"} {
			dir := filepath.Join(r.dir, node, "os", "own")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	const fine, tells = "#!/bin/sh\ncat >/dev/null\n", "#!/bin/sh\necho wrong is $OSP_PW >&2; exit 3\n"
	for name, text := range map[string]string{"ganeti_api_version": "20\n", "variants.list": "default\n", "parameters.list": "pw a password\n",
		"create": fine, "export": "#!/bin/sh\necho dump\n", "import": fine, "rename": fine, "verify": fine} {
		script(name, text)
	}
	private := params{"pw": "planted-private"}
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", params{"instance_name": "one", "mode": "create", "pnode": "node1", "disk_template": "file",
		"disks": []any{params{"size": 8}}, "nics": []any{}, "os_type": "own+default", "osparams_private": private, "start": false})
	r.must(`[true,[true]]`, "OP_BACKUP_EXPORT", one(params{"target_node": "node2"}))
	for _, c := range []struct {
		script, opcode string
		params         params
	}{
		{"export", "OP_BACKUP_EXPORT", one(params{"target_node": "node2"})},
		{"import", "OP_INSTANCE_CREATE", params{"instance_name": "two", "mode": "import", "src_path": "one", "pnode": "node2", "disk_template": "file", "disks": []any{}, "nics": []any{},
			"osparams_private": private, "start": false}},
		{"create", "OP_INSTANCE_REINSTALL", one(params{"osparams_private": private})},
		{"rename", "OP_INSTANCE_CREATE", params{"instance_name": "three", "mode": "import", "src_path": "one", "pnode": "node2", "disk_template": "file", "disks": []any{}, "nics": []any{},
			"osparams_private": private, "start": false}},
	} {
		script(c.script, tells)
		result, err := r.run(c.opcode, c.params)
		all := fmt.Sprint(result, err, r.log)
		if strings.Contains(all, "planted") || !strings.Contains(all, "wrong is <redacted>") {
			t.Errorf("%s: %s", c.opcode, all)
		}
		script(c.script, fine)
	}
}

// TestAnImportGoesOnUnderAnother controller, which knows the export no more.
func TestAnImportGoesOnUnderAnother(t *testing.T) {
	plain := params{"instance_name": "two", "mode": "import", "src_path": "one", "pnode": "node2", "disk_template": "file", "disks": []any{}, "nics": []any{}, "start": false}
	for until := 1; ; until++ {
		r := newRig(t, "node1", "node2")
		r.create("one", false)
		r.must(`[true,[true]]`, "OP_BACKUP_EXPORT", one(params{"target_node": "node1", "remove_instance": true}))
		r.keeper.OnChange(func(*cluster.Snapshot) { _ = r.called() })
		op := r.opcode("OP_INSTANCE_CREATE", plain)
		first := r.live(op, 1, false, until)
		if !first.dead {
			if first.err != nil || until < 4 {
				t.Fatalf("undisturbed it comes to %v, %d times", first.err, until)
			}
			return
		}
		if then := r.live(op, 2, true, 1000); then.err != nil || then.result != `["node2"]` {
			t.Fatalf("killed at %d it comes to %s, %v", until, then.result, then.err)
		}
		if two := r.instance("two"); len(two.NICs) != 1 || len(two.Disks) != 1 || r.state("node2", "two") != hypervisor.Stopped {
			t.Errorf("killed at %d it is %+v", until, two)
		}
		r.nothingStaged("node2")
	}
}

// writesNothing is a node that writes no dump on a disk.
type writesNothing struct{ anyNode }

func (writesNothing) ImportDisk(context.Context, agent.Order, hypervisor.Spec, agent.Dump, map[string]string, func(string)) error {
	return fault.New(fault.Exhausted, "there is no room")
}

// TestAnImportThatFailsTellsWhatIsLeft: nothing is taken back once the instance is there, so the copies of its dumps stay, too.
func TestAnImportThatFailsTellsWhatIsLeft(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.create("one", false)
	r.must(`[true,[true]]`, "OP_BACKUP_EXPORT", one(params{"target_node": "node1", "remove_instance": true}))
	r.wrap = func(n Node) Node { return writesNothing{n} }
	_, err := r.run("OP_INSTANCE_CREATE", params{"instance_name": "two", "mode": "import", "src_path": "one", "pnode": "node2", "disk_template": "file", "disks": []any{}, "nics": []any{}, "start": false})
	if !fault.Is(err, fault.Failed) || !strings.Contains(err.Error(), "Could not import disk 0 of instance two") {
		t.Fatal(err)
	}
	if text := strings.Join(r.log, "\n"); !strings.Contains(text, "Node node2 still has dumps of instance one in export/.staged/") || !strings.Contains(text, "next: drover node clear-orphans node2 ") {
		t.Errorf("the log is %s", text)
	}
}

// failing is a node that keeps no dumps of others.
type failing struct{ anyNode }

func (failing) KeepDump(context.Context, agent.Order, exports.Place, agent.Piece) error {
	return fault.New(fault.Exhausted, "there is no room")
}
