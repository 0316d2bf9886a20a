package cluster_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

func names[T interface{ Label() string }](seq func(func(T) bool)) []string {
	var out []string
	for o := range seq {
		out = append(out, o.Label())
	}
	return out
}

func instance(uuid, name, node string) *cluster.Instance {
	return &cluster.Instance{Meta: cluster.NewMeta(uuid, 1), Name: name, PrimaryNode: node}
}

// A snapshot answers as a plain map of its objects would, after any changes,
// and the snapshots before them answer as they did.
func TestSnapshotAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := map[string]*cluster.Instance{}
		s := cluster.Empty()
		var before *cluster.Snapshot
		var beforeNames []string
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			before, beforeNames = s, names(s.Instances())
			uuid := fmt.Sprint("u", rapid.IntRange(0, 9).Draw(t, "uuid"))
			if rapid.IntRange(0, 4).Draw(t, "op") == 0 {
				delete(model, uuid)
				s = s.With(cluster.Delete(cluster.KindInstance, uuid))
				continue
			}
			i := instance(uuid, rapid.StringMatching(`w[0-9]{0,2}(\.[ab]1?)?`).Draw(t, "name"), rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"))
			i.Tags = cluster.NewTags(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "tag"))
			i.Disks = []cluster.Disk{{Type: cluster.DiskDRBD, Nodes: []string{"n1", "n2"}, Size: rapid.Int64Range(0, 1000).Draw(t, "disk")}}
			i.AdminState = rapid.SampledFrom([]string{cluster.AdminUp, cluster.AdminOffline}).Draw(t, "state")
			i.BEParams = rapid.SampledFrom([]cluster.Params{nil, {"maxmem": int64(300)}, {"vcpus": int64(3), "maxmem": int64(500)}, {"maxmem": "many"}}).Draw(t, "parameters")
			model[uuid] = i
			s = s.With(cluster.Put(i))
			if rapid.Bool().Draw(t, "defaults") {
				defaults := cluster.Params{"maxmem": rapid.Int64Range(1, 100).Draw(t, "memory"), "vcpus": int64(2)}
				s = s.With(cluster.Put(&cluster.Cluster{BEParams: map[string]cluster.Params{cluster.DefaultProfile: defaults}}))
			}
		}
		if got := names(before.Instances()); !slices.Equal(got, beforeNames) {
			t.Fatalf("an earlier snapshot changed: %q, was %q", got, beforeNames)
		}
		checkAgainstModel(t, s, model)
	})
}

func checkAgainstModel(t *rapid.T, s *cluster.Snapshot, model map[string]*cluster.Instance) {
	pick := func(keep func(*cluster.Instance) bool) []string {
		var list []*cluster.Instance
		for _, uuid := range slices.Sorted(maps.Keys(model)) {
			if keep(model[uuid]) {
				list = append(list, model[uuid])
			}
		}
		slices.SortStableFunc(list, func(a, b *cluster.Instance) int { return cluster.CompareNames(a.Name, b.Name) })
		return names(slices.Values(list))
	}
	equal := func(what string, got, want []string) {
		if !slices.Equal(got, want) {
			t.Fatalf("%s: got %q, want %q", what, got, want)
		}
	}
	equal("all", names(s.Instances()), pick(func(*cluster.Instance) bool { return true }))
	equal("on n1", names(s.PrimariesOn("n1")), pick(func(i *cluster.Instance) bool { return i.PrimaryNode == "n1" }))
	equal("secondary on n1", names(s.SecondariesOn("n1")), pick(func(i *cluster.Instance) bool { return i.PrimaryNode != "n1" }))
	var tagged []string
	for uuid := range s.Tagged(cluster.KindInstance, "x") {
		tagged = append(tagged, s.Instance(uuid).Name)
	}
	equal("tagged x", tagged, pick(func(i *cluster.Instance) bool { return i.Tags.Has("x") }))
	for _, key := range []string{"w", "w1", "w01", "w.a", "u3"} {
		checkFind(t, s, model, key)
		equal("called "+key, names(s.InstancesCalled(key)), pick(func(i *cluster.Instance) bool {
			return i.Name == key || strings.HasPrefix(i.Name, key+".")
		}))
	}
	checkNodes(t, s, model)
}

