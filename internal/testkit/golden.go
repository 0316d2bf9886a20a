package testkit

import (
	"os"
	"strings"
	"testing"
)

// Golden holds a text to what a file has recorded, and writes the file anew where that
// is asked for.
func Golden(t testing.TB, update bool, path, got string) {
	t.Helper()
	if update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	if got == want {
		return
	}
	have, recorded := strings.Split(got, "\n"), strings.Split(want, "\n")
	n := 0
	for n < min(len(have), len(recorded)) && have[n] == recorded[n] {
		n++
	}
	t.Errorf("%s is not as recorded (-update writes it anew, then read the difference): line %d is %q and was %q", path, n+1, line(have, n), line(recorded, n))
}

func line(lines []string, n int) string {
	if n < len(lines) {
		return lines[n]
	}
	return "nothing"
}
