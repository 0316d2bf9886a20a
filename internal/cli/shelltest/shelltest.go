// Package shelltest gives tests of commands a shell whose output they can read.
package shelltest

import (
	"bytes"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cli/shell"
)

// Screen is a shell with what it writes.
type Screen struct {
	*shell.Shell

	Out, Err bytes.Buffer
}

// New returns a shell whose standard input holds a text, that sees these variables and was
// called with these arguments. It speaks to no controller, and its clock stands still.
func New(input string, environment map[string]string, args ...string) *Screen {
	s := &Screen{}
	s.Shell = shell.New(shell.Env{
		Args: append([]string{"drover"}, args...), Stdin: strings.NewReader(input), Stdout: &s.Out, Stderr: &s.Err,
		Getenv: func(name string) string { return environment[name] }, Now: func() time.Time { return time.Unix(1000, 0) },
	})
	return s
}
