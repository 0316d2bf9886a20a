//go:build ganeti

package wire

import "strings"

// harmless are predicates that no job of a run meets.
var harmless = []any{
	list{"jobid", list{"=", "id", 999999999}},
	list{"opcode", list{"=", "OP_ID", "OP_NOSUCH"}},
	list{"opcode", list{"=~", "OP_ID", "^OP_NOSUCH"}},
	list{"opcode", list{"&", list{"=", "OP_ID", "OP_NOSUCH"}, list{"?", "dry_run"}}},
	list{"reason", list{"=", "reason", "nosuch"}},
	list{"reason", list{"&", list{"=", "source", "gnt:user"}, list{"=", "reason", "nosuch"}}},
	list{"jobid", list{">", "id", "watermark"}}, list{"jobid", list{"<=", "id", 0}},
}

// wrongPredicates are refused.
var wrongPredicates = []any{
	list{"nosuch", list{"=", "id", 1}}, list{"jobid"}, list{"jobid", list{"foo", "id", 1}}, list{"jobid", list{"=", "id"}}, list{"opcode", list{}}, list{},
	"jobid", 5, nil, list{"jobid", list{"=", "id", 1}, 2}, list{"jobid", nil}, list{"jobid", list{"=~", "id", "("}}, list{"jobid", list{"=", "id", true}}, list{"reason", "x"},
}

// actions that a rule may have, and some that it may not.
func (d *draw) action() any {
	return pick[any](d, "ACCEPT", "CONTINUE", "PAUSE", "REJECT", "CONTINUE", list{"RATE_LIMIT", 3}, list{"RATE_LIMIT", 1})
}

func (d *draw) wrongAction() any {
	return pick[any](d, "accept", "", "NOSUCH", 5, nil, list{}, list{"RATE_LIMIT"}, list{"RATE_LIMIT", 0}, list{"RATE_LIMIT", -1}, list{"RATE_LIMIT", "x"}, list{"PAUSE"}, "RATE_LIMIT",
		list{"RATE_LIMIT", 1, 2}, object{})
}

// rule is a rule that changes nothing, or is refused; rules go again soon.
func rule(d *draw) []*call {
	predicates := list{}
	for _, p := range some(d, 2, harmless...) {
		predicates = append(predicates, p)
	}
	args := list{nil, d.IntN(100), predicates, d.action(), d.trail()}
	if len(predicates) == 0 || encodes(predicates, "watermark") {
		args[3] = pick[any](d, "ACCEPT", "CONTINUE")
	}
	if len(d.scene.rules) > 0 && d.chance(30) {
		args[0] = d.rule()
	}
	if d.chance(35) {
		switch d.IntN(6) {
		case 0:
			args[0] = pick[any](d, "x", 5, "", list{}, "AAAAAAAA-0000-4000-8000-000000000000", "aaaaaaaa00004000800000000000000f")
		case 1:
			args[1] = pick[any](d, -1, 1.5, "1", nil, 1.0, true, 1000000)
		case 2:
			args[2] = list{pick(d, wrongPredicates...)}
		case 3:
			args[3] = d.wrongAction()
		case 4:
			args[4] = pick[any](d, nil, "x", list{"x"}, list{list{}}, list{list{"a", "b"}}, list{list{"a", "b", "c"}}, list{list{"gnt:opcode:X", "b", 1}}, list{list{"luxid", "b", 1}}, list{list{1, 2, 3}})
		default:
			args = pick(d, args[:3], args[:4], append(args, 7), list{})
		}
	}
	made := d.luxi("rule", "ReplaceFilter", args...)
	calls := []*call{made}
	if d.chance(40) {
		calls = append(calls, d.luxi("rule", "QueryFilters", list{"{rule:" + made.ID + "}"}, d.ruleColumns()))
	}
	if len(d.scene.made) > 0 || d.chance(60) {
		calls = append(calls, d.luxi("rule", "DeleteFilter", "{rule:"+made.ID+"}"))
	}
	if d.chance(20) {
		calls = append(calls, d.luxi("rule", "DeleteFilter", pick(d, list{d.rule()}, list{nil}, list{5}, list{}, list{"x"}, list{"{rule:" + made.ID + "}"}, list{"{rule:" + made.ID + "}", "x"})...))
	}
	return calls
}

