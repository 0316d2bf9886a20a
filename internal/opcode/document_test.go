package opcode_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/opcodes.md anew")

const documentPath = "../../docs/opcodes.md"

// docs/opcodes.md must say what the table says.
func TestDocumentIsUpToDate(t *testing.T) {
	testkit.Golden(t, *update, documentPath, document())
}

func document() string {
	var b strings.Builder
	b.WriteString(`# Opcodes

Every job is a list of opcodes. This page is made from the table in internal/opcode (go test ./internal/opcode
-run Document -update); how to add one is told in [adding/opcode.md](adding/opcode.md).

A parameter that is not required may be left out or null. The summary of an opcode is its id without ` + "`OP_`" + `, with the
parameter marked "in the summary" in parentheses.

## Parameters of every opcode

`)
	writeParams(&b, opcode.CommonParams(), "")
	b.WriteString("\n`reason` may be left out everywhere except over LUXI.\n")
	for _, d := range opcode.All() {
		fmt.Fprintf(&b, "\n## %s\n\n%s Returns: %s.\n", d.ID, d.Doc, d.Result)
		if d.Unsupported {
			b.WriteString("\nNo executor in this version: a job with it is refused.\n")
		}
		if len(d.Params) > 0 {
			b.WriteString("\n")
			writeParams(&b, d.Params, d.SummaryField)
		}
	}
	return b.String()
}

func writeParams(b *strings.Builder, params []opcode.Param, summaryField string) {
	b.WriteString("| parameter | type | default | meaning |\n|---|---|---|---|\n")
	for _, p := range params {
		fallback := ""
		switch {
		case p.Required:
			fallback = "required"
		case p.Default != nil:
			raw, err := json.Marshal(p.Default)
			if err != nil {
				panic(err)
			}
			fallback = "`" + string(raw) + "`"
		}
		doc := p.Doc
		if p.Name == summaryField {
			doc += " (in the summary)"
		}
		if p.Own {
			doc += " (not in the reference)"
		}
		if words := p.Type.Allowed(); words != nil {
			doc += ": `" + strings.Join(words, "`, `") + "`"
		}
		kind := strings.TrimPrefix(p.Type.String(), "optional ")
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", p.Name, escapeCell(kind), fallback, escapeCell(doc))
	}
}

func escapeCell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
