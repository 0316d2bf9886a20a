package testkit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Field is one of a request schema of OpenStack, and what becomes of it: see testdata/openstack.
type Field struct {
	API      string   `json:"api"`
	Resource string   `json:"resource"`
	Action   string   `json:"action"`
	Field    string   `json:"field"`
	Since    string   `json:"since"`
	Until    string   `json:"until"`
	Verdict  string   `json:"verdict"`
	Note     string   `json:"note"`
	Types    []string `json:"types"`
}

// Fields are those of an API.
func Fields(t *testing.T, api string) []Field {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(t), "testdata/openstack/fields.json"))
	var fields []Field
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(fields, func(f Field) bool { return f.API != api })
}

// FieldSamples are values of fields that ask for something, by type.
func FieldSamples() map[string]any {
	return map[string]any{"string": "x", "integer": 7, "boolean": true, "object": map[string]any{"a": "b"}, "array": []any{"x"}}
}
