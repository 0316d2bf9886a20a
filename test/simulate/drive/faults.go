package main

import "github.com/drover-project/drover/internal/sim/overlay"

// knownFaults are faults that the code once had, or could have: each must be found within
// so many seeds. Most change the code itself; what is beneath the ports of a simulation is
// changed in what stands for it there. Who moves or changes a text that is here moves it here, too.
//
// What no controller comes by is not here, but held by a test of its own: a take-over and a late write of the epoch before it in
// one batch (TestATakeOverFencesWhatIsBehindItInItsBatch of groupcommit; who gives the lead away has written all before, and who takes it
// has a queue of its own only then). Nor is what would be none: of several changes of one object in a step of the feed each has the
// value of now, so a standby may take any.
var knownFaults = []knownFault{
	{"two-scripts", "what a leader began on a node goes on when another leads", []overlay.Edit{
		{File: "internal/agent/effect/decide.go", Old: "	case runs.Epoch < epoch:\n		return Verdict{End, ", New: "	case runs.Epoch < epoch:\n		return Verdict{Go, "},
		{File: "internal/agent/effect/fence.go", Old: "		if p := f.cfg.Host.Find(e); e.Epoch < epoch && ", New: "		if p := f.cfg.Host.Find(e); e.Epoch < 0 && "},
	}},
	{"old-orders", "a node carries out the orders of a leader that another has followed", []overlay.Edit{
		{File: "internal/agent/effect/decide.go", Old: "	case epoch < follows:", New: "	case epoch < follows && false:"},
		{File: "internal/agent/effect/decide.go", Old: "	case runs.Epoch > epoch: ", New: "	case runs.Epoch > epoch && false: "},
		{File: "internal/agent/effect/fence.go", Old: "		if c.Order.Epoch < follows {\n			return refused(follows)\n		}\n		return nil", New: "		return nil"},
	}},
	{"creation-undone", "a creation whose commit is not certain is undone on the node, although it was committed", []overlay.Edit{
		{File: "internal/exec/exec.go", Old: "func unsure(err error) bool { return fault.Is(err, fault.Unavailable) }", New: "func unsure(error) bool { return false }"},
		{File: "internal/inventory/keeper.go", Old: "	if err != nil && !store.Refused(err) {", New: "	if err != nil && !store.Refused(err) && false {"},
	}},
	{"old-inventory", "after an uncertain commit the leader shows the old inventory", []overlay.Edit{
		{File: "internal/inventory/keeper.go", Old: "	if err != nil && !store.Refused(err) {", New: "	if err != nil && !store.Refused(err) && false {"},
	}},
	{"no-locks", "an opcode whose locks could not be told runs without any", []overlay.Edit{
		{File: "internal/queue/run.go", Old: "Unlocked:  r.Unlocked,", New: "Unlocked:  false,"},
	}},
	{"interrupted-last", "what a crash interrupted is queued like new work, and others go first", []overlay.Edit{
		{File: "internal/queue/machine/world.go", Old: "m.interrupted(e); again {", New: "m.interrupted(e); again && false {"},
		{File: "internal/queue/machine/world.go", Old: "		if _, why := m.interrupted(e); why != \"\" {", New: "		if again, why := m.interrupted(e); why != \"\" && !again {"},
		{File: "internal/queue/machine/world.go", Old: "		if e.job.Busy() {\n			e.job = e.job.Requeue", New: "		if e.job.Busy() || e.job.Status() == job.Running {\n			e.job = e.job.Requeue"},
	}},
	{"kept-unread", "what was kept of an opcode that had begun is not looked at, and it is begun anew", []overlay.Edit{
		{File: "internal/queue/run.go", Old: "		env.Kept = q.found[r.Job]\n", New: "		env.Kept = nil\n"},
	}},
	{"step-forgotten", "that a step is done is not kept with what it changed", []overlay.Edit{
		{File: "internal/exec/engine.go", Old: "	next.Done++\n	err := g.env.changeNoted", New: "	err := g.env.changeNoted"},
	}},
	{"shared-lock", "the lock of an instance is shared", []overlay.Edit{
		{File: "internal/exec/locks.go", Old: "	request := lock.Request{want(lock.Instance, inst.Name, lock.Exclusive)}", New: "	request := lock.Request{want(lock.Instance, inst.Name, lock.Shared)}"},
	}},
	{"early-answer", "a submission is acknowledged before it is durable", []overlay.Edit{
		{File: "internal/queue/submit.go", Old: "			durable = w.answer()\n", New: "			durable = w.answer()\n			early := make(chan error, 1)\n			early <- nil\n			durable = early\n"},
	}},
	{"unknown-is-refused", "a commit whose outcome is not known counts as refused", []overlay.Edit{
		{File: "internal/queue/refusal.go", Old: "func permanent(err error) bool { return ", New: "func permanent(err error) bool { return fault.Is(err, fault.Unavailable) || "},
	}},
	{"fenced-goes-on", "a leader that was fenced tries on", []overlay.Edit{
		{File: "internal/queue/work.go", Old: "	if fault.Is(o.err, fault.Fenced) || ", New: "	if "},
	}},
	{"old-epoch", "the store takes what is written under an epoch that another has taken over", []overlay.Edit{
		{File: "internal/store/groupcommit/batch.go", Old: "!b.Leases.inForce(tx.Epoch) {", New: "tx.Epoch > b.Leases.Newest() {"},
	}},
	{"seized-from-another", "a seizure that is meant for an older epoch takes the lease from a newer holder", []overlay.Edit{
		{File: "internal/store/groupcommit/lease.go", Old: "		if have.Epoch != epoch {", New: "		if have.Epoch != epoch && false {"},
	}},
	{"no-epoch", "the queue writes under no epoch", []overlay.Edit{
		{File: "internal/queue/work.go", Old: "Epoch: q.cfg.Epoch", New: "Epoch: 0"},
	}},
	{"running-left", "what ran when the lead was lost is left alone by the next leader", []overlay.Edit{
		{File: "internal/queue/machine/world.go", Old: "m.interrupted(e); again {", New: "m.interrupted(e); again && false {"},
		{File: "internal/queue/machine/world.go", Old: "		if _, why := m.interrupted(e); why != \"\" {\n", New: "		if _, why := m.interrupted(e); why != \"\" {\n			continue\n"},
	}},
	{"keys-not-loaded", "submission keys are not loaded by the next leader, nor asked for in the store", []overlay.Edit{
		{File: "internal/queue/load.go", Old: "			l.Keys[j.Key] = j.ID\n", New: ""},
		{File: "internal/queue/machine/submit.go", Old: "		c.id, told = known[c.Key]\n", New: "		c.id = known[c.Key]\n"},
	}},
	{"orphaned-command", "the lock of a task's command is that of its wrapper alone, and free when only this one died", []overlay.Edit{
		{File: "internal/sim/world/node.go", Old: "	default:\n		return effect.Exit{}, false\n", New: "	default:\n		return effect.Exit{}, p.orphan.Load()\n"},
	}},
	{"graph-moved-on", "a plan is carried out although its graph was changed", []overlay.Edit{
		{File: "internal/deploy/course/record.go", Old: "slices.Equal(b.Graphs, other.Graphs) && ", New: ""},
	}},
	{"success-again", "a task whose success is stored runs again under the next leader", []overlay.Edit{
		{File: "internal/rollout/task.go", Old: "before != nil && before.Counts(d) {", New: "before != nil && before.Counts(d) && false {"},
	}},
	{"ended-unseen", "jobs of deployments that ended while nobody led are not looked at", []overlay.Edit{
		{File: "internal/rollout/drive.go", Old: "		} else if !r.fresh {", New: "		} else if !r.fresh && false {"},
	}},
	{"event-of-a-moment", "catching up skips events of the moment at which the newest published one ended", []overlay.Edit{
		{File: "internal/events/outbox.go", Old: "		if head.Revision > o.at.Revision {", New: "		if head.Revision > o.at.Revision && (head.At == 0 || head.At > int64(o.at.Ended)) {"},
	}},
	{"lease-outlasts", "a read lease outlasts the leader's own right to answer", []overlay.Edit{
		{File: "internal/readlease/book.go", Old: "	if right.Before(until) {", New: "	if right.Before(until) && false {"},
	}},
	{"unsure-answers", "a leader answers from its picture without being certain that it leads", []overlay.Edit{
		{File: "internal/app/assure.go", Old: "	if c.group == nil || c.isSure() {", New: "	if c.group == nil || c.isSure() || c.term.Err() == nil {"},
	}},
	{"end-guessed", "the end of a task counts as not stored when the store cannot say what became of it", []overlay.Edit{
		{File: "internal/rollout/engine.go", Old: "		if err == nil || store.Refused(err) ||", New: "		if err == nil || tries > 0 || store.Refused(err) ||"},
	}},
	{"server-by-name", "a server takes an instance over that has its name, whoever made that", []overlay.Edit{
		{File: "internal/server/identity.go", Old: "	if !sight.Instance || s.owns(sight) {", New: "	if !sight.Instance || s.UUID == \"\" || s.owns(sight) {"},
	}},
	{"strangers-cleared", "a creation clears what has its name on the node, whoever made that", []overlay.Edit{
		{File: "internal/exec/instance_create_nodes.go", Old: "		case there.LeftBy(c.env.Life) && ", New: "		case "},
		{File: "internal/exec/instance_create.go", Old: "	for _, n := range c.nodes() {\n		w.Steps = append(w.Steps, c.making(n))\n", New: "	for i := range c.left {\n" +
			"		w.Steps = append(w.Steps, onNode(removeFromNode, c.nodes()[0].UUID, c.left[i].Instance.UUID, \"clear\", meant{name}))\n	}\n	for _, n := range c.nodes() {\n		w.Steps = append(w.Steps, c.making(n))\n"},
	}},
	{"strangers-are-orphans", "what a job of another store made is taken for what a job of this one left", []overlay.Edit{
		{File: "internal/exec/node_orphans.go", Old: "	case i.MadeBy.Life != life:", New: "	case i.MadeBy.Life != life && false:"},
	}},
	{"cleared-beside", "what jobs left is cleared while others go on, who have just made something", []overlay.Edit{
		{File: "internal/exec/catalogue.go", Old: "	\"OP_NODE_CLEAR_ORPHANS\":    {Locks: OnNode(\"node\"), ", New: "	\"OP_NODE_CLEAR_ORPHANS\":    {"},
	}},
	{"new-name-unlocked", "a rename locks the name that the instance has, and not the one that it gets", []overlay.Edit{
		{File: "internal/exec/instance_rename.go", Old: "	return append(request, name...), err\n", New: "	return append(request, name[:0]...), err\n"},
	}},
	{"not-taken-back", "what an opcode that was ended had done is not taken back", []overlay.Edit{
		{File: "internal/exec/engine.go", Old: "			g.cause = err\n			g.takeBack()\n", New: "			g.cause = err\n"},
	}},
	{"locks-of-now", "an opcode that goes on asks for the locks that it would need now, not for those that it held", []overlay.Edit{
		{File: "internal/queue/machine/world.go", Old: ".WithPlacement(i, begun.Placement), begun.Locks\n", New: ".WithPlacement(i, begun.Placement), nil\n"},
	}},
	{"wishes-with-the-instance", "that its instance is not found drops what users want of a server", []overlay.Edit{
		{File: "internal/server/server.go", Old: "		next.Tags = next.Tags.Missed(sight.Now, sight.Absent)\n", New: "		next.Tags = servertag.Set{}\n"},
	}},
	{"deleted-unseen", "a server that is to be deleted is done with when another cluster says that there is nothing to delete", []overlay.Edit{
		{File: "internal/server/server.go", Old: "doing.Job == 0 && (sight.Proven || next.UUID == \"\"):", New: "doing.Job == 0:"},
	}},
	{"server-of-before", "after a write of unknown outcome a server is changed upon what it was before", []overlay.Edit{
		{File: "internal/tagsync/tagsync.go", Old: "	if w.last.failed() { // only", New: "	if w.last.failed() {\n		w.last = nil\n	}\n	if w.last.failed() { // only"},
	}},
}
