package rapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/store/format"
)

// protocolVersion is the version of this interface; it has been 2 for ever.
const protocolVersion = 2

// features are the extensions of the interface that clients ask for by name.
var features = []string{"instance-create-reqv1", "instance-reinstall-reqv1", "node-migrate-reqv1", "node-evac-res1"}

// constant returns a handler that always gives the same answer.
func constant(v any) handler {
	return handler{needs: rights.None, serve: func(*request) (any, error) { return v, nil }}
}

// oldInfoNames are names under which cluster settings are repeated.
var oldInfoNames = map[string]string{"vg_name": "volume_group_name", "drbd_helper": "drbd_usermode_helper"}

func clusterInfo(r *request) (any, error) {
	info := items.ClusterInfo(r.Querier.Source(r.Context()))
	for old, name := range oldInfoNames {
		info[old] = info[name]
	}
	return info, nil
}

// refuseCompressionTools keeps remote clients from choosing programs that the
// nodes will run.
func refuseCompressionTools(_ *request, body parameters) (parameters, error) {
	if _, ok := body["compression_tools"]; ok {
		return nil, failure(http.StatusForbidden, "The parameter compression_tools cannot be set via RAPI")
	}
	return nil, nil
}

func tagsOfQuery(r *request, _ parameters) (parameters, error) {
	more := parameters{"tags": r.query["tag"]}
	if more["tags"] == nil || len(r.query["tag"]) == 0 {
		more["tags"] = []string{}
	}
	if name, ok := r.variables["name"]; ok {
		more["name"] = name
	}
	return more, nil
}

// tagsOfInstance are the parameters for tags of an instance, of which the request may give the UUID. Before the store's
// format lets that be a part of stored jobs, it is looked at here alone.
func tagsOfInstance(r *request, body parameters) (parameters, error) {
	more, err := tagsOfQuery(r, body)
	uuid := r.text(meantUUID)
	switch {
	case err != nil || uuid == "":
	case r.Format == nil || r.Format() >= format.Identities:
		more["instance_uuid"] = uuid
	default:
		name := r.variables["name"]
		if inst := r.Querier.Picture.Load().Inventory.InstanceNamed(name); inst == nil || inst.UUID != uuid {
			err = failure(http.StatusNotFound, "Instance '%s' has not the UUID %s", name, uuid)
		}
	}
	return more, err
}

// listTags returns the handler for the tags of an object, or of the cluster.
func listTags(what string) func(*request) (any, error) {
	return func(r *request) (any, error) {
		if what == "cluster" {
			return items.ClusterInfo(r.Querier.Source(r.Context()))["tags"], nil
		}
		it := &item{what: what}
		result, err := it.find(r, []string{"tags"})
		if err != nil {
			return nil, err
		}
		row := make([]query.Cell, 1)
		result.Row(0, row)
		return row[0].Value, nil
	}
}

// osBulkFields are what the job that lists operating systems is asked for.
var osBulkFields = []string{"name", "valid", "variants", "parameters", "api_versions", "blacklisted", "hidden", "trusted"}

// listOS asks the nodes. The reference makes a job of it, which a rule that
// holds jobs would hold.
func listOS(r *request) (any, error) {
	bulk, err := r.flag("bulk")
	if err != nil {
		return nil, err
	}
	if !bulk {
		return items.OSNames(r.Querier.Source(r.Context()))
	}
	result, err := items.OSes(r.Querier.Source(r.Context()), nil, osBulkFields)
	if err != nil {
		return nil, err
	}
	var rows [][]json.RawMessage
	if err := json.Unmarshal(result.AppendValues(nil), &rows); err != nil {
		return nil, err
	}
	return osObjects(rows), nil
}

func osObjects(rows [][]json.RawMessage) []map[string]any {
	out := make([]map[string]any, 0, len(rows))
	for _, row := range rows {
		object := map[string]any{}
		for i, field := range osBulkFields {
			if i < len(row) {
				object[field] = row[i]
			}
		}
		var pairs [][]string
		if raw, ok := object["parameters"].(json.RawMessage); ok && json.Unmarshal(raw, &pairs) == nil {
			object["parameters"] = describeParameters(pairs)
		}
		out = append(out, object)
	}
	return out
}

func describeParameters(pairs [][]string) []map[string]string {
	out := []map[string]string{}
	for _, p := range pairs {
		if len(p) == 2 {
			out = append(out, map[string]string{"name": p[0], "description": p[1]})
		}
	}
	return out
}

