//go:build ganeti

package wire

import (
	"maps"
	"net/url"
	"slices"
)

// reading are resources that are read.
var reading = []string{"/", "/2", "/2/", "/version", "/2/info", "/2/features", "/2/tags", "/2/groups", "/2/groups?bulk=1", "/2/groups/default", "/2/groups/g1", "/2/groups/nosuch", "/2/groups/g1/tags",
	"/2/instances", "/2/instances?bulk=1", "/2/instances?bulk=x", "/2/instances?bulk=0", "/2/instances/w1.example", "/2/instances/w1", "/2/instances/w3.example", "/2/instances/nosuch", "/2/instances/w1.example/tags",
	"/2/instances/nosuch/tags", "/2/instances/w1.example/console", "/2/instances/w4.example/console", "/2/networks", "/2/networks?bulk=1", "/2/networks/net1", "/2/networks/nosuch", "/2/networks/net1/tags",
	"/2/nodes", "/2/nodes?bulk=1", "/2/nodes/node1.drover.example", "/2/nodes/node1", "/2/nodes/nosuch", "/2/nodes/node1.drover.example/role", "/2/nodes/node1.drover.example/tags", "/2/nodes/nosuch/role",
	"/2/filters/x", "/2/filters/00000000-0000-4000-8000-000000000000", "/2/jobs/x", "/2/jobs/987654320", "/2/jobs/-1", "/2/nosuch", "/2/jobs/", "/3/info", "/2/instances/", "/2/INSTANCES", "/2/query/instance/fields",
	"/2/query/node/fields?fields=name", "/2/query/nosuch/fields", "/2/nodes/nosuch/storage", "/2/instances/nosuch/info"}

// lists are resources whose path queries choose.
func (d *draw) queryPath() string {
	kind := pick(d, "instance", "instance", "node", "group", "network", "filter", "lock", "export", "os", "nosuch")
	fields := ""
	for i, f := range d.columns(kind) {
		if i > 0 {
			fields += ","
		}
		fields += f.(string)
	}
	if d.chance(10) {
		fields = ""
	}
	if d.chance(8) {
		return "/2/query/" + kind
	}
	return "/2/query/" + kind + "?fields=" + url.QueryEscape(fields)
}

func read(d *draw) *call {
	switch d.IntN(10) {
	case 0, 1, 2:
		return d.rapi("rapi read", "GET", d.queryPath())
	case 3:
		return d.rapi("rapi read", "GET", d.jobPath())
	case 4:
		kind := pick(d, "instance", "node", "group", "network", "filter", "lock")
		body := object{"fields": d.columns(kind), "qfilter": d.anyFilter(kind)}
		if d.chance(30) {
			body = pick(d, object{"fields": d.columns(kind)}, object{"qfilter": nil}, object{"fields": "name"}, object{"fields": d.odd()}, object{})
		}
		return d.with("rapi query", "PUT", "/2/query/"+kind, body)
	}
	return d.rapi("rapi read", "GET", pick(d, reading...))
}

func (d *draw) jobPath() string {
	if len(d.scene.jobs) == 0 {
		return "/2/jobs/987654320"
	}
	return "/2/jobs/{job:" + d.recent(d.scene.jobs) + "}"
}

