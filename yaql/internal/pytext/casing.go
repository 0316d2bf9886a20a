package pytext

import (
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// Upper returns text in upper case by Unicode's full mapping, which may lengthen it: the German sharp
// s becomes SS.
func Upper(text string) string {
	if isASCII(text) {
		return strings.ToUpper(text)
	}
	return cases.Upper(language.Und).String(text)
}

// Lower returns text in lower case by Unicode's full mapping: a sigma at the end of a word takes its
// final form, and the dotted capital I becomes two code points.
func Lower(text string) string {
	if isASCII(text) {
		return strings.ToLower(text)
	}
	return cases.Lower(language.Und).String(text)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}
