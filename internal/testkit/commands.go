package testkit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Commands are what a section of a page has indented.
func Commands(t testing.TB, page, title string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(t), page))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n"+title+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", page, title)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var script strings.Builder
	for line := range strings.Lines(section) {
		if command, indented := strings.CutPrefix(line, "    "); indented {
			script.WriteString(command)
		}
	}
	return script.String()
}
