package shell

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/job"
	"github.com/spf13/cobra"
)

// Exactly checks the number of arguments.
func Exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return wrongCount(cmd, Counted(n, "argument"), len(args))
		}
		return nil
	}
}

// Between checks the number of arguments.
func Between(low, high int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < low || len(args) > high {
			return wrongCount(cmd, fmt.Sprintf("%d to %d arguments", low, high), len(args))
		}
		return nil
	}
}

// AtLeast checks the number of arguments.
func AtLeast(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return wrongCount(cmd, "at least "+Counted(n, "argument"), len(args))
		}
		return nil
	}
}

// wrongCount is the error of too many or too few arguments.
func wrongCount(cmd *cobra.Command, takes string, got int) error {
	if strings.HasPrefix(takes, "0 ") {
		takes = "no argument"
	}
	return Usage("%s takes %s, got %d: %s", cmd.CommandPath(), takes, got, cmd.UseLine())
}

// cobraCounts are how cobra words wrong numbers of arguments.
var cobraCounts = regexp.MustCompile(`^(?:accepts|requires) (at least |at most |between )?(\d+)(?: and (\d+))? arg\(s\), (?:received|only received) (\d+)$`)

// WrongArguments makes wrong arguments of commands that others bring along what
// they are everywhere: a wrong command line, in the same words.
func WrongArguments(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err == nil {
				return nil
			}
			m := cobraCounts.FindStringSubmatch(err.Error())
			if m == nil {
				return Usage("%s: %w", cmd.CommandPath(), err)
			}
			n, _ := strconv.Atoi(m[2]) // digits
			takes := strings.TrimPrefix(m[1], "between ") + Counted(n, "argument")
			if m[3] != "" {
				takes = m[2] + " to " + m[3] + " arguments"
			}
			return wrongCount(cmd, takes, len(args))
		}
	}
	for _, c := range cmd.Commands() {
		WrongArguments(c)
	}
}

// JobID reads an id from the command line.
func JobID(text string) (job.ID, error) {
	id, err := job.ParseID(text)
	if err != nil {
		return 0, &ExitError{Status: ExitUsage, Err: err}
	}
	return id, nil
}

// JobIDs reads several ids; a wrong one is a wrong command line.
func JobIDs(texts []string) ([]job.ID, error) {
	ids := make([]job.ID, len(texts))
	for i, text := range texts {
		id, err := JobID(text)
		if err != nil {
			return nil, err
		}
		ids[i] = id
	}
	return ids, nil
}
