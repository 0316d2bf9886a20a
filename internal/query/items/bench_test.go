package items

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/reason"
)

// bigSource is a cluster of n instances on 100 nodes, all of which answer.
func bigSource(n int) *query.Source {
	const nodes = 100
	c := cluster.New(cluster.Init{Name: "c.example.com", UUID: "c", Time: 1, MasterNode: "node-0", Hypervisors: []string{"kvm"}})
	changes := []cluster.Change{cluster.Put(c), cluster.Put(cluster.NewGroup("group-0", "default", 1))}
	live := map[string]query.NodeState{}
	for k := range nodes {
		uuid := fmt.Sprint("node-", k)
		changes = append(changes, cluster.Put(cluster.NewNode(uuid, fmt.Sprintf("node%d.example.com", k), fmt.Sprint("192.0.2.", k), "group-0", 1)))
		live[uuid] = query.NodeState{Hypervisor: &query.HypervisorState{MemoryTotal: 1 << 20}, Instances: map[string]query.InstanceState{}}
	}
	for k := range n {
		i := bigInstance(k, fmt.Sprint("node-", k%nodes))
		changes = append(changes, cluster.Put(i))
		live[i.PrimaryNode].Instances[i.UUID] = query.InstanceState{Memory: 1024, VCPUs: 2}
	}
	return &query.Source{
		Inventory: stored(changes),
		Live:      func(query.Need, []string) map[string]query.NodeState { return live },
	}
}

// stored returns the inventory as it is after it was read from a store.
func stored(changes []cluster.Change) *cluster.Snapshot {
	list := make([]cluster.Stored, len(changes))
	for i, c := range changes {
		data, err := cluster.Encode(c.Put)
		if err != nil {
			panic(err)
		}
		list[i] = cluster.Stored{Kind: string(c.Kind), UUID: c.UUID, Data: data}
	}
	s, err := cluster.Empty().Apply(list)
	if err != nil {
		panic(err)
	}
	return s
}

func bigInstance(k int, node string) *cluster.Instance {
	uuid := fmt.Sprintf("%08x-4c19-4cb9-9bd1-%012d", uint32(k)*2654435761, k)
	i := &cluster.Instance{
		Meta: cluster.NewMeta(uuid, 1795249659250872400), Name: fmt.Sprintf("web%d.example.com", k), PrimaryNode: node,
		OS: "debian+minimal", Hypervisor: "kvm", AdminState: cluster.AdminUp, AdminStateSource: cluster.SourceAdmin, DisksActive: true,
		BEParams: cluster.Params{"maxmem": int64(512 + k%4*512), "vcpus": int64(1 + k%4)}, HVParams: cluster.Params{"boot_order": "disk"},
	}
	if k%101 == 0 {
		i.AdminState = cluster.AdminDown
	}
	i.Tags = cluster.NewTags("env:prod", fmt.Sprint("rack:", k%50))
	for n := range 2 {
		i.Disks = append(i.Disks, cluster.Disk{UUID: fmt.Sprint(uuid, "-d", n), Type: cluster.DiskPlain, Size: 10240, Mode: "rw", Nodes: []string{node}})
		i.NICs = append(i.NICs, cluster.NIC{UUID: fmt.Sprint(uuid, "-n", n), MAC: fmt.Sprintf("aa:00:00:%02x:%02x:%02x", k>>8&255, k&255, n),
			IP: fmt.Sprintf("10.%d.%d.%d", n, k>>8&255, k&255), Params: cluster.Params{"link": "br0"}})
	}
	return i
}

