//go:build ganeti

package wire

import (
	"slices"
	"strings"
)

// kinds are the items that can be asked for, and some that cannot.
var kinds = []string{"instance", "instance", "instance", "node", "group", "network", "job", "filter", "lock", "export"}

// common are fields that calls like more than the others.
var common = map[string][]string{
	"instance": {"name", "pnode", "status", "admin_state", "os", "tags", "be/memory", "be/vcpus", "nic.ips", "nic.count", "disk.count", "disk.sizes",
		"disk_template", "oper_state", "be/maxmem", "hypervisor", "nic.names", "disk.names", "hv/migration_mode", "snodes", "pnode.group", "console"},
	"node":    {"name", "role", "master", "offline", "drained", "vm_capable", "tags", "pinst_cnt", "pinst_list", "group", "master_candidate"},
	"group":   {"name", "alloc_policy", "node_cnt", "node_list", "pinst_cnt", "tags", "ndparams", "ipolicy", "pinst_list"},
	"network": {"name", "network", "gateway", "mac_prefix", "free_count", "reserved_count", "map", "external_reservations", "inst_list", "group_list", "tags"},
	"job":     {"id", "status", "summary", "opstatus", "opresult", "priority", "ops", "archived", "oppriority"},
	"filter":  {"priority", "action", "predicates", "uuid"},
	"lock":    {"name", "mode", "owner", "pending"},
	"export":  {"node", "export"},
}

// texts are values to compare with.
var texts = []any{"w1.example", "w1", "w2.example", "w3", "node1.drover.example", "node1", "default", "g1", "net1", "up", "down", "running", "ADMIN_down",
	"noop+default", "web", "env:prod", "diskless", "file", "bridged", "192.0.2.2", "success", "error", "M", "nosuch", "", "W1.EXAMPLE", "fake", "br0"}

var numbers = []any{0, 1, 2, 64, 128, 1.5, -1, 3}

// patterns are regular expressions that all engines read alike.
var patterns = []any{"w", "^w[12]", "example$", "1", ".*", "^$", "W", "w1|w2", "e.a", "[0-9]+", "node", "up|down"}

// sideFields are those whose values are each side's own: nothing is filtered by them.
var sideFields = []string{"ctime", "mtime", "uuid", "serial_no", "pip", "sip", "network_port", "bootid", "console", "opstart", "opexec", "opend", "oplog",
	"received_ts", "start_ts", "end_ts", "watermark", "reason_trail", "reason", "disk_usage", "ndparams", "ssh_port", "disk.providers"}

func (d *draw) filterable(kind string) []string {
	var out []string
	for _, f := range d.scene.fields[kind] {
		own := f.Source == "live" || f.Source == "node" || slices.Contains(sideFields, f.Name) || strings.Contains(f.Name, "mac") || strings.Contains(f.Name, "uuid")
		if !own && !strings.HasPrefix(f.Name, "n/") {
			out = append(out, f.Name)
		}
	}
	return out
}

// columns chooses fields to ask for.
func (d *draw) columns(kind string) []any {
	out := list{}
	for range 1 + d.IntN(5) {
		switch {
		case d.chance(60) && len(common[kind]) > 0:
			out = append(out, pick(d, common[kind]...))
		case d.chance(95) && len(d.scene.fields[kind]) > 0:
			out = append(out, pick(d, d.scene.fields[kind]...).Name)
		default:
			out = append(out, pick(d, "nosuch", "", "NAME", "name "))
		}
	}
	if d.chance(2) {
		return list{}
	}
	return out
}

func (d *draw) filterField(kind string) string {
	switch {
	case len(common[kind]) == 0:
		return "name"
	case d.chance(65):
		return pick(d, slices.DeleteFunc(slices.Clone(common[kind]), func(f string) bool { return slices.Contains(sideFields, f) })...)
	case d.chance(94):
		if all := d.filterable(kind); len(all) > 0 {
			return pick(d, all...)
		}
	}
	return pick(d, "nosuch", "", "NAME")
}

// value is what a field is compared with.
func (d *draw) value(field string) any {
	switch {
	case field == "id":
		return d.job()
	case d.chance(60):
		return pick(d, texts...)
	case d.chance(90):
		return pick(d, numbers...)
	}
	return pick[any](d, true, nil, list{}, "x\ny", "ä")
}

// filter is a filter of a kind, now and then one that is none.
func (d *draw) filter(kind string, depth int) any {
	if depth > 0 && d.chance(40) {
		switch d.IntN(5) {
		case 0:
			return list{"!", d.filter(kind, depth-1)}
		default:
			out := list{pick(d, "&", "|")}
			for range d.IntN(4) {
				out = append(out, d.filter(kind, depth-1))
			}
			return out
		}
	}
	field := d.filterField(kind)
	switch d.IntN(20) {
	case 0, 1:
		return list{"?", field}
	case 2, 3:
		return list{"=~", field, pick(d, patterns...)}
	case 4, 5:
		return list{"=[]", field, d.value(field)}
	case 6:
		return pick[any](d, list{"foo", field, 1}, list{"=", field}, list{"?", field, 1}, list{}, list{"!"}, list{"!", list{"?", field}, list{"?", field}}, "x", 7, true,
			list{"=", 7, field}, list{"=*", field, "w*"}, list{"==", field, "x", "y"}, list{"=~", field, "("}, list{"=~", field, 5}, object{}, list{"&"}, list{"|"}, list{list{"?", field}})
	}
	return list{pick(d, "=", "=", "==", "!=", "<", ">", "<=", ">="), field, d.value(field)}
}

