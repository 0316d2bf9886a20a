package luxi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/qlang"
)

// answer is what Query and its extensions answer.
type answer struct {
	Data     [][][2]any
	Next     string
	Revision int64
	Reset    bool
	Events   []struct{ Type, ID string }
	Access   string
	Index    string
	Kept     int
	// Considered rows were looked at.
	Considered int
	AsOf       int64 `json:"as_of"`
}

func (r *rig) query(what string, fields []string, filter any, more ...any) answer {
	r.Helper()
	var a answer
	r.call("Query", &a, append([]any{what, fields, filter}, more...)...)
	return a
}

func TestQueryPages(t *testing.T) {
	r := newRig(t)
	r.end(r.submit(delay(0.001)))
	r.end(r.submit(delay(0.002)))
	first := r.query("job", []string{"id"}, nil, map[string]any{"sort": []string{"-id"}, "limit": 1})
	if len(first.Data) != 1 || first.Data[0][0][1] != 2.0 || first.Next == "" {
		t.Fatalf("first page %+v", first)
	}
	second := r.query("job", []string{"id"}, nil, map[string]any{"sort": []string{"-id"}, "limit": 1, "after": first.Next})
	if len(second.Data) != 1 || second.Data[0][0][1] != 1.0 || second.Next != "" {
		t.Errorf("second page %+v", second)
	}
	if code, _, text := r.refused("Query", "job", []string{"id"}, nil, map[string]any{"after": "x"}); code != fault.Invalid || !strings.Contains(text, "token") {
		t.Errorf("bad token: %s %s", code, text)
	}
}

func TestQueryGroupsAndExplains(t *testing.T) {
	r := newRig(t)
	r.end(r.submit(delay(0.001)))
	r.end(r.submit(delay(0.002)))
	a := r.query("job", []string{}, nil, map[string]any{"group_by": []string{"status"}, "figures": []string{"count", "max(id)"}})
	if len(a.Data) != 1 || a.Data[0][0][1] != "success" || a.Data[0][1][1] != 2.0 || a.Data[0][2][1] != 2.0 {
		t.Errorf("groups %+v", a)
	}
	a = r.query("job", []string{"id"}, []any{">", "id", 1}, map[string]any{"explain": true})
	if a.Access != "scan" || a.Kept != 1 {
		t.Errorf("explanation %+v", a)
	}
	a = r.query("job", []string{"id"}, []any{"&", []any{">", "id", 1}, []any{"=", "status", "success"}}, map[string]any{"explain": true})
	if a.Access != "index" || a.Index != "status" || a.Kept != 1 {
		t.Errorf("explanation of an index %+v", a)
	}
	_, class, text := r.refused("Query", "job", []string{"id"}, []any{"==", "nosuch", 1}, map[string]any{"explain": true})
	if class != "ParameterError" || text != "Can't find field named 'nosuch'" {
		t.Errorf("unknown field: %s %s", class, text)
	}
}

// Live and archived jobs are found by the time of their end, each once.
func TestQueryFindsArchivedJobsByTheirEnd(t *testing.T) {
	r := newRig(t)
	for range 3 {
		r.end(r.submit(delay(0.001)))
	}
	var archived bool
	r.call("ArchiveJob", &archived, 2)
	all := r.query("job", []string{"id", "archived", "end_ts"}, nil)
	if !archived || len(all.Data) != 3 {
		t.Fatalf("archived: %v, jobs %v", archived, all.Data)
	}
	first, last := second(all.Data[0][2]), second(all.Data[2][2])
	for _, c := range []struct {
		from, to int64
		rows     int
	}{{first, last, 3}, {0, last, 3}, {last + 1, last + 9, 0}, {0, first - 1, 0}} {
		filter := []any{"&", []any{">=", "end_ts", c.from}, []any{"<=", "end_ts", c.to}}
		got := r.query("job", []string{"id", "archived", "end_ts"}, filter)
		ex := r.query("job", []string{"id", "archived"}, filter, map[string]any{"explain": true})
		if len(got.Data) != c.rows || ex.Index != "end_ts" || ex.Considered != c.rows {
			t.Errorf("from %d to %d: %v, %+v", c.from, c.to, got.Data, ex)
		}
		if c.rows == 3 && fmt.Sprint(got.Data) != fmt.Sprint(all.Data) {
			t.Errorf("from %d to %d: %v, want %v", c.from, c.to, got.Data, all.Data)
		}
	}
}

