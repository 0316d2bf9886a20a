package shell

import (
	"bytes"
	"strings"
	"time"
)

// screen is a shell with its output.
type screen struct {
	*Shell
	out, err bytes.Buffer
}

func newScreen(input string, environment map[string]string, args ...string) *screen {
	s := &screen{}
	s.Shell = New(Env{
		Args: append([]string{"drover"}, args...), Stdin: strings.NewReader(input), Stdout: &s.out, Stderr: &s.err,
		Getenv: func(name string) string { return environment[name] }, Now: func() time.Time { return time.Unix(1000, 0) },
	})
	return s
}