func (d *draw) ruleColumns() list {
	return pick(d, list{"uuid", "priority", "action", "predicates"}, list{"predicates"}, list{"action", "priority"}, list{"nosuch"}, list{})
}

func encodes(v any, part string) bool { return strings.Contains(string(encode(v)), part) }

// trail is a reason trail as clients send it.
func (d *draw) trail() list {
	switch d.IntN(5) {
	case 0:
		return list{list{"gnt:user", "maintenance 7", 1795000000000000000}}
	case 1:
		return list{list{"gnt:user", "", 1}, list{"gnt:client:gnt-job", "submit", 1795000000000000001}}
	case 2:
		return list{list{"other-app:gui", "pressed", 1795000000000000000}}
	}
	return list{}
}

// ruled tries a rule on jobs that it may be about.
func ruled(d *draw) []*call {
	predicate := pick[any](d,
		list{"opcode", list{"=", "OP_ID", "OP_TEST_DELAY"}}, list{"opcode", list{"=~", "OP_ID", "DELAY"}}, list{"opcode", list{"!", list{"=", "OP_ID", "OP_TEST_DELAY"}}},
		list{"opcode", list{"&", list{"=", "OP_ID", "OP_TEST_DELAY"}, list{">", "duration", 0}}}, list{"opcode", list{"|", list{"=", "OP_ID", "X"}, list{"=", "OP_ID", "OP_TEST_DELAY"}}},
		list{"opcode", list{"?", "on_master"}}, list{"opcode", list{"=", "nosuch", 1}}, list{"opcode", list{"!=", "OP_ID", "x"}}, list{"opcode", list{"=[]", "on_nodes", "node1.drover.example"}},
		list{"jobid", list{">", "id", "watermark"}}, list{"jobid", list{"<=", "id", "watermark"}}, list{"jobid", list{">=", "id", 1}}, list{"jobid", list{"!", list{"=", "id", 1}}},
		list{"reason", list{"=", "reason", "maintenance 7"}}, list{"reason", list{"=", "source", "gnt:user"}}, list{"reason", list{"!", list{"=", "reason", "maintenance 7"}}},
		list{"reason", list{"=~", "reason", "mainten"}}, list{"reason", list{"?", "reason"}}, list{"reason", list{">", "timestamp", 0}})
	predicates := list{predicate}
	if d.chance(25) {
		predicates = append(predicates, list{"opcode", list{"=", "OP_ID", "OP_TEST_DELAY"}})
	}
	made := d.luxi("rule at work", "ReplaceFilter", nil, d.IntN(5), predicates, pick[any](d, "PAUSE", "REJECT", "ACCEPT", "CONTINUE", "REJECT", list{"RATE_LIMIT", 1}), list{})
	calls := []*call{made}
	for range 1 + d.IntN(2) {
		job := d.luxi("rule at work", "SubmitJob", list{d.delay()})
		job.Holds = true
		calls = append(calls, job)
		if d.chance(40) {
			calls = append(calls, d.luxi("rule at work", "QueryJobs", list{"{job:" + job.ID + "}"}, list{"status", "opstatus", "priority"}))
		}
		if d.chance(40) {
			calls = append(calls, d.luxi("rule at work", "CancelJob", "{job:"+job.ID+"}", false))
		}
	}
	return append(calls, d.luxi("rule at work", "DeleteFilter", "{rule:"+made.ID+"}"))
}