// second is the second of a time in an answer.
func second(cell [2]any) int64 { return int64(cell[1].([]any)[0].(float64)) }

func TestQueryFresh(t *testing.T) {
	r := newRig(t)
	first := r.query("node", []string{"mfree"}, nil, map[string]any{"explain": true})
	second := r.query("node", []string{"mfree"}, nil, map[string]any{"explain": true, "fresh": true})
	if first.AsOf == 0 || second.AsOf <= first.AsOf {
		t.Errorf("as of %d, fresh as of %d", first.AsOf, second.AsOf)
	}
	if a := r.query("node", []string{"mfree"}, nil, map[string]any{"fresh": true}); len(a.Data) != 1 || a.Data[0][0][0] != 0.0 {
		t.Errorf("fresh: %+v", a)
	}
}

func TestQueryWatch(t *testing.T) {
	r := newRig(t)
	r.end(r.submit(delay(0.001)))
	a := r.query("job", []string{"id", "status"}, nil, map[string]any{"watch": 0})
	if !a.Reset || len(a.Events) != 1 || a.Events[0].ID != "1" || a.Revision == 0 {
		t.Fatalf("at first %+v", a)
	}
	id := r.submit(delay(0.001))
	for since := a.Revision; ; since = a.Revision {
		a = r.query("job", []string{"id", "status"}, nil, map[string]any{"watch": since})
		if a.Reset || a.Revision <= since {
			t.Fatalf("after %d: %+v", since, a)
		}
		if len(a.Events) > 0 && a.Events[0].ID == id.String() {
			return
		}
	}
}

func TestOldListsFindByUUID(t *testing.T) {
	r := newRig(t)
	var rows [][]string
	r.call("QueryNodes", &rows, []string{"node1"}, []string{"name", "uuid"}, false)
	if len(rows) != 1 {
		t.Fatalf("short name: %v", rows)
	}
	uuid := rows[0][1]
	r.call("QueryNodes", &rows, []string{uuid, "nosuch"}, []string{"name"}, false)
	if len(rows) != 1 || rows[0][0] != "node1.gntpeer.example" {
		t.Errorf("by UUID: %v", rows)
	}
}

// BenchmarkQuery is a list of eight configuration fields with a filter on two of
// them over 10,000 instances, as a client on the socket sees it.
func BenchmarkQuery(b *testing.B) {
	r := newRig(b)
	err := r.keeper.Update(b.Context(), func(s *cluster.Snapshot) ([]cluster.Change, error) {
		node := slices.Collect(s.Nodes())[0]
		out := make([]cluster.Change, 10_000)
		for k := range out {
			out[k] = cluster.Put(&cluster.Instance{Meta: cluster.NewMeta(fmt.Sprintf("%032d", k), 1), Name: fmt.Sprintf("web%d.example.com", k),
				PrimaryNode: node.UUID, OS: "noop", Hypervisor: "fake", AdminState: []string{cluster.AdminUp, cluster.AdminDown}[k%2],
				BEParams: cluster.Params{"vcpus": int64(1 + k%4)}, Disks: []cluster.Disk{{Type: cluster.DiskFile, Size: 1024}}})
		}
		return out, nil
	})
	if err != nil {
		b.Fatal(err)
	}
	filter, err := qlang.ParseText(`be/vcpus >= 3 and admin_state == "up"`)
	if err != nil {
		b.Fatal(err)
	}
	fields := []string{"name", "os", "pnode", "admin_state", "be/maxmem", "be/vcpus", "tags", "disk.sizes"}
	client := r.client()
	rows := 0
	for b.Loop() {
		var raw rawAnswer
		if err := client.Call(context.Background(), "Query", []any{"instance", fields, qlang.JSON(filter)}, &raw); err != nil {
			b.Fatal(err)
		}
		rows = strings.Count(string(raw), "web")
	}
	b.ReportMetric(float64(rows), "rows")
}

// rawAnswer keeps an answer as it came: reading it is the client's affair.
type rawAnswer []byte

func (r *rawAnswer) UnmarshalJSON(data []byte) error {
	*r = append((*r)[:0], data...)
	return nil
}
