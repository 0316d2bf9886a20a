// Package backendtest is the conformance suite of tagsync.Backend: what servers rely on of every kind of cluster, above all
// that nothing is done to an instance that is not the server's.
//
// Invariants:
//   - What servers do to the cluster goes by the port alone; what an operator does there, and what there is in truth, is
//     done and read in the controller behind it.
package backendtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/tagsync"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/controller"
)

// World is a cluster, from both sides.
type World struct {
	tagsync.Backend

	// Name is that of the cluster for servers; empty for Drover's own.
	Name string
	// Core is the controller of the cluster.
	Core *controller.Controller
}

// Run runs the suite. Each case opens a cluster of its own, without instances.
func Run(t *testing.T, open func(t *testing.T) World) {
	for _, c := range []struct {
		name string
		run  func(*fixture)
	}{
		{"an instance is looked for by its UUID", byUUID},
		{"every verb reaches the server's instance", verbsReach},
		{"no verb reaches another one that has its name", verbsSpare},
		{"nor another one that got its name later, than the job was handed in", verbsSpareLate},
		{"a creation spares what has the name already", creationSpares},
		{"a creation is remembered", creationRemembered},
		{"a rebuild is handed in once", installedOnce},
		{"whoever follows hears of renamings", renamingsHeard},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fixture{T: t, World: open(t), news: make(chan struct{}, 1), heard: make(chan server.Ref, enough)}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- f.Follow(ctx, f.hear) }()
			t.Cleanup(func() {
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
			c.run(f)
		})
	}
}

type fixture struct {
	*testing.T
	World

	news  chan struct{}   // has a token when something was told
	heard chan server.Ref // what was told, as far as anybody wants to know
}

// enough is how much is told in one case, at the most.
const enough = 10_000

func (f *fixture) hear(ref server.Ref) {
	select {
	case f.news <- struct{}{}:
	default:
	}
	select {
	case f.heard <- ref:
	default:
	}
}

