package query

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/reason"
)

// The items "opcode" and "reason" look at jobs from another side; both know
// archived jobs, too. The reference has nothing like them.

// opcodeRow is one opcode of a job; of a job that cannot be read there is one row,
// too. A job without opcodes, as clients of LUXI may submit, has none.
type opcodeRow struct {
	id job.ID
	// j is nil while a row of a job that has ended waits for its turn in an answer;
	// see shortenJob.
	j     *job.Job
	index int
}

func (r opcodeRow) shortened() opcodeRow {
	if !damaged(r.j) && r.j.Final() {
		r.j = nil
	}
	return r
}

func (r opcodeRow) restored(v *view) opcodeRow {
	if r.j == nil {
		r.j = v.read(r.id)
	}
	return r
}

func (r opcodeRow) op() *job.Op { return &r.j.Ops[r.index] }

func (r opcodeRow) identity() string { return r.id.String() + "." + itoa(int64(r.index)) }

func (r opcodeRow) object() string { return r.id.String() }

// rowsNow returns what belongs to a job that changed, archived or not.
func rowsNow[R any](v *view, d *delta, key string, rows func(*job.Job) iter.Seq[R]) []R {
	if j := jobNow(v, d, key, true); j != nil {
		return slices.Collect(rows(v.whole(j)))
	}
	return nil
}

var opcodeTable = table[opcodeRow]{
	what:     "opcode",
	fields:   strictly(opcodeFields()),
	all:      opcodeRows,
	narrow:   opcodePaths,
	compare:  compareOpcodes,
	shorten:  opcodeRow.shortened,
	restore:  func(v *view, r opcodeRow) opcodeRow { return r.restored(v) },
	identity: opcodeRow.identity,
	affected: jobsOf,
	rowsOf:   func(v *view, d *delta, key string) []opcodeRow { return rowsNow(v, d, key, opcodesOf) },
	object:   opcodeRow.object,
	dynamic:  opcodeParameter,
}.indexed()

func opcodeRows(v *view) iter.Seq[opcodeRow] {
	return func(yield func(opcodeRow) bool) {
		for r := range allJobs(v, true) {
			for row := range opcodesOf(v.whole(r.j)) {
				if !yield(row) {
					return
				}
			}
		}
	}
}

func opcodesOf(j *job.Job) iter.Seq[opcodeRow] {
	return func(yield func(opcodeRow) bool) {
		rows := len(j.Ops)
		if damaged(j) {
			rows = 1
		}
		for i := range rows {
			if !yield(opcodeRow{id: j.ID, j: j, index: i}) {
				return
			}
		}
	}
}

func opcodePaths(t *table[opcodeRow], v *view, tests []qlang.Node) []path[opcodeRow] {
	return pathsToOpcodes(t, v, tests, opcodesOf, func(r opcodeRow) opcodeRow { return r })
}

// ofOp makes a getter of an opcode row, NoData for a job that cannot be read.
func ofOp[R any](row func(R) opcodeRow, get func(opcodeRow) Cell) func(*view, R) Cell {
	return func(_ *view, r R) Cell {
		if o := row(r); !damaged(o.j) {
			return get(o)
		}
		return Cell{Status: NoData}
	}
}

// jobSideFields are what opcode and reason rows both tell about their job.
func jobSideFields[R any](row func(R) opcodeRow) []field[R] {
	return []field[R]{
		{Def: Def{"job", "Job", KindNumber, "Number of the job"}, from: InMemory,
			get: func(_ *view, r R) Cell { return known(int64(row(r).id)) }},
		{Def: Def{"index", "Index", KindNumber, "Place of the opcode in its job, counted from zero"}, from: InMemory,
			get: ofOp(row, func(r opcodeRow) Cell { return known(int64(r.index)) })},
		{Def: Def{"job_status", "Job_status", KindText, "State of the job"}, from: InMemory,
			get: ofOp(row, func(r opcodeRow) Cell { return text(string(r.j.Status())) })},
		{Def: Def{"opcode", "OpCode", KindText, "What the opcode does, for example OP_INSTANCE_SHUTDOWN"}, from: InMemory,
			get: ofOp(row, func(r opcodeRow) Cell { return text(r.op().Input.ID) })},
		{Def: Def{"status", "Status", KindText, "State of the opcode"}, from: InMemory,
			get: ofOp(row, func(r opcodeRow) Cell { return text(string(r.op().Status)) })},
		{Def: Def{"summary", "Summary", KindText, "One short text for the opcode"}, from: InMemory,
			get: ofOp(row, func(r opcodeRow) Cell { return text(r.op().Summary()) })},
		{Def: Def{"object_kind", "Object_kind", KindText, "What kind of object the opcode is about: instance, node, group, network or cluster"}, from: InMemory,
			get: ofOp(row, func(r opcodeRow) Cell { kind, _ := objectOf(r.op().Input); return textOrUnavail(kind) })},
		{Def: Def{"object", "Object", KindText, "Name of the object that the opcode is about"}, from: InMemory, mode: hostname,
			get: ofOp(row, func(r opcodeRow) Cell { _, name := objectOf(r.op().Input); return textOrUnavail(name) })},
		{Def: Def{"end_ts", "End", KindTimestamp, "When the opcode ended"}, from: InMemory,
			get: ofOp(row, func(r opcodeRow) Cell { return opcodeTime(r.op().End) })},
		{Def: Def{"dry_run", "Dry_run", KindBool, "Whether the opcode only checks what it would do"}, from: InMemory,
			get: ofOp(row, func(r opcodeRow) Cell { return truth(r.op().Input.DryRun) })},
		{Def: Def{"archived", "Archived", KindBool, "Whether the job was moved to the archive"}, from: InMemory,
			get: ofOp(row, func(r opcodeRow) Cell { return truth(r.j.Archived) })},
	}
}

