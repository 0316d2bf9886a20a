package shell

import (
	"fmt"
	"strings"
)

// Paint puts a colour around a text, when a person watches.
func (sh *Shell) Paint(colour, text string) string {
	if !sh.Colour || colour == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// The colours, by their numbers in terminals.
const (
	Bold   = "1"
	Dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
)

// ShownJobs is how many jobs are listed one by one.
const ShownJobs = 20

// AndMore tells about those that are not.
func AndMore(b *strings.Builder, all int) {
	if all > ShownJobs {
		fmt.Fprintf(b, "  ... and %d more; --output json shows all\n", all-ShownJobs)
	}
}
