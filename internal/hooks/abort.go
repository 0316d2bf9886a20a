package hooks

import (
	"fmt"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// Result is what a script came to.
type Result struct {
	// Script is its name, with that of its directory.
	Script string `json:"script"`
	// Output is the end of what it said, in one line; that of scripts that succeeded is not kept.
	Output string `json:"output,omitempty"`
	Failed bool   `json:"failed,omitempty"`
}

// Refusal is a script that refused what was to be done.
type Refusal struct {
	// Node is the UUID of the node that it ran on.
	Node string
	Result
}

// AbortError is the error of an opcode that scripts refused, before anything was done.
type AbortError struct{ Refusals []Refusal }

// Error says who refused it, and why.
func (a *AbortError) Error() string {
	lines := []string{"hooks execution failed:"}
	for _, r := range a.Refusals {
		lines = append(lines, "  "+Line(r.Node, r.Script, r.Output))
	}
	return strings.Join(lines, "\n")
}

// Line is a refusal in the reference's words.
func Line(node, script, output string) string {
	if output == "" {
		return fmt.Sprintf("node: %s, script: %s (no output)", node, script)
	}
	return fmt.Sprintf("node: %s, script: %s, output: %s", node, script, output)
}

// Unwrap has it be a failure.
func (a *AbortError) Unwrap() error { return fault.New(fault.Failed, "%s", a.Error()) }

// Pair is what clients know it by.
func (a *AbortError) Pair() (class string, args []any) {
	list := make([][3]string, len(a.Refusals))
	for i, r := range a.Refusals {
		list[i] = [3]string{r.Node, r.Script, r.Output}
	}
	return "HooksAbort", []any{list}
}

// OneLine is output in one line: what would end it, or move on a terminal, is written as an escape.
func OneLine(output string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(strings.TrimSpace(output), "\uFFFD") {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
