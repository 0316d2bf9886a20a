package items

import (
	"cmp"
	"iter"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/reason"
)

var environmentTable = query.Table[*course.Environment]{
	What: "environment",
	Fields: strictly([]query.Field[*course.Environment]{
		textField("name", "Environment", "Name of the environment", func(e *course.Environment) string { return e.Name }),
		textField("status", "Status", "Status that its file gives", func(e *course.Environment) string { return e.Status }),
		{Def: def("deployed", "Deployed", query.KindText, "How far it has come: new, operational or partially_deployed"),
			Get: func(v *query.View, e *course.Environment) query.Cell {
				return known(string(v.Deployments.StatusOf(e)))
			}},
		{Def: def("graphs", "Graphs", query.KindOther, "Task graphs that it is deployed by"), Get: func(_ *query.View, e *course.Environment) query.Cell { return known(e.Graphs) }},
		numberField("node_cnt", "Nodes", "Number of its nodes", func(e *course.Environment) int64 { return int64(len(e.Nodes)) }),
		{Def: def("nodes", "NodeList", query.KindOther, "Its nodes: UID, roles, node of the cluster"), Get: func(_ *query.View, e *course.Environment) query.Cell { return known(e.Nodes) }},
		numberField("generation", "Generation", "How often it was changed", func(e *course.Environment) int64 { return e.Generation }),
		timeField("ctime", "CTime", "When it was made", func(e *course.Environment) int64 { return e.Created }),
		timeField("mtime", "MTime", "When it was last changed", func(e *course.Environment) int64 { return e.Modified }),
		textField("who", "Who", "Account that changed it last", func(e *course.Environment) string { return e.By }),
		trailField(func(e *course.Environment) reason.Trail { return e.Trail }),
	}),
	All: func(v *query.View) iter.Seq[*course.Environment] {
		if v.Deployments == nil {
			return none[*course.Environment]
		}
		return v.Deployments.Environments()
	},
	Stored:   true,
	Compare:  func(a, b *course.Environment) int { return cmp.Compare(a.Name, b.Name) },
	Identity: func(e *course.Environment) string { return e.Name },
	Affected: func(d *query.Delta) (a query.Affected) {
		for _, c := range d.Changes {
			for _, e := range c.Environments {
				a.Add(e.Name)
			}
			for _, name := range c.EnvironmentsRemoved {
				a.Add(name)
			}
			for _, d := range c.Deployments { // which say how far it has come
				a.Add(d.Environment)
			}
		}
		return a
	},
	RowsOf: func(v *query.View, _ *query.Delta, name string) []*course.Environment {
		return rowOrNone(v.Deployments.Environment(name))
	},
}.Indexed()

// rowOrNone is a row, or none for nil.
func rowOrNone[T any](row *T) []*T {
	if row == nil {
		return nil
	}
	return []*T{row}
}