// byName is a filter that finds items by their names.
func (d *draw) byName(kind string) any {
	key := map[string]string{"job": "id", "export": "node", "filter": "uuid"}[kind]
	if key == "" {
		key = "name"
	}
	out := list{"|"}
	for range 1 + d.IntN(3) {
		v := any(pick(d, texts...))
		if kind == "job" {
			v = d.job()
		}
		if kind == "filter" {
			v = d.rule()
		}
		out = append(out, list{pick(d, "=", "=", "=="), key, v})
	}
	if len(out) == 2 && d.chance(50) {
		return out[1]
	}
	return out
}

// ofJobs keeps a filter to jobs that both sides have.
func (d *draw) ofJobs(filter any) any {
	known := list{"|"}
	for range 1 + d.IntN(4) {
		if len(d.scene.jobs) > 0 {
			known = append(known, list{"=", "id", "{job:" + d.recent(d.scene.jobs) + "}"})
		}
	}
	if len(known) == 1 {
		known = append(known, list{"=", "id", noJob})
	}
	if filter == nil {
		return known
	}
	return list{"&", known, filter}
}

func (d *draw) anyFilter(kind string) any {
	var filter any
	switch {
	case d.chance(15):
	case d.chance(20):
		filter = d.byName(kind)
	default:
		filter = d.filter(kind, 3)
	}
	if kind == "job" {
		return d.ofJobs(filter)
	}
	return filter
}

func query(d *draw) *call {
	kind := pick(d, kinds...)
	if d.chance(3) {
		kind = pick(d, "os", "cluster", "extstorage", "nosuch", "", "Instance")
	}
	if d.chance(2) {
		return d.luxi("query", "Query", pick(d, list{kind}, list{kind, list{"name"}}, list{kind, "name", nil}, list{kind, list{1}, nil}, list{7, list{"name"}, nil}, list{kind, nil, nil})...)
	}
	return d.luxi("query", "Query", kind, d.columns(kind), d.anyFilter(kind))
}

func queryFields(d *draw) *call {
	kind := pick(d, append(slices.Clone(kinds), "os", "cluster", "nosuch")...)
	switch d.IntN(8) {
	case 0:
		return d.luxi("fields", "QueryFields", kind, list{})
	case 1:
		return d.luxi("fields", "QueryFields", pick(d, list{kind}, list{kind, "name"}, list{kind, list{5}}, list{}, list{kind, list{"name"}, 1})...)
	}
	return d.luxi("fields", "QueryFields", kind, d.columns(kind))
}

// oldQuery is one of the list requests from before queries.
func oldQuery(d *draw) *call {
	names := list{}
	for _, n := range some(d, 2, texts...) {
		names = append(names, n)
	}
	switch d.IntN(12) {
	case 0, 1, 2:
		return d.luxi("list", "QueryInstances", names, d.columns("instance"), false)
	case 3, 4:
		return d.luxi("list", "QueryNodes", names, d.columns("node"), false)
	case 5:
		return d.luxi("list", "QueryGroups", names, d.columns("group"), false)
	case 6:
		return d.luxi("list", "QueryNetworks", names, d.columns("network"), false)
	case 7, 8:
		ids := list{d.job()}
		for range d.IntN(3) {
			ids = append(ids, d.job())
		}
		return d.luxi("list", "QueryJobs", ids, d.columns("job"))
	case 9:
		return d.luxi("list", "QueryTags", pick(d, "cluster", "node", "nodegroup", "instance", "network", "nosuch"), pick[any](d, "w1.example", "w1", "node1", "default", "net1", "", nil, "nosuch"))
	case 10:
		return d.luxi("list", "QueryConfigValues", list{pick[any](d, "cluster_name", "master_node", "drain_flag", "watcher_pause", "nosuch", 5)})
	}
	method := pick(d, "QueryInstances", "QueryNodes", "QueryGroups", "QueryNetworks", "QueryJobs", "QueryTags", "QueryConfigValues", "QueryExports", "QueryFilters", "QueryFields")
	return d.luxi("list", method, some[any](d, 3, list{}, list{"name"}, "x", 1, nil, true, object{}, list{nil})...)
}

// garbage is what is no request.
func garbage(d *draw) *call {
	if d.chance(50) {
		return d.luxi("garbage", pick(d, "Nosuch", "", "query", "SubmitJobs", "PickupJob", "QueryClusterInfo"), some(d, 2, d.odd())...)
	}
	return d.raw("garbage", pick(d, `{}`, `[]`, `x`, ``, `{"method":"Query"}`, `{"args":[]}`, `{"method":5,"args":[]}`, `{"method":"Query","args":{}}`, `{"method":"QueryClusterInfo","args":null}`,
		`{"method":"QueryConfigValues","args":[["cluster_name"]]}`, `{"method":"QueryConfigValues","args":[["cluster_name"]],"version":"x","more":1}`, `"x"`, `null`, `{"method":"QueryTags","args":["node",`, `{"method":"QueryConfigValues","args":[]}`))
}
