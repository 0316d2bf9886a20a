// Package manual writes commands as manual pages, in the language of man(7).
//
// Invariants:
//   - A page tells what --help tells: every command that is not hidden, with the
//     options that it heeds.
//   - Whatever is in a text, man shows it as it is.
package manual

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-project/drover/internal/cli/shell"
)

// Page is one page: of a program, or of one of its commands with all below it.
type Page struct {
	Name    string // drover-job
	Section int    // of the manual: 1 commands of users, 8 those of administrators
	Version string // of the program
	Command *cobra.Command
	// Called is what Command.CommandPath is called by on the page: "gnt-job" for "drover job".
	Called string
	// Further are pages to read on at, as "drover(1)".
	Further []string
}

// Text is the page.
func (p Page) Text() string {
	w := &writer{page: p}
	w.linef(".TH %s %d \"\" %s", strings.ToUpper(quoted(p.Name)), p.Section, quoted("Drover "+p.Version))
	w.linef(".SH NAME")
	w.linef("%s \\- %s", escaped(p.Name), escaped(w.called(p.Command.Short)))
	w.linef(".SH SYNOPSIS")
	commands := leaves(p.Command)
	if p.Command.HasParent() {
		for _, c := range commands {
			w.linef(".B %s\n.br", escaped(w.usage(c)))
		}
	} else {
		w.linef(".B %s\n.I COMMAND\n[options]", escaped(p.Name))
	}
	w.linef(".SH DESCRIPTION")
	about, _, _ := strings.Cut(longest(p.Command), "\n\nExit statuses: ") // they have a section of their own
	w.text(about)
	if p.Command.HasParent() {
		w.commands(commands)
	} else {
		w.programs(p.Command)
	}
	w.linef(".SH EXIT STATUS")
	for _, s := range shell.Statuses {
		w.linef(".TP\n.B %d\n%s", s.Code, escaped(s.Text))
	}
	if len(p.Further) > 0 {
		w.linef(".SH SEE ALSO\n%s", escaped(strings.Join(p.Further, ", ")))
	}
	return w.String()
}

type writer struct {
	strings.Builder
	page Page
}

func (w *writer) linef(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) } // a builder takes all

// called is a text in which the command is called as on the page.
func (w *writer) called(text string) string {
	if w.page.Called == "" {
		return text
	}
	return strings.ReplaceAll(text, w.page.Command.CommandPath(), w.page.Called)
}

// usage is how a command is called.
func (w *writer) usage(c *cobra.Command) string {
	return strings.TrimSuffix(w.called(c.UseLine()), " [flags]") + " [options]"
}

// programs lists what a program can do, and the options of all of it.
func (w *writer) programs(root *cobra.Command) {
	w.linef(".SH COMMANDS")
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			w.linef(".TP\n.B %s\n%s", escaped(c.Name()), escaped(c.Short))
		}
	}
	w.linef(".SH OPTIONS")
	w.options(root.PersistentFlags())
}

// commands tells of each command, and of the options that they share in the end.
func (w *writer) commands(all []*cobra.Command) {
	w.linef(".SH COMMANDS")
	shared := map[string]bool{}
	for _, c := range all {
		w.linef(".SS %s", quoted(w.usage(c)))
		if c != w.page.Command {
			w.text(longest(c))
		}
		w.options(c.LocalFlags())
		if takes := shell.Heeded(c); len(takes) > 0 {
			w.linef(".PP\nShared options: %s.", escaped("--"+strings.Join(takes, ", --")))
			for _, name := range takes {
				if text := shell.OwnHelp(c, name); text != "" {
					w.linef(".TP\n.B %s\n%s", escaped("--"+name), escaped(text))
				} else {
					shared[name] = true
				}
			}
		}
		if c.Example != "" {
			w.linef(".PP\nExamples:")
			w.text(c.Example)
		}
	}
	if len(shared) > 0 {
		w.linef(".SH SHARED OPTIONS")
	}
	w.page.Command.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) {
		if shared[f.Name] {
			w.option(f)
		}
	})
}

func (w *writer) options(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" && f.Name != "version" {
			w.option(f)
		}
	})
}

func (w *writer) option(f *pflag.Flag) {
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	kind, usage := pflag.UnquoteUsage(f)
	if kind != "" {
		name += " " + kind
	}
	none := []string{"", "false", "0", "[]", "0s"}
	if !slices.Contains(none, f.DefValue) && !strings.Contains(usage, "default") {
		usage += " (default " + f.DefValue + ")"
	}
	w.linef(".TP\n.B %s\n%s", escaped(name), escaped(w.called(usage)))
}

// text writes paragraphs. Lines that begin with a blank stand as they are.
func (w *writer) text(text string) {
	asIs := false
	for line := range strings.SplitSeq(strings.TrimRight(w.called(text), "\n"), "\n") {
		if begins := strings.HasPrefix(line, " "); begins != asIs && line != "" {
			asIs = begins
			w.linef("%s", map[bool]string{true: ".PP\n.nf", false: ".fi\n.PP"}[asIs])
		}
		if line == "" && !asIs {
			w.linef(".PP")
			continue
		}
		w.linef("%s", escaped(line))
	}
	if asIs {
		w.linef(".fi")
	}
}

// longest is the longer text of a command, the shorter one where there is none.
func longest(c *cobra.Command) string {
	if c.Long != "" {
		return c.Long
	}
	return c.Short + "."
}

// leaves are the commands below one that do something, itself if it has none below.
func leaves(c *cobra.Command) []*cobra.Command {
	if !c.HasAvailableSubCommands() {
		return []*cobra.Command{c}
	}
	var all []*cobra.Command
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			all = append(all, leaves(below)...)
		}
	}
	return all
}

// escaped is a text as man takes it: a backslash, a minus, and what would be a request at
// the beginning of a line.
func escaped(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// quoted is a text as one argument of a request.
func quoted(text string) string {
	return `"` + strings.ReplaceAll(escaped(text), `"`, `\(dq`) + `"`
}
