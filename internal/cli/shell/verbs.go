package shell

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Effect is what a verb does to what there is.
type Effect int

// The effects, by how much is lost with them.
const (
	// Looks: nothing is different afterwards.
	Looks Effect = iota
	// Changes: what was there can be had back by another command, or was named in
	// the one that took it away.
	Changes
	// Disturbs: what runs is moved, stopped or switched off on the way.
	Disturbs
	// Destroys: something is gone for good.
	Destroys
)

// Verb is a row of the table of verbs.
type Verb struct {
	// Path is how the verb is called, without the name of the program.
	Path string
	Does Effect
	// Question is asked before it is done, with %s for what is meant; empty for
	// verbs that do not ask.
	Question string
	// When is the case in which it asks; empty for always.
	When string
	// ByName says that the arguments are what is meant, so that it is asked before
	// the verb begins.
	ByName bool
	// Example is a command line that is asked about.
	Example string
}

// Sure asks what the table of verbs has a verb ask, about the things that are meant.
// Nothing is asked of a dry run.
func (sh *Shell) Sure(path string, what ...any) error {
	v := sh.verb(path)
	if v.Question == "" || sh.Flags.DryRun {
		return nil
	}
	return sh.Confirm(fmt.Sprintf(v.Question, what...))
}

// SureOfNames asks what is asked of a verb before it begins.
func (sh *Shell) SureOfNames(cmd *cobra.Command, args []string) error {
	path := PathOf(cmd)
	v := sh.verb(path)
	if !v.ByName {
		return nil
	}
	what := []any{Listed(args)}
	if strings.Contains(v.Question, "%[") {
		what = nil
		for _, arg := range args {
			what = append(what, arg)
		}
	}
	return sh.Sure(path, what...)
}

// AlwaysAsks reports whether a verb asks whatever it is given.
func (sh *Shell) AlwaysAsks(path string) bool {
	v := sh.verb(path)
	return v.Question != "" && v.When == ""
}

// PathOf is how a command is called, without the name of the program.
func PathOf(cmd *cobra.Command) string {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return path
}

// verb is the row of a verb; of one that the table does not have, nothing is known.
func (sh *Shell) verb(path string) Verb {
	if i := slices.IndexFunc(sh.Verbs, func(v Verb) bool { return v.Path == path }); i >= 0 {
		return sh.Verbs[i]
	}
	return Verb{Path: path, Does: Changes}
}

// Several names things in a question: one by its name, of more their number too.
func Several(names []string, thing string) string {
	if len(names) == 1 {
		return names[0]
	}
	return Counted(len(names), thing) + " (" + Listed(names) + ")"
}

// Listed is a list of names in words, of the first if they are many.
func Listed(names []string) string {
	if len(names) > ShownJobs {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:ShownJobs], ", "), len(names)-ShownJobs)
	}
	return strings.Join(names, ", ")
}
