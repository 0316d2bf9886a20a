// Package cli is the command line: `drover NOUN VERB`, and the same commands
// under the names that operators' scripts use (gnt-job, gnt-instance, ...).
//
// Commands speak LUXI to a controller, like any other client; nothing here
// reaches into it. Standard output carries data alone: progress, questions and
// errors go to standard error. Exit statuses (exit.go) are a contract, listed
// in docs/cli.md.
//
// Invariants:
//   - No command keeps state between two runs.
//   - Every request that changes something says who asked and why: trail.go.
//   - A submission carries a key of its own, so that it can be repeated after
//     a lost connection and still makes one job.
package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/version"
)

// Env is what a command touches outside itself.
type Env struct {
	// Args is the command line; Args[0] is the name of the program, which
	// decides the persona.
	Args           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	// StdoutTerminal and StderrTerminal say whether a person is watching:
	// colours go to the one, progress to the other.
	StdoutTerminal, StderrTerminal bool
	// Columns is the width of the terminal; 0 where that is not known.
	Columns int
	Now     func() time.Time
	// Extra are commands that other packages bring along.
	Extra []*cobra.Command
}

// Main runs one command line and returns the exit status.
func Main(ctx context.Context, env Env) int {
	env.Stdin = &input{ctx: ctx, beneath: env.Stdin}
	sh := newShell(env)
	if sh.persona.classic() && !slices.Contains(classicNouns, sh.persona.noun) {
		return sh.report(ctx, &exitError{status: ExitFailed, err: fmt.Errorf("there is no such tool here; there are gnt-%s", strings.Join(classicNouns, ", gnt-"))})
	}
	root := newRoot(sh, env.Extra)
	args := sh.persona.withEnvironment(env.Args[1:], env.Getenv)
	if sh.persona.classic() {
		args = sh.persona.withoutHelp(root, fieldsOf(args))
	}
	root.SetArgs(sh.persona.arguments(args))
	err := root.ExecuteContext(ctx)
	if closeErr := sh.close(); err == nil {
		err = closeErr
	}
	return sh.report(ctx, err)
}

// persona is the name under which the program was called.
type persona struct {
	name string // "drover" or "gnt-job"
	noun string // the noun that the name stands for; empty for drover
}

func personaOf(program string) persona {
	name := filepath.Base(program)
	if noun, ok := strings.CutPrefix(name, "gnt-"); ok {
		return persona{name: name, noun: noun}
	}
	return persona{name: "drover"}
}

// arguments returns the command line as drover would have been called.
// Completion requests name the noun themselves.
func (p persona) arguments(args []string) []string {
	if p.noun == "" {
		return args
	}
	if len(args) > 0 && args[0] == "--version" {
		return args
	}
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		return append([]string{args[0], p.noun}, args[1:]...)
	}
	return append([]string{p.noun}, args...)
}

// classic reports whether the caller expects the words of the tools that the
// name comes from.
func (p persona) classic() bool { return p.noun != "" }

func newRoot(sh *shell, extra []*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:           "drover",
		Short:         "Control a cluster of virtual machines",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version.Current().String(),
		RunE:          sh.needsCommand,
		Args:          cobra.ArbitraryArgs,

		SuggestionsMinimumDistance: 2,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			sh.verb = cmd.CalledAs()
			if err := sh.classicOutput(cmd); err != nil {
				return err
			}
			if err := sh.checkShared(cmd); err != nil {
				return err
			}
			return sh.flags.check()
		},
	}
	root.SetVersionTemplate(sh.persona.name + " version {{.Version}}\n")
	root.SetIn(sh.in)
	root.SetOut(sh.out)
	root.SetErr(sh.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if verbs := cmd.Flags().Args(); cmd.HasSubCommands() && len(verbs) > 0 {
			return sh.needsCommand(cmd, verbs) // the flag belongs to a command that is not there
		}
		text, _, _ := strings.Cut(err.Error(), ": strconv.") // behind it is how the value was read
		return usage("%s", text)
	})
	root.CompletionOptions.HiddenDefaultCmd = false
	sh.flags.register(root.PersistentFlags())
	// The options exist.
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	_ = root.RegisterFlagCompletionFunc("priority", cobra.FixedCompletions([]string{"low", "normal", "high"}, cobra.ShellCompDirectiveNoFileComp))
	if sh.persona.classic() {
		sh.flags.registerClassic(root.PersistentFlags())
	}
	for _, noun := range nouns {
		root.AddCommand(heeding(asking, noun(sh)))
	}
	for _, c := range extra {
		wrongArguments(c)
		if noun := named(root, c.Name()); noun != nil { // more verbs of a noun that is there
			if !sh.persona.classic() {
				noun.AddCommand(c.Commands()...)
			}
			continue
		}
		root.AddCommand(c)
	}
	if sh.persona.classic() {
		addClassicAliases(root)
	}
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		hideUnheeded(cmd)
		help(cmd, args)
	})
	return root
}

// named returns the command below root that has a name, nil if there is none.
func named(root *cobra.Command, name string) *cobra.Command {
	for _, c := range root.Commands() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

// wrongArguments makes wrong arguments of commands that others bring along what
// they are everywhere: a wrong command line.
func wrongArguments(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usage("%s: %w", cmd.CommandPath(), err)
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		wrongArguments(c)
	}
}

const rootHelp = `Drover accepts jobs, decides when each may run, runs them on the nodes,
remembers why, and answers questions about all of it.

Commands talk to a controller through its LUXI socket: --luxi PATH, or the
environment variable DROVER_LUXI, or that of the ` + "`drover dev`" + ` cluster that
runs on this machine. Exit statuses: 0 done, 1 failed, 2 wrong usage,
3 no controller, 13 not confirmed, 14 unknown field, 130 interrupted.`

// nouns are the commands that talk to a controller.
var nouns = []func(*shell) *cobra.Command{
	jobCommand, filterCommand, instanceCommand, nodeCommand, groupCommand, networkCommand,
	osCommand, backupCommand, tagCommand, clusterCommand, queryCommand, lockCommand, debugCommand, deployCommand,
	serverCommand, manageCommand, burninCommand, versionCommand,
}

// group returns a noun: a command that only has others below it.
func (sh *shell) group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, RunE: sh.needsCommand, Args: cobra.ArbitraryArgs, SuggestionsMinimumDistance: 2}
	c.AddCommand(verbs...)
	return c
}

// needsCommand answers a noun without a verb, or with one that it does not
// have. The classic tools answer both with their usage and a failure.
func (sh *shell) needsCommand(cmd *cobra.Command, args []string) error {
	if sh.persona.classic() {
		if err := sh.printf("%s", sh.classicUsage(cmd)); err != nil {
			return err
		}
		return failed
	}
	if len(args) == 0 {
		if err := cmd.Help(); err != nil {
			return err
		}
		return &exitError{status: ExitUsage}
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usage("%s has no command %q; did you mean %q?", cmd.CommandPath(), args[0], near[0])
	}
	return usage("%s has no command %q; %s --help lists them", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// classicUsage lists the commands of a noun the way the classic tools do.
func (sh *shell) classicUsage(noun *cobra.Command) string {
	name := sh.persona.name
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
