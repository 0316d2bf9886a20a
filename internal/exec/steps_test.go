package exec

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/work"
)

// orders are the methods by which a node is told to change something, and by which the inventory is changed.
func orders() []string {
	out := []string{"Update", "UpdateNoted"}
	node := reflect.TypeFor[Node]()
	for m := range node.Methods() {
		if m.Type.NumIn() > 1 && m.Type.In(1).Name() == "Order" && m.Name != "RunTask" {
			out = append(out, m.Name)
		}
	}
	return out
}

// TestExecutorsGiveNoOrders reads from the syntax tree that only the engine and its verbs tell nodes to change something and change the
// inventory, so that no executor does it, or takes something back, by hand.
func TestExecutorsGiveNoOrders(t *testing.T) {
	names := orders()
	if len(names) < 11 || !slices.Contains(names, "Start") {
		t.Fatalf("the orders are %v", names)
	}
	files, found := token.NewFileSet(), map[string]int{}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.DeleteFunc(sources, func(s string) bool { return strings.HasSuffix(s, "_test.go") }) {
		file, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			s, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(names, s.Sel.Name) || len(call.Args) < 2 || len(call.Args) == 2 && !strings.HasPrefix(s.Sel.Name, "Update") {
				return true
			}
			if found[name]++; !strings.HasPrefix(name, "verbs") && name != "engine.go" {
				t.Errorf("%s gives the order %s", files.Position(call.Pos()), s.Sel.Name)
			}
			return true
		})
	}
	if found["verbs.go"] < 9 || found["engine.go"] != 1 {
		t.Errorf("orders were found in %v", found)
	}
}

// A controller that stops leaves what is half done to the next one as it is: nothing is taken back.
func TestAStopLeavesTheRestToTheNext(t *testing.T) {
	r := killable(t)
	op := r.opcode("OP_INSTANCE_CREATE", several["OP_INSTANCE_CREATE"])
	ctx, stop := context.WithCancel(t.Context())
	var steps []job.Step
	env := r.env(op)
	env.Term, env.Show = ctx, func(s []job.Step) { steps = s }
	calls := 0
	stops := func() error {
		if calls++; calls == 2 { // the disks are there
			stop()
		}
		return nil
	}
	r.onCall.Store(&stops)
	_, err := r.all.Run(ctx, env)
	r.onCall.Store(nil)
	if !fault.Is(err, fault.Canceled) {
		t.Fatalf("it ends with %v", err)
	}
	if steps[0].State != job.StepDone || steps[1].State != job.StepPlanned || r.state("node1", "new") == "" {
		t.Errorf("the steps are %+v, the node has %q", steps[:2], r.state("node1", "new"))
	}
}

// A job that was being killed when the controller ended is taken back by the next one, unless what it did has to stay.
func TestWhatWasBeingKilledIsTakenBack(t *testing.T) {
	for until, stays := range map[int]bool{3: false, 6: true} {
		r := killable(t)
		before := r.whole()
		op := r.opcode("OP_INSTANCE_CREATE", several["OP_INSTANCE_CREATE"])
		if got := r.live(op, 1, false, until); !got.dead {
			t.Fatal("it was not killed")
		}
		env := r.env(op)
		env.Job, env.Epoch = 77, 2
		env.Kept, env.Resumed, env.Undo, env.Stepwise = r.kept(env), true, true, true
		_, err := r.all.Run(t.Context(), env)
		if !errors.Is(err, error(errKilled)) {
			t.Errorf("it ends with %v", err)
		}
		if after := r.whole(); stays != (after != before) || stays != (r.keeper.Snapshot().InstanceNamed("new") != nil) {
			t.Errorf("stays %v:\n%s\nbefore:\n%s", stays, after, before)
		}
	}
}

