package shell

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
)

// Format is a form in which results are shown, as --output names it. What is checked, completed and told of it, and how it is written, is in its row
// of Formats.
type Format struct {
	Name string
	// Of says in help what alone is shown so, if not everything is.
	Of string
	// Data writes a value as data; nil for the form for people, of which each command has its own text.
	Data func(out io.Writer, value any) error
	// Rows and Fields write lists, and descriptions of their fields, where Data does not.
	Rows   func(out io.Writer, a *listing.Answer, o listing.Options) error
	Fields func(out io.Writer, fields []listing.Field) error
	// Options are those of lists that mean something to it: units, separator, no-headers, verbose.
	Options []string
	// Watched: rows can be shown as they change.
	Watched bool
}

// Formats are all of them, the usual one first.
var Formats = []Format{
	{Name: "table", Options: []string{"units", "separator", "no-headers", "verbose"}, Watched: true},
	{Name: "json", Data: WriteJSON, Watched: true},
	{Name: "yaml", Data: WriteYAML},
	{Name: "csv", Of: "lists", Data: func(io.Writer, any) error { return Usage("only lists can be shown as csv") },
		Rows: listing.WriteCSV, Fields: listing.WriteFieldsCSV, Options: []string{"separator", "no-headers", "verbose"}},
}

// Format returns the one that is asked for, which Flags.Check has found.
func (sh *Shell) Format() *Format { return FormatNamed(sh.Flags.Output) }

// FormatNamed finds a format; the usual one if there is none of that name.
func FormatNamed(name string) *Format {
	return &Formats[max(0, slices.IndexFunc(Formats, func(f Format) bool { return f.Name == name }))]
}

// FormatOf returns the one that a command is asked for; the usual one where it has no such option.
func FormatOf(cmd *cobra.Command) *Format {
	if f := cmd.Flags().Lookup("output"); f != nil {
		return FormatNamed(f.Value.String())
	}
	return &Formats[0]
}

// FormatNames are the names of all formats.
func FormatNames() (names []string) {
	for _, f := range Formats {
		names = append(names, f.Name)
	}
	return names
}

// formatHelp names them for help, with what alone is shown so.
func formatHelp() string {
	told := FormatNames()
	for i, f := range Formats {
		if f.Of != "" {
			told[i] += " for " + f.Of
		}
	}
	return Alternatives(told, ", or ")
}

// Alternatives names words with a comma between them, and something else before the last.
func Alternatives(words []string, last string) string {
	if len(words) < 2 { //nolint:mnd // there is no last one
		return strings.Join(words, "")
	}
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + last + words[n]
}
