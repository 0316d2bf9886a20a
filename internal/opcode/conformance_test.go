package opcode_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/testkit"
)

type recordedOpcode struct {
	ID       string          `json:"op_id"`
	DscField string          `json:"dsc_field"`
	Result   string          `json:"result"`
	Source   string          `json:"reason_source"`
	Params   []recordedParam `json:"params"`
}

type recordedParam struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"`
	Default  any      `json:"default"`
	Required bool     `json:"required"`
	Enum     []string `json:"enum"`
}

// asIn302 gives the record, which is of 3.1, the defaults of 3.0.2 where the
// two differ, and the parameter that only 3.0.2 has. That it lacks
// OP_NETWORK_RENAME and is_strict takes nothing away from its clients.
func asIn302(recorded []recordedOpcode) {
	older := map[string]map[string]any{
		"OP_INSTANCE_CREATE":     {"name_check": true, "ip_check": true},
		"OP_INSTANCE_RENAME":     {"name_check": true, "ip_check": true},
		"OP_INSTANCE_SET_PARAMS": {"hotplug": false},
	}
	for i := range recorded {
		r := &recorded[i]
		for n := range r.Params {
			if v, differs := older[r.ID][r.Params[n].Name]; differs {
				r.Params[n].Default = v
			}
			if r.Params[n].Name == "hotplug" {
				r.Params = slices.Insert(r.Params, n+1, recordedParam{Name: "hotplug_if_possible", Type: "bool", Default: false})
			}
		}
	}
}

// The catalogue must be the reference's in every id, summary field, result,
// and parameter with its type, default and whether it is required.
func TestConformanceCatalogue(t *testing.T) {
	var recorded []recordedOpcode
	if err := json.Unmarshal(testkit.ReadConformance(t, "ganeti-opcodes.json"), &recorded); err != nil {
		t.Fatal(err)
	}
	asIn302(recorded)
	own := []string{"OP_DEPLOY_TASK", "OP_NODE_ORPHANS", "OP_NODE_CLEAR_ORPHANS", "OP_NODE_TOKEN", "OP_IMAGE_ADD", "OP_IMAGE_CAPTURE", "OP_IMAGE_REMOVE", "OP_DISK_REMOVE"} // which the reference lacks
	if len(opcode.All()) != len(recorded)+len(own) {
		t.Errorf("catalogue has %d opcodes, the reference %d, and %v are our own", len(opcode.All()), len(recorded), own)
	}
	passed := 0
	for _, r := range recorded {
		d, ok := opcode.Lookup(r.ID)
		if !ok {
			t.Errorf("%s is not in the catalogue", r.ID)
			continue
		}
		if sameDefinition(t, d, r) {
			passed++
		}
	}
	t.Logf("ganeti-opcodes.json: %d of %d opcodes agree", passed, len(recorded))
}

func sameDefinition(t *testing.T, d *opcode.Definition, r recordedOpcode) bool {
	t.Helper()
	ok := true
	differ := func(what string, got, want any) {
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s is %v, want %v", r.ID, what, got, want)
			ok = false
		}
	}
	differ("summary field", d.SummaryField, r.DscField)
	differ("result", d.Result, r.Result)
	differ("reason source", opcode.ReasonSource(d.ID), r.Source)
	own := 0
	for i, p := range d.Params {
		if p.Own {
			own++
			differ("place of our own "+p.Name, i >= len(r.Params), true)
		}
	}
	differ("number of parameters", len(d.Params)-own, len(r.Params))
	for i, p := range r.Params {
		got, found := d.Param(p.Name)
		if !found {
			differ("parameter "+p.Name, nil, "there")
			continue
		}
		if i < len(d.Params) {
			differ("place of "+p.Name, d.Params[i].Name, p.Name)
		}
		differ("type of "+p.Name, got.Type.String(), p.Type)
		differ("words of "+p.Name, got.Type.Allowed(), p.Enum)
		differ("required "+p.Name, got.Required, p.Required)
		gotDefault, err := json.Marshal(got.Default)
		if err != nil {
			t.Fatal(err)
		}
		var plain any
		if err := json.Unmarshal(gotDefault, &plain); err != nil {
			t.Fatal(err)
		}
		differ("default of "+p.Name, plain, p.Default)
	}
	return ok
}

// Every recorded submission over LUXI must be accepted or refused as it was,
// in the same words.
func TestConformanceSubmissions(t *testing.T) {
	passed, total := 0, 0
	for _, name := range []string{"bad_priority", "bad_type", "dep_unknown", "empty", "extra_param", "missing_param", "neg_duration",
		"no_reason", "ok", "unknown_opcode", "zero_duration"} {
		var golden struct {
			Header struct {
				Request struct {
					Args [][]json.RawMessage
				}
			}
			Response struct{ Result any }
		}
		if err := json.Unmarshal(testkit.ReadConformance(t, "golden", "luxi", "SubmitJob_"+name+".json"), &golden); err != nil {
			t.Fatal(err)
		}
		total++
		got := ""
		for _, raw := range golden.Header.Request.Args[0] {
			if _, err := opcode.Parse(raw, opcode.Options{RequireReason: true}); err != nil {
				p, ok := opcode.AsParamError(err)
				if !ok {
					t.Errorf("%s: %v is no ParamError", name, err)
					continue
				}
				got = "Failed to parse request: SubmitJob: " + p.Luxi()
			}
		}
		want, _ := golden.Response.Result.(string)
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
			continue
		}
		passed++
	}
	t.Logf("golden/luxi/SubmitJob_*: %d of %d agree", passed, total)
}
