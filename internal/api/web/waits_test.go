package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/hypervisor/fake"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/schedule"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/controller"
)

// queued has a job of opcodes taken, each written as ID and parameters, and returns its id.
func (r *rig) queued(ops ...string) job.ID {
	r.Helper()
	var s queue.Submission
	for _, text := range ops {
		id, parameters, _ := strings.Cut(text, " ")
		values := map[string]any{}
		if parameters != "" {
			if err := json.Unmarshal([]byte(parameters), &values); err != nil {
				r.Fatalf("%s: %v", text, err)
			}
		}
		op, err := opcode.FromMap(id, values)
		if err != nil {
			r.Fatalf("%s: %v", text, err)
		}
		s.Ops = append(s.Ops, op)
	}
	id, err := r.c.Queue.Submit(r.Context(), s)
	if err != nil {
		r.Fatal(err)
	}
	return id
}

// becomes waits until a job has a status.
func (r *rig) becomes(id job.ID, want job.Status) {
	r.Helper()
	r.until(fmt.Sprintf("job %d is %s", id, want), func() bool {
		j, err := r.c.Queue.Job(r.Context(), id)
		if err != nil || j.Final() && j.Status() != want {
			r.Fatalf("job %d: %v %v", id, j.Status(), err)
		}
		return j.Status() == want
	})
}

// until looks after every change whether something holds.
func (r *rig) until(what string, holds func() bool) {
	r.Helper()
	limit := time.After(testkit.Patience())
	for {
		changed := r.c.Picture.Changed()
		if holds() {
			return
		}
		select {
		case <-changed:
		case <-limit:
			r.Fatalf("this never came about: %s", what)
		}
	}
}

// rule adds a filter rule and returns its UUID.
func (r *rig) rule(parts string) string {
	r.Helper()
	rule, err := jobfilter.ParseRule([]byte(parts))
	if err != nil {
		r.Fatal(err)
	}
	uuid, _, err := r.c.Queue.PutFilter(r.Context(), "", rule, queue.By{})
	if err != nil {
		r.Fatal(err)
	}
	return uuid
}

// ends has a job done to its end.
func (r *rig) ends(ops ...string) {
	r.Helper()
	r.becomes(r.queued(ops...), job.Success)
}

// Opcodes of the situations: one that takes node1 for itself, one that shares the cluster alone, and one that has a limit of its own.
const (
	takesNode  = `OP_TEST_DELAY {"duration":600,"no_locks":false}`
	takesNone  = `OP_TEST_DELAY {"duration":600,"no_locks":true}`
	labelled   = `OP_TEST_DELAY {"duration":600,"no_locks":true,"reason":[["gnt:user","rate-limit:1:lab",1]]}`
	newMachine = `OP_INSTANCE_CREATE {"instance_name":"%s","mode":"create","os_type":"noop","disk_template":"diskless","disks":[],"nics":[%s],"name_check":false,"ip_check":false}`
	delays     = `"predicates":[["opcode",["=","OP_ID","OP_TEST_DELAY"]]]`
)

// behind is a job that waits for others.
func behind(statuses string, ids ...job.ID) string {
	var on []string
	for _, id := range ids {
		on = append(on, fmt.Sprintf("[%d,[%s]]", id, statuses))
	}
	return fmt.Sprintf(`OP_TEST_DELAY {"duration":600,"no_locks":true,"depends":[%s]}`, strings.Join(on, ","))
}

// slots has so many jobs run at a time.
func (r *rig) slots(n int) {
	r.Helper()
	r.ends(fmt.Sprintf(`OP_CLUSTER_SET_PARAMS {"max_running_jobs":%d}`, n))
}

// away has node1 waited for.
func (r *rig) away(lost bool) {
	r.Helper()
	n := r.c.Keeper.Snapshot().NodeNamed("node1.example")
	r.c.Queue.Await(map[string]*schedule.Absence{n.UUID: {Node: n.Name, UUID: n.UUID, Lost: lost}})
}

// running has a job taken, waits until it runs, and returns its id.
func (r *rig) running(ops ...string) job.ID {
	r.Helper()
	id := r.queued(ops...)
	r.becomes(id, job.Running)
	return id
}

