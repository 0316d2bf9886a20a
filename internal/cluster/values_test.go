package cluster_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

func TestTags(t *testing.T) {
	set := cluster.NewTags("b", "a", "b")
	if !slices.Equal(set, cluster.Tags{"a", "b"}) {
		t.Errorf("set of b, a, b = %q", set)
	}
	rest, missing := set.Without("a", "z")
	if !slices.Equal(rest, cluster.Tags{"b"}) || !slices.Equal(missing, []string{"z"}) || len(set) != 2 {
		t.Errorf("Without: %q, missing %q, set %q", rest, missing, set)
	}
	for tag, ok := range map[string]bool{
		"owner:me": true, "a.b+c*d/e:f@g-h_i": true, "ärger": true, "": false, "a b": false, "a,b": false,
		strings.Repeat("ä", 128): true, strings.Repeat("a", 129): false, "a\n": false,
	} {
		if err := cluster.CheckTag(tag); (err == nil) != ok {
			t.Errorf("CheckTag(%q) = %v", tag, err)
		}
	}
	many := make([]string, cluster.MaxTags)
	for i := range many {
		many[i] = "t" + strings.Repeat("x", i%100) + string(rune('0'+i/100%10)) + string(rune('a'+i/1000))
	}
	full, err := cluster.AddTags(nil, many)
	if err != nil || len(full) != cluster.MaxTags {
		t.Fatalf("%d tags: %v", len(full), err)
	}
	if _, err := cluster.AddTags(full, []string{"one-more"}); !fault.Is(err, fault.BadTag) {
		t.Errorf("one tag too many: %v", err)
	}
}

func TestNormalName(t *testing.T) {
	for in, want := range map[string]string{
		"Web1.Example.COM.": "web1.example.com", "a_b": "a_b", "": "", "a b": "", ".a": "", "a..b": "", "-a": "", "ä": "",
		strings.Repeat("a", 256): "",
	} {
		got, err := cluster.NormalName(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("NormalName(%q) = %q, %v", in, got, err)
		}
	}
}

func TestCheckParams(t *testing.T) {
	got, err := cluster.CheckBEParams(cluster.Params{"memory": "1g", "vcpus": "2", "auto_balance": "no", "spindle_use": "default"})
	want := cluster.Params{"minmem": int64(1024), "maxmem": int64(1024), "vcpus": int64(2), "auto_balance": false, "spindle_use": "default"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for name, p := range map[string]cluster.Params{
		"unknown": {"x": 1}, "no number": {"vcpus": "two"}, "fraction": {"vcpus": 1.5}, "list": {"vcpus": []any{}},
		"no size": {"maxmem": "1x"}, "no truth": {"auto_balance": "maybe"},
	} {
		if _, err := cluster.CheckBEParams(p); !fault.Is(err, fault.Mistyped) {
			t.Errorf("%s: %v was accepted (%v)", name, p, err)
		}
	}
	if be, err := cluster.CheckBEParams(cluster.Params{"memory": "default"}); err != nil || len(be) != 0 {
		t.Errorf("the default of what is none: %v, %v", be, err)
	}
	if be, err := cluster.CheckBEParams(cluster.Params{"vcpus": nil, "memory": nil}); err != nil || !reflect.DeepEqual(be, cluster.Params{"vcpus": cluster.UseDefault}) {
		t.Errorf("null became %v, %v", be, err)
	}
	for given, want := range map[any]bool{0: false, 1: true, 0.5: true, json.Number("0"): false, json.Number("2"): true} {
		if be, err := cluster.CheckBEParams(cluster.Params{"auto_balance": given}); err != nil || be["auto_balance"] != want {
			t.Errorf("%v became %v, %v", given, be, err)
		}
	}
	if be, err := cluster.CheckBEParams(cluster.Params{"memory": 1, "maxmem": 2}); err != nil || be["minmem"] != int64(1) || be["maxmem"] != int64(1) {
		t.Errorf("the old name of memory stands for both: %v, %v", be, err)
	}
	if err := cluster.CheckMemory(cluster.Params{"minmem": int64(2), "maxmem": int64(1)}); err == nil {
		t.Error("minmem over maxmem was accepted")
	}
	if own := cluster.SetParams(cluster.Params{"a": int64(1), "b": int64(2)}, cluster.Params{"a": "default", "b": int64(3)}); !reflect.DeepEqual(own, cluster.Params{"b": int64(3)}) {
		t.Errorf("SetParams: %v", own)
	}
}

func TestSizesAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "10g": 10240, "1.5G": 1536, "2T": 2 << 20, "512MiB": 512, "0.1": 1, "3 GB": 3072, "1000000T": 1000000 << 20} {
		if got, ok := cluster.Mebibytes(text); !ok || got != want {
			t.Errorf("%q: got %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "g", "1x", "1b", "1i", "1Gi", "1 b", "1gg", "-1", "1e30", "NaN", "9999999999T", "."} {
		if got, ok := cluster.Mebibytes(text); ok {
			t.Errorf("%q: got %d", text, got)
		}
	}
}

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{"512": 512, "511": 512, "1.5g": 1536, "2TiB": 2 << 20, "10 M": 12, "x": -1, "": -1, "1k": -1, "1.2.3": -1} {
		got, ok := cluster.ParseSize(in)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("ParseSize(%q) = %d, want %d", in, got, want)
		}
	}
}