// checkNodes compares what the indexes say of nodes, the counts in particular.
func checkNodes(t *rapid.T, s *cluster.Snapshot, model map[string]*cluster.Instance) {
	primaries, secondaries := map[string]int{}, map[string]int{}
	for _, i := range model {
		primaries[i.PrimaryNode]++
		for _, n := range i.SecondaryNodes() {
			secondaries[n]++
		}
	}
	if got, want := slices.Collect(s.PrimaryNodes()), slices.Sorted(maps.Keys(primaries)); !slices.Equal(got, want) {
		t.Fatalf("primary nodes %q, want %q", got, want)
	}
	if got, want := slices.Collect(s.SecondaryNodes()), slices.Sorted(maps.Keys(secondaries)); !slices.Equal(got, want) {
		t.Fatalf("secondary nodes %q, want %q", got, want)
	}
	tagged := 0
	for range s.Tagged(cluster.KindInstance, "x") {
		tagged++
	}
	if got := s.CountTagged(cluster.KindInstance, "x"); got != tagged {
		t.Fatalf("%d instances are tagged, counted %d", tagged, got)
	}
	for _, n := range []string{"n1", "n2", "n"} {
		checkPromises(t, s, model, n)
		if s.CountPrimariesOn(n) != primaries[n] || s.CountSecondariesOn(n) != secondaries[n] {
			t.Fatalf("%s: counted %d and %d, want %d and %d", n, s.CountPrimariesOn(n), s.CountSecondariesOn(n), primaries[n], secondaries[n])
		}
	}
}

// checkPromises sums up what is promised on a node, instance by instance.
func checkPromises(t *rapid.T, s *cluster.Snapshot, model map[string]*cluster.Instance, node string) {
	var want [3]int64
	for _, i := range model {
		if i.PrimaryNode != node {
			continue
		}
		want[2] += i.LocalDiskUsage()
		for n, name := range []string{"maxmem", "vcpus"} {
			v, own := i.BEParams[name]
			if !own && s.Cluster() != nil {
				v = s.Cluster().BEParams[cluster.DefaultProfile][name]
			}
			if amount, _ := v.(int64); i.AdminState != cluster.AdminOffline {
				want[n] += amount
			}
		}
	}
	if got := s.PromisesOn(node); [3]int64{got.Memory, got.VCPUs, got.Disk} != want {
		t.Fatalf("on %s %+v is promised, want %v", node, got, want)
	}
}

func checkFind(t *rapid.T, s *cluster.Snapshot, model map[string]*cluster.Instance, key string) {
	got, err := s.FindInstance(key)
	var exact, short []string
	for _, i := range model {
		if i.Name == key {
			exact = append(exact, i.UUID)
		}
		if strings.HasPrefix(i.Name, key+".") {
			short = append(short, i.UUID)
		}
	}
	switch {
	case model[key] != nil:
		if err != nil || got.UUID != key {
			t.Fatalf("by UUID %q: %v, %v", key, got, err)
		}
	case len(exact) > 0:
		if err != nil || got.Name != key {
			t.Fatalf("by name %q: %v, %v", key, got, err)
		}
	case len(short) == 1:
		if err != nil || got.UUID != short[0] {
			t.Fatalf("by short name %q: %v, %v", key, got, err)
		}
	case len(short) == 0:
		if !fault.Is(err, fault.NotFound) {
			t.Fatalf("%q is not there, but: %v, %v", key, got, err)
		}
	default:
		if !fault.Is(err, fault.Ambiguous) {
			t.Fatalf("%q is ambiguous, but: %v, %v", key, got, err)
		}
	}
}

