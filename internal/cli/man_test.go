package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/cli/shell"
)

// TestTheManualHasEveryCommand of drover, and a page for each name that scripts call it by.
func TestTheManualHasEveryCommand(t *testing.T) {
	dir := t.TempDir()
	if status, out, said := runWithout(t, "drover", "man", dir); status != shell.ExitOK || out != "" || said != "" {
		t.Fatalf("status %d: %s%s", status, out, said)
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	overview := read("man1/drover.1")
	for _, v := range Verbs() {
		noun, verb, has := strings.Cut(v.Path, " ")
		page := read("man1/drover-" + noun + ".1")
		if !strings.Contains(overview, "\n.B "+noun+"\n") {
			t.Errorf("drover(1) does not list %s", noun)
		}
		if has && !strings.Contains(page, `drover `+noun+` `+strings.ReplaceAll(verb, "-", `\-`)+` `) {
			t.Errorf("drover-%s(1) does not tell of %s", noun, verb)
		}
	}
	for _, noun := range shell.ClassicNouns {
		page := read("man8/gnt-" + noun + ".8")
		if !strings.Contains(page, `.SS "gnt\-`+noun+" ") || strings.Contains(page, "drover "+noun+" ") {
			t.Errorf("gnt-%s(8) tells of another program:\n%.2000s", noun, page)
		}
	}
	if page := read("man1/drover-filter.1"); !strings.Contains(page, "Shared options: ") || !strings.Contains(page, ".SH SHARED OPTIONS\n") || !strings.Contains(page, "\nExamples:\n") {
		t.Errorf("a page without options or examples:\n%.2000s", page)
	}
}