// stuck is an instance, on a network, that is being made, which does not end.
func (r *rig) stuck() job.ID {
	r.Helper()
	r.ends(`OP_NETWORK_ADD {"network_name":"lan","network":"192.0.2.0/28"}`)
	r.ends(`OP_NETWORK_CONNECT {"network_name":"lan","group_name":"default","network_mode":"bridged","network_link":"br0"}`)
	return r.running(fmt.Sprintf(newMachine, "stuck", `{"network":"lan","ip":"pool"}`))
}

// begun is a deployment that is on its way.
func (r *rig) begun() {
	r.Helper()
	r.shop("red")
	d, _, err := r.c.Rollout.Plan(r.Context(), rollout.Wish{Environment: "prod"}, rollout.By{})
	if err == nil {
		_, err = r.c.Rollout.Begin(r.Context(), d.ID, rollout.By{})
	}
	if err != nil {
		r.Fatal(err)
	}
}

// situations are those in which jobs wait, each with what Now says of it: how many jobs wait for the same, for what, and what is in the sentence about the
// first of them, or in what would have to change. In these texts $1 stands for the beginning of the UUID of the rule.
var situations = []struct {
	name string
	make func(r *rig) string
	jobs int64
	why  string
	says []string
}{
	{"a rule that pauses", func(r *rig) string {
		r.rule(`{"name":"backup","action":"PAUSE",` + delays + `,"reason":[["gnt:user","the disks are copied",1]]}`)
		r.queued(takesNone)
		r.queued(takesNode)
		return ""
	}, 2, "rule backup", []string{"the disks are copied", "drover filter delete backup"}},
	{"a rule without a name", func(r *rig) string {
		uuid := r.rule(`{"action":"PAUSE",` + delays + `}`)
		r.queued(takesNone)
		return uuid[:8]
	}, 1, "rule $1", []string{"drover filter delete $1"}},
	{"a rule behind one that lets go on", func(r *rig) string {
		r.rule(`{"name":"first","priority":1,"action":"CONTINUE",` + delays + `}`)
		r.rule(`{"name":"second","priority":2,"action":"PAUSE",` + delays + `}`)
		r.queued(takesNone)
		return ""
	}, 1, "rule second", []string{"drover filter delete second"}},
	{"a rule about an opcode that comes later", func(r *rig) string {
		r.rule(`{"name":"tags","action":"PAUSE","predicates":[["opcode",["=","OP_ID","OP_TAGS_SET"]]]}`)
		r.queued(takesNone, `OP_TAGS_SET {"kind":"cluster","tags":["x"]}`)
		return ""
	}, 1, "rule tags", []string{"drover filter delete tags"}},
	{"a rule that lets some at a time", func(r *rig) string {
		r.rule(`{"name":"slowly","action":["RATE_LIMIT",1],` + delays + `}`)
		r.running(takesNone)
		r.queued(takesNone)
		return ""
	}, 1, "limit 1 of rule slowly", []string{"1 of 1 jobs", "rate limit 1 of filter rule slowly"}},
	{"a limit of its own reason", func(r *rig) string {
		r.running(labelled)
		r.queued(labelled)
		return ""
	}, 1, "limit 1 of lab", []string{"rate-limit:1:lab"}},
	{"the lock of a node", func(r *rig) string {
		r.running(takesNode)
		r.queued(takesNode)
		return ""
	}, 1, "lock node/node1.example of job 1", []string{"held by job 1", "lock node/node1.example have to end: job 1"}},
	{"the lock of a node that others want, too", func(r *rig) string {
		r.running(takesNode)
		r.queued(takesNode)
		r.queued(takesNode)
		return ""
	}, 2, "lock node/node1.example of job 1", []string{"held by job 1"}},
	{"the lock of an instance", func(r *rig) string {
		r.stuck()
		r.queued(fmt.Sprintf(newMachine, "stuck", ""))
		return ""
	}, 1, "lock instance/stuck of job 3", []string{"held by job 3"}},
	{"the lock of a network", func(r *rig) string {
		r.stuck()
		r.queued(`OP_NETWORK_SET_PARAMS {"network_name":"lan","gateway":"192.0.2.1"}`)
		return ""
	}, 1, "lock network/lan of job 3", []string{"held by job 3"}},
	{"a placement, which wants all nodes", func(r *rig) string {
		r.running(takesNode)
		r.queued(fmt.Sprintf(newMachine, "web1", ""))
		return ""
	}, 1, "lock node/[lockset] of job 1", []string{"held by job 1"}},
	{"the lock of a group, of one that waits for a node", func(r *rig) string {
		r.running(takesNode)
		r.queued(`OP_GROUP_ASSIGN_NODES {"group_name":"default","nodes":["node1.example"]}`)
		r.queued(`OP_GROUP_SET_PARAMS {"group_name":"default","alloc_policy":"last_resort"}`)
		return ""
	}, 1, "lock nodegroup/default of job 2", []string{"held by job 2"}},
	{"the whole cluster", func(r *rig) string {
		r.running(takesNone)
		r.running(takesNone)
		r.queued(`OP_CLUSTER_RENAME {"name":"other.example"}`)
		return ""
	}, 1, "lock cluster/BGL of job 1, 2", []string{"held by job 1, job 2"}},
	{"whoever wants the whole cluster", func(r *rig) string {
		r.running(takesNone)
		r.queued(`OP_CLUSTER_RENAME {"name":"other.example"}`)
		r.queued(takesNone)
		return ""
	}, 2, "lock cluster/BGL of job 1", []string{"held by job 1"}},
	{"a job that runs", func(r *rig) string {
		r.queued(behind("", r.running(takesNone)))
		return ""
	}, 1, "after job 1", []string{"job 1 has to end; it is running"}},
	{"the success of several jobs", func(r *rig) string {
		r.queued(behind(`"success"`, r.running(takesNone), r.running(takesNone)))
		return ""
	}, 1, "after jobs 1, 2", []string{"job 1 has to end", "job 2 has to end"}},
	{"a job that a rule holds", func(r *rig) string {
		r.rule(`{"name":"night","action":"PAUSE","predicates":[["jobid",["=","id",1]]]}`)
		r.queued(behind("", r.queued(takesNone)))
		return ""
	}, 1, "after job 1", []string{"held by filter rule night"}},
	{"the end of a line", func(r *rig) string {
		r.running(takesNode)
		r.queued(behind("", r.queued(behind("", r.queued(takesNode)))))
		return ""
	}, 1, "after job 3", []string{"job 3 has to end", "waits for job 2", "node/node1.example", "held by job 1"}},
	{"a slot", func(r *rig) string {
		r.slots(1)
		r.running(takesNone)
		r.queued(takesNone)
		r.queued(`OP_TEST_DELAY {"duration":600,"no_locks":true,"priority":-10}`)
		return ""
	}, 2, "slot", []string{"max_running_jobs", "one of the 1 running jobs has to end"}},
	{"a slot, with its locks", func(r *rig) string {
		first := r.running(takesNode)
		r.queued(takesNode)
		r.slots(2)
		r.running(takesNone)
		r.queued(`OP_TEST_DELAY {"duration":600,"no_locks":true,"priority":-10}`) // which is served first
		if _, err := r.c.Queue.Cancel(r.Context(), first, true, queue.By{}); err != nil {
			r.Fatal(err)
		}
		return ""
	}, 1, "slot", []string{"max_running_jobs"}},
	{"a node that is away", func(r *rig) string {
		r.away(true)
		r.queued(`OP_TEST_DELAY {"duration":600,"no_locks":false,"on_nodes":["node1.example"]}`)
		return ""
	}, 1, "node node1.example", []string{"node node1.example, which is away", "the agent of node node1.example has to connect"}},
	{"a node that has not come yet", func(r *rig) string {
		r.away(false)
		r.queued(`OP_TEST_DELAY {"duration":600,"no_locks":false,"on_nodes":["node1.example"]}`)
		return ""
	}, 1, "node node1.example", []string{"does not follow this controller yet"}},
	{"tasks of a deployment that a rule holds", func(r *rig) string {
		r.rule(`{"name":"freeze","action":"PAUSE","predicates":[["jobid",[">","id",0]]]}`)
		r.begun()
		return ""
	}, 3, "rule freeze", []string{"drover filter delete freeze"}},
	{"tasks of a deployment on a node that is taken", func(r *rig) string {
		r.running(takesNode)
		r.begun()
		return ""
	}, 2, "lock node/node1.example of job 1", []string{"held by job 1"}},
}

