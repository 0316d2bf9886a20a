package inventory

import (
	"reflect"
	"testing"

	"github.com/drover-project/drover/internal/cli/shell"
)

func TestDevices(t *testing.T) {
	got, err := numbered("--disk", []string{"1:size=2", "0:size=1g,name=a"}, shell.ObjectValue)
	if want := []any{map[string]any{"size": "1g", "name": "a"}, map[string]any{"size": int64(2)}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range [][]string{{"x"}, {"1:size=1"}, {"0:a=b", "0:a=b"}, {"-2:a"}} {
		if _, err := numbered("--disk", bad, shell.ObjectValue); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	changes, err := modifications([]string{"add:size=1g", "0:remove", "1:mode=ro", "2:add,size=5", "remove"}, shell.ObjectValue)
	want := []any{
		[]any{"add", -1, map[string]any{"size": int64(1024)}}, []any{"remove", 0, map[string]any{}},
		[]any{"modify", 1, map[string]any{"mode": "ro"}}, []any{"add", 2, map[string]any{"size": int64(5)}},
		[]any{"remove", -1, map[string]any{}},
	}
	if err != nil || !reflect.DeepEqual(changes, want) {
		t.Errorf("got %v, %v", changes, err)
	}
	nics, err := modifications([]string{"0:vlan=.100,link=7", "add:name=1e3"}, texts)
	if want := []any{[]any{"modify", 0, map[string]any{"vlan": ".100", "link": "7"}}, []any{"add", -1, map[string]any{"name": "1e3"}}}; err != nil || !reflect.DeepEqual(nics, want) {
		t.Errorf("interfaces: %v, %v", nics, err)
	}
	if got, err := numbered("--net", []string{"0:vlan=.100"}, texts); err != nil || !reflect.DeepEqual(got, []any{map[string]any{"vlan": ".100"}}) {
		t.Errorf("a new interface: %v, %v", got, err)
	}
}
