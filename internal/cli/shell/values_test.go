package shell

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/drover-project/drover/internal/opcode"
	"pgregory.net/rapid"
)

func TestParamValues(t *testing.T) {
	for _, tc := range []struct {
		op, param, text string
		want            any
	}{
		{"OP_TEST_DELAY", "duration", "1.5", 1.5},
		{"OP_TEST_DELAY", "duration", "2", int64(2)},
		{"OP_TEST_DELAY", "duration", "soon", "soon"},
		{"OP_TEST_DELAY", "on_master", "yes", true},
		{"OP_TEST_DELAY", "on_master", "off", false},
		{"OP_TEST_DELAY", "on_nodes", "a,b", []any{"a", "b"}},
		{"OP_TEST_DELAY", "on_nodes", "", []any{}},
		{"OP_TEST_DELAY", "on_nodes", `["a,b"]`, []any{"a,b"}},
		{"OP_INSTANCE_CREATE", "beparams", "memory=512,always_failover,no_auto_balance", map[string]any{"memory": int64(512), "always_failover": true, "auto_balance": false}},
		{"OP_INSTANCE_CREATE", "hvparams", `a=x\,y,b=`, map[string]any{"a": "x,y", "b": ""}},
		{"OP_INSTANCE_CREATE", "hvparams", `cpu_type=486,vnc_tls=true,acpi,no_serial_console`, map[string]any{"cpu_type": "486", "vnc_tls": "true", "acpi": true, "serial_console": false}},
		{"OP_INSTANCE_SET_PARAMS", "osparams", `id=007,dhcp=yes`, map[string]any{"id": "007", "dhcp": "yes"}},
		{"OP_INSTANCE_CREATE", "disks", `[{"size":1}]`, []any{map[string]any{"size": json.Number("1")}}},
		{"OP_INSTANCE_CREATE", "instance_name", "1234", "1234"},
		{"OP_INSTANCE_REBOOT", "reboot_type", "hard", "hard"},
	} {
		def, _ := opcode.Lookup(tc.op)
		p, ok := def.Param(tc.param)
		if !ok {
			t.Fatalf("%s has no %s", tc.op, tc.param)
		}
		if got := ParamValue(p, tc.text); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s.%s %q: got %#v, want %#v", tc.op, tc.param, tc.text, got, tc.want)
		}
	}
}

// Every parameter of every opcode takes any text without a panic, and JSON
// that its type accepts comes through.
func TestParamValueTakesAnything(t *testing.T) {
	all := opcode.All()
	rapid.Check(t, func(t *rapid.T) {
		def := rapid.SampledFrom(all).Draw(t, "opcode")
		if len(def.Params) == 0 {
			return
		}
		p := rapid.SampledFrom(def.Params).Draw(t, "param")
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"null", "[]", "{}", "1", "-1", "true", "a=b", "1e999", "{", "[1"})).Draw(t, "text")
		ParamValue(&p, text)
	})
}

func TestAges(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "90": 90, "2m": 120, "1h": 3600, "1d": 86400, "2w": 1209600, "all": -1} {
		if got, err := AgeOf(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "h", "-1", "1y", "1.5h"} {
		if _, err := AgeOf(text); statusOf(t.Context(), err) != ExitUsage {
			t.Errorf("%q: %v", text, err)
		}
	}
}
