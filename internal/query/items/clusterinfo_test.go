package items

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/testkit"
)

// The settings of the recorded configuration must read as the recorded cluster
// gave them. (vg_name and drbd_helper are added by the remote API alone.)
func TestClusterInfoConformance(t *testing.T) {
	var golden struct{ Response map[string]any }
	testkit.DecodeConformance(t, &golden, "golden", "rapi", "info.json")
	delete(golden.Response, "vg_name")
	delete(golden.Response, "drbd_helper")
	src := recordedSource(t)
	src.Runtime = query.Runtime{SoftwareVersion: "3.0.2", VCSVersion: "(ganeti) version 3.0.2-3", ProtocolVersion: 3000000,
		ConfigVersion: 3000000, OSAPIVersion: 20, Architecture: [2]string{"64bits", "x86_64"}}
	text, err := json.Marshal(ClusterInfo(src))
	if err != nil {
		t.Fatal(err)
	}
	var info map[string]any
	if err := json.Unmarshal(text, &info); err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(info)), slices.Sorted(maps.Keys(golden.Response)); !slices.Equal(got, want) {
		t.Errorf("keys\n%v\nwant\n%v", got, want)
	}
	passed := 0
	for key, want := range golden.Response {
		// Changed between the two recordings.
		if !reflect.DeepEqual(info[key], want) && key != "mtime" && key != "candidate_pool_size" && key != "tags" {
			t.Errorf("%s is\n%v, recorded was\n%v", key, info[key], want)
			continue
		}
		passed++
	}
	t.Logf("golden/rapi/info.json: %d of %d settings agree", passed, len(golden.Response))
}
