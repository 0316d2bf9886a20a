package hooks_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/hooks"
)

var update = flag.Bool("update", false, "write the table of docs/hooks.md anew")

// TestTableOfTheDocumentation holds the table of docs/hooks.md to the one that is followed.
func TestTableOfTheDocumentation(t *testing.T) {
	var table strings.Builder
	table.WriteString("| opcode | directories | pre on | post on | variables of its own |\n|---|---|---|---|---|\n")
	for _, h := range hooks.All() {
		own := strings.Join(h.Variables(), "`, `")
		if own != "" {
			own = "`" + own + "`"
		}
		if h.Instance {
			own = strings.TrimSuffix("those of instances, "+own, ", ")
		}
		table.WriteString("| " + h.OpID + " | `" + h.Path + "` | " + places(h.Pre) + " | " + places(h.Post) + " | " + own + " |\n")
	}
	path := filepath.Join("..", "..", "docs", "hooks.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- made from internal/hooks/table.go -->\n", "<!-- end -->\n"
	before, rest, is := bytes.Cut(text, []byte(begin))
	_, after, ends := bytes.Cut(rest, []byte(end))
	if !is || !ends {
		t.Fatal("the place of the table is gone")
	}
	want := append(append(bytes.Clone(before), begin+table.String()+end...), after...)
	if bytes.Equal(text, want) {
		return
	}
	if !*update {
		t.Fatal("the table is another one; next: go test ./internal/hooks -update")
	}
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
}

func places(all []hooks.Where) string {
	var words []string
	for _, w := range all {
		words = append(words, w.Text)
	}
	return strings.Join(words, ", ")
}
