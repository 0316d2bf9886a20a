package luxi

import (
	"encoding/json"
	"fmt"
	"iter"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/query/items"
)

// addInstances puts instances on the node of the rig.
func (r *rig) addInstances(n int) {
	r.Helper()
	err := r.keeper.Update(r.Context(), func(s *cluster.Snapshot) ([]cluster.Change, error) {
		node := slices.Collect(s.Nodes())[0]
		out := make([]cluster.Change, n)
		for k := range out {
			out[k] = cluster.Put(&cluster.Instance{Meta: cluster.NewMeta(fmt.Sprintf("%032d", k), 1), Name: fmt.Sprintf("web%d.example.com", k),
				PrimaryNode: node.UUID, OS: "<noop> & \u2028\x03", Hypervisor: "fake", AdminState: []string{cluster.AdminUp, cluster.AdminDown}[k%2],
				BEParams: cluster.Params{"vcpus": int64(1 + k%4)}, Disks: []cluster.Disk{{Type: cluster.DiskFile, Size: 1024}}})
		}
		return out, nil
	})
	if err != nil {
		r.Fatal(err)
	}
}

// What the old list requests stream is, byte for byte, the frame of their whole
// answer.
func TestOldListsAreTheFramesOfTheirAnswers(t *testing.T) {
	r := newRig(t)
	r.addInstances(2000)
	r.end(r.submit(delay(0.001)))
	c := r.dial()
	instanceFields := []string{"name", "os", "pnode", "snodes", "network_port", "beparams", "disk.sizes", "tags", "ctime"}
	for _, request := range []struct {
		method, what, args string
		names, fields      []string
	}{
		{"QueryInstances", "instance", `[[],%s,false]`, nil, instanceFields},
		{"QueryInstances", "instance", `[["web7.example.com","nosuch"],%s,false]`, []string{"web7.example.com", "nosuch"}, instanceFields},
		{"QueryInstances", "instance", `[[],%s,false]`, nil, []string{}},
		{"QueryNodes", "node", `[[],%s,false]`, nil, []string{"name", "pinst_list", "ndparams"}},
		{"QueryGroups", "group", `[[],%s,false]`, nil, []string{"name", "node_list", "ipolicy"}},
		{"QueryNetworks", "network", `[[],%s,false]`, nil, []string{"name", "map"}},
		{"QueryJobs", "job", `[null,%s]`, nil, []string{"id", "status", "ops", "opresult", "received_ts", "held_by"}},
		{"QueryJobs", "job", `[["1","77"],%s]`, []string{"1", "77"}, []string{"id", "status"}},
		{"QueryExports", "export", `[[],false]`, nil, []string{"node", "export"}},
	} {
		args := request.args
		if strings.Contains(args, "%s") {
			fields, err := json.Marshal(request.fields)
			if err != nil {
				t.Fatal(err)
			}
			args = fmt.Sprintf(args, fields)
		}
		c.send(fmt.Sprintf(`{"method":"%s","args":%s}`, request.method, args) + "\x03")
		got, err := c.frames.Next()
		if err != nil {
			t.Fatal(err)
		}
		result, err := items.Old(r.server.deps.Querier.Source(t.Context()), request.what, request.names, request.fields)
		if err != nil {
			t.Fatal(err)
		}
		want, err := luxiwire.ResultFrame(json.RawMessage(result.AppendValues(nil)))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != strings.TrimSuffix(string(want), "\x03") {
			t.Errorf("%s %s: %.200s, want %.200s", request.method, args, got, want)
		}
	}
}

// pieces is a listing of given pieces.
type pieces func(yield func([]byte) bool)

func (p pieces) Chunks() iter.Seq[[]byte] { return iter.Seq[[]byte](p) }

// A client reads the beginning of a listing before the rest of it is made.
func TestListingsBeginBeforeTheyEnd(t *testing.T) {
	server := newRig(t).server
	near, far := net.Pipe()
	if err := far.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	sent := make(chan bool, 1)
	go func() {
		sent <- server.stream(near, pieces(func(yield func([]byte) bool) {
			if yield([]byte(`["` + strings.Repeat("x", 100<<10) + `"`)) {
				<-read // not made before the client has the first one
				yield([]byte(`]`))
			}
		}), 0)
	}()
	first := make([]byte, 1)
	if _, err := far.Read(first); err != nil {
		t.Fatal(err)
	}
	close(read)
	rest, err := luxiwire.NewFrameReader(far, luxiwire.MaxFrame).Next()
	if err != nil || !<-sent || !json.Valid(slices.Concat(first, rest)) {
		t.Errorf("after %q: %.100q, %v", first, rest, err)
	}
}

// A listing that panics costs its connection and nothing else.
func TestListingThatPanics(t *testing.T) {
	server := newRig(t).server
	near, far := net.Pipe()
	defer func() { _ = far.Close() }()
	if server.stream(near, pieces(func(func([]byte) bool) { panic("a fault") }), 0) {
		t.Error("the connection would be used for another request")
	}
}
