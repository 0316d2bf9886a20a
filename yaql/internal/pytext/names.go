package pytext

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/runenames"
)

// controlNames are Unicode's aliases for the characters that have no name of their own, and the
// common abbreviations.
var controlNames = map[string]rune{
	"NULL": 0x00, "NUL": 0x00, "START OF HEADING": 0x01, "SOH": 0x01, "START OF TEXT": 0x02, "STX": 0x02,
	"END OF TEXT": 0x03, "ETX": 0x03, "END OF TRANSMISSION": 0x04, "EOT": 0x04, "ENQUIRY": 0x05, "ENQ": 0x05,
	"ACKNOWLEDGE": 0x06, "ACK": 0x06, "ALERT": 0x07, "BEL": 0x07, "BACKSPACE": 0x08, "BS": 0x08,
	"CHARACTER TABULATION": 0x09, "HORIZONTAL TABULATION": 0x09, "HT": 0x09, "TAB": 0x09,
	"LINE FEED": 0x0a, "NEW LINE": 0x0a, "END OF LINE": 0x0a, "LF": 0x0a, "NL": 0x0a, "EOL": 0x0a,
	"LINE TABULATION": 0x0b, "VERTICAL TABULATION": 0x0b, "VT": 0x0b, "FORM FEED": 0x0c, "FF": 0x0c,
	"CARRIAGE RETURN": 0x0d, "CR": 0x0d, "SHIFT OUT": 0x0e, "SO": 0x0e, "SHIFT IN": 0x0f, "SI": 0x0f,
	"DATA LINK ESCAPE": 0x10, "DLE": 0x10, "DEVICE CONTROL ONE": 0x11, "DC1": 0x11, "DEVICE CONTROL TWO": 0x12, "DC2": 0x12,
	"DEVICE CONTROL THREE": 0x13, "DC3": 0x13, "DEVICE CONTROL FOUR": 0x14, "DC4": 0x14,
	"NEGATIVE ACKNOWLEDGE": 0x15, "NAK": 0x15, "SYNCHRONOUS IDLE": 0x16, "SYN": 0x16,
	"END OF TRANSMISSION BLOCK": 0x17, "ETB": 0x17, "CANCEL": 0x18, "CAN": 0x18, "END OF MEDIUM": 0x19, "EOM": 0x19,
	"SUBSTITUTE": 0x1a, "SUB": 0x1a, "ESCAPE": 0x1b, "ESC": 0x1b,
	"INFORMATION SEPARATOR FOUR": 0x1c, "FILE SEPARATOR": 0x1c, "FS": 0x1c,
	"INFORMATION SEPARATOR THREE": 0x1d, "GROUP SEPARATOR": 0x1d, "GS": 0x1d,
	"INFORMATION SEPARATOR TWO": 0x1e, "RECORD SEPARATOR": 0x1e, "RS": 0x1e,
	"INFORMATION SEPARATOR ONE": 0x1f, "UNIT SEPARATOR": 0x1f, "US": 0x1f, "SP": 0x20,
	"DELETE": 0x7f, "DEL": 0x7f, "NEXT LINE": 0x85, "NEL": 0x85, "NBSP": 0xa0, "SHY": 0xad,
	"ZWSP": 0x200b, "ZWNJ": 0x200c, "ZWJ": 0x200d, "LRM": 0x200e, "RLM": 0x200f,
	"LRE": 0x202a, "RLE": 0x202b, "PDF": 0x202c, "LRO": 0x202d, "RLO": 0x202e, "WJ": 0x2060,
	"BYTE ORDER MARK": 0xfeff, "BOM": 0xfeff, "ZWNBSP": 0xfeff,
}

// runesByName reverses the table of names once, at the first named escape that a program meets.
var runesByName = sync.OnceValue(func() map[string]rune {
	names := make(map[string]rune, 40000)
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if name := runenames.Name(r); name != "" && name[0] != '<' {
			names[name] = r
		}
	}
	maps.Copy(names, controlNames)
	return names
})

// RuneByName returns the character that a Unicode name or a common alias names. Case does not matter.
func RuneByName(name string) (rune, bool) {
	name = strings.ToUpper(name)
	if r, ok := ideograph(name); ok {
		return r, true
	}
	if r, ok := hangul(name); ok {
		return r, true
	}
	r, ok := runesByName()[name]
	return r, ok
}

// ideograph resolves the names that are made from the code point.
func ideograph(name string) (rune, bool) {
	hex, ok := strings.CutPrefix(name, "CJK UNIFIED IDEOGRAPH-")
	if !ok || len(hex) < 4 || len(hex) > 5 {
		return 0, false
	}
	value, err := strconv.ParseUint(hex, 16, 32)
	r := rune(value)
	return r, err == nil && unicode.Is(unicode.Unified_Ideograph, r)
}

// The romanised parts from which the names of Hangul syllables are made, in the order of the code.
var (
	hangulLeads  = strings.Split("G GG N D DD R M B BB S SS  J JJ C K T P H", " ")
	hangulVowels = strings.Split("A AE YA YAE EO E YEO YE O WA WAE OE YO U WEO WE WI YU EU YI I", " ")
	hangulTails  = strings.Split(" G GG GS N NJ NH D L LG LM LB LS LT LP LH M B BS S SS NG J C K T P H", " ")
)

const hangulFirst = 0xac00

// hangul resolves the name of a precomposed syllable: lead, vowel and tail.
func hangul(name string) (rune, bool) {
	rest, ok := strings.CutPrefix(name, "HANGUL SYLLABLE ")
	if !ok {
		return 0, false
	}
	vowelAt := strings.IndexAny(rest, "AEIOUWY")
	if vowelAt < 0 {
		return 0, false
	}
	vowelEnd := vowelAt + len(rest[vowelAt:]) - len(strings.TrimLeft(rest[vowelAt:], "AEIOUWY"))
	lead := slices.Index(hangulLeads, rest[:vowelAt])
	vowel := slices.Index(hangulVowels, rest[vowelAt:vowelEnd])
	tail := slices.Index(hangulTails, rest[vowelEnd:])
	if lead < 0 || vowel < 0 || tail < 0 {
		return 0, false
	}
	return rune(hangulFirst + (lead*len(hangulVowels)+vowel)*len(hangulTails) + tail), true
}