// What cannot be taken back is told: what is left where, and what to type.
func TestWhatIsLeftIsTold(t *testing.T) {
	r := killable(t)
	op := r.opcode("OP_INSTANCE_RENAME", several["OP_INSTANCE_RENAME"])
	env := r.env(op)
	var steps []job.Step
	env.Show = func(s []job.Step) { steps = s }
	r.failOn("node1", "rename", true) // it is renamed, and neither that nor its return is answered
	r.log = nil
	_, err := r.all.Run(t.Context(), env)
	if err == nil || !strings.Contains(err.Error(), "Could not rename instance down on node node1") {
		t.Errorf("it ends with %v", err)
	}
	uuid := r.instance("down").UUID
	r.logged(" - WARNING: Could not give instance down its name back on node node1: the driver is broken on purpose",
		" - WARNING: On node node1 instance down ("+uuid+") is still called other: rename it again when the node works")
	if steps[0].State != job.StepLeft || steps[1].State != job.StepPlanned {
		t.Errorf("the steps are %+v", steps)
	}
}

// What was kept and cannot be read any more is refused, and a step whose secret was lost is where it ends.
func TestWhatCannotGoOnSaysWhy(t *testing.T) {
	unknown := Kept{Work: &work.Work{Steps: []work.Step{{Verb: startInstance}, {Verb: "teleport", Text: "send it there"}}}}
	if err := unknown.Readable(); !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "its step 2, send it there") {
		t.Errorf("an unknown verb: %v", err)
	}
	back := Kept{Work: &work.Work{Steps: []work.Step{{Verb: startInstance, Undo: &work.Step{Verb: "teleport"}}}}}
	if err := back.Readable(); !fault.Is(err, fault.Unsupported) {
		t.Errorf("an unknown verb that takes something back: %v", err)
	}
	r := killable(t)
	op := r.opcode("OP_INSTANCE_REINSTALL", params{"instance_name": "down", "osparams_secret": params{"root": "<redacted>"}})
	env := r.env(op)
	inst := r.instance("down")
	env.Resumed, env.Stepwise = true, true
	env.Kept = &Kept{Work: &work.Work{Steps: []work.Step{
		onNode(installSystem, inst.PrimaryNode, inst.UUID, "install it", installArgs{Given: true}), inInventory(setSystem, inst.UUID, "remember it", nil)}}}
	if _, err := r.all.Run(t.Context(), env); err == nil || !strings.Contains(err.Error(), "was lost when the controller ended") {
		t.Errorf("a step whose secret is lost: %v", err)
	}
	env = r.env(op)
	env.Resumed, env.Stepwise = true, true
	env.Kept = &Kept{Work: &work.Work{Steps: []work.Step{{}, inInventory(setSystem, inst.UUID, "remember it", nil)}}, Progress: work.Progress{Done: 1}}
	if _, err := r.all.Run(t.Context(), env); err != nil {
		t.Errorf("behind the step that needs the secret: %v", err)
	}
}

// How far an opcode came is noted with the changes that it makes; a note of its own is written only before an order behind an
// installation, which may not be repeated then.
func TestNotesGoAlongWithChanges(t *testing.T) {
	for id, want := range map[string][2]int{ // transactions with a note, of which such that change nothing besides
		"OP_INSTANCE_CREATE": {3, 1}, "OP_INSTANCE_REINSTALL": {1, 0}, "OP_INSTANCE_RENAME": {1, 0}, "OP_INSTANCE_GROW_DISK": {1, 0}, "OP_INSTANCE_REMOVE": {1, 0},
	} {
		r := killable(t)
		var notes, alone int
		r.store.Inject(faultstore.Fault{When: func(tx store.Tx) bool {
			if slices.ContainsFunc(tx.Put, func(p store.Put) bool { return p.Kind == KindStep }) {
				if notes++; len(tx.Put)+len(tx.Delete) == 1 {
					alone++
				}
			}
			return false
		}})
		if got := r.live(r.opcode(id, several[id]), 1, false, 1000); got.err != nil {
			t.Fatal(got.err)
		}
		if got := [2]int{notes, alone}; got != want {
			t.Errorf("%s is noted in %d transactions, of which %d change nothing, want %v", id, notes, alone, want)
		}
	}
}
