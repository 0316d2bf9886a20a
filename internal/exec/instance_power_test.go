package exec

import (
	"maps"
	"testing"

	"github.com/drover-project/drover/internal/hypervisor"
)

func one(more params) params {
	p := params{"instance_name": "one"}
	maps.Copy(p, more)
	return p
}

func (r *rig) expect(admin string, state hypervisor.State, lastReason string) {
	r.Helper()
	if got := r.instance("one").AdminState; got != admin {
		r.Errorf("wanted state is %s, want %s", got, admin)
	}
	if got := r.state("node1", "one"); got != state {
		r.Errorf("the node says %s, want %s", got, state)
	}
	if got := r.lastReason("node1", "one"); got != lastReason {
		r.Errorf("last reason is %q, want %q", got, lastReason)
	}
}

func TestPowerCycle(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.expect("down", hypervisor.Stopped, "")
	r.must("null", "OP_INSTANCE_STARTUP", one(nil))
	started := "testing OP_INSTANCE_STARTUP gnt:daemon:noded:start"
	r.expect("up", hypervisor.Running, started)
	r.must("null", "OP_INSTANCE_REBOOT", one(params{"reboot_type": "soft"}))
	rebooted := "testing OP_INSTANCE_REBOOT gnt:daemon:noded:reboot"
	r.expect("up", hypervisor.Running, rebooted)
	r.must("null", "OP_INSTANCE_SHUTDOWN", one(nil))
	r.expect("down", hypervisor.Stopped, "testing OP_INSTANCE_SHUTDOWN gnt:daemon:noded:shutdown")
	r.must("null", "OP_INSTANCE_REBOOT", one(params{"reboot_type": "hard"}))
	r.logged(" - INFO: Instance one was already stopped, starting now")
	r.expect("up", hypervisor.Running, "testing OP_INSTANCE_REBOOT gnt:daemon:noded:start")
	r.must("null", "OP_INSTANCE_REBOOT", one(params{"reboot_type": "hard"}))
	r.expect("up", hypervisor.Running, rebooted)
	r.must("null", "OP_INSTANCE_REBOOT", one(params{"reboot_type": "full"}))
	r.expect("up", hypervisor.Running, "testing OP_INSTANCE_REBOOT gnt:daemon:noded:start")
}

// A watcher saw something a moment ago. What it asks for rests upon that, and is not done when it is so no more.
func TestAWatcherIsLate(t *testing.T) {
	r := newRig(t)
	watcher := params{"reason": []any{[]any{"gnt:watcher", "it is down", 1}}}
	r.create("one", false)
	r.must("null", "OP_INSTANCE_STARTUP", one(watcher))
	r.logged(" - INFO: Instance one is not meant to run any more, nothing is done")
	r.expect("down", hypervisor.Stopped, "")
	r.must("null", "OP_INSTANCE_STARTUP", one(nil))
	up := "testing OP_INSTANCE_STARTUP gnt:daemon:noded:start"
	late := maps.Clone(watcher)
	late["admin_state_source"] = "user"
	r.must("null", "OP_INSTANCE_SHUTDOWN", one(late))
	r.logged(" - INFO: Instance one runs again, nothing is done")
	r.expect("up", hypervisor.Running, up)
	r.must("null", "OP_INSTANCE_SHUTDOWN", one(params{"no_remember": true}))
	r.must("null", "OP_INSTANCE_STARTUP", one(watcher))
	r.expect("up", hypervisor.Running, "it is down gnt:daemon:noded:start")
	r.must("null", "OP_INSTANCE_SHUTDOWN", one(params{"no_remember": true}))
	r.must("null", "OP_INSTANCE_SHUTDOWN", one(late))
	r.expect("down", hypervisor.Stopped, "testing OP_INSTANCE_SHUTDOWN gnt:daemon:noded:shutdown")
	if got := r.instance("one").AdminStateSource; got != "user" {
		t.Errorf("it was stopped by %s", got)
	}
}

func TestStartupOfRunningInstanceChangesNothing(t *testing.T) {
	r := newRig(t)
	r.create("one", true)
	reason, before := r.lastReason("node1", "one"), r.dump()
	r.must("null", "OP_INSTANCE_STARTUP", one(nil))
	if r.lastReason("node1", "one") != reason || r.dump() != before {
		t.Fatal("a startup of a running instance left traces")
	}
	r.logged()
}

func TestShutdownOfStoppedInstanceChangesNothing(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	before := r.dump()
	r.must("null", "OP_INSTANCE_SHUTDOWN", one(nil))
	if r.lastReason("node1", "one") != "" || r.dump() != before {
		t.Fatal("a shutdown of a stopped instance left traces")
	}
}

