package luxi

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/stores"
)

type recording struct {
	Header struct {
		Request struct {
			Method   string          `json:"method"`
			Args     json.RawMessage `json:"args"`
			RawBytes *string         `json:"raw_bytes"`
		} `json:"request"`
		Usable *bool `json:"connection_usable_afterwards"`
	} `json:"header"`
	Response struct {
		Success bool `json:"success"`
		Result  any  `json:"result"`
	} `json:"response"`
}

// Recordings that cannot be replayed, or that we answer differently on
// purpose; docs/compat/luxi.md has the reasons.
var (
	needsItsJobs = regexp.MustCompile(`^(effect_|non_ascii_|ArchiveJob_(ok|running)|CancelJob_(running|waiting)|ChangeJobPriority|` +
		`WaitForJobChange_(finished|same|timeout)|QueryJobs_archived|DeleteFilter_ok|QueryConfigValues_(drained|paused))`)
	needsItsCluster = regexp.MustCompile(`^(Query_(group|instance|network|node|export|filter|job|lock)_all_fields|Query_lock_held|` +
		`QueryTags_|QueryInstances_names|QueryNodes|QueryGroups|QueryNetworks|QueryFilters_all|QueryJobs_null)`)
	onPurpose = map[string]string{
		"err_bad_json": "another JSON parser words it", "err_bad_utf8": "the position is named",
		"SubmitJob_drained":               "the documented class",
		"Query_instance_filter_bad_regex": "another regex engine words it",
	}
)

// TestConformanceRecordings replays every recorded request. Errors must be the
// recorded ones, results must have the recorded shape.
func TestConformanceRecordings(t *testing.T) { stores.Each(t, replayAll) }

func replayAll(t *testing.T, url string) {
	t.Helper()
	r := newRigOn(t, url)
	r.furnish()
	dir := testkit.Conformance(t, "golden", "luxi")
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings in %s: %v", dir, err)
	}
	exact, shapes, elsewhere, different := 0, 0, 0, 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if needsItsJobs.MatchString(name) || needsItsCluster.MatchString(name) {
			elsewhere++
			continue
		}
		rec := readRecording(t, file)
		if strings.HasSuffix(name, "_drained") {
			r.call("SetDrainFlag", nil, true)
		}
		got, usable := r.replay(rec)
		r.call("SetDrainFlag", nil, false)
		switch {
		case onPurpose[name] != "":
			different++
			if got.Success != rec.Response.Success {
				t.Errorf("%s: got %+v", name, got)
			}
		case !rec.Response.Success:
			exact++
			if got.Success || oneLine(got.Result) != oneLine(rec.Response.Result) {
				t.Errorf("%s\n got  %s\n want %s", name, oneLine(got.Result), oneLine(rec.Response.Result))
			}
		default:
			shapes++
			if name == "QueryClusterInfo" { // which parameters there are depends on the cluster
				onlyKeys(got.Result)
				onlyKeys(rec.Response.Result)
			}
			if !got.Success || !sameShape(got.Result, rec.Response.Result) {
				t.Errorf("%s\n got  %.300s\n want %.300s", name, oneLine(got.Result), oneLine(rec.Response.Result))
			}
		}
		if rec.Header.Usable != nil && usable != *rec.Header.Usable {
			t.Errorf("%s: the connection is usable afterwards: %v, recorded %v", name, usable, *rec.Header.Usable)
		}
	}
	t.Logf("golden/luxi: %d errors equal, %d results of equal shape, %d different on purpose; %d need the recorded cluster and are tested elsewhere; %d in all",
		exact, shapes, different, elsewhere, len(files))
}

func readRecording(t *testing.T, file string) (rec recording) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &rec); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return rec
}

// replay sends a recorded request and looks whether the connection goes on.
func (r *rig) replay(rec recording) (response, bool) {
	c := r.dial()
	text := fmt.Sprintf(`{"method":%q,"args":%s,"version":3000000}`, rec.Header.Request.Method, rec.Header.Request.Args)
	if raw := rec.Header.Request.RawBytes; raw != nil {
		text = *raw
	}
	got := c.ask(text)
	if _, err := c.Write([]byte(`{"method":"QueryConfigValues","args":[[]]}` + "\x03")); err != nil {
		return got, false
	}
	_, usable := c.receive()
	return got, usable
}

// furnish makes the instances that the recorded requests name.
func (r *rig) furnish() {
	r.Helper()
	for _, name := range []string{"broken1", "web1", "web2", "db1"} {
		id := r.submit(map[string]any{"OP_ID": "OP_INSTANCE_CREATE", "instance_name": name + ".gntpeer.example", "mode": "create",
			"disk_template": "diskless", "disks": []any{}, "nics": []any{map[string]any{}}, "pnode": "node1.gntpeer.example",
			"os_type": "noop", "no_install": true, "start": name != "db1", "reason": []any{}, "beparams": map[string]any{"memory": 128},
			"tags": []any{"web"}})
		if status := r.end(id); status != "success" {
			var rows any
			r.call("QueryJobs", &rows, []any{id}, []any{"opresult"})
			r.Fatalf("%s: %s %v", name, status, rows)
		}
	}
}

// oneLine writes JSON compactly, with the line breaks inside the recorded
// texts, which come from a pretty printer, as blanks.
func oneLine(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(string(text), `\n `, " ")
}

// sameShape compares types: objects by their keys, lists by their length when
// they are rows and else by their first elements.
func sameShape(got, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return false
		}
		for key := range w {
			if _, has := g[key]; !has || !sameShape(g[key], w[key]) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok {
			return false
		}
		for i := range min(len(g), len(w)) {
			if !sameShape(g[i], w[i]) {
				return false
			}
		}
		return len(g) > 0 || len(w) == 0 || !slices.ContainsFunc(w, isScalar)
	case nil:
		return true
	default:
		return got == nil || fmt.Sprintf("%T", got) == fmt.Sprintf("%T", want)
	}
}

// onlyKeys empties the objects and lists inside an object.
func onlyKeys(object any) {
	m, _ := object.(map[string]any)
	for key, value := range m {
		if !isScalar(value) {
			m[key] = ""
		}
	}
}

func isScalar(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return false
	default:
		return true
	}
}
