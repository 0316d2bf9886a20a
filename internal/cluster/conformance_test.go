package cluster_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit"
)

func TestNiceSortConformance(t *testing.T) {
	var file struct {
		NiceSort []struct{ In, Out []string } `json:"nice_sort"`
	}
	testkit.DecodeConformance(t, &file, "query-filter-vectors.json")
	passed := 0
	for _, tc := range file.NiceSort {
		got := slices.Clone(tc.In)
		slices.SortStableFunc(got, cluster.CompareNames)
		if !slices.Equal(got, tc.Out) {
			t.Errorf("sorting %q: got %q, want %q", tc.In, got, tc.Out)
			continue
		}
		passed++
	}
	t.Logf("nice_sort: %d of %d cases passed", passed, len(file.NiceSort))
}

func TestNameLookupConformance(t *testing.T) {
	var file struct {
		NameLookup []struct {
			Names   []string
			Key     string
			Outcome string
			Match   *string
		} `json:"name_lookup"`
	}
	testkit.DecodeConformance(t, &file, "query-filter-vectors.json")
	passed := 0
	for _, tc := range file.NameLookup {
		s := cluster.Empty()
		for i, name := range tc.Names {
			s = s.With(cluster.Put(cluster.NewNode(fmt.Sprint("u", i), name, "192.0.2.1", "g", 1)))
		}
		n, err := s.FindNode(tc.Key)
		want := map[string]fault.Code{"found": "", "multiple": fault.Ambiguous, "not found": fault.NotFound}[tc.Outcome]
		if fault.CodeOf(err) != want || (err == nil && n.Name != *tc.Match) {
			t.Errorf("%q in %q: got %v, %v; want %s", tc.Key, tc.Names, n, err, tc.Outcome)
			continue
		}
		passed++
	}
	t.Logf("name_lookup: %d of %d cases passed", passed, len(file.NameLookup))
}

// A fresh cluster has the parameters that the reference reports of one.
func TestDefaultsConformance(t *testing.T) {
	var file struct {
		Response struct{ Result cluster.Params }
	}
	testkit.DecodeConformance(t, &file, "golden/luxi/QueryClusterInfo.json")
	want := file.Response.Result
	c := cluster.New(cluster.Init{Name: "c", Hypervisors: []string{"fake"}, DiskTemplates: []string{"diskless", "file"}})
	data, err := cluster.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	var got cluster.Params
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	passed := 0
	for _, name := range []string{
		"hvparams", "beparams", "ndparams", "diskparams", "ipolicy", "os_hvp", "osparams", "candidate_pool_size",
		"max_running_jobs", "max_tracked_jobs", "mac_prefix", "master_netmask", "default_iallocator", "compression_tools",
		"enabled_hypervisors", "enabled_disk_templates", "ssh_key_type", "ssh_key_bits", "modify_ssh_setup", "uid_pool",
	} {
		if !reflect.DeepEqual(got[name], want[name]) {
			t.Errorf("%s: got %v, want %v", name, got[name], want[name])
			continue
		}
		passed++
	}
	t.Logf("QueryClusterInfo: %d default settings equal", passed)
}
