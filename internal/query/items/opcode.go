package items

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
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

func (r opcodeRow) restored(v *query.View) opcodeRow {
	if r.j == nil {
		r.j = readJob(v, r.id)
	}
	return r
}

func (r opcodeRow) op() *job.Op { return &r.j.Ops[r.index] }

func (r opcodeRow) identity() string { return r.id.String() + "." + itoa(int64(r.index)) }

func (r opcodeRow) object() string { return r.id.String() }

// rowsNow returns what belongs to a job that changed, archived or not.
func rowsNow[R any](v *query.View, d *query.Delta, key string, rows func(*job.Job) iter.Seq[R]) []R {
	if j := jobNow(v, d, key, true); j != nil {
		return slices.Collect(rows(whole(v, j)))
	}
	return nil
}

var opcodeTable = query.Table[opcodeRow]{
	What:     "opcode",
	Fields:   strictly(opcodeFields()),
	All:      opcodeRows,
	Narrow:   opcodePaths,
	Compare:  compareOpcodes,
	Shorten:  opcodeRow.shortened,
	Restore:  func(v *query.View, r opcodeRow) opcodeRow { return r.restored(v) },
	Identity: opcodeRow.identity,
	Affected: jobsOf,
	RowsOf:   func(v *query.View, d *query.Delta, key string) []opcodeRow { return rowsNow(v, d, key, opcodesOf) },
	Object:   opcodeRow.object,
	Dynamic:  opcodeParameter,
}.Indexed()