func opcodeFields() []field[opcodeRow] {
	self := func(r opcodeRow) opcodeRow { return r }
	return append(jobSideFields(self), []field[opcodeRow]{
		{Def: Def{"id", "ID", KindText, "Number of the job and place of the opcode, with a dot between"}, from: InMemory,
			get: func(_ *view, r opcodeRow) Cell { return text(r.identity()) }},
		{Def: Def{"priority", "Priority", KindNumber, "How urgent the opcode is, where smaller is more urgent"}, from: InMemory,
			get: ofOp(self, func(r opcodeRow) Cell { return known(int64(r.op().Priority)) })},
		{Def: Def{"comment", "Comment", KindText, "Comment that the submitter left"}, from: InMemory,
			get: ofOp(self, func(r opcodeRow) Cell {
				if c := r.op().Input.Comment; c != nil {
					return text(*c)
				}
				return Cell{Status: Unavail}
			})},
		{Def: Def{"params", "Parameters", KindOther, "Parameters of the opcode; each one is a field of its own, too, with dots for its parts"}, from: InMemory,
			get: ofOp(self, func(r opcodeRow) Cell { return known(r.op().Input.ForDisplay().Params) })},
		{Def: Def{"result", "Result", KindOther, "Result of the opcode"}, from: InMemory,
			get: ofOp(self, func(r opcodeRow) Cell { return known(opResult(r.op())) })},
		{Def: Def{"log", "Log", KindOther, "Log of the opcode: entries of serial number, time, type and message"}, from: InMemory,
			get: ofOp(self, func(r opcodeRow) Cell { return known(opLog(r.op())) })},
		{Def: Def{"start_ts", "Start", KindTimestamp, "When the opcode began to wait for its locks"}, from: InMemory,
			get: ofOp(self, func(r opcodeRow) Cell { return opcodeTime(r.op().Start) })},
		{Def: Def{"exec_ts", "Exec", KindTimestamp, "When the opcode had its locks and began to run"}, from: InMemory,
			get: ofOp(self, func(r opcodeRow) Cell { return opcodeTime(r.op().Exec) })},
		{Def: Def{"reason_trail", "Reason_trail", KindOther, "Who wanted the opcode and why, hop by hop: source, reason and nanoseconds since the epoch"}, from: InMemory, words: "reason",
			get: ofOp(self, func(r opcodeRow) Cell { return known(r.op().Input.Reason) })},
		{Def: Def{"reason", "Reason", KindText, "The reason trail as one text, without what the system itself added"}, from: InMemory,
			get: ofOp(self, func(r opcodeRow) Cell { return text(r.op().Input.Reason.Text()) })},
	}...)
}

func opcodeTime(t job.Time) Cell {
	if t == 0 {
		return Cell{Status: Unavail}
	}
	return known(float64(t) / 1e6)
}

// opcodeParameters are the names of all parameters of all opcodes.
var opcodeParameters = allParameters()

func allParameters() map[string]bool {
	out := map[string]bool{}
	for _, d := range opcode.All() {
		for _, p := range d.Params {
			out[p.Name] = true
		}
	}
	return out
}

// opcodeParameter makes a field of a parameter or a part of one, such as
// "beparams.maxmem" or "nics.0.ip"; nil for a name that is no parameter.
func opcodeParameter(name string) *field[opcodeRow] {
	steps := strings.Split(name, ".")
	if !opcodeParameters[steps[0]] {
		return nil
	}
	return &field[opcodeRow]{
		Def:  Def{name, name, KindOther, "Parameter " + name + " of the opcode"},
		from: InMemory, strict: true,
		get: ofOp(func(r opcodeRow) opcodeRow { return r }, func(r opcodeRow) Cell {
			var value any = r.op().Input.ForDisplay().Params
			for _, s := range steps {
				part, ok := stepInto(value, s)
				if !ok {
					return Cell{Status: Unavail}
				}
				value = part
			}
			return known(value)
		}),
	}
}

