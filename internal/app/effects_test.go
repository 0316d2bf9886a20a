package app

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/servertag"
)

func TestEffectsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "effects.toml")
	for text, want := range map[string][]servertag.Effect{
		"": nil,
		"[[effect]]\nnamespace = 'user'\ntag = 'stay'\nparameter = 'always_failover'\nvalue = true\n[[effect]]\nnamespace = 'system'\ntag = 'smtp'\nlabel = 'smtp:open'": {
			{Namespace: servertag.User, Tag: "stay", Parameter: "always_failover", Value: true}, {Namespace: servertag.System, Tag: "smtp", Label: "smtp:open"}},
		"[[effect]]\ntags = 'x'": nil,
		"effect = 1":             nil,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readEffects(path)
		if bad := text != "" && want == nil; bad != fault.Is(err, fault.Invalid) || !slices.Equal(got, want) {
			t.Errorf("%q: %+v %v", text, got, err)
		}
	}
	if _, err := readEffects(path + "x"); !fault.Is(err, fault.Environment) {
		t.Errorf("a file that is not there: %v", err)
	}
}