func TestStoredObjectsComeBackEqual(t *testing.T) {
	c := cluster.New(cluster.Init{Name: "c.example.com", UUID: "c", Time: 5, MasterNode: "n", Hypervisors: []string{"fake"}, DiskTemplates: []string{"file"}})
	g := cluster.NewGroup("g", cluster.DefaultGroup, 5)
	g.Networks["net"] = cluster.Params{"mode": cluster.NICBridged, "link": "br0", "vlan": ""}
	n := cluster.NewNode("n", "node1.example.com", "192.0.2.1", "g", 5)
	n.NDParams = cluster.Params{"cpu_speed": 1.5, "spindle_count": int64(2)}
	net, err := cluster.NewNetwork("net", "lan", "192.0.2.0/29", "192.0.2.1", 5)
	if err != nil {
		t.Fatal(err)
	}
	i := instance("i", "web1.example.com", "n")
	i.Tags = cluster.NewTags("b", "a", "b")
	i.HVParams, i.BEParams, i.OSParams, i.OSParamsPrivate = cluster.Params{"acpi": true}, cluster.Params{"maxmem": int64(1 << 40)}, cluster.Params{}, cluster.Params{}
	i.NICs = []cluster.NIC{{UUID: "nic", MAC: "aa:00:00:00:00:01", Network: "net", Params: cluster.Params{}}}
	i.Disks = []cluster.Disk{{UUID: "d", Type: cluster.DiskFile, Size: 64, Nodes: []string{"n"}, LogicalID: []any{"loop", "/x<y"}, Params: cluster.Params{}}}

	s := cluster.Empty()
	var stored []cluster.Stored
	for _, o := range []cluster.Object{c, g, n, net, i} {
		s = s.With(cluster.Put(o))
		data, err := cluster.Encode(o)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, cluster.Stored{Kind: string(o.Kind()), UUID: o.Identity(), Data: data})
	}
	stored = append(stored, cluster.Stored{Kind: "job", UUID: "1", Data: []byte("{}")})
	back, err := cluster.Empty().Apply(stored)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []cluster.Object{c, g, n, net, i} {
		if got := back.Object(o.Kind(), o.Identity()); !reflect.DeepEqual(got, o) {
			t.Errorf("%s: got %+v, want %+v", o.Kind(), got, o)
		}
	}
	if !strings.Contains(string(stored[4].Data), `"/x<y"`) {
		t.Errorf("text is escaped: %s", stored[4].Data)
	}
	gone, err := back.Apply([]cluster.Stored{{Kind: "instance", UUID: "i"}})
	if err != nil || gone.Instance("i") != nil || gone.InstanceCount() != 0 || len(names(gone.PrimariesOn("n"))) != 0 {
		t.Errorf("a deleted instance is still there (%v)", err)
	}
}

func TestUnreadableObjectIsRefused(t *testing.T) {
	_, err := cluster.Empty().Apply([]cluster.Stored{{Kind: "node", UUID: "n", Data: []byte(`{"name": 5}`)}})
	if err == nil {
		t.Error("a node with a number for a name was accepted")
	}
}

// Objects that come from a store share what is equal, and no more.
func TestStoredObjectsShareWhatIsEqual(t *testing.T) {
	var stored []cluster.Stored
	for k, p := range []cluster.Params{{"maxmem": int64(1), "x": "1"}, {"maxmem": int64(1), "x": "1"}, {"maxmem": int64(1), "x": int64(1)}, {"maxmem": []any{}}, {"maxmem": []any{}}} {
		i := instance(fmt.Sprint("u", k), fmt.Sprint("i", k), "n")
		i.BEParams = p
		data, err := cluster.Encode(i)
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, cluster.Stored{Kind: "instance", UUID: i.UUID, Data: data})
	}
	s, err := cluster.Empty().Apply(stored)
	if err != nil {
		t.Fatal(err)
	}
	same := func(a, b string) bool {
		x, y := s.Instance(a).BEParams, s.Instance(b).BEParams
		return reflect.ValueOf(x).Pointer() == reflect.ValueOf(y).Pointer()
	}
	if !same("u0", "u1") || same("u0", "u2") || same("u3", "u4") {
		t.Errorf("shared: %v, %v, %v", same("u0", "u1"), same("u0", "u2"), same("u3", "u4"))
	}
	if s.Instance("u2").BEParams["x"] != int64(1) || s.Instance("u1").BEParams["x"] != "1" {
		t.Error("parameters that differ were taken for equal")
	}
}

func TestCloneSharesNothing(t *testing.T) {
	i := instance("i", "a", "n")
	i.BEParams = cluster.Params{"maxmem": int64(1), "list": []any{int64(1)}}
	i.NICs = []cluster.NIC{{Params: cluster.Params{"link": "br0"}}}
	i.Disks = []cluster.Disk{{Nodes: []string{"n"}}}
	want, err := cluster.Encode(i)
	if err != nil {
		t.Fatal(err)
	}
	c := i.Clone()
	c.BEParams["maxmem"] = int64(2)
	c.BEParams["list"].([]any)[0] = int64(2)
	c.NICs[0].Params["link"] = "x"
	c.Disks[0].Nodes[0] = "x"
	if got, err := cluster.Encode(i); err != nil || string(got) != string(want) {
		t.Errorf("changing a clone changed the original: %s (%v)", got, err)
	}
}

func bigSnapshot(n int) *cluster.Snapshot {
	changes := make([]cluster.Change, n)
	for k := range changes {
		changes[k] = cluster.Put(instance(fmt.Sprintf("%08x", k*2654435761%(1<<32)), fmt.Sprintf("web%d.example.com", k), fmt.Sprint("n", k%100)))
	}
	return cluster.Empty().With(changes...)
}

func BenchmarkChangeOneInstance(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		s := bigSnapshot(n)
		i := s.InstanceNamed("web500.example.com")
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c := i.Clone()
				c.Serial++
				s = s.With(cluster.Put(c))
			}
		})
	}
}
