package servertag

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/fault"
)

// MaxName is how long the name of a tag may be, in code points, as in the
// Compute API of OpenStack.
const MaxName = 60

// CheckName refuses what is no name of a tag.
func CheckName(name string) error {
	bad := func(why string) error {
		return fault.New(fault.BadTag, "Tag '%s' is invalid. It must be a non empty string without characters '/' and ','. %s", shown(name), why).At("tag")
	}
	switch {
	case name == "":
		return bad("It is empty.")
	case !utf8.ValidString(name):
		return bad("It is not UTF-8.")
	case strings.ContainsAny(name, "/,"):
		return bad("It has one of them.")
	case utf8.RuneCountInString(name) > MaxName:
		return bad(fmt.Sprintf("It is longer than %d characters.", MaxName))
	case name == "." || name == "..":
		return bad("A lone '.' or '..' means another path in a URL, so that clients could not name it.")
	case strings.ContainsFunc(name, breaks):
		return bad("It has a control character, or one that parts lines or turns the direction of text.")
	}
	return nil
}

// breaks reports whether a letter makes lists and logs show something else than is
// there.
func breaks(r rune) bool {
	const mark = '\uFEFF' // of the order of bytes: it has no shape
	return r == mark || unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}

// shown is a name for a message: short, and in one line.
func shown(name string) string {
	return fault.Clip(strings.Map(func(r rune) rune {
		if breaks(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(name, string(unicode.ReplacementChar))), 4*MaxName)
}