// delay is an opcode that does nothing.
func (d *draw) delay() object {
	params := object{"duration": pick[any](d, 0.001, 0.001, 0.01), "on_master": true, "reason": d.trail()}
	if d.chance(20) {
		params["on_nodes"] = pick[any](d, list{"node1"}, list{"node1.drover.example"}, list{}, list{"nosuch"})
	}
	if d.chance(20) {
		params["repeat"] = pick[any](d, 0, 1, 2)
	}
	if d.chance(20) {
		params["priority"] = pick[any](d, -10, 0, 10)
	}
	if d.chance(15) {
		params["comment"] = pick[any](d, "a comment", "", nil)
	}
	if d.chance(10) {
		params["dry_run"] = pick[any](d, true, false)
	}
	if d.chance(8) {
		params["debug_level"] = pick[any](d, 0, 1, 5)
	}
	return op("OP_TEST_DELAY", params)
}

// wrongDelay has one parameter that is none.
func (d *draw) wrongDelay() object {
	o := d.delay()
	switch d.IntN(10) {
	case 0:
		o["duration"] = pick[any](d, 0, -1, "x", nil, true, "1")
	case 1:
		o["repeat"] = pick[any](d, -1, "x", 1.5, nil, true)
	case 2:
		o["priority"] = pick[any](d, 5, 1, "x", 1.5, nil, 100)
	case 3:
		o["depends"] = pick[any](d, 5, "x", list{5}, list{list{}}, list{list{1}}, list{list{"x", list{}}}, list{list{1, list{"foo"}}}, list{list{1, "success"}}, list{list{1, list{}, 2}}, list{list{nil, list{}}})
	case 4:
		o["reason"] = pick[any](d, nil, "x", list{"x"}, list{list{"a"}}, list{list{"a", "b"}}, list{list{"a", "b", "c"}}, list{list{1, "b", 2}}, list{list{"gnt:opcode:TEST_DELAY", "job=1;index=0", 2}}, list{list{"LUXID", "", 2}})
	case 5:
		delete(o, pick(d, "reason", "duration", "OP_ID"))
	case 6:
		o[pick(d, "nosuch", "", "Duration")] = d.odd()
	case 7:
		o["OP_ID"] = pick[any](d, "OP_NOSUCH", "", 5, nil, "OP_BACKUP_NOSUCH", "op_test_delay")
	case 8:
		o["on_node_uuids"] = pick[any](d, list{"x"}, list{}, nil)
	default:
		o[pick(d, "on_master", "dry_run", "comment", "debug_level", "on_nodes")] = d.odd()
	}
	return o
}

// depends is a dependency that can be decided at once, for what it names has ended.
func (d *draw) depends() list {
	out := list{}
	for range 1 + d.IntN(2) {
		out = append(out, list{d.job(), pick[any](d, list{}, list{"success"}, list{"error"}, list{"success", "error"}, list{"canceled"}, list{"success", "error", "canceled"})})
	}
	return out
}

func job(d *draw) []*call {
	switch d.IntN(10) {
	case 0, 1:
		return []*call{d.luxi("job", "SubmitJob", list{d.wrongDelay()})}
	case 2, 3:
		o := d.delay()
		o["depends"] = d.depends()
		return []*call{d.luxi("job", "SubmitJob", list{o})}
	case 4:
		first, second := d.delay(), d.delay()
		// -2 would be a job of before, of which each side has its own; over one far before
		// the first the reference's thread dies, and its connection is closed minutes later
		second["depends"] = list{list{-1, pick[any](d, list{}, list{"success"}, list{"error"})}}
		return []*call{d.luxi("job", "SubmitManyJobs", list{list{first}, list{second}})}
	case 5:
		return []*call{d.luxi("job", pick(d, "SubmitJob", "SubmitManyJobs", "SubmitJobToDrainedQueue"), some[any](d, 2, list{}, list{list{}}, nil, "x", 5, object{}, list{5}, list{nil}, list{object{}})...)}
	case 6:
		return []*call{d.submit("job", d.delay(), pick(d, d.delay(), op("OP_TEST_DELAY", object{"duration": 0, "on_master": true})), d.delay())}
	}
	made := d.submit("job", d.delay())
	return []*call{made, d.luxi("job", "QueryJobs", list{"{job:" + made.ID + "}"}, d.columns("job"))}
}

