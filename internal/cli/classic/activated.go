package classic

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Activated tells where the disks of an instance are: result is that of an activation, a list of nodes, names and paths. A path that only the node knows
// is None.
func Activated(_ string, result json.RawMessage) string {
	var disks [][3]*string
	if json.Unmarshal(result, &disks) != nil {
		return ""
	}
	var b strings.Builder
	for _, d := range disks {
		for i, part := range d {
			text := "None"
			if part != nil {
				text = *part
			}
			fmt.Fprint(&b, strings.Repeat(":", min(i, 1)), text)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
