package items

import (
	"iter"
	"slices"
	"strconv"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/query"
)

var lockTable = query.Table[lock.State]{
	What: "lock",
	Fields: []query.Field[lock.State]{
		{Def: def("name", "Name", query.KindOther, "Name of the lock"), From: query.InMemory,
			Get: func(_ *query.View, s lock.State) query.Cell { return text(s.Name.String()) }},
		{Def: def("mode", "Mode", query.KindOther, "How it is held: exclusive or shared; null when it is only waited for"), From: query.InMemory,
			Get: func(_ *query.View, s lock.State) query.Cell {
				if s.Holders.Len() == 0 {
					return known(nil)
				}
				return text(s.Mode.String())
			}},
		{Def: def("owner", "Owner", query.KindOther, "Jobs that hold it"), From: query.InMemory,
			Get: func(_ *query.View, s lock.State) query.Cell {
				out := make([]string, 0, s.Holders.Len())
				for o := range s.Holders.All() {
					out = append(out, owner(o))
				}
				return known(out)
			}},
		{Def: def("pending", "Pending", query.KindOther, "Who waits for it: mode and job of each"), From: query.InMemory,
			Get: func(_ *query.View, s lock.State) query.Cell {
				out := make([]any, len(s.Pending))
				for i, p := range s.Pending {
					out[i] = []any{p.Mode.String(), []any{owner(p.Owner)}}
				}
				return known(out)
			}},
	},
	All: func(v *query.View) iter.Seq[lock.State] {
		if v.Locks == nil {
			return none[lock.State]
		}
		list := slices.Clone(v.Locks())
		slices.SortStableFunc(list, func(a, b lock.State) int { return cluster.CompareNames(a.Name.String(), b.Name.String()) })
		return slices.Values(list)
	},
	Identity: func(s lock.State) string { return s.Name.String() },
	Affected: locksOf,
	RowsOf:   lockNow,
}.Indexed()

// owner writes a job's number as clients read it: text that holds JSON.
func owner(o lock.Owner) string { return strconv.FormatInt(int64(o), 10) }
