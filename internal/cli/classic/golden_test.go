package classic

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/testkit"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // the recordings were made in this zone
	os.Exit(m.Run())
}

// TestConformanceItemInfo compares what info shows of the recorded node and
// groups.
func TestConformanceItemInfo(t *testing.T) {
	for what, d := range map[string]Form{"node": NodeForm, "group": GroupForm} {
		var rec struct {
			Response struct{ Result listing.Answer }
		}
		if err := json.Unmarshal(testkit.ReadConformance(t, "golden/luxi/Query_"+what+"_all_fields.json"), &rec); err != nil {
			t.Fatal(err)
		}
		answer := rec.Response.Result
		names := make([]string, len(answer.Fields))
		for i, f := range answer.Fields {
			names[i] = f.Name
		}
		items := make([]any, len(answer.Data))
		for i, row := range answer.Data {
			items[i] = d.Show(cellsOf(t, names, row))
		}
		// The classic tool shows the ratios in an order that changes from run to run.
		want := regexp.MustCompile(`(?m)^( +vcpu-ratio: .*\n)( +spindle-ratio: .*\n)`).
			ReplaceAllString(testkit.RecordedOutput(t, "gnt-"+what+"_info.txt"), "$2$1")
		if got := Outline(items); got != want {
			t.Fatalf("%s: %s", what, testkit.FirstDifference(got, want))
		}
	}
	t.Log("gnt-node info, gnt-group info: 2 of 2 outputs equal")
}

// TestConformanceOSInfo compares what is shown of the operating systems of the
// recorded cluster.
func TestConformanceOSInfo(t *testing.T) {
	out := ""
	var all []OSDefinition
	for _, name := range []string{"failing", "noop"} {
		var o OSDefinition
		row := `["` + name + `",true,false,false,[20,15,10],["default"],[["test_param","a parameter for tests"]],true]`
		if err := json.Unmarshal([]byte(row), &o); err != nil {
			t.Fatal(err)
		}
		out += o.Text() + "\n"
		all = append(all, o)
	}
	if want := testkit.RecordedOutput(t, "gnt-os_info.txt"); out != want {
		t.Fatal(testkit.FirstDifference(out, want))
	}
	list := strings.Join(Titled("Name", InstallableNames(all)), "\n") + "\n"
	if want := testkit.RecordedOutput(t, "gnt-os_list.txt"); list != want {
		t.Fatal(testkit.FirstDifference(list, want))
	}
	t.Log("gnt-os info, gnt-os list: 2 of 2 outputs equal")
}

// TestConformanceClusterInfo compares what info shows of the recorded cluster.
// Between the two recordings a few settings were changed, and the paths that
// are built into the classic tool have no counterpart.
func TestConformanceClusterInfo(t *testing.T) {
	var rec struct {
		Response struct{ Result json.RawMessage }
	}
	if err := json.Unmarshal(testkit.ReadConformance(t, "golden/luxi/QueryClusterInfo.json"), &rec); err != nil {
		t.Fatal(err)
	}
	info, _ := decode(t, rec.Response.Result).(map[string]any)
	info["candidate_pool_size"], info["tags"] = 5, []any{"env:test", "golden", "owner:peer", "rapi"}
	want := testkit.RecordedOutput(t, "gnt-cluster_info.txt")
	for _, line := range []string{"OS search path", "ExtStorage Providers search path"} {
		want = regexp.MustCompile("(?m)^  "+line+": .*\n").ReplaceAllString(want, "")
	}
	changed := regexp.MustCompile("(?m)^Modification time: .*$")
	got := changed.ReplaceAllString(Outline(Cluster(info)), "Modification time:")
	if want = changed.ReplaceAllString(want, "Modification time:"); got != want {
		t.Fatal(testkit.FirstDifference(got, want))
	}
	t.Log("gnt-cluster info: 1 of 1 outputs equal")
}

// TestConformanceOSDiagnose compares what is shown of one of the recorded
// definitions.
func TestConformanceOSDiagnose(t *testing.T) {
	out := ""
	for _, name := range []string{"failing", "noop"} {
		var o OSDiagnosis
		row := `["` + name + `",true,["default"],{"3259c452-4c19-4cb9-9bd1-e490c962ce39":[["/srv/ganeti/os/` + name +
			`",true,"",["default"],[["test_param","a parameter for tests"]],[20,15,10],true]]},false,false]`
		if err := json.Unmarshal([]byte(row), &o); err != nil {
			t.Fatal(err)
		}
		out += o.Text(nil) + "\n"
	}
	if want := testkit.RecordedOutput(t, "gnt-os_diagnose.txt"); out != want {
		t.Fatal(testkit.FirstDifference(out, want))
	}
	t.Log("gnt-os diagnose: 1 of 1 outputs equal")
}

// Nodes stand where the classic tool has them: those that have the definition
// before others, each lot in the order of numbers in names.
func TestOSDiagnoseOrdersNodes(t *testing.T) {
	var o OSDiagnosis
	row := `["noop",false,["default"],{
		"a1":[["/os",true,"",["default"],[],[20],true],["/more",false,"no script",[],[],[],true]],
		"a03657":[["/os",true,"",[],[["a","b"]],[15],false]],
		"0a":[["/os",false,"no script",[],[],[],true]],
		"0b":[]},true,true]`
	if err := json.Unmarshal([]byte(row), &o); err != nil {
		t.Fatal(err)
	}
	const want = `OS: noop [global status: partial valid] [hidden] [blacklisted]
  Variants: [default]
  Node: a1, status: valid (path: /os) [API versions: 20] [variants: default] [no parameters] [trusted]
    [hidden] path: /more, status: invalid - no script
  Node: a03657, status: valid (path: /os) [API versions: 15] [no variants] [untrusted]
  Node: node1, status: OS not found
  Node: node2, status: invalid - no script (path: /os) [no API versions declared] [trusted]
`
	if got := o.Text(map[string]string{"0b": "node1", "0a": "node2"}); got != want {
		t.Error(testkit.FirstDifference(got, want))
	}
}

// decode reads JSON with numbers as they are written.
func decode(t *testing.T, text json.RawMessage) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// cellsOf are the values of a row, less those that are missing.
func cellsOf(t *testing.T, fields []string, row []listing.Cell) Cells {
	t.Helper()
	out := Cells{}
	for i, cell := range row {
		if cell.Status == 0 {
			out[fields[i]] = decode(t, cell.Value)
		}
	}
	return out
}
