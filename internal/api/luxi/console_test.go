package luxi

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

// TestConsoles: what is asked about the console of an instance that has none, or badly, is answered in words.
func TestConsoles(t *testing.T) {
	r := newRig(t)
	r.furnish()
	client := r.client()
	name := r.query("instance", []string{"name"}, nil).Data[0][0][1]
	for _, tc := range []struct {
		method string
		args   []any
		code   fault.Code
		text   string
	}{
		{"ReadConsole", []any{name, 0, 0}, fault.Unsupported, "only pretends"},
		{"TypeConsole", []any{name, []byte("x")}, fault.Unsupported, "only pretends"},
		{"ReadConsole", []any{"nosuch", 0, 0}, fault.NotFound, "nosuch"},
		{"TypeConsole", []any{"nosuch", []byte("x")}, fault.NotFound, "nosuch"},
		{"ReadConsole", []any{name, -1, 0}, fault.Invalid, "negative"},
		{"ReadConsole", []any{name, 0, -1}, fault.Invalid, "negative"},
		{"ReadConsole", []any{name, "x", 0}, fault.Invalid, "Int"},
		{"TypeConsole", []any{name, "not Base64!"}, fault.Invalid, "Bytes"},
		{"TypeConsole", []any{name, nil}, fault.Invalid, "Bytes"},
	} {
		err := client.Call(t.Context(), tc.method, tc.args, nil)
		if !fault.Is(err, tc.code) || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s %v: %v", tc.method, tc.args, err)
		}
		if tc.code == fault.Invalid {
			client = r.client() // the connection is closed
		}
	}
}
