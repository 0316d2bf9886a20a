package items

import (
	"slices"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

// oldNames says by which fields the old list requests look items up.
var oldNames = map[string][]string{
	"instance": {"name", "uuid"}, "node": {"name", "uuid"}, "group": {"name", "uuid"}, "network": {"name", "uuid"},
	"job": {"id", "id"}, "export": {"node", "node"}, "filter": {"uuid"}, "extstorage": {"name"},
}

// OldFilter returns the filter that an old list request (QueryInstances,
// QueryJobs and so on) stands for: items with one of the names, all for none.
// Job ids may be written as texts.
func OldFilter(what string, names []string) (qlang.Node, error) {
	if len(names) == 0 {
		return &qlang.All{}, nil
	}
	values := make([]qlang.Value, len(names))
	for i, n := range names {
		values[i] = qlang.TextValue(n)
		if what == "job" {
			id, err := jobID(values[i])
			if err != nil {
				return nil, err
			}
			values[i] = qlang.IntValue(int64(id))
		}
	}
	either := &qlang.Or{}
	for _, fieldName := range oldNames[what] {
		tests := &qlang.Or{}
		for _, v := range values {
			tests.Args = append(tests.Args, &qlang.Compare{Op: qlang.Eq, Field: fieldName, Value: v})
		}
		either.Args = append(either.Args, tests)
	}
	return either, nil
}

// Old answers an old list request; Result.AppendValues writes its answer. An
// unknown field makes it fail. Names that match nothing are no error, except
// that an unknown job is a row of nulls.
func Old(src *query.Source, what string, names, fields []string) (*query.Result, error) {
	if err := All.CheckFields(what, fields); err != nil {
		return nil, err
	}
	filter, err := OldFilter(what, names)
	if err != nil {
		return nil, err
	}
	return All.Run(src, what, fields, filter, query.Options{})
}

// JobValues returns a function that appends the values of some fields of a
// job as a JSON list, null where there is none. A field that jobs do not have
// makes all of them null, as clients that wait for changes know it.
func JobValues(fields []string) func(dst []byte, j *job.Job) []byte {
	if All.CheckFields("job", fields) != nil {
		fields = make([]string, len(fields)) // no field has an empty name
	}
	values := jobTable.Bare(fields)
	return func(dst []byte, j *job.Job) []byte { return values(dst, jobRow{id: j.ID, j: j}) }
}

// OSNames are the names of the operating systems that instances may have, with their variants: debian+minimal.
func OSNames(src *query.Source) ([]string, error) {
	result, err := OSes(src, nil, []string{"name", "variants"})
	if err != nil {
		return nil, err
	}
	names, row := []string{}, make([]query.Cell, 2)
	for i := range result.Len() {
		result.Row(i, row)
		name, _ := row[0].Value.(string)
		variants, _ := row[1].Value.([]string)
		if len(variants) == 0 {
			names = append(names, name)
		}
		for _, v := range variants {
			names = append(names, name+"+"+v)
		}
	}
	return names, nil
}

// OSes lists operating systems as the reference's OP_OS_DIAGNOSE does: those
// that are hidden, blacklisted or not valid are left out unless the field that
// tells so is asked for. No names stand for all.
func OSes(src *query.Source, names, fields []string) (*query.Result, error) {
	if err := All.CheckFields("os", fields); err != nil {
		return nil, err
	}
	filter := &qlang.And{}
	for _, name := range []string{"hidden", "blacklisted"} {
		if !slices.Contains(fields, name) {
			filter.Args = append(filter.Args, &qlang.Not{Arg: &qlang.True{Field: name}})
		}
	}
	if !slices.Contains(fields, "valid") {
		filter.Args = append(filter.Args, &qlang.True{Field: "valid"})
	}
	if len(names) > 0 {
		filter.Args = append(filter.Args, qlang.AnyOf("name", names...))
	}
	return All.Run(src, "os", fields, filter, query.Options{})
}
