package shell

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Group returns a noun: a command that only has others below it.
func (sh *Shell) Group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, RunE: sh.NeedsCommand, Args: cobra.ArbitraryArgs}
	c.AddCommand(verbs...)
	return c
}

// NeedsCommand answers a noun without a verb, or with one that it does not
// have. The classic tools answer both with their usage and a failure.
func (sh *Shell) NeedsCommand(cmd *cobra.Command, args []string) error {
	if sh.Classic() {
		if err := sh.Printf("%s", sh.classicUsage(cmd)); err != nil {
			return err
		}
		return ErrFailed
	}
	if len(args) == 0 {
		if err := cmd.Help(); err != nil {
			return err
		}
		return &ExitError{Status: ExitUsage}
	}
	if args[0] == "help" { // behind the noun, too
		return sh.Help(cmd, args[1:])
	}
	return sh.noCommand(cmd, args)
}

// classicUsage lists the commands of a noun the way the classic tools do.
func (sh *Shell) classicUsage(noun *cobra.Command) string {
	name := sh.Persona.Name
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s {command} [options...] [argument...]\n%s <command> --help to see details, or man %s\n\nCommands:\n", name, name, name)
	width := 0
	for _, c := range noun.Commands() {
		width = max(width, len(classicName(c)))
	}
	for _, c := range noun.Commands() {
		fmt.Fprintf(&b, " %-*s - %s\n", width, classicName(c), c.Short)
	}
	return b.String() + "\n"
}

// classicName is the name that the classic tool has for a command: ours, or the
// first of its aliases, if it is not a further name there too.
func classicName(c *cobra.Command) string {
	if len(c.Aliases) > 0 && c.Aliases[0] != "show" && c.Aliases[0] != "masterfailover" {
		return c.Aliases[0]
	}
	return c.Name()
}