func queryByURL(r *request) (any, error) {
	if err := r.checkParameters(append(slices.Clone(queryParameters), "filter", "qfilter")...); err != nil {
		return nil, err
	}
	filter, err := r.filterOfQuery()
	if err != nil {
		return nil, err
	}
	fields, err := r.fieldsOrGroups()
	if err != nil {
		return nil, err
	}
	return r.runQuery(query.Request{What: r.variables["item"], Fields: fields, Filter: filter})
}

// queryParameters are those of the query string of every query.
var queryParameters = []string{"fields", "sort", "limit", "after", "fresh", "group_by", "figures"}

// fieldsOrGroups are the fields of a query, which one for groups does without.
func (r *request) fieldsOrGroups() ([]string, error) {
	if r.text("group_by")+r.text("figures") != "" && r.text("fields") == "" {
		return nil, nil
	}
	return r.fieldsOfQuery()
}

// runQuery answers a query, with what the query string asks for beyond the
// reference: sort=a,-b limit=N after=TOKEN fresh=1, or groups by group_by=a,b
// figures=count,sum(c) with the fields left out of account.
func (r *request) runQuery(q query.Request) (any, error) {
	q.Sort, q.After = query.ParseSort(splitWords(r.text("sort"))), r.text("after")
	var err error
	if q.Limit, err = r.limit(); err != nil {
		return nil, err
	}
	switch text := r.text("fresh"); text {
	case "", "0", "1":
		q.Fresh = text == "1"
	default:
		return nil, badRequest("Invalid value for the 'fresh' parameter")
	}
	by, figures := splitWords(r.text("group_by")), splitWords(r.text("figures"))
	if len(by)+len(figures) == 0 {
		return r.Querier.Query(r.Context(), q)
	}
	calcs, err := query.ParseCalcs(figures)
	if err != nil {
		return nil, err
	}
	return r.Querier.Group(r.Context(), q, by, calcs)
}

// limit is the largest number of rows, 0 for any.
func (r *request) limit() (int, error) {
	text := r.text("limit")
	if text == "" {
		return 0, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 0 {
		return 0, badRequest("Invalid value for the 'limit' parameter")
	}
	return limit, nil
}

func (r *request) fieldsOfQuery() ([]string, error) {
	fields := splitFields(r.text("fields"))
	if fields == nil {
		return nil, badRequest("Missing 'fields' query argument")
	}
	return fields, nil
}

// splitFields takes the names of fields apart. One that is empty stays, as in the reference: it is a
// field that there is not, and the columns of the answer are those that were asked for.
func splitFields(text string) []string {
	if text == "" {
		return nil
	}
	fields := strings.Split(text, ",")
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	return fields
}

func queryByBody(r *request) (any, error) {
	body, err := r.requiredObject()
	if err != nil {
		return nil, err
	}
	if err := checkKeys(body, "fields", "qfilter", "filter"); err != nil {
		return nil, err
	}
	if err := r.checkParameters(queryParameters...); err != nil {
		return nil, err
	}
	var fields []string
	switch list := body["fields"].(type) {
	case nil:
		fields, err = r.fieldsOrGroups()
	case []any:
		fields, err = textList("fields", list)
	default:
		err = badRequest("The 'fields' parameter should be a list")
	}
	if err != nil {
		return nil, err
	}
	filter := body["qfilter"]
	if filter == nil {
		filter = body["filter"]
	}
	node, err := qlang.FromValue(filter)
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return nil, fault.New(f.Code, "%s, at qfilter%s", f.Message, f.Field).WithHint("%s", f.Hint)
	}
	if err != nil {
		return nil, err
	}
	return r.runQuery(query.Request{What: r.variables["item"], Fields: fields, Filter: node})
}

func textList(name string, list []any) ([]string, error) {
	out := make([]string, len(list))
	for i, v := range list {
		text, ok := v.(string)
		if !ok {
			return nil, badRequest("The '%s' parameter should be a list of strings, item %d is of type '%s'", name, i, typeName(v))
		}
		out[i] = text
	}
	return out, nil
}

func queryFields(r *request) (any, error) {
	defs, err := items.All.Fields(r.variables["item"], splitFields(r.text("fields")))
	if err != nil {
		return nil, err
	}
	return map[string]any{"fields": defs}, nil
}