func (f *fixture) check(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

var policy = servertag.DefaultPolicy()

// creation is a server whose creation is about to be handed in, and its key.
func (f *fixture) creation() (s *server.Server, key string) {
	f.Helper()
	id := testkit.NewUUID()
	s, err := (&server.Server{ID: id, Number: 1, Instance: "snf-1", Backend: f.Name, Flavor: server.Flavor{ID: "s", RAM: 128, VCPUs: 1, Disk: 1}, Image: server.DefaultImages()[0]}).
		Begin(server.Create, servertag.Asked{User: "alice", Front: "compute", Time: 1})
	f.check(err)
	return s, "server/" + id + "/task/1"
}

// made is a server that is there.
func (f *fixture) made() (s *server.Server, key string) {
	f.Helper()
	s, key = f.creation()
	op, err := s.Opcode(s.Doing())
	f.check(err)
	id, err := f.Submit(f.Context(), key, op)
	f.check(err)
	s = s.Submitted(1, id)
	sight := f.awaitEnd(s.Ref(), id)
	if s = s.Settle(policy, s.Own(sight)); s.UUID == "" || s.UUID != f.instance("snf-1").UUID {
		f.Fatalf("of %+v it becomes %+v", sight, s)
	}
	return s, key
}

// awaitEnd looks at an instance until a job has ended.
func (f *fixture) awaitEnd(ref server.Ref, id job.ID) server.Sight {
	f.Helper()
	limit := time.After(testkit.Patience())
	for {
		sight, err := f.Look(f.Context(), ref, []job.ID{id})
		f.check(err)
		if _, over := sight.Ended[id]; over {
			sight.Now = job.At(time.Now())
			return sight
		}
		select {
		case <-f.news:
		case <-limit:
			f.Fatalf("job %d does not end", id)
		}
	}
}

// byOperator marks the jobs of the cluster's operator, which no rule of the suite holds.
const byOperator = "operator"

// operate has a job done by the cluster's operator.
func (f *fixture) operate(id string, params map[string]any) {
	f.Helper()
	params["reason"] = reason.Trail{{Source: reason.SourceUser, Reason: byOperator, Time: 1}}
	op, err := opcode.FromMap(id, params)
	f.check(err)
	jobID, err := f.Core.Queue.Submit(f.Context(), queue.Submission{Ops: []*opcode.Opcode{op}})
	f.check(err)
	j, err := f.Core.Queue.Wait(f.Context(), jobID, (*job.Job).Final)
	f.check(err)
	if j.Status() != job.Success {
		f.Fatalf("%s %v: %s", id, params, j.Ops[0].Result)
	}
}

// instance is what the cluster has under a name; nil for nothing.
func (f *fixture) instance(name string) *cluster.Instance {
	return f.Core.Picture.Load().Inventory.InstanceNamed(name)
}

// hold has the cluster hold all jobs but the operator's, until release.
func (f *fixture) hold() (release func()) {
	f.Helper()
	rule := func(priority int, action jobfilter.Kind, when string) (uuid string) {
		f.Helper()
		predicates, err := jobfilter.ParseWhen(when)
		f.check(err)
		uuid, _, err = f.Core.Queue.PutFilter(f.Context(), "", jobfilter.Rule{Priority: priority, Predicates: predicates, Action: jobfilter.Action{Kind: action}}, queue.By{})
		f.check(err)
		return uuid
	}
	rules := []string{rule(1, jobfilter.Accept, `reason: reason == "`+byOperator+`"`), rule(2, jobfilter.Pause, `jobid: id >= 0`)}
	return func() {
		f.Helper()
		for _, uuid := range rules {
			f.check(f.Core.Queue.DeleteFilter(f.Context(), uuid, queue.By{}))
		}
	}
}

// operator makes an instance as an operator does.
func (f *fixture) operator(name string, tags ...any) *cluster.Instance {
	f.Helper()
	f.operate("OP_INSTANCE_CREATE", map[string]any{"instance_name": name, "mode": "create", "disk_template": "diskless", "disks": []any{}, "nics": []any{},
		"os_type": "noop", "name_check": false, "ip_check": false, "tags": append([]any{"theirs"}, tags...)})
	return f.instance(name)
}

func (f *fixture) rename(name, to string) {
	f.Helper()
	f.operate("OP_INSTANCE_SHUTDOWN", map[string]any{"instance_name": name})
	f.operate("OP_INSTANCE_RENAME", map[string]any{"instance_name": name, "new_name": to, "name_check": false, "ip_check": false})
}

func (f *fixture) remove(name string) {
	f.Helper()
	f.operate("OP_INSTANCE_REMOVE", map[string]any{"instance_name": name, "ignore_failures": true})
}

// sees holds what is seen of a reference to a UUID and a name. That the instance of a UUID is not there has its reason, also where another one has the name.
func (f *fixture) sees(ref server.Ref, uuid, name string) {
	f.Helper()
	sight, err := f.Look(f.Context(), ref, nil)
	if err != nil || sight.Instance != (uuid != "") || sight.UUID != uuid || sight.Name != name {
		f.Errorf("%+v is seen as %+v, %v; want %s %s", ref, sight, err, uuid, name)
	}
	if there := sight.UUID == ref.UUID; ref.UUID != "" && there != (sight.Absent == "") {
		f.Errorf("%+v is there: %t, and that it is absent is known since %q", ref, there, sight.Absent)
	}
}

func byUUID(f *fixture) {
	f.sees(server.Ref{Name: "snf-1"}, "", "")
	f.sees(server.Ref{UUID: testkit.NewUUID(), Name: "snf-1"}, "", "")
	first := f.operator("snf-1").UUID
	meant := server.Ref{UUID: first, Name: "snf-1"}
	for _, ref := range []server.Ref{meant, {Name: "snf-1"}, {UUID: first}, {UUID: first, Name: "other"}} {
		f.sees(ref, first, "snf-1")
	}
	f.rename("snf-1", "renamed")
	f.sees(meant, first, "renamed")
	f.sees(server.Ref{Name: "snf-1"}, "", "")
	second := f.operator("snf-1").UUID // as one that is put back from a backup
	f.sees(meant, first, "renamed")
	f.sees(server.Ref{Name: "snf-1"}, second, "snf-1")
	f.remove("renamed")
	f.sees(meant, second, "snf-1") // another one, as its UUID says
	f.remove("snf-1")
	f.sees(meant, "", "")
}

// verb is something that is done to a server.
type verb struct {
	name string
	op   func(*server.Server) (*opcode.Opcode, error)
	// ops are those of a job of several, in place of op.
	ops func(*server.Server) ([]*opcode.Opcode, error)
	// done tells of what is left of the instance whether it was done; nil for one that is gone.
	done func(*cluster.Instance) bool
}

// verbs are all that is done to servers once they are there, in an order in which each can be.
func verbs() []verb {
	task := func(do server.Do) func(s *server.Server) (*opcode.Opcode, error) {
		return func(s *server.Server) (*opcode.Opcode, error) {
			return s.Opcode(&server.Task{Do: do, Asked: servertag.Asked{User: "alice", Front: "compute", Time: 1}})
		}
	}
	sized := func(do server.Do) func(s *server.Server) (*opcode.Opcode, error) {
		return func(s *server.Server) (*opcode.Opcode, error) {
			return s.Opcode(&server.Task{Do: do, Asked: servertag.Asked{User: "alice", Front: "compute", Time: 1}, Flavor: &server.Flavor{RAM: 192, VCPUs: 2}})
		}
	}
	effect := func(e servertag.Effect, undo bool) func(s *server.Server) (*opcode.Opcode, error) {
		return func(s *server.Server) (*opcode.Opcode, error) {
			return s.EffectOpcode(&servertag.Applied{Effect: e, Undo: undo})
		}
	}
	tag := func(a servertag.Action) func(s *server.Server) (*opcode.Opcode, error) {
		return func(s *server.Server) (*opcode.Opcode, error) {
			return s.TagOpcode(&servertag.Job{Action: a, Tags: []servertag.Ref{{Raw: "cyclades:user:web"}}})
		}
	}
	tagged := func(raw string, want bool) func(*cluster.Instance) bool {
		return func(i *cluster.Instance) bool { return i != nil && i.Tags.Has(raw) == want }
	}
	state := func(want string) func(*cluster.Instance) bool {
		return func(i *cluster.Instance) bool { return i != nil && i.AdminState == want }
	}
	rebuild := func(run bool) func(s *server.Server) ([]*opcode.Opcode, error) {
		return func(s *server.Server) ([]*opcode.Opcode, error) {
			return s.Opcodes(&server.Task{Do: server.Rebuild, Asked: servertag.Asked{User: "alice", Front: "compute", Time: 1}, Anew: &server.Anew{Run: run}})
		}
	}
	label, parameter := servertag.Effect{Label: "label"}, servertag.Effect{Parameter: "vcpus", Value: int64(3)}
	return []verb{
		{"stop", task(server.Stop), nil, state(cluster.AdminDown)},
		{"start", task(server.Start), nil, state(cluster.AdminUp)},
		{"reboot", task(server.Reboot), nil, state(cluster.AdminUp)},
		{"reboot-hard", task(server.RebootHard), nil, state(cluster.AdminUp)},
		{"rebuild what is to be stopped", nil, rebuild(false), state(cluster.AdminDown)},
		{"rebuild what is to run", nil, rebuild(true), state(cluster.AdminUp)},
		{"resize", sized(server.Resize), nil, func(i *cluster.Instance) bool {
			return i != nil && fmt.Sprint(i.BEParams["maxmem"], i.BEParams["minmem"], i.BEParams["vcpus"]) == "192 192 2"
		}},
		{"restart", task(server.Restart), nil, state(cluster.AdminUp)},
		{"confirm a larger disk", func(s *server.Server) (*opcode.Opcode, error) {
			larger := *s
			larger.Flavor.Disk = 2
			return larger.Opcode(&server.Task{Do: server.Confirm, Asked: servertag.Asked{User: "alice", Front: "compute", Time: 1}})
		}, nil, func(i *cluster.Instance) bool { return i != nil && len(i.Disks) == 1 && i.Disks[0].Size == 2048 }},
		{"add a tag", tag(servertag.Add), nil, tagged("cyclades:user:web", true)},
		{"remove a tag", tag(servertag.Remove), nil, tagged("cyclades:user:web", false)},
		{"apply a label", effect(label, false), nil, tagged("label", true)},
		{"take a label back", effect(label, true), nil, tagged("label", false)},
		{"apply a parameter", effect(parameter, false), nil, func(i *cluster.Instance) bool { return i != nil && fmt.Sprint(i.BEParams["vcpus"]) == "3" }},
		{"delete", task(server.Delete), nil, func(i *cluster.Instance) bool { return i == nil }},
	}
}

// attempt has a verb done, and returns how that ended: refused when it was handed in, or by its job.
func (f *fixture) attempt(v verb, s *server.Server, meanwhile func()) servertag.Outcome {
	f.Helper()
	id, err := f.Submit(f.Context(), "key of "+v.name+" "+s.ID, f.opcodesOf(v, s)...)
	meanwhile()
	if err != nil {
		return servertag.Outcome{Text: err.Error()}
	}
	return f.awaitEnd(s.Ref(), id).Ended[id]
}

// opcodesOf are those of a verb.
func (f *fixture) opcodesOf(v verb, s *server.Server) []*opcode.Opcode {
	f.Helper()
	if v.op == nil {
		ops, err := v.ops(s)
		f.check(err)
		return ops
	}
	op, err := v.op(s)
	f.check(err)
	return []*opcode.Opcode{op}
}

func nothing() {}

// installedOnce: what became of the job of a rebuild can be found out by who did not hear the answer, and one of before is not taken for it.
func installedOnce(f *fixture) {
	s, _ := f.made()
	ops, err := s.Opcodes(&server.Task{Do: server.Rebuild, Asked: servertag.Asked{User: "alice", Front: "compute", Time: 1}, Anew: &server.Anew{Run: true}})
	f.check(err)
	for n := range 2 {
		after, keyed, err := f.Newest(f.Context())
		f.check(err)
		key := fmt.Sprintf("server/%s/task/%d", s.ID, n+2)
		if keyed {
			first, err := f.Submit(f.Context(), key, ops...)
			f.check(err)
			f.awaitEnd(s.Ref(), first)
			if again, err := f.Submit(f.Context(), key, ops...); err != nil || again != first {
				f.Errorf("handed in again it is job %d, %v; it was %d", again, err, first)
			}
			continue
		}
		if none, err := f.Find(f.Context(), after, ops...); err != nil || none != 0 {
			f.Errorf("before it was handed in it is job %d, %v", none, err)
		}
		id, err := f.Submit(f.Context(), key, ops...)
		f.check(err)
		f.awaitEnd(s.Ref(), id)
		f.operate("OP_INSTANCE_SHUTDOWN", map[string]any{"instance_name": "snf-1"})
		if found, err := f.Find(f.Context(), after, ops...); err != nil || found != id {
			f.Errorf("it is found as job %d, %v; it is %d", found, err, id)
		}
		if other, err := f.Find(f.Context(), after, ops[:2]...); err != nil || other != 0 {
			f.Errorf("one that starts nothing is found as job %d, %v", other, err)
		}
	}
}

func verbsReach(f *fixture) {
	s, _ := f.made()
	beside := f.operator("snf-2")
	for _, v := range verbs() {
		if o := f.attempt(v, s, nothing); !o.OK || !v.done(f.instance("snf-1")) {
			f.Errorf("%s ends as %+v, and leaves %+v", v.name, o, f.instance("snf-1"))
		}
	}
	f.spared("all that was done to a server", beside)
}

// replaced is a server whose instance was removed, and that of the operator which has its name.
func (f *fixture) replaced() (*server.Server, *cluster.Instance) {
	f.Helper()
	s, _ := f.made()
	f.remove("snf-1")
	return s, f.operator("snf-1", server.Mark(s.ID)) // as one that was put back with its tags
}

// spared holds that an operator's machine is as it was made.
func (f *fixture) spared(what string, as *cluster.Instance) {
	f.Helper()
	now := f.instance(as.Name)
	if now == nil || now.UUID != as.UUID || now.Serial != as.Serial || now.AdminState != as.AdminState || now.MTime != as.MTime {
		f.Fatalf("behind %s the operator's machine is %+v, and was %+v", what, now, as)
	}
}

func verbsSpare(f *fixture) {
	s, stranger := f.replaced()
	for _, v := range verbs() {
		if o := f.attempt(v, s, nothing); o.OK {
			f.Errorf("%s succeeds", v.name)
		}
		f.spared(v.name, stranger)
	}
}

// verbsSpareLate replaces the server's instance while the job waits.
func verbsSpareLate(f *fixture) {
	for _, v := range verbs() {
		s, _ := f.made()
		release := f.hold()
		var stranger *cluster.Instance
		o := f.attempt(v, s, func() {
			f.remove("snf-1")
			stranger = f.operator("snf-1")
			release()
		})
		if o.OK {
			f.Errorf("%s succeeds", v.name)
		}
		f.spared(v.name, stranger)
		f.remove("snf-1")
	}
}

func creationSpares(f *fixture) {
	stranger := f.operator("snf-1")
	s, key := f.creation()
	op, err := s.Opcode(s.Doing())
	f.check(err)
	id, err := f.Submit(f.Context(), key, op)
	f.check(err)
	s = s.Submitted(1, id)
	sight := f.awaitEnd(s.Ref(), id)
	if s = s.Settle(policy, s.Own(sight)); s.UUID != "" || s.Status() != server.Failed {
		f.Errorf("the server is %+v", s)
	}
	f.spared("a creation", stranger)
}

func creationRemembered(f *fixture) {
	s, key := f.made()
	o, known, err := f.Creation(f.Context(), key, s)
	if err != nil || !known || !o.OK || o.Began == 0 || o.Ended < o.Began {
		f.Errorf("its creation is told as %+v %v, %v", o, known, err)
	}
	before := *s
	before.UUID = ""
	sight, err := f.Look(f.Context(), before.Ref(), nil)
	f.check(err)
	sight.Creation, sight.Now = o, job.At(time.Now())
	if again := before.Settle(policy, before.Own(sight)); again.UUID != s.UUID {
		f.Errorf("a record of before becomes %+v", again)
	}
	other := &server.Server{ID: testkit.NewUUID(), Instance: "snf-1", Backend: f.Name}
	if o, known, err := f.Creation(f.Context(), "server/"+other.ID+"/task/1", other); err != nil || known {
		f.Errorf("the creation of another server: %+v %v, %v", o, known, err)
	}
}

func renamingsHeard(f *fixture) {
	uuid := f.operator("snf-1").UUID
	f.hears(server.Ref{UUID: uuid, Name: "snf-1"})
	f.rename("snf-1", "renamed")
	f.hears(server.Ref{UUID: uuid, Name: "renamed"})
	f.remove("renamed")
	f.hears(server.Ref{UUID: uuid, Name: "renamed"})
}

// hears waits until something is told.
func (f *fixture) hears(want server.Ref) {
	f.Helper()
	limit := time.After(testkit.Patience())
	for {
		select {
		case ref := <-f.heard:
			if ref == want {
				return
			}
		case <-limit:
			f.Fatalf("nothing is told of %+v", want)
		}
	}
}
