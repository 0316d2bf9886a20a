package screen

import (
	"io"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/fault"
)

// environ are the variables that tell what a terminal can do.
var environ = []string{"TERM", "COLORTERM", "NO_COLOR", "TERM_PROGRAM", "TMUX", "STY", "SSH_TTY", "WT_SESSION"}

// Of returns the terminal of a command; an error with the hint if it has none.
func Of(sh *shell.Shell, hint string) (Terminal, error) {
	in, out, ok := sh.Screen()
	if !ok {
		return Terminal{}, &shell.ExitError{Status: shell.ExitUsage, Err: fault.New(fault.Invalid, "there is no terminal to show this on").WithHint("%s", hint)}
	}
	return On(sh, in, out), nil
}

// On is a terminal that a command has.
func On(sh *shell.Shell, in io.Reader, out io.Writer) Terminal {
	t := Terminal{In: in, Out: out}
	for _, name := range environ {
		if value := sh.Getenv(name); value != "" {
			t.Environ = append(t.Environ, name+"="+value)
		}
	}
	return t
}
