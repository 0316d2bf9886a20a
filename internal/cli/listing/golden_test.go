package listing_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/testkit"
)

// recordedOutput returns the standard output of a recorded command.
func recordedOutput(t *testing.T, name string) string {
	t.Helper()
	_, out, ok := strings.Cut(string(testkit.ReadConformance(t, "golden/cli/"+name+".txt")), "# ---- stdout\n")
	if !ok {
		t.Fatalf("%s has no output", name)
	}
	out, _, _ = strings.Cut(out, "# ---- stderr\n")
	return out
}

// recordedAnswer returns columns of a recorded answer, of the rows whose first
// column is a word at the beginning of a line of text.
func recordedAnswer(t *testing.T, name string, fields []string, text string) *listing.Answer {
	t.Helper()
	var rec struct {
		Response struct{ Result listing.Answer }
	}
	if err := json.Unmarshal(testkit.ReadConformance(t, "golden/luxi/"+name+".json"), &rec); err != nil {
		t.Fatal(err)
	}
	all := rec.Response.Result
	place := map[string]int{}
	for i, f := range all.Fields {
		place[f.Name] = i
	}
	out := &listing.Answer{}
	for _, name := range fields {
		if i, ok := place[name]; ok {
			out.Fields = append(out.Fields, all.Fields[i])
		} else {
			out.Fields = append(out.Fields, listing.Field{Name: name, Title: name, Kind: "unknown"})
		}
	}
	wanted := map[string]bool{}
	for line := range strings.Lines(text) {
		wanted[strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" |\n", r) })[0]] = true
	}
	for _, row := range all.Data {
		cells := []listing.Cell{}
		for _, name := range fields {
			if i, ok := place[name]; ok {
				cells = append(cells, row[i])
			} else {
				cells = append(cells, listing.Cell{Status: 1, Value: json.RawMessage("null")})
			}
		}
		if wanted[strings.Trim(string(cells[0].Value), `"`)] {
			out.Data = append(out.Data, cells)
		}
	}
	return out
}

const (
	instanceDefaults = "name,hypervisor,os,pnode,status,oper_ram"
	filterAll        = "uuid,priority,predicates,action,reason_trail,watermark"
)

// The rows of Query_*_all_fields, written as a list, are the recorded output of
// the command line, byte for byte. Recordings of another moment are left out.
func TestListConformance(t *testing.T) {
	sep := listing.Options{NoHeaders: true, Separator: "|"}
	cases := []struct {
		output, what, answer, fields string
		o                            listing.Options
	}{
		{"gnt-instance_list", "instance", "Query_instance_all_fields", instanceDefaults, listing.Options{}},
		{"gnt-instance_list_badfield", "instance", "Query_instance_all_fields", "name,nosuch", listing.Options{}},
		{"gnt-instance_list_filter", "instance", "Query_instance_all_fields", instanceDefaults, listing.Options{}},
		{"gnt-instance_list_filter_force", "instance", "Query_instance_all_fields", instanceDefaults, listing.Options{}},
		{"gnt-instance_list_filter_ops", "instance", "Query_instance_all_fields", "name,tags,be/vcpus", listing.Options{}},
		{"gnt-instance_list_glob", "instance", "Query_instance_all_fields", instanceDefaults, listing.Options{}},
		{"gnt-instance_list_names", "instance", "Query_instance_all_fields", "name", listing.Options{NoHeaders: true}},
		{"gnt-instance_list_plus", "instance", "Query_instance_all_fields", instanceDefaults + ",tags,uuid", listing.Options{}},
		{"gnt-instance_list_sep", "instance", "Query_instance_all_fields", "name,status,oper_ram,tags,nic.ips,disk.sizes,ctime", sep},
		{"gnt-instance_list_units", "instance", "Query_instance_all_fields", "name,be/maxmem,disk.sizes,oper_ram", listing.Options{Units: "m"}},
		{"gnt-instance_list_verbose", "instance", "Query_instance_all_fields", "name,oper_ram,nic.ip/0,disk.size/1", listing.Options{Verbose: true}},
		{"gnt-node_list_all", "node", "Query_node_all_fields",
			"name,role,pinst_cnt,sinst_cnt,pip,sip,master,drained,offline,group,tags,mtotal,ctotal,cpu_count", sep},
		{"gnt-group_list", "group", "Query_group_all_fields", "name,node_cnt,pinst_cnt,alloc_policy,ndparams", listing.Options{}},
		{"gnt-network_list", "network", "Query_network_all_fields", "name,network,gateway,mac_prefix,group_list,tags", listing.Options{}},
		{"gnt-backup_list", "export", "Query_export_all_fields", "node,export", listing.Options{}},
		{"gnt-debug_locks", "lock", "Query_lock_held", "name,mode,owner,pending", listing.Options{}},
		{"gnt-debug_locks_o_all", "lock", "Query_lock_held", "name,mode,owner,pending", listing.Options{}},
		{"gnt-debug_locks_idle", "lock", "Query_lock_held", "name,mode,owner,pending", listing.Options{}},
		{"gnt-filter_list", "filter", "Query_filter_all", "uuid,watermark,priority,predicates,action,reason_trail", listing.Options{}},
		{"gnt-filter_list_all", "filter", "Query_filter_all", filterAll, listing.Options{}},
	}
	passed := 0
	for _, tc := range cases {
		tc.o.Location = time.UTC
		want := recordedOutput(t, tc.output)
		a := recordedAnswer(t, tc.answer, strings.Split(tc.fields, ","), want)
		var got strings.Builder
		if err := listing.Write(&got, tc.what, a, tc.o); err != nil {
			t.Fatal(err)
		}
		if got.String() != want {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.output, got.String(), want)
			continue
		}
		passed++
	}
	t.Logf("golden/cli/gnt-*_list*: %d of %d recordings passed", passed, len(cases))
}

func TestListFieldsConformance(t *testing.T) {
	passed := 0
	recordings := map[string]string{"gnt-instance_list-fields": "instance", "gnt-node_list-fields": "node", "gnt-group_list-fields": "group",
		"gnt-network_list-fields": "network", "gnt-job_list-fields": "job", "gnt-filter_list-fields": "filter", "gnt-backup_list-fields": "export"}
	for output, what := range recordings {
		var rec struct {
			Response struct {
				Result struct{ Fields []listing.Field }
			}
		}
		if err := json.Unmarshal(testkit.ReadConformance(t, "golden/luxi/QueryFields_"+what+".json"), &rec); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		if err := listing.WriteFields(&got, rec.Response.Result.Fields, listing.Options{}); err != nil {
			t.Fatal(err)
		}
		if want := recordedOutput(t, output); got.String() != want {
			t.Errorf("%s: got\n%s\nwant\n%s", output, got.String(), want)
			continue
		}
		passed++
	}
	t.Logf("golden/cli/gnt-*_list-fields: %d of %d recordings passed", passed, len(recordings))
}