func opcodeRows(v *query.View) iter.Seq[opcodeRow] {
	return func(yield func(opcodeRow) bool) {
		for r := range allJobs(v, true) {
			for row := range opcodesOf(whole(v, r.j)) {
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

func opcodePaths(t *query.Table[opcodeRow], v *query.View, tests []qlang.Node) []query.Path[opcodeRow] {
	return pathsToOpcodes(t, v, tests, opcodesOf, func(r opcodeRow) opcodeRow { return r })
}

// ofOp makes a getter of an opcode row, NoData for a job that cannot be read.
func ofOp[R any](row func(R) opcodeRow, get func(opcodeRow) query.Cell) func(*query.View, R) query.Cell {
	return func(_ *query.View, r R) query.Cell {
		if o := row(r); !damaged(o.j) {
			return get(o)
		}
		return query.Cell{Status: query.NoData}
	}
}

// jobSideFields are what opcode and reason rows both tell about their job.
func jobSideFields[R any](row func(R) opcodeRow) []query.Field[R] {
	return []query.Field[R]{
		{Def: def("job", "Job", query.KindNumber, "Number of the job"), From: query.InMemory,
			Get: func(_ *query.View, r R) query.Cell { return known(int64(row(r).id)) }},
		{Def: def("index", "Index", query.KindNumber, "Place of the opcode in its job, counted from zero"), From: query.InMemory,
			Get: ofOp(row, func(r opcodeRow) query.Cell { return known(int64(r.index)) })},
		{Def: def("job_status", "Job_status", query.KindText, "State of the job"), From: query.InMemory,
			Get: ofOp(row, func(r opcodeRow) query.Cell { return text(string(r.j.Status())) })},
		{Def: def("opcode", "OpCode", query.KindText, "What the opcode does, for example OP_INSTANCE_SHUTDOWN"), From: query.InMemory,
			Get: ofOp(row, func(r opcodeRow) query.Cell { return text(r.op().Input.ID) })},
		{Def: def("status", "Status", query.KindText, "State of the opcode"), From: query.InMemory,
			Get: ofOp(row, func(r opcodeRow) query.Cell { return text(string(r.op().Status)) })},
		{Def: def("summary", "Summary", query.KindText, "One short text for the opcode"), From: query.InMemory,
			Get: ofOp(row, func(r opcodeRow) query.Cell { return text(r.op().Summary()) })},
		{Def: def("object_kind", "Object_kind", query.KindText, "What kind of object the opcode is about: instance, node, group, network, image or cluster"), From: query.InMemory,
			Get: ofOp(row, func(r opcodeRow) query.Cell { kind, _ := objectOf(r.op().Input); return textOrUnavail(kind) })},
		{Def: def("object", "Object", query.KindText, "Name of the object that the opcode is about"), From: query.InMemory, Mode: query.ModeHostname,
			Get: ofOp(row, func(r opcodeRow) query.Cell { _, name := objectOf(r.op().Input); return textOrUnavail(name) })},
		{Def: def("end_ts", "End", query.KindTimestamp, "When the opcode ended"), From: query.InMemory,
			Get: ofOp(row, func(r opcodeRow) query.Cell { return opcodeTime(r.op().End) })},
		{Def: def("dry_run", "Dry_run", query.KindBool, "Whether the opcode only checks what it would do"), From: query.InMemory,
			Get: ofOp(row, func(r opcodeRow) query.Cell { return truth(r.op().Input.DryRun) })},
		{Def: def("archived", "Archived", query.KindBool, "Whether the job was moved to the archive"), From: query.InMemory,
			Get: ofOp(row, func(r opcodeRow) query.Cell { return truth(r.j.Archived) })},
	}
}

func opcodeFields() []query.Field[opcodeRow] {
	self := func(r opcodeRow) opcodeRow { return r }
	return append(jobSideFields(self), []query.Field[opcodeRow]{
		{Def: def("id", "ID", query.KindText, "Number of the job and place of the opcode, with a dot between"), From: query.InMemory,
			Get: func(_ *query.View, r opcodeRow) query.Cell { return text(r.identity()) }},
		{Def: def("priority", "Priority", query.KindNumber, "How urgent the opcode is, where smaller is more urgent"), From: query.InMemory,
			Get: ofOp(self, func(r opcodeRow) query.Cell { return known(int64(r.op().Priority)) })},
		{Def: def("comment", "Comment", query.KindText, "Comment that the submitter left"), From: query.InMemory,
			Get: ofOp(self, func(r opcodeRow) query.Cell {
				if c := r.op().Input.Comment; c != nil {
					return text(*c)
				}
				return query.Cell{Status: query.Unavail}
			})},
		{Def: def("params", "Parameters", query.KindOther, "Parameters of the opcode; each one is a field of its own, too, with dots for its parts"), From: query.InMemory,
			Get: ofOp(self, func(r opcodeRow) query.Cell { return known(r.op().Input.ForDisplay().Params) })},
		{Def: def("result", "Result", query.KindOther, "Result of the opcode"), From: query.InMemory,
			Get: ofOp(self, func(r opcodeRow) query.Cell { return known(opResult(r.op())) })},
		{Def: def("log", "Log", query.KindOther, "Log of the opcode: entries of serial number, time, type and message"), From: query.InMemory,
			Get: ofOp(self, func(r opcodeRow) query.Cell { return known(opLog(r.op())) })},
		{Def: def("start_ts", "Start", query.KindTimestamp, "When the opcode began to wait for its locks"), From: query.InMemory,
			Get: ofOp(self, func(r opcodeRow) query.Cell { return opcodeTime(r.op().Start) })},
		{Def: def("exec_ts", "Exec", query.KindTimestamp, "When the opcode had its locks and began to run"), From: query.InMemory,
			Get: ofOp(self, func(r opcodeRow) query.Cell { return opcodeTime(r.op().Exec) })},
		{Def: def("reason_trail", "Reason_trail", query.KindOther, "Who wanted the opcode and why, hop by hop: source, reason and nanoseconds since the epoch"), From: query.InMemory, Words: "reason",
			Get: ofOp(self, func(r opcodeRow) query.Cell { return known(r.op().Input.Reason) })},
		{Def: def("reason", "Reason", query.KindText, "The reason trail as one text, without what the system itself added"), From: query.InMemory,
			Get: ofOp(self, func(r opcodeRow) query.Cell { return text(r.op().Input.Reason.Text()) })},
	}...)
}

func opcodeTime(t job.Time) query.Cell {
	if t == 0 {
		return query.Cell{Status: query.Unavail}
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
func opcodeParameter(name string) *query.Field[opcodeRow] {
	steps := strings.Split(name, ".")
	if !opcodeParameters[steps[0]] {
		return nil
	}
	return &query.Field[opcodeRow]{
		Def:  def(name, name, query.KindOther, "Parameter "+name+" of the opcode"),
		From: query.InMemory, Strict: true,
		Get: ofOp(func(r opcodeRow) opcodeRow { return r }, func(r opcodeRow) query.Cell {
			var value any = r.op().Input.ForDisplay().Params
			for _, s := range steps {
				part, ok := stepInto(value, s)
				if !ok {
					return query.Cell{Status: query.Unavail}
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
	{"instance_name", "instance"}, {"node_name", "node"}, {"group_name", "group"}, {"network_name", "network"}, {"image_name", "image"},
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
