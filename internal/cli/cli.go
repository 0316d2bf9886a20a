// Package cli is the command line: `drover NOUN VERB`, and the same commands
// under the names that operators' scripts use (gnt-job, gnt-instance, ...).
//
// Commands speak LUXI to a controller, like any other client; nothing here
// reaches into it. Standard output carries data alone: progress, questions and
// errors go to standard error. Exit statuses (shell/exit.go) are a contract, listed
// in docs/cli.md.
//
// Invariants:
//   - No command keeps state between two runs.
//   - Every request that changes something says who asked and why: shell/trail.go.
//   - A submission carries a key of its own, so that it can be repeated after
//     a lost connection and still makes one job.
package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/debug"
	"github.com/drover-project/drover/internal/cli/deployments"
	"github.com/drover-project/drover/internal/cli/filters"
	"github.com/drover-project/drover/internal/cli/inventory"
	"github.com/drover-project/drover/internal/cli/jobs"
	"github.com/drover-project/drover/internal/cli/manage"
	"github.com/drover-project/drover/internal/cli/page"
	"github.com/drover-project/drover/internal/cli/queries"
	"github.com/drover-project/drover/internal/cli/servers"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/cli/top"
	"github.com/drover-project/drover/internal/version"
)

// Env is what a command touches outside itself.
type Env = shell.Env

// Main runs one command line and returns the exit status.
func Main(ctx context.Context, env Env) int {
	env.Stdin = &shell.Input{Ctx: ctx, Beneath: env.Stdin}
	sh := shell.New(env)
	sh.Verbs = Verbs()
	if sh.Classic() && !slices.Contains(shell.ClassicNouns, sh.Persona.Noun) {
		return sh.Report(ctx, &shell.ExitError{Status: shell.ExitFailed, Err: fmt.Errorf("there is no such tool here; there are gnt-%s", strings.Join(shell.ClassicNouns, ", gnt-"))})
	}
	root := newRoot(sh, env.Extra, env.Args[1:])
	args := sh.Persona.WithEnvironment(env.Args[1:], env.Getenv)
	if sh.Classic() {
		args = sh.Persona.WithoutHelp(root, shell.FieldsOf(args))
	}
	root.SetArgs(sh.Persona.Arguments(args))
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = sh.Wrong
	}
	err = sh.WithPlace(sh.WithNearest(ctx, err))
	if closeErr := sh.Close(); err == nil {
		err = closeErr
	}
	return sh.Report(ctx, err)
}

// newRoot returns the command with all below it that a command line may need.
func newRoot(sh *shell.Shell, extra []*cobra.Command, args []string) *cobra.Command {
	root := &cobra.Command{
		Use: "drover", Short: "Control a cluster of virtual machines", Long: rootHelp, Version: version.Current().String(),
		SilenceErrors: true, SilenceUsage: true,
		RunE: sh.NeedsCommand, Args: cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error { return before(sh, cmd, args) },
	}
	root.SetVersionTemplate(sh.Persona.Name + " version {{.Version}}\n")
	root.SetIn(sh.In)
	root.SetOut(sh.Out)
	root.SetErr(sh.Err)
	root.SetFlagErrorFunc(sh.WrongOption)
	root.CompletionOptions.HiddenDefaultCmd = false
	sh.Flags.Register(root.PersistentFlags())
	// The options exist.
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(shell.FormatNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = root.RegisterFlagCompletionFunc("reason", cobra.NoFileCompletions)
	_ = root.RegisterFlagCompletionFunc("priority", cobra.FixedCompletions([]string{"low", "normal", "high"}, cobra.ShellCompDirectiveNoFileComp))
	if sh.Classic() {
		sh.Flags.RegisterClassic(root.PersistentFlags())
	}
	addNouns(root, sh, extra, args)
	if !sh.Classic() {
		root.AddCommand(shell.Heeding(nil, manCommand()))
	}
	for _, v := range sh.Verbs {
		if cmd := commandAt(root, v.Path); cmd != nil && v.Question != "" {
			shell.HeedYes(cmd)
		}
	}
	if sh.Classic() {
		shell.AddClassicAliases(root)
	}
	addHelp(root, sh)
	return root
}

// before is what comes before each command: what is wrong with the command line, and
// the questions that it answers by itself.
func before(sh *shell.Shell, cmd *cobra.Command, args []string) error {
	sh.Verb = cmd.CalledAs()
	if err := sh.ClassicOutput(cmd); err != nil {
		return err
	}
	if err := sh.CheckShared(cmd); err != nil {
		return err
	}
	if err := sh.CheckOptions(cmd); err != nil {
		return err
	}
	if err := sh.Flags.Check(); err != nil {
		return err
	}
	return sh.SureOfNames(cmd, args)
}

// addNouns adds the nouns that talk to a controller, and the commands that others
// bring along: as they are, or as more verbs of a noun that is there. A command of these which runs by itself needs no
// noun: a controller would keep a thousand options in memory for as long as it runs.
func addNouns(root *cobra.Command, sh *shell.Shell, extra []*cobra.Command, args []string) {
	needed := nouns
	if slices.ContainsFunc(extra, func(c *cobra.Command) bool { return c.Runnable() && len(args) > 0 && args[0] == c.Name() }) {
		needed = nil
	}
	for _, noun := range needed {
		c := shell.Heeding(shell.Asking, noun(sh))
		shell.CompleteRest(c)
		root.AddCommand(c)
	}
	for _, c := range extra {
		shell.WrongArguments(c)
		noun := commandAt(root, c.Name())
		switch {
		case noun == nil:
			root.AddCommand(c)
		case !sh.Classic():
			noun.AddCommand(c.Commands()...)
		}
	}
}

// commandAt returns the command that is called by a path, nil if there is none.
func commandAt(root *cobra.Command, path string) *cobra.Command {
	cmd := root
	for word := range strings.FieldsSeq(path) {
		at := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == word })
		if at < 0 {
			return nil
		}
		cmd = cmd.Commands()[at]
	}
	return cmd
}

// nouns are the commands that talk to a controller.
var nouns = []func(*shell.Shell) *cobra.Command{
	jobs.Command, jobs.ArchiveCommand, filters.Command, inventory.InstanceCommand, inventory.NodeCommand, inventory.GroupCommand, inventory.NetworkCommand, inventory.ImageCommand, inventory.DiskCommand,
	inventory.OSCommand, inventory.StorageCommand, inventory.BackupCommand, inventory.TagCommand, inventory.ClusterCommand, queries.Command, debug.LockCommand, debug.Command, deployments.Command,
	servers.Command, manage.Command, debug.BurninCommand, versionCommand, jobs.WhyCommand, top.Command, page.Command,
}
