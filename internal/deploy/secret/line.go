package secret

import (
	"regexp"
	"slices"
	"strings"
)

// assignment is a line of a configuration that gives a key a value: key = value, "key": "value", export KEY=value.
var assignment = regexp.MustCompile(`^(\s*(?:[-+]\s+|export\s+|set\s+)?["']?)([A-Za-z0-9_.-]+)(["']?\s*[:=]\s*)(\S.*)$`)

// Line is a line of a file that is on some machine, of whose secrets nobody knows the values, with a mark in place of what it gives a key of the usual
// ones.
func Line(line string) string {
	m := assignment.FindStringSubmatch(line)
	if m == nil || !secretKey(m[2]) {
		return line
	}
	return m[1] + m[2] + m[3] + Mark
}

// secretKey tells whether the values of a key are secret usually.
func secretKey(key string) bool {
	return slices.ContainsFunc(usual, func(pattern string) bool { return fits(pattern, strings.ToLower(key)) })
}