func TestFillOrder(t *testing.T) {
	c := cluster.New(cluster.Init{Name: "c", Hypervisors: []string{"kvm"}})
	c.OSHVP["debian"] = map[string]cluster.Params{"kvm": {"kernel_path": "/os", "boot_order": "cdrom", "root_path": "/dev/x"}}
	c.OSHVP["debian+min"] = map[string]cluster.Params{"kvm": {"boot_order": "network", "root_path": "/dev/y"}}
	i := &cluster.Instance{OS: "debian+min", Hypervisor: "kvm", HVParams: cluster.Params{"root_path": "/dev/z"}}
	got := c.FillHV(i)
	for name, want := range map[string]any{"kernel_path": "/os", "boot_order": "network", "root_path": "/dev/z", "acpi": true, "migration_port": nil} {
		if got[name] != want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
}

func TestDerivedFromDisks(t *testing.T) {
	i := &cluster.Instance{PrimaryNode: "a", Disks: []cluster.Disk{
		{Type: cluster.DiskDRBD, Size: 100, Nodes: []string{"a", "b"}},
		{Type: cluster.DiskDRBD, Size: 50, Nodes: []string{"a", "b"}},
	}}
	if i.DiskTemplate() != "drbd" || i.DiskUsage() != 406 || !slices.Equal(i.SecondaryNodes(), []string{"b"}) {
		t.Errorf("template %s, usage %d, secondaries %v", i.DiskTemplate(), i.DiskUsage(), i.SecondaryNodes())
	}
	i.Disks = append(i.Disks, cluster.Disk{Type: cluster.DiskPlain, Size: 4})
	if i.DiskTemplate() != "mixed" || (&cluster.Instance{}).DiskTemplate() != "diskless" {
		t.Errorf("template of different disks: %s", i.DiskTemplate())
	}
}

func TestNetworkAddresses(t *testing.T) {
	n, err := cluster.NewNetwork("u", "lan", "192.0.2.0/29", "192.0.2.1", 1)
	if err != nil {
		t.Fatal(err)
	}
	if n.Map() != "XX.....X" || n.FreeCount() != 5 || n.Size() != 8 {
		t.Errorf("map %s, %d free of %d", n.Map(), n.FreeCount(), n.Size())
	}
	ip, err := n.NextFree()
	if err != nil || ip != "192.0.2.2" {
		t.Fatalf("next free: %s, %v", ip, err)
	}
	if err := n.Reserve(ip); err != nil {
		t.Fatal(err)
	}
	if err := n.Reserve(ip); !fault.Is(err, fault.Ambiguous) {
		t.Errorf("reserved twice: %v", err)
	}
	if err := n.Reserve("192.0.3.1"); !fault.Is(err, fault.Ambiguous) {
		t.Errorf("a foreign address was reserved: %v", err)
	}
	if got := n.ExternalAddresses(); !slices.Equal(got, []string{"192.0.2.0", "192.0.2.1", "192.0.2.7"}) {
		t.Errorf("external: %v", got)
	}
	n.Release(ip)
	if n.Map() != "XX.....X" {
		t.Errorf("after release: %s", n.Map())
	}
	for _, bad := range []string{"x", "192.0.2.1/29", "192.0.2.0/31", "10.0.0.0/8", "2001:db8::/64"} {
		if _, err := cluster.NewNetwork("u", "lan", bad, "", 1); !fault.Is(err, fault.Invalid) {
			t.Errorf("network %s: %v", bad, err)
		}
	}
	for _, edge := range []string{"192.0.2.0", "192.0.2.7"} {
		if _, err := cluster.NewNetwork("u", "lan", "192.0.2.0/29", edge, 1); !fault.Is(err, fault.Invalid) {
			t.Errorf("gateway %s: %v", edge, err)
		}
	}
}

func TestCompareNamesIsAnOrder(t *testing.T) {
	name := rapid.StringMatching(`[a-b0-2.]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := name.Draw(t, "a"), name.Draw(t, "b"), name.Draw(t, "c")
		ab, ba := cluster.CompareNames(a, b), cluster.CompareNames(b, a)
		if ab != -ba {
			t.Fatalf("not antisymmetric: %q %q", a, b)
		}
		if ab <= 0 && cluster.CompareNames(b, c) <= 0 && cluster.CompareNames(a, c) > 0 {
			t.Fatalf("not transitive: %q %q %q", a, b, c)
		}
	})
}
