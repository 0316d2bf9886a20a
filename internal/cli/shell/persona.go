package shell

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// Persona is the name under which the program was called.
type Persona struct {
	Name string // "drover" or "gnt-job"
	Noun string // the noun that the name stands for; empty for drover
}

// PersonaOf returns what the name of a program stands for.
func PersonaOf(program string) Persona {
	name := filepath.Base(program)
	if noun, ok := strings.CutPrefix(name, "gnt-"); ok {
		return Persona{Name: name, Noun: noun}
	}
	return Persona{Name: "drover"}
}

// Arguments returns the command line as drover would have been called.
// Completion requests name the noun themselves.
func (p Persona) Arguments(args []string) []string {
	if p.Noun == "" {
		return args
	}
	if len(args) > 0 && args[0] == "--version" {
		return args
	}
	if len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) {
		return append([]string{args[0], p.Noun}, args[1:]...)
	}
	return append([]string{p.Noun}, args...)
}

// classic reports whether the caller expects the words of the tools that the
// name comes from.
func (p Persona) classic() bool { return p.Noun != "" }
