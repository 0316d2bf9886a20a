// Package recordedcluster is the cluster of the reference with which the recordings of testdata/conformance/golden were made, as our inventory has it.
package recordedcluster

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/testkit"
)

// Inventory turns the recorded configuration file into ours.
func Inventory(t testing.TB) *cluster.Snapshot {
	t.Helper()
	text, err := os.ReadFile(testkit.Conformance(t, "golden/files/config_data.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Content cluster.Params `json:"content"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var changes []cluster.Change
	load := func(m map[string]any, o cluster.Object) {
		m["ctime"], m["mtime"] = Nanoseconds(m["ctime"]), Nanoseconds(m["mtime"])
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, o); err != nil {
			t.Fatalf("%s: %v", o.Kind(), err)
		}
		changes = append(changes, cluster.Put(o))
	}
	c := file.Content
	load(object(c["cluster"]), &cluster.Cluster{})
	for _, m := range object(c["nodes"]) {
		load(object(m), &cluster.Node{})
	}
	for _, m := range object(c["nodegroups"]) {
		load(object(m), &cluster.Group{})
	}
	for _, m := range object(c["networks"]) {
		load(object(m), &cluster.Network{})
	}
	disks := object(c["disks"])
	for _, v := range object(c["instances"]) {
		m := object(v)
		var own []any
		for _, uuid := range m["disks"].([]any) {
			d := object(disks[uuid.(string)])
			d["ctime"], d["mtime"] = Nanoseconds(d["ctime"]), Nanoseconds(d["mtime"])
			own = append(own, d)
		}
		m["disks"] = own
		load(m, &cluster.Instance{})
	}
	return cluster.Empty().With(changes...)
}

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }

// Nanoseconds reads a recorded time: seconds as a decimal number.
func Nanoseconds(v any) int64 {
	switch v := v.(type) {
	case float64:
		return int64(math.Round(v * 1e9))
	case int64:
		return v * 1e9
	}
	return 0
}