// TestEachWaitNamesItsCause: whatever jobs wait for, Now has a group of them that names it, and says what would have to change.
func TestEachWaitNamesItsCause(t *testing.T) {
	for _, c := range situations {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			end := make(chan struct{})
			r := newRigOn(t, controller.Options{OnCall: func(_ string, c fake.Call) error {
				if c.Name == "stuck" {
					<-end
				}
				return nil
			}})
			t.Cleanup(func() { close(end) })
			name := strings.NewReplacer("$1", c.make(r))
			why, told := name.Replace(c.why), ""
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("Now says %s", told)
				}
			})
			r.until("jobs wait for "+why, func() bool {
				value, err := views["now.holds"].value(t.Context(), r.web, "")
				if err != nil {
					t.Fatal(err)
				}
				told = string(encoded(value))
				for _, h := range value.(held).Holds {
					if h.Why == why && h.Jobs == c.jobs {
						return says(h, name, c.says)
					}
				}
				return false
			})
		})
	}
}

// says reports whether texts are in what is said of the first job of a hold. That may be said a moment later: it is asked of the queue itself.
func says(h hold, name *strings.Replacer, texts []string) bool {
	said := h.Sentence
	for _, change := range h.Change {
		said += "\n" + change.Text
	}
	return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(said, name.Replace(text)) })
}

