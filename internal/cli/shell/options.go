package shell

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
	// Asking: commands that only read.
	Asking = []string{"luxi", "output"}
	// ReadingStored: commands that only read, and what a controller that stands by has,
	// too.
	ReadingStored = []string{"luxi", "output", "stale"}
	// ReadingByJob: commands of the classic tools that read by a job, and wait for it.
	ReadingByJob = []string{"luxi", "output", "reason", "priority"}
	// Changing: commands that change something at once, without a job.
	Changing = []string{"luxi", "output", "reason", "dry-run", "yes"}
	// Making: commands that make jobs.
	Making = []string{"luxi", "output", "reason", "dry-run", "yes", "submit", "priority"}
)

// Heeds says which of the shared options commands heed.
func Heeds(options []string, commands ...*cobra.Command) []*cobra.Command {
	for _, c := range commands {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[heedsKey] = strings.Join(options, " ")
	}
	return commands
}

// Heeding is heeds for one command.
func Heeding(options []string, command *cobra.Command) *cobra.Command {
	return Heeds(options, command)[0]
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

// HeedsOption reports whether a command heeds a shared option.
func HeedsOption(cmd *cobra.Command, name string) bool { return slices.Contains(heeded(cmd), name) }

// HeedYes has a command that asks heed --yes, beside what it heeds otherwise.
func HeedYes(cmd *cobra.Command) {
	if words := heeded(cmd); !slices.Contains(words, "yes") {
		Heeding(append(slices.Clone(words), "yes"), cmd)
	}
}

// CheckShared refuses options that the command does not heed. The classic tools
// take a reason everywhere.
func (sh *Shell) CheckShared(cmd *cobra.Command) error {
	allowed := heeded(cmd)
	var err error
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Changed || err != nil || slices.Contains(allowed, f.Name) || sh.Classic() && classicShared(f.Name) {
			return
		}
		err = Usage("%s takes no --%s: it would have no effect", cmd.CommandPath(), f.Name)
		if f.Name == "dry-run" && (!slices.Contains(allowed, "luxi") || sh.verb(PathOf(cmd)).Does != Looks) {
			err = Usage("%s takes no --dry-run: it cannot promise to change nothing", cmd.CommandPath())
		}
	})
	return err
}

// WithoutEffect refuses those of the named options of a command that were given: on the way that it goes nothing reads
// them. why says which way that is, or what to do.
func WithoutEffect(cmd *cobra.Command, why string, names ...string) error {
	var given []string
	for _, name := range names {
		if f := cmd.Flag(name); f != nil && f.Changed && f.Value.String() != f.DefValue {
			given = append(given, "--"+name)
		}
	}
	if len(given) == 0 {
		return nil
	}
	return Usage("%s would have no effect: %s", Alternatives(given, " and "), why)
}

// ClassicOutput reads --output of a list of the classic tools, where it is the
// long form of -o. No field has the name of a format.
func (sh *Shell) ClassicOutput(cmd *cobra.Command) error {
	fields := cmd.Flags().Lookup("fields")
	if !sh.Classic() || fields == nil || slices.Contains(FormatNames(), sh.Flags.Output) {
		return nil
	}
	text := sh.Flags.Output
	sh.Flags.Output = Formats[0].Name
	return fields.Value.Set(text)
}

// helpKey begins the annotations of a command that say what a shared option means to it.
const helpKey = "drover/help/"

// Explaining says what a shared option means to commands that read it in a way of
// their own.
func Explaining(option, text string, commands ...*cobra.Command) []*cobra.Command {
	for _, c := range commands {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[helpKey+option] = text
	}
	return commands
}

// HideUnheeded keeps options that have no effect out of the help of a command, or of
// all the commands below it.
func HideUnheeded(cmd *cobra.Command) {
	if !cmd.HasParent() {
		return // some command heeds each
	}
	allowed := Heeded(cmd)
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) {
		f.Hidden = f.Hidden || !slices.Contains(allowed, f.Name)
		if text := OwnHelp(cmd, f.Name); text != "" {
			f.Usage = text
		}
	})
}

// OwnHelp is what a shared option means to a command; empty where it means what it means to all.
func OwnHelp(cmd *cobra.Command, option string) string { return cmd.Annotations[helpKey+option] }

// Heeded are the shared options that a command heeds, or one below it.
func Heeded(cmd *cobra.Command) []string {
	if !cmd.HasSubCommands() {
		return heeded(cmd)
	}
	var all []string
	for _, c := range cmd.Commands() {
		all = append(all, Heeded(c)...)
	}
	return all
}
