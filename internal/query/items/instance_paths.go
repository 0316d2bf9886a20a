package items

import (
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
)

// primarySides are the fields that an instance has from its primary node alone.
var primarySides = []string{"pnode", "pnode.group", "pnode.group.uuid"}

// secondarySides are the fields that list a value of each secondary node.
var secondarySides = map[string]func(*query.View, node) query.Cell{
	"snodes": nodeName, "snodes.group": nodeGroup, "snodes.group.uuid": nodeGroupUUID,
}

// instancePaths are the ways to instances by an index.
func instancePaths(t *query.Table[instance], v *query.View, tests []qlang.Node) []query.Path[instance] {
	ways := append(tagPaths(v, cluster.KindInstance, tests, v.Inventory.Instance), uuidPaths(tests, v.Inventory.Instance)...)
	for _, test := range tests {
		if name, ok := textTest(test, "name"); ok {
			ways = append(ways, namePath(v, name))
		}
		if only(test, primarySides...) {
			ways = append(ways, primaryPath(t, v, test)...)
		}
		if c, ok := test.(*qlang.Contains); ok && secondarySides[c.Field] != nil {
			ways = append(ways, secondaryPath(t, v, c)...)
		}
	}
	return ways
}

// nameless are the instances without a name. Most of what is to be known of
// them is not, so most tests hold for them.
func nameless(v *query.View) query.Path[instance] {
	m := memoOf(v)
	if m.nameless == nil {
		found := called(v, "")
		m.nameless = &found
	}
	return *m.nameless
}

func called(v *query.View, name string) query.Path[instance] {
	found := slices.Collect(v.Inventory.InstancesCalled(name))
	return query.Path[instance]{Count: len(found), Rows: slices.Values(found), Sorted: true}
}

// namePath is the way to the instances whose name is the given one, or begins
// with it and a dot.
func namePath(v *query.View, name string) query.Path[instance] {
	return query.Join("name", nameless(v), called(v, name))
}

// primaryPath is the way to the instances with the primary nodes that a test
// is about; none if the test fails for one of them.
func primaryPath(t *query.Table[instance], v *query.View, test qlang.Node) []query.Path[instance] {
	holds := t.Compile(test, false)
	ways := nodeWays{limit: t.IndexLimit(v), parts: []query.Path[instance]{nameless(v)}}
	for uuid := range v.Inventory.PrimaryNodes() {
		verdict, err := holds(v, &cluster.Instance{Name: "any", PrimaryNode: uuid})
		if err != nil || verdict != query.No && !ways.add(primariesOn(v, uuid)) {
			return nil
		}
	}
	return []query.Path[instance]{query.Join("pnode", ways.parts...)}
}

// secondaryPath is the way to the instances with the secondary nodes that a
// test is about. The lists of others hold texts alone, if there are any: those
// of instances with a node that nothing is known about are missing.
func secondaryPath(t *query.Table[instance], v *query.View, test *qlang.Contains) []query.Path[instance] {
	if test.Value.IsInt() {
		return nil
	}
	side := secondarySides[test.Field]
	ways := nodeWays{limit: t.IndexLimit(v), parts: []query.Path[instance]{nameless(v)}}
	for uuid := range v.Inventory.SecondaryNodes() {
		n := v.Inventory.Node(uuid)
		if (n == nil || missingOr(side(v, n), test.Value.Text)) && !ways.add(secondariesOn(v, uuid)) {
			return nil
		}
	}
	for uuid := range v.Inventory.PrimaryNodes() {
		if v.Inventory.Node(uuid) == nil && !ways.add(primariesOn(v, uuid)) {
			return nil
		}
	}
	return []query.Path[instance]{query.Join("snodes", ways.parts...)}
}

func missingOr(c query.Cell, text string) bool { return c.Status != query.Normal || c.Value == text }

func primariesOn(v *query.View, uuid string) query.Path[instance] {
	return query.Path[instance]{Count: v.Inventory.CountPrimariesOn(uuid), Rows: v.Inventory.PrimariesOn(uuid), Sorted: true}
}

func secondariesOn(v *query.View, uuid string) query.Path[instance] {
	return query.Path[instance]{Count: v.Inventory.CountSecondariesOn(uuid), Rows: v.Inventory.SecondariesOn(uuid), Sorted: true}
}

// nodeWays gathers the ways to the instances of nodes, as long as they lead to
// few enough to be worth it.
type nodeWays struct {
	limit, count int
	parts        []query.Path[instance]
}

// add takes a way in; false: it leads to too many.
func (w *nodeWays) add(p query.Path[instance]) bool {
	w.count += p.Count
	w.parts = append(w.parts, p)
	return w.count <= w.limit
}