// stepInto returns a part of an object or a list.
func stepInto(v any, key string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		part, ok := v[key]
		return part, ok
	case []any:
		i, err := strconv.Atoi(key)
		if err != nil || i < 0 || i >= len(v) {
			return nil, false
		}
		return v[i], true
	}
	return nil, false
}

// objectParams are the parameters that name what an opcode is about.
var objectParams = []struct{ param, kind string }{
	{"instance_name", "instance"}, {"node_name", "node"}, {"group_name", "group"}, {"network_name", "network"},
}

// objectOf tells what an opcode is about; both empty when it is about nothing
// in particular.
func objectOf(o *opcode.Opcode) (kind, name string) {
	for _, p := range objectParams {
		if name := o.Str(p.param); name != "" {
			return p.kind, name
		}
	}
	if kind := o.Str("kind"); kind != "" {
		return kind, o.Str("name")
	}
	if strings.HasPrefix(o.ID, "OP_CLUSTER_") {
		return "cluster", ""
	}
	return "", ""
}

// reasonRow is one entry of an opcode's reason trail.
type reasonRow struct {
	opcodeRow
	place int
}

func (r reasonRow) entry() reason.Entry { return r.op().Input.Reason[r.place] }

var reasonTable = table[reasonRow]{
	what:     "reason",
	fields:   strictly(reasonFields()),
	all:      reasonRows,
	narrow:   reasonPaths,
	compare:  compareReasons,
	shorten:  func(r reasonRow) reasonRow { return reasonRow{r.shortened(), r.place} },
	restore:  func(v *view, r reasonRow) reasonRow { return reasonRow{r.restored(v), r.place} },
	identity: func(r reasonRow) string { return r.identity() + "." + itoa(int64(r.place)) },
	affected: jobsOf,
	rowsOf:   func(v *view, d *delta, key string) []reasonRow { return rowsNow(v, d, key, reasonsOf) },
	object:   func(r reasonRow) string { return r.opcodeRow.object() },
}.indexed()

func reasonRows(v *view) iter.Seq[reasonRow] {
	return func(yield func(reasonRow) bool) {
		for r := range allJobs(v, true) {
			for row := range reasonsOf(v.whole(r.j)) {
				if !yield(row) {
					return
				}
			}
		}
	}
}

func reasonsOf(j *job.Job) iter.Seq[reasonRow] {
	return func(yield func(reasonRow) bool) {
		if damaged(j) {
			yield(reasonRow{opcodeRow{id: j.ID, j: j}, 0})
			return
		}
		for r := range opcodesOf(j) {
			for n := range r.op().Input.Reason {
				if !yield(reasonRow{r, n}) {
					return
				}
			}
		}
	}
}

func reasonPaths(t *table[reasonRow], v *view, tests []qlang.Node) []path[reasonRow] {
	return pathsToOpcodes(t, v, tests, reasonsOf, func(r opcodeRow) reasonRow { return reasonRow{r, 0} })
}

// ofEntry makes a getter of a reason row, NoData for a job that cannot be read.
func ofEntry(get func(reasonRow) Cell) func(*view, reasonRow) Cell {
	return func(_ *view, r reasonRow) Cell {
		if damaged(r.j) {
			return Cell{Status: NoData}
		}
		return get(r)
	}
}

func reasonFields() []field[reasonRow] {
	return slices.Concat(jobSideFields(func(r reasonRow) opcodeRow { return r.opcodeRow }), []field[reasonRow]{
		{Def: Def{"source", "Source", KindText, "Who gave the reason"}, from: InMemory,
			get: ofEntry(func(r reasonRow) Cell { return text(r.entry().Source) })},
		{Def: Def{"reason", "Reason", KindText, "The reason that was given, possibly empty"}, from: InMemory,
			get: ofEntry(func(r reasonRow) Cell { return text(r.entry().Reason) })},
		{Def: Def{"timestamp", "Time", KindTimestamp, "When the reason was given, to the nanosecond; a filter may give seconds, nanoseconds or a date"}, from: InMemory,
			get: ofEntry(func(r reasonRow) Cell { return known(nanos(r.entry().Time)) })},
		{Def: Def{"hop", "Hop", KindNumber, "Place of the entry in the trail, counted from zero"}, from: InMemory,
			get: ofEntry(func(r reasonRow) Cell { return known(int64(r.place)) })},
	})
}
