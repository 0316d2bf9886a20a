package main

import "github.com/drover-project/drover/internal/sim/overlay"

// knownFaults are faults that the code once had, or could have: each must be found within
// so many seeds. Who moves or changes a text that is here moves it here, too.
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
		{File: "internal/inventory/keeper.go", Old: "	if err != nil && !refused(err) {", New: "	if err != nil && !refused(err) && false {"},
	}},
	{"old-inventory", "after an uncertain commit the leader shows the old inventory", []overlay.Edit{
		{File: "internal/inventory/keeper.go", Old: "	if err != nil && !refused(err) {", New: "	if err != nil && !refused(err) && false {"},
	}},
	{"no-locks", "an opcode whose locks could not be told runs without any", []overlay.Edit{
		{File: "internal/queue/run.go", Old: "Unlocked:  r.Unlocked,", New: "Unlocked:  false,"},
	}},
	{"interrupted-last", "what a crash interrupted is queued like new work, and others go first", []overlay.Edit{
		{File: "internal/queue/machine/world.go", Old: "m.interrupted(e); again {", New: "m.interrupted(e); again && false {"},
		{File: "internal/queue/machine/world.go", Old: "		if _, why := m.interrupted(e); why != \"\" {", New: "		if again, why := m.interrupted(e); why != \"\" && !again {"},
		{File: "internal/queue/machine/world.go", Old: "		if e.job.Busy() {\n			e.job = e.job.Requeue", New: "		if e.job.Busy() || e.job.Status() == job.Running {\n			e.job = e.job.Requeue"},
	}},
	{"all-run-again", "every opcode that was interrupted is run again", []overlay.Edit{
		{File: "internal/queue/machine/world.go", Old: "	resumable, because := m.resumable(op.Input.ID)\n", New: "	resumable, because := m.resumable(op.Input.ID)\n	resumable = true\n"},
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
	{"old-epoch-in-batch", "a take-over in a batch does not fence what is behind it in the same batch", []overlay.Edit{
		{File: "internal/store/groupcommit/batch.go", Old: "!b.Leases.inForce(tx.Epoch) {", New: "!b.Leases.inForce(tx.Epoch) && !b.before.inForce(tx.Epoch) {"},
		{File: "internal/store/groupcommit/batch.go", Old: "Leases: leases.clone(), ", New: "Leases: leases.clone(), before: leases, "},
		{File: "internal/store/groupcommit/batch.go", Old: "	Leases *Leases\n", New: "	Leases *Leases\n	before *Leases\n"},
	}},
	{"seized-from-another", "a seizure that is meant for an older epoch takes the lease from a newer holder", []overlay.Edit{
		{File: "internal/store/groupcommit/lease.go", Old: "		if have.Epoch != epoch {", New: "		if have.Epoch != epoch && false {"},
	}},
	{"no-epoch", "the queue writes under no epoch", []overlay.Edit{
		{File: "internal/queue/work.go", Old: "Epoch: q.cfg.Epoch", New: "Epoch: 0"},
	}},
}