// manage is what is done to jobs that have ended, or are not there.
func manage(d *draw) *call {
	switch d.IntN(12) {
	case 0, 1:
		return d.luxi("manage", "CancelJob", pick(d, list{d.job(), false}, list{d.job(), true}, list{d.job()}, list{d.oddJob(), false}, list{d.job(), d.odd()}, list{})...)
	case 2:
		return d.luxi("manage", "ArchiveJob", pick(d, list{987654320}, list{d.oddJob()}, list{}, list{0}, list{"x", 1})...)
	case 3, 4:
		return d.luxi("manage", "ChangeJobPriority", pick(d, list{d.job(), pick[any](d, -10, 0, 10)}, list{d.job(), pick[any](d, 5, 100, "x", nil, 0.5)}, list{d.job()}, list{d.oddJob(), 0})...)
	case 5, 6, 7:
		fields := pick[any](d, list{"status"}, list{"status"}, list{"opstatus", "status"}, list{"nosuch"}, list{})
		return d.luxi("manage", "WaitForJobChange", pick(d, list{d.job(), fields, nil, nil, 1}, list{d.job(), fields, list{"success"}, 1000, 0}, list{d.job(), fields, list{"running"}, pick[any](d, 0, 1, nil), 1},
			list{d.job(), fields, d.odd(), d.odd(), pick[any](d, 0, 1, "x", nil)}, list{d.job(), fields})...)
	case 8:
		return d.luxi("manage", "AutoArchiveJobs", pick(d, list{864000, 5}, list{"x", 5}, list{864000}, list{nil, 1}, list{864000, "x"}, list{864000, 5, 1}, list{1e6, 5})...)
	case 9:
		return d.luxi("manage", "SetWatcherPause", pick(d, list{nil}, list{"x"}, list{}, list{true}, list{object{}}, list{0}, list{1, 2})...)
	case 10:
		return d.luxi("manage", "QueryConfigValues", list{pick(d, "drain_flag", "watcher_pause")})
	}
	return d.luxi("manage", "SetDrainFlag", pick(d, list{"x"}, list{}, list{nil}, list{1}, list{true, false})...)
}

// archived is a job that is put away.
func archived(d *draw) []*call {
	made := d.submit("archive", d.delay())
	calls := []*call{made, d.luxi("archive", "ArchiveJob", "{job:"+made.ID+"}"), d.luxi("archive", "ArchiveJob", "{job:"+made.ID+"}")}
	for range d.IntN(3) {
		calls = append(calls, pick(d,
			d.luxi("archive", "QueryJobs", list{"{job:" + made.ID + "}"}, list{"id", "status", "archived"}),
			d.luxi("archive", "Query", "job", list{"id", "status", "archived"}, list{"=", "id", "{job:" + made.ID + "}"}),
			d.luxi("archive", "Query", "job", list{"id", "status"}, list{"=", "id", "{job:" + made.ID + "}"}),
			d.luxi("archive", "CancelJob", "{job:"+made.ID+"}", false),
			d.luxi("archive", "WaitForJobChange", "{job:"+made.ID+"}", list{"status"}, nil, nil, 1),
			d.rapi("archive", "GET", "/2/jobs/{job:"+made.ID+"}"),
		))
	}
	return calls
}

// drained closes the queue for a while.
func drained(d *draw) []*call {
	calls := []*call{d.luxi("drain", "SetDrainFlag", true), d.luxi("drain", "QueryConfigValues", list{"drain_flag"})}
	for range 1 + d.IntN(3) {
		calls = append(calls, pick(d,
			d.luxi("drain", "SubmitJob", list{d.delay()}), d.luxi("drain", "SubmitManyJobs", list{list{d.delay()}, list{d.delay()}}), d.luxi("drain", "SubmitJobToDrainedQueue", list{d.delay()}),
			d.with("drain", "PUT", "/2/tags?tag=x", nil), d.luxi("drain", "SubmitJob", list{d.wrongDelay()})))
	}
	return append(calls, d.luxi("drain", "SetDrainFlag", false))
}
