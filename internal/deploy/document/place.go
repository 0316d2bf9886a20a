package document

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
)

var (
	lineOf   = regexp.MustCompile(`line (\d+): `)
	anchorOf = regexp.MustCompile(`unknown anchor '(.*)' referenced`)
)

// badYAML is the error that a text is no YAML, with its line. The reader of YAML counts lines from 0 where it found no token that
// it expected, tells none where that makes 0, and knows no place of characters and anchors.
func badYAML(file string, text []byte, err error) error {
	message := strings.TrimPrefix(lineOf.ReplaceAllString(err.Error(), ""), "yaml: ")
	line := 1
	if m := lineOf.FindStringSubmatch(err.Error()); m != nil {
		line, _ = strconv.Atoi(m[1])
		if strings.HasPrefix(message, "did not find expected") {
			line++
		}
	} else if m := anchorOf.FindStringSubmatch(message); m != nil {
		line = lineAt(text, bytes.Index(text, []byte("*"+m[1])))
	} else if i := unreadable(text); i >= 0 {
		line = lineAt(text, i)
	}
	last := lineAt(text, len(bytes.TrimRight(text, "\n")))
	return fault.New(fault.Invalid, "%s: bad YAML: %s", Position{File: file, Line: min(line, last)}, message)
}

// lineAt returns the line of an offset.
func lineAt(text []byte, offset int) int { return 1 + bytes.Count(text[:max(offset, 0)], []byte("\n")) }

// unreadable returns the offset of the first character that no YAML may hold, -1 if there is none.
func unreadable(text []byte) int {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 || r < ' ' && !strings.ContainsRune("\t\n\r", r) || r == 0x7f {
			return i
		}
		i += size
	}
	return -1
}
