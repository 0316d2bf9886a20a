package shell

import (
	"slices"
	"strings"
)

// listEnvironment are the variables that hold further arguments for the lists
// of the classic tools, by the noun of the tool.
var listEnvironment = map[string]string{
	"instance": "GNT_INSTANCE_LIST", "node": "GNT_NODE_LIST", "group": "GNT_GROUP_LIST",
}

// WithEnvironment puts what the environment holds for a list before the
// arguments of a classic tool.
func (p Persona) WithEnvironment(args []string, getenv func(string) string) []string {
	variable := listEnvironment[p.Noun]
	if variable == "" || len(args) == 0 || args[0] != "list" {
		return args
	}
	return slices.Concat(args[:1], Words(getenv(variable)), args[1:])
}

// Words splits a text as a shell does: at blanks outside quotes; a
// backslash takes the next letter as it is, except within single quotes.
func Words(text string) []string {
	var out []string
	var word strings.Builder
	var quote rune
	escaped, begun := false, false
	for _, r := range text {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, begun = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if begun {
				out = append(out, word.String())
				word.Reset()
			}
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		out = append(out, word.String())
	}
	return out
}