func mustParse(b testing.TB, text string) qlang.Node {
	b.Helper()
	n, err := qlang.ParseText(text)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

func fieldNames(b testing.TB, what string) []string {
	b.Helper()
	defs, err := All.Fields(what, nil)
	if err != nil {
		b.Fatal(err)
	}
	out := make([]string, len(defs))
	for i, d := range defs {
		out[i] = d.Name
	}
	return out
}

var eightFields = []string{"name", "os", "pnode", "admin_state", "be/maxmem", "be/vcpus", "tags", "disk.sizes"}

// BenchmarkAllFields is the whole answer of every field of 10,000 instances as
// JSON, and how soon its first piece is there.
func BenchmarkAllFields(b *testing.B) {
	src := bigSource(10_000)
	fields := fieldNames(b, "instance")
	bytes := 0
	var first time.Duration
	b.ReportAllocs()
	for b.Loop() {
		bytes = 0
		start := time.Now()
		res, err := All.Run(src, "instance", fields, nil, query.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for piece := range res.Chunks() {
			if bytes == 0 {
				first = time.Since(start)
			}
			bytes += len(piece)
		}
	}
	b.ReportMetric(float64(len(fields)), "fields")
	b.ReportMetric(float64(bytes)/1e6, "MB/answer")
	b.ReportMetric(first.Seconds()*1e3, "ms-to-first-byte")
}

// BenchmarkFilter is a filter on two configuration fields with eight columns,
// to the end of the answer's JSON: one that looks at all instances and keeps one
// in 200, one that the index of nodes answers, and one that keeps all.
func BenchmarkFilter(b *testing.B) {
	for _, c := range []struct{ name, filter string }{
		{"scan", `be/vcpus >= 3 and admin_state == "down"`},
		{"index", `be/vcpus >= 3 and pnode == "node7"`},
		{"all", `be/vcpus >= 1 and hypervisor == "kvm"`},
	} {
		for _, n := range []int{1_000, 10_000, 100_000} {
			b.Run(c.name+"/"+strconv.Itoa(n), func(b *testing.B) { benchmarkFilter(b, bigSource(n), n, mustParse(b, c.filter)) })
		}
	}
}

func benchmarkFilter(b *testing.B, src *query.Source, n int, filter qlang.Node) {
	b.Helper()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		res, err := All.Run(src, "instance", eightFields, filter, query.Options{})
		if err != nil {
			b.Fatal(err)
		}
		buf = res.AppendJSON(buf[:0])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/row")
}

func BenchmarkTagIndex(b *testing.B) {
	src := bigSource(100_000)
	filter := mustParse(b, `"rack:7" in tags and be/vcpus >= 3`)
	for b.Loop() {
		if _, err := All.Run(src, "instance", eightFields, filter, query.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNodeIndex is the list of a node's instances: 1,000 out of 100,000.
func BenchmarkNodeIndex(b *testing.B) {
	src := bigSource(100_000)
	filter := mustParse(b, `pnode == "node7.example.com"`)
	rows := 0
	for b.Loop() {
		res, err := All.Run(src, "instance", eightFields, filter, query.Options{})
		if err != nil {
			b.Fatal(err)
		}
		rows = res.Len()
	}
	b.ReportMetric(float64(rows), "rows")
}

// BenchmarkNodeCounts is the list of nodes with how many instances each has, of
// 100,000.
func BenchmarkNodeCounts(b *testing.B) {
	src := bigSource(100_000)
	for b.Loop() {
		res, err := All.Run(src, "node", []string{"name", "pinst_cnt", "sinst_cnt"}, nil, query.Options{})
		if err != nil {
			b.Fatal(err)
		}
		for range res.Rows() {
		}
	}
}

func BenchmarkOneName(b *testing.B) {
	src := bigSource(100_000)
	filter := mustParse(b, `name == "web5000"`)
	for b.Loop() {
		if _, err := All.Run(src, "instance", eightFields, filter, query.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func bigJobs(n int) []*job.Job {
	statuses := []job.Status{job.Success, job.Error, job.Queued, job.Success}
	out := make([]*job.Job, n)
	for k := range out {
		op := &opcode.Opcode{ID: "OP_INSTANCE_STARTUP", Params: map[string]any{"instance_name": "web1"},
			Reason: reason.Trail{{Source: "user", Reason: fmt.Sprintf("ticket OPS-%d", k%1000), Time: 1}, {Source: "gnt:opcode:instance_startup", Reason: fmt.Sprintf("job=%d;index=0", k), Time: 2}}}
		out[k] = &job.Job{ID: job.ID(k + 1), Ops: []job.Op{{Input: op, Status: statuses[k%4]}}}
	}
	return out
}

func jobSource(jobs []*job.Job) *query.Source {
	return &query.Source{Inventory: cluster.Empty(), JobTable: job.NewTable(jobs...), Jobs: func(bool) iter.Seq2[*job.Job, error] { return readable(slices.Values(jobs)) }}
}

// BenchmarkJobs is a filter by status and by a regular expression on the
// reasons, over a million jobs.
func BenchmarkJobs(b *testing.B) {
	src := jobSource(bigJobs(1_000_000))
	filter := mustParse(b, `status == "error" and reason =~ m/OPS-12[0-9]\\b/`)
	found := 0
	for b.Loop() {
		res, err := All.Run(src, "job", []string{"id", "status", "summary"}, filter, query.Options{})
		if err != nil {
			b.Fatal(err)
		}
		found = res.Len()
	}
	b.ReportMetric(float64(found), "found")
}

// BenchmarkJobIndexes are lists of a few jobs out of a million: those that run,
// and those that were received in the last 20 seconds.
func BenchmarkJobIndexes(b *testing.B) {
	const n, few = 1_000_000, 20
	jobs := bigJobs(n)
	for k, j := range jobs {
		j.Received, j.Started, j.Ended = job.Time(k*1e6+1), job.Time(k*1e6+2), job.Time(k*1e6+3)
		j.Ops[0].Status = job.Success
		if k%(n/few) == 0 {
			j.Ops[0].Status, j.Ended = job.Running, 0
		}
	}
	src := jobSource(jobs)
	for _, text := range []string{`status == "running"`, fmt.Sprintf("received_ts >= %d", n-few)} {
		filter := mustParse(b, text)
		b.Run(strings.Fields(text)[0], func(b *testing.B) {
			rows := 0
			for b.Loop() {
				res, err := All.Run(src, "job", []string{"id", "status", "summary"}, filter, query.Options{})
				if err != nil {
					b.Fatal(err)
				}
				rows = res.Len()
			}
			b.ReportMetric(float64(rows), "rows")
		})
	}
}

// BenchmarkManyNames are old lists of 10,000 items that are asked for by name.
func BenchmarkManyNames(b *testing.B) {
	const n = 10_000
	instances, jobs := bigSource(2*n), jobSource(bigJobs(2*n))
	jobs.Job = func(id job.ID) (*job.Job, error) { return jobs.JobTable.Get(id), nil }
	names, ids := make([]string, n), make([]string, n)
	for k := range n {
		names[k], ids[k] = fmt.Sprintf("web%d.example.com", 2*k), strconv.Itoa(2*k+1)
	}
	for what, list := range map[string][]string{"instance": names, "job": ids} {
		src := map[string]*query.Source{"instance": instances, "job": jobs}[what]
		b.Run(what, func(b *testing.B) {
			for b.Loop() {
				res, err := Old(src, what, list, []string{"status"})
				if err != nil || res.Len() != n {
					b.Fatal(res.Len(), err)
				}
			}
		})
	}
}