// TestNothingThatHoldsIsLeftOut: of many causes the first ones are shown, and of the others it is told how many there are, and how many jobs they hold.
func TestNothingThatHoldsIsLeftOut(t *testing.T) {
	r := newRig(t)
	r.rule(`{"name":"all","action":"PAUSE","predicates":[["jobid",["<=","id",3]]]}`)
	const more = 5
	for range 3 {
		r.queued(takesNone)
	}
	for n := range mostHolds - 1 + more {
		for range 2 {
			r.queued(behind("", job.ID(1+n%3), job.ID(3+n))) // these two for what no others wait for
		}
	}
	var shown held
	r.until("all wait", func() bool {
		value, err := views["now.holds"].value(t.Context(), r.web, "")
		if err != nil {
			t.Fatal(err)
		}
		shown = value.(held)
		return shown.Jobs == 3+2*(mostHolds-1+more)
	})
	if shown.More != (unshown{Holds: more, Jobs: 2 * more}) || len(shown.Holds) != mostHolds || shown.Holds[0].Why != "rule all" || shown.Holds[0].Jobs != 3 {
		t.Errorf("it shows %+v", shown)
	}
}

// TestAHoldIsExplainedAsItIs: what the first job of a hold waits for by now is not said of one that it has left meanwhile.
func TestAHoldIsExplainedAsItIs(t *testing.T) {
	r := newRig(t)
	r.rule(`{"name":"backup","action":"PAUSE","predicates":[["jobid",["=","id",2]]]}`)
	runs, waits := r.running(takesNone), r.queued(takesNone)
	for _, c := range []struct {
		first job.ID
		step  string
		says  string
	}{{waits, "hold", "paused by filter rule backup"}, {runs, "wait-slot", ""}, {waits, "wait-slot", ""}, {99, "hold", ""}} {
		row := []query.Cell{{Value: c.step}, {Value: "x"}, {Value: []string{"x"}}, {Value: int64(1)}, {Value: int64(c.first)}, {}}
		h, err := r.web.holdOf(t.Context(), row, true)
		if err != nil || !strings.HasPrefix(h.Sentence, c.says) || (h.Sentence == "") != (c.says == "") || (len(h.Change) == 0) != (c.says == "") {
			t.Errorf("job %d, which a list has in step %s: %+v %v", c.first, c.step, h, err)
		}
	}
}
