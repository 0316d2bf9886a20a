package classic

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Modified tells what a modification changed: result is that of an opcode that
// sets parameters, a list of names and values. It is empty where nothing changed.
func Modified(kind, name string, result json.RawMessage) string {
	var changes [][2]any
	if json.Unmarshal(result, &changes) != nil || len(changes) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Modified %s %s\n", kind, name)
	for _, c := range changes {
		value := c[1]
		if value == nil {
			value = "None"
		}
		fmt.Fprintf(&b, " - %-5v -> %v\n", c[0], value)
	}
	if kind == "instance" {
		b.WriteString("Please don't forget that most parameters take effect only at the next (re)start of the instance initiated by ganeti;" +
			" restarting from within the instance will not be enough.\n")
	}
	return b.String()
}