func TestNoRememberLeavesTheWantedState(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.must("null", "OP_INSTANCE_STARTUP", one(params{"no_remember": true}))
	r.expect("down", hypervisor.Running, "testing OP_INSTANCE_STARTUP gnt:daemon:noded:start")
	r.must("null", "OP_INSTANCE_STARTUP", one(nil))
	r.must("null", "OP_INSTANCE_SHUTDOWN", one(params{"no_remember": true}))
	r.expect("up", hypervisor.Stopped, "testing OP_INSTANCE_SHUTDOWN gnt:daemon:noded:shutdown")
}

func TestShutdownRemembersItsSource(t *testing.T) {
	r := newRig(t)
	r.create("one", true)
	r.must("null", "OP_INSTANCE_SHUTDOWN", one(params{"admin_state_source": "user"}))
	if got := r.instance("one").AdminStateSource; got != "user" {
		t.Fatalf("source is %s", got)
	}
}

func TestStartupWithParametersForOnce(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.must("null", "OP_INSTANCE_STARTUP", one(params{"beparams": params{"maxmem": 512}, "startup_paused": true}))
	a, err := r.fleet.Agent("node1")
	if err != nil {
		t.Fatal(err)
	}
	i, err := a.Instance(t.Context(), thingOf(r.instance("one")))
	if err != nil || i.Memory != 512 || i.State != hypervisor.Paused {
		t.Fatalf("got %+v, %v", i, err)
	}
	if be := r.instance("one").BEParams; len(be) != 0 {
		t.Fatalf("the parameters were kept: %v", be)
	}
	r.refuses("OpPrereqError", "minmem (128 MiB) is more than maxmem (64 MiB)", "OP_INSTANCE_STARTUP", one(params{"beparams": params{"maxmem": 64}}))
	r.refuses("OpPrereqError", "The following hypervisor parameters are global and cannot be customized at instance level,"+
		" please modify them at cluster level: migration_mode", "OP_INSTANCE_STARTUP", one(params{"hvparams": params{"migration_mode": "live"}}))
}

func TestPowerPrerequisites(t *testing.T) {
	r := newRig(t, "node1", "node2")
	r.create("one", false)
	unknown := params{"instance_name": "nosuch.example"}
	for _, id := range []string{"OP_INSTANCE_STARTUP", "OP_INSTANCE_SHUTDOWN", "OP_INSTANCE_REMOVE"} {
		r.refuses("OpPrereqError", "Instance 'nosuch.example' not known", id, unknown)
	}
	r.refuses("OpPrereqError", "Instance 'not-a-uuid' not known", "OP_INSTANCE_STARTUP", one(params{"instance_uuid": "not-a-uuid"}))
	r.refuses("OpPrereqError", "Not enough memory on node node1 for starting instance one: needed 9000 MiB, available 7168 MiB",
		"OP_INSTANCE_STARTUP", one(params{"beparams": params{"memory": 9000}}))
	r.down["node1"] = true
	r.refuses("OpPrereqError", "Can't contact node node1: node node1 does not answer", "OP_INSTANCE_STARTUP", one(nil))
}

func TestPowerFailuresChangeNothing(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.failOn("node1", "start", false)
	r.refuses("OpExecError", "Could not start instance 'one': the driver is broken on purpose", "OP_INSTANCE_STARTUP", one(nil))
	r.expect("down", hypervisor.Stopped, "")
	r.failOn("node1", "", false)
	r.must("null", "OP_INSTANCE_STARTUP", one(nil))
	r.failOn("node1", "stop", false)
	r.refuses("OpExecError", "Could not shutdown instance 'one': the driver is broken on purpose", "OP_INSTANCE_SHUTDOWN", one(nil))
	r.refuses("OpExecError", "Could not shutdown instance for full reboot: the driver is broken on purpose",
		"OP_INSTANCE_REBOOT", one(params{"reboot_type": "full"}))
	r.failOn("node1", "reboot", false)
	r.refuses("OpExecError", "Could not reboot instance: the driver is broken on purpose", "OP_INSTANCE_REBOOT", one(params{"reboot_type": "soft"}))
	r.failOn("node1", "instance", false)
	r.refuses("OpPrereqError", "Can't get the state of instance one from node node1: the driver is broken on purpose", "OP_INSTANCE_STARTUP", one(nil))
}

// A start that took place although its answer was lost is found done by the
// next one.
func TestStartupAfterALostAnswer(t *testing.T) {
	r := newRig(t)
	r.create("one", false)
	r.failOn("node1", "start", true)
	r.refuses("OpExecError", "Could not start instance 'one': the driver is broken on purpose", "OP_INSTANCE_STARTUP", one(nil))
	r.failOn("node1", "", false)
	r.must("null", "OP_INSTANCE_STARTUP", one(nil))
	r.expect("up", hypervisor.Running, "")
}
