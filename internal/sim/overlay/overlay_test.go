package overlay

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

// TestTheInstalledGoCanBeSimulated: the places that the runtime is changed at are there.
// With another Go they have to be looked at again.
func TestTheInstalledGoCanBeSimulated(t *testing.T) {
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	edits, added := Runtime(strings.TrimSpace(string(root)))
	dir := t.TempDir()
	name, err := Write(dir, edits, added)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"/runtime/proc.go", "/runtime/rand.go", "/runtime/select.go", "/runtime/sema.go", "/runtime/time.go", "/runtime/simulate.go",
		"/math/rand/rand.go", "/math/rand/v2/rand.go", "/os/tempfile.go", "/context/context.go"} {
		if !strings.Contains(string(text), "/src"+file+`"`) {
			t.Errorf("the overlay does not change %s: %s", file, text)
		}
	}
}

func TestAnEditFitsOnceOrNotAtAll(t *testing.T) {
	src := filepath.Join(t.TempDir(), "a.go")
	if err := os.WriteFile(src, []byte("one two two three"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		edits []Edit
		want  string // empty for a refusal
	}{
		{[]Edit{{src, "one", "1"}}, "1 two two three"},
		{[]Edit{{src, "one", "1"}, {src, "1 two", "12"}}, "12 two three"},
		{[]Edit{{src, "two", "2"}}, ""},
		{[]Edit{{src, "one", "1"}, {src, "four", "4"}}, ""},
		{[]Edit{{src + ".gone", "one", "1"}}, ""},
	} {
		dir := filepath.Join(t.TempDir(), "out")
		name, err := Write(dir, tc.edits, nil)
		if tc.want == "" {
			if _, there := os.Stat(dir); err == nil || there == nil {
				t.Errorf("%v: %v, and something was written: %v", tc.edits, err, there == nil)
			}
			if !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.Environment) {
				t.Errorf("%v: %v", tc.edits, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v: %v", tc.edits, err)
			continue
		}
		changed, err := os.ReadFile(filepath.Join(filepath.Dir(name), "0-a.go"))
		if err != nil || string(changed) != tc.want {
			t.Errorf("%v: %q, %v; want %q", tc.edits, changed, err, tc.want)
		}
	}
	if text, err := os.ReadFile(src); err != nil || string(text) != "one two two three" {
		t.Errorf("the source is %q, %v", text, err)
	}
}
