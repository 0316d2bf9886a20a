package testkit

import (
	"fmt"
	"strings"
	"testing"
)

// RecordedOutput returns the standard output of a recorded command line, by the name
// of its file among the conformance data.
func RecordedOutput(t testing.TB, file string) string {
	t.Helper()
	_, out, ok := strings.Cut(string(ReadConformance(t, "golden", "cli", file)), "# ---- stdout\n")
	if !ok {
		t.Fatalf("%s has no output", file)
	}
	out, _, _ = strings.Cut(out, "# ---- stderr\n")
	return out
}

// FirstDifference shows the first line in which two texts differ.
func FirstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		var a, b string
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			return fmt.Sprintf("line %d\n got  %q\n want %q", i+1, a, b)
		}
	}
	return "no difference"
}