// writing are resources that are written to, with a body that does.
var writing = []struct {
	method, path string
	body         object
}{
	{"PUT", "/2/tags?tag=a", nil}, {"DELETE", "/2/tags?tag=a", nil}, {"PUT", "/2/instances/w1.example/tags?tag=a&tag=b", nil}, {"DELETE", "/2/instances/w1.example/tags?tag=a", nil}, {"PUT", "/2/tags", nil},
	{"PUT", "/2/nodes/node1.drover.example/tags?tag=a", nil}, {"PUT", "/2/groups/g1/tags?tag=a", nil}, {"PUT", "/2/networks/net1/tags?tag=a", nil}, {"PUT", "/2/instances/nosuch/tags?tag=a", nil}, {"PUT", "/2/tags?tag=a%20b", nil},
	{"PUT", "/2/instances/w2.example/startup", nil}, {"PUT", "/2/instances/w2.example/shutdown", object{"timeout": 0}}, {"POST", "/2/instances/w2.example/reboot", nil}, {"POST", "/2/instances/w2.example/reboot?type=hard", nil},
	{"POST", "/2/instances/w2.example/reboot?type=x", nil}, {"PUT", "/2/instances/nosuch/startup", nil}, {"PUT", "/2/instances/w2.example/startup?dry-run=1", nil}, {"PUT", "/2/instances/w2.example/startup?force=1", nil},
	{"PUT", "/2/instances/w1.example/modify", object{"beparams": object{"vcpus": 1}}}, {"PUT", "/2/instances/w1.example/modify", object{"nosuch": 1}}, {"PUT", "/2/instances/nosuch/modify", object{"beparams": object{"vcpus": 1}}},
	{"PUT", "/2/instances/w1.example/rename", object{"new_name": "w1.example"}}, {"PUT", "/2/instances/w1.example/rename", object{}}, {"POST", "/2/instances/w2.example/reinstall", object{"os": "nosuch"}},
	{"POST", "/2/instances/w1.example/disk/0/grow", object{"amount": 4}}, {"POST", "/2/instances/w1.example/disk/x/grow", object{"amount": 4}}, {"POST", "/2/instances/w1.example/disk/7/grow", object{"amount": 4}},
	{"POST", "/2/instances/w1.example/disk/0/grow", object{}}, {"DELETE", "/2/instances/nosuch", nil}, {"DELETE", "/2/instances/x1.example", nil},
	{"POST", "/2/instances", object{"__version__": 1, "instance_name": "x1.example", "mode": "create", "os_type": "noop+default", "disk_template": "diskless", "disks": list{}, "nics": list{}, "pnode": "node1.drover.example", "name_check": false, "ip_check": false, "start": false}},
	{"POST", "/2/instances", object{"__version__": 1, "name": "x1.example", "mode": "create", "os": "noop+default", "disk_template": "diskless", "disks": list{}, "nics": list{}, "pnode": "node1.drover.example", "name_check": false, "ip_check": false, "start": false}},
	{"POST", "/2/instances", object{"__version__": 0}}, {"POST", "/2/instances", object{"__version__": 1}}, {"POST", "/2/instances", object{}}, {"POST", "/2/instances?dry-run=1", object{"__version__": 1, "instance_name": "x2.example", "mode": "create"}},
	{"POST", "/2/groups", object{"group_name": "gx"}}, {"DELETE", "/2/groups/gx", nil}, {"DELETE", "/2/groups/default", nil}, {"PUT", "/2/groups/g1/modify", object{"alloc_policy": "preferred"}}, {"PUT", "/2/groups/g1/modify", object{"nosuch": 1}},
	{"PUT", "/2/groups/g1/rename", object{"new_name": "g1"}}, {"PUT", "/2/groups/g1/assign-nodes", object{"nodes": list{"nosuch"}}}, {"POST", "/2/groups", object{}}, {"POST", "/2/groups", object{"name": "gx"}},
	{"POST", "/2/networks", object{"network_name": "netx", "network": "198.51.100.0/28"}}, {"DELETE", "/2/networks/netx", nil}, {"PUT", "/2/networks/net2/modify", object{"mac_prefix": "aa:00:66"}}, {"PUT", "/2/networks/net2/connect", object{"group_name": "nosuch", "network_mode": "bridged", "network_link": "br0"}},
	{"PUT", "/2/networks/net2/disconnect", object{"group_name": "g1"}}, {"POST", "/2/networks", object{}}, {"PUT", "/2/networks/nosuch/modify", object{}},
	{"PUT", "/2/nodes/node1.drover.example/role", nil}, {"PUT", "/2/nodes/node1.drover.example/modify", object{}}, {"POST", "/2/nodes/node1.drover.example/modify", object{"ndparams": object{}}}, {"POST", "/2/nodes/nosuch/modify", object{"drained": true}},
	{"PUT", "/2/modify", object{"beparams": object{}}}, {"PUT", "/2/modify", object{"nosuch": 1}}, {"PUT", "/2/redistribute-config", nil}, {"PUT", "/2/modify", object{"candidate_pool_size": 10}},
	{"POST", "/2/filters", object{"priority": 3, "predicates": list{list{"jobid", list{"=", "id", 999999999}}}, "action": "CONTINUE", "reason": list{}}}, {"POST", "/2/filters", object{"priority": -1}}, {"POST", "/2/filters", object{"action": "x"}},
	{"POST", "/2/filters", object{"predicates": list{list{"nosuch", list{}}}}}, {"DELETE", "/2/filters/00000000-0000-4000-8000-000000000000", nil}, {"PUT", "/2/filters/x", object{"priority": 1}}, {"POST", "/2/filters", object{"nosuch": 1}},
	{"DELETE", "/2/jobs/987654320", nil}, {"DELETE", "/2/jobs/x", nil}, {"GET", "/2/jobs/987654320/wait", object{"fields": list{"status"}, "previous_job_info": nil, "previous_log_serial": nil}}, {"GET", "/2/jobs/987654320/wait", object{}},
	{"PUT", "/2/instances/w1.example/migrate", nil}, {"PUT", "/2/instances/w1.example/failover", nil}, {"PUT", "/2/instances/w1.example/activate-disks", nil}, {"POST", "/2/instances-multi-alloc", object{"instances": list{}}},
	{"PUT", "/2/instances", object{}}, {"POST", "/2/info", object{}}, {"DELETE", "/2/nodes", nil}, {"PUT", "/version", nil}, {"POST", "/2/nosuch", object{}}, {"PUT", "/2/query/instance", object{"fields": list{"name"}}}, {"HEAD", "/2/info", nil}, {"PUT", "/2/query/node", object{"fields": list{"name"}, "qfilter": list{"=", "name", "nosuch"}}},
}

// badBodies are bodies that no resource takes, or that mean nothing.
var badBodies = []string{"{", "[]", "5", "null", `"x"`, "", "{}", `{"nosuch": 1}`, `{"x": 1, "x": 2}`, "true", `{"dry_run": true}`, "[1]", "{} {}"}

func write(d *draw) []*call {
	w := pick(d, writing...)
	c := d.rapi("rapi write", w.method, w.path)
	if w.body != nil {
		c.RAPI.Type, c.RAPI.Body = "application/json", string(encode(w.body))
	}
	switch {
	case d.chance(25):
		c.RAPI.Type, c.RAPI.Body = "application/json", pick(d, badBodies...)
		if d.chance(15) {
			c.RAPI.Type = pick(d, "text/plain", "", "application/json;x", "application/x-www-form-urlencoded")
		}
	case w.body != nil && d.chance(35):
		body := maps.Clone(w.body)
		if len(body) > 0 && d.chance(80) {
			body[pick(d, slices.Sorted(maps.Keys(body))...)] = d.odd()
		} else {
			body[pick(d, "nosuch", "dry_run", "reason", "force")] = d.odd()
		}
		c.RAPI.Body = string(encode(body))
	}
	calls := []*call{c}
	if w.method == "POST" && w.path == "/2/filters" {
		calls = append(calls, d.rapi("rapi write", "GET", "/2/filters/{rule:"+c.ID+"}"), d.rapi("rapi write", "DELETE", "/2/filters/{rule:"+c.ID+"}"))
	}
	return calls
}
