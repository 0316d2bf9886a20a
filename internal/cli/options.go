package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The options that commands share are accepted before and behind the noun, but
// only by commands that heed them: an option that would have no effect is
// refused, and not shown by --help.

// heedsKey is the annotation of a command that names the shared options which
// it heeds.
const heedsKey = "drover/heeds"

// The shared options of the kinds of commands.
var (
	// asking: commands that only read.
	asking = []string{"luxi", "output"}
	// readingStored: commands that only read, and what a controller that stands by has,
	// too.
	readingStored = []string{"luxi", "output", "stale"}
	// readingByJob: commands that read by a job, and wait for it.
	readingByJob = []string{"luxi", "output", "reason", "priority"}
	// changing: commands that change something at once, without a job.
	changing = []string{"luxi", "output", "reason", "dry-run", "yes"}
	// making: commands that make jobs.
	making = []string{"luxi", "output", "reason", "dry-run", "yes", "submit", "priority"}
)

// heeds says which of the shared options commands heed.
func heeds(options []string, commands ...*cobra.Command) []*cobra.Command {
	for _, c := range commands {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[heedsKey] = strings.Join(options, " ")
	}
	return commands
}

// heeding is heeds for one command.
func heeding(options []string, command *cobra.Command) *cobra.Command {
	return heeds(options, command)[0]
}

// heeded are the shared options that a command heeds. Below the nouns that talk
// to a controller, that is asking unless the command says otherwise; commands
// that others bring along heed what they say, and nothing by default.
func heeded(cmd *cobra.Command) []string {
	for c := cmd; c != nil; c = c.Parent() {
		if words, ok := c.Annotations[heedsKey]; ok {
			return strings.Fields(words)
		}
	}
	return nil
}

// checkShared refuses options that the command does not heed. The classic tools
// take a reason everywhere.
func (sh *shell) checkShared(cmd *cobra.Command) error {
	allowed := heeded(cmd)
	var err error
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Changed || err != nil || slices.Contains(allowed, f.Name) || sh.persona.classic() && classicShared(f.Name) {
			return
		}
		err = usage("%s takes no --%s: it would have no effect", cmd.CommandPath(), f.Name)
		if f.Name == "dry-run" && !slices.Contains(allowed, "luxi") {
			err = usage("%s takes no --dry-run: it cannot promise to change nothing", cmd.CommandPath())
		}
	})
	return err
}

// formats are the forms in which results are shown.
var formats = []string{"table", "json", "yaml", "csv"}

// classicOutput reads --output of a list of the classic tools, where it is the
// long form of -o. No field has the name of a format.
func (sh *shell) classicOutput(cmd *cobra.Command) error {
	fields := cmd.Flags().Lookup("fields")
	if !sh.persona.classic() || fields == nil || slices.Contains(formats, sh.flags.output) {
		return nil
	}
	text := sh.flags.output
	sh.flags.output = formats[0]
	return fields.Value.Set(text)
}

// hideUnheeded keeps options that have no effect out of the help of a command.
func hideUnheeded(cmd *cobra.Command) {
	if !cmd.HasParent() || cmd.HasSubCommands() {
		return // of a noun or the program as a whole: some command heeds each
	}
	allowed := heeded(cmd)
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		f.Hidden = f.Hidden || !slices.Contains(allowed, f.Name)
	})
}
