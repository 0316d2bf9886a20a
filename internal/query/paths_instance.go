package query

import (
	"slices"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/qlang"
)

// primarySides are the fields that an instance has from its primary node alone.
var primarySides = []string{"pnode", "pnode.group", "pnode.group.uuid"}

// secondarySides are the fields that list a value of each secondary node.
var secondarySides = map[string]func(*view, node) Cell{
	"snodes": nodeName, "snodes.group": nodeGroup, "snodes.group.uuid": nodeGroupUUID,
}

// instancePaths are the ways to instances by an index.
func instancePaths(t *table[instance], v *view, tests []qlang.Node) []path[instance] {
	ways := append(tagPaths(v, cluster.KindInstance, tests, v.inv.Instance), uuidPaths(tests, v.inv.Instance)...)
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
func nameless(v *view) path[instance] {
	if v.nameless == nil {
		found := called(v, "")
		v.nameless = &found
	}
	return *v.nameless
}

func called(v *view, name string) path[instance] {
	found := slices.Collect(v.inv.InstancesCalled(name))
	return path[instance]{count: len(found), rows: slices.Values(found), sorted: true}
}

// namePath is the way to the instances whose name is the given one, or begins
// with it and a dot.
func namePath(v *view, name string) path[instance] {
	return joined("name", nameless(v), called(v, name))
}

// primaryPath is the way to the instances with the primary nodes that a test
// is about; none if the test fails for one of them.
func primaryPath(t *table[instance], v *view, test qlang.Node) []path[instance] {
	holds := t.compile(test, false)
	ways := nodeWays{limit: t.indexLimit(v), parts: []path[instance]{nameless(v)}}
	for uuid := range v.inv.PrimaryNodes() {
		verdict, err := holds(v, &cluster.Instance{Name: "any", PrimaryNode: uuid})
		if err != nil || verdict != no && !ways.add(primariesOn(v, uuid)) {
			return nil
		}
	}
	return []path[instance]{joined("pnode", ways.parts...)}
}

// secondaryPath is the way to the instances with the secondary nodes that a
// test is about. The lists of others hold texts alone, if there are any: those
// of instances with a node that nothing is known about are missing.
func secondaryPath(t *table[instance], v *view, test *qlang.Contains) []path[instance] {
	if test.Value.IsInt() {
		return nil
	}
	side := secondarySides[test.Field]
	ways := nodeWays{limit: t.indexLimit(v), parts: []path[instance]{nameless(v)}}
	for uuid := range v.inv.SecondaryNodes() {
		n := v.inv.Node(uuid)
		if (n == nil || missingOr(side(v, n), test.Value.Text)) && !ways.add(secondariesOn(v, uuid)) {
			return nil
		}
	}
	for uuid := range v.inv.PrimaryNodes() {
		if v.inv.Node(uuid) == nil && !ways.add(primariesOn(v, uuid)) {
			return nil
		}
	}
	return []path[instance]{joined("snodes", ways.parts...)}
}

func missingOr(c Cell, text string) bool { return c.Status != Normal || c.Value == text }

func primariesOn(v *view, uuid string) path[instance] {
	return path[instance]{count: v.inv.CountPrimariesOn(uuid), rows: v.inv.PrimariesOn(uuid), sorted: true}
}

func secondariesOn(v *view, uuid string) path[instance] {
	return path[instance]{count: v.inv.CountSecondariesOn(uuid), rows: v.inv.SecondariesOn(uuid), sorted: true}
}

// nodeWays gathers the ways to the instances of nodes, as long as they lead to
// few enough to be worth it.
type nodeWays struct {
	limit, count int
	parts        []path[instance]
}

// add takes a way in; false: it leads to too many.
func (w *nodeWays) add(p path[instance]) bool {
	w.count += p.count
	w.parts = append(w.parts, p)
	return w.count <= w.limit
}
