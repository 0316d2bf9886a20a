package rapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/rights"
)

// item describes how a kind of object is listed.
type item struct {
	// what is the item of queries, path where the objects are.
	what, path string
	// name is the field that names an object in its path, key what that is
	// called in the short list.
	name, key string
	// bulk are the fields of the long list, single further ones of an object
	// by itself.
	bulk, single []string
}

var commonFields = []string{"ctime", "mtime", "uuid", "serial_no", "tags"}

var (
	instanceItem = &item{what: "instance", path: "/2/instances/", name: "name", key: "id", bulk: slices.Concat([]string{
		"name", "admin_state", "os", "pnode", "snodes", "disk_template", "nic.ips", "nic.macs", "nic.modes", "nic.uuids", "nic.names",
		"nic.links", "nic.networks", "nic.networks.names", "nic.bridges", "network_port", "disk.sizes", "disk.spindles", "disk_usage",
		"disk.uuids", "disk.names", "beparams", "hvparams", "oper_state", "oper_ram", "oper_vcpus", "status", "custom_hvparams",
		"custom_beparams", "custom_nicparams", "custom_osparams"}, commonFields)}
	nodeItem = &item{what: "node", path: "/2/nodes/", name: "name", key: "id", bulk: slices.Concat([]string{
		"name", "offline", "master_candidate", "drained", "dtotal", "dfree", "sptotal", "spfree", "mtotal", "mnode", "mfree", "pinst_cnt",
		"sinst_cnt", "ctotal", "cnos", "cnodes", "csockets", "pip", "sip", "role", "pinst_list", "sinst_list", "master_capable",
		"vm_capable", "ndparams", "group.uuid"}, commonFields)}
	groupItem = &item{what: "group", path: "/2/groups/", name: "name", key: "name", bulk: slices.Concat([]string{
		"alloc_policy", "name", "node_cnt", "node_list", "ipolicy", "custom_ipolicy", "diskparams", "custom_diskparams", "ndparams",
		"custom_ndparams"}, commonFields)}
	networkItem = &item{what: "network", path: "/2/networks/", name: "name", key: "name", bulk: slices.Concat([]string{
		"name", "network", "gateway", "network6", "gateway6", "mac_prefix", "free_count", "reserved_count", "map", "group_list",
		"inst_list", "external_reservations"}, commonFields)}
	jobItem = &item{what: "job", path: "/2/jobs/", name: "id", key: "id",
		bulk:   []string{"id", "ops", "status", "summary", "opstatus", "received_ts", "start_ts", "end_ts"},
		single: []string{"oplog", "opresult"}}
	filterItem = &item{what: "filter", path: "/2/filters/", name: "uuid", key: "uuid",
		bulk: []string{"watermark", "priority", "predicates", "action", "reason_trail", "uuid"}}
)

// list returns the handler of a list: names and paths, or with bulk=1 objects.
func list(it *item) handler {
	return handler{needs: rights.None, stored: true, serve: func(r *request) (any, error) {
		bulk, err := r.flag("bulk")
		if err != nil {
			return nil, err
		}
		if bulk {
			return it.objects(r)
		}
		return it.names(r)
	}}
}

// names lists the objects; text names are sorted as text.
func (it *item) names(r *request) (any, error) {
	result, err := r.Querier.Query(r.Context(), query.Request{What: it.what, Fields: []string{it.name}})
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, result.Len()) // as JSON
	for row := range result.Rows() {
		name, err := json.Marshal(row[0].Value)
		if err != nil {
			return nil, err
		}
		names = append(names, string(name))
	}
	if it != jobItem {
		slices.Sort(names)
	}
	out := []byte{'['}
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, `{"%s":%s,"uri":"%s%s"}`, it.key, name, it.path, strings.Trim(name, `"`))
	}
	return json.RawMessage(append(out, ']')), nil
}

// objectList is the answer of a long list, written in pieces.
type objectList struct {
	item   *item
	result *query.Result
}

// Chunks yields the JSON list of objects in pieces. The slice is overwritten
// each time.
func (l objectList) Chunks() iter.Seq[[]byte] {
	return query.Pieces("[", l.result.Len(), func(dst []byte, i int) []byte { return l.item.appendObject(dst, l.result, i) }, "]")
}

// objects answers with all objects of the item.
func (it *item) objects(r *request) (any, error) {
	result, err := r.Querier.Query(r.Context(), query.Request{What: it.what, Fields: it.bulk})
	if err != nil {
		return nil, err
	}
	return objectList{it, result}, nil
}

// single returns the handler of one object, found by name or UUID.
func single(it *item) handler {
	return handler{needs: rights.None, stored: true, serve: func(r *request) (any, error) {
		return it.object(r, slices.Concat(it.bulk, it.single))
	}}
}

func (it *item) object(r *request, fields []string) (json.RawMessage, error) {
	result, err := it.find(r, fields)
	if err != nil {
		return nil, err
	}
	object := it.appendObject(nil, result, 0)
	if it == nodeItem {
		return addAlias(object, "sip", "secondary_ip")
	}
	return object, nil
}

// find returns the one row of the object that the path names: by its name,
// which may be short where no two names begin so, or by its UUID.
func (it *item) find(r *request, fields []string) (*query.Result, error) {
	name, field := r.variables["name"], "name"
	if isUUID(name) {
		field = "uuid"
	}
	result, err := r.Querier.Query(r.Context(), query.Request{What: it.what, Fields: fields, Filter: qlang.AnyOf(field, name)})
	if err == nil && result.Len() == 0 {
		return nil, fault.New(fault.NotFound, "there is no %s %s", it.what, name)
	}
	return result, err
}

var uuidPattern = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func isUUID(text string) bool { return uuidPattern.MatchString(text) }

// addAlias repeats a value under another name.
func addAlias(object []byte, name, alias string) (json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(object, &m); err != nil {
		return nil, err
	}
	value, ok := m[name]
	if !ok {
		return object, nil
	}
	return slices.Concat(object[:len(object)-1], []byte(`,"`+alias+`":`), value, []byte{'}'}), nil
}

// appendObject appends a row as a JSON object. Of an instance it repeats the
// maximum memory under the name that it had when memory was one value.
func (it *item) appendObject(dst []byte, result *query.Result, row int) []byte {
	start := len(dst)
	dst = result.AppendObject(dst, row)
	if it != instanceItem {
		return dst
	}
	// The backend parameters are a flat object, and no field before them is one.
	_, beparams, found := bytes.Cut(dst[start:], []byte(`"beparams":{`))
	_, value, known := bytes.Cut(beparams, []byte(`"maxmem":`))
	end := bytes.IndexAny(value, ",}")
	if !found || !known || end < 0 {
		return dst
	}
	at := len(dst) - len(beparams)
	return slices.Insert(dst, at, slices.Concat([]byte(`"memory":`), value[:end], []byte{','})...)
}
