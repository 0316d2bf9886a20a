package testkit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/testkit"
)

// attempt records how a helper ended a test: it stands in for the test itself.
type attempt struct {
	testing.TB

	fatal, skipped bool
}

func (a *attempt) Helper() {}

func (a *attempt) Fatal(...any) { a.fatal = true; panic(a) }

func (a *attempt) Fatalf(string, ...any) { a.fatal = true; panic(a) }

func (a *attempt) Skipf(string, ...any) { a.skipped = true; panic(a) }

// try looks data up to where the look-up ends the test.
func try(t *testing.T, find func(t testing.TB, elem ...string) string, elem ...string) (a *attempt) {
	t.Helper()
	a = &attempt{TB: t}
	defer func() {
		if r := recover(); r != nil && r != any(a) {
			panic(r)
		}
	}()
	find(a, elem...)
	return a
}

func TestDataIsFound(t *testing.T) {
	t.Setenv("DROVER_CONFORMANCE", "")
	if got := testkit.Conformance(t, "golden", "INDEX.json"); got != filepath.Join(testkit.Root(t), "testdata", "conformance", "golden", "INDEX.json") {
		t.Errorf("the repository's copy is looked for at %s", got)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), []byte(`[7]`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DROVER_CONFORMANCE", dir)
	var list []int
	testkit.DecodeConformance(t, &list, "x")
	if len(list) != 1 || list[0] != 7 {
		t.Errorf("the other copy holds %v", list)
	}
	if !try(t, testkit.Conformance, "nosuch").fatal {
		t.Error("a missing file of the conformance data did not fail the test")
	}
}

// Data outside of the repository may be missing, and the test says so by being
// skipped; it fails where the data is required, and where it was named.
func TestMissingDataSkipsUnlessRequired(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module github.com/drover-project/drover\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	inner := filepath.Join(root, "bench", "inner")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(inner, "go.mod"), []byte("module example.org/other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(inner)
	if got := testkit.Root(t); got != root {
		t.Errorf("the root is %s, want %s", got, root)
	}
	for _, tc := range []struct {
		named, required string
		want            attempt
	}{
		{"", "", attempt{skipped: true}},
		{"", "1", attempt{fatal: true}},
		{root, "", attempt{fatal: true}},
	} {
		t.Setenv("DROVER_FUEL_LIBRARY", tc.named)
		t.Setenv("DROVER_SKIP_NOTHING", tc.required)
		if a := try(t, testkit.FuelLibrary, "deployment"); a.skipped != tc.want.skipped || a.fatal != tc.want.fatal {
			t.Errorf("named %q, required %q: skipped %v, failed %v", tc.named, tc.required, a.skipped, a.fatal)
		}
	}
	t.Setenv("DROVER_FUEL_LIBRARY", root)
	if err := os.Mkdir(filepath.Join(root, "deployment"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := testkit.FuelLibrary(t, "deployment"); got != filepath.Join(root, "deployment") {
		t.Errorf("the library is at %s", got)
	}
}

// TestGolden: a text that differs from its record fails and names the line, and is written
// where that is asked for.
func TestGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	testkit.Golden(t, true, path, "a\nb\nc\n")
	testkit.Golden(t, false, path, "a\nb\nc\n")
	for text, line := range map[string]string{"a\nx\nc\n": `line 2 is "x" and was "b"`, "a\nb": `line 3 is "nothing" and was "c"`, "a\nb\nc\nd\n": `line 4 is "d" and was ""`} {
		failing := &complaint{TB: t}
		testkit.Golden(failing, false, path, text)
		if !strings.Contains(failing.said, line) {
			t.Errorf("%q: said %q", text, failing.said)
		}
	}
}

// complaint is a test whose failures are read.
type complaint struct {
	testing.TB

	said string
}

func (c *complaint) Errorf(format string, args ...any) { c.said = fmt.Sprintf(format, args...) }
