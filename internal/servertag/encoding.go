package servertag

import (
	"strings"
	"unicode/utf8"
)

// MaxRaw is how long a tag may be on a cluster, in bytes; it is written in
// ASCII.
const MaxRaw = 128

const upperHex = "0123456789ABCDEF"

// plain are the bytes of a name that are written as they are. "_" is not: the
// scheme has "*" for it, because clusters once allowed no "_".
func plain(b byte) bool {
	switch {
	case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9':
		return true
	}
	return b == '.' || b == '-' || b == ':'
}

// Encode writes a text in the alphabet that clusters allow in tags: letters,
// digits and ".-:" as they are, "_" as "*", a blank as "+", and every other byte
// of its UTF-8 as "/" with two upper-case hexadecimal digits. No two texts are
// written alike, and Decode gives the text back.
func Encode(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for i := range len(text) {
		switch c := text[i]; {
		case plain(c):
			b.WriteByte(c)
		case c == '_':
			b.WriteByte('*')
		case c == ' ':
			b.WriteByte('+')
		default:
			b.WriteByte('/')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		}
	}
	return b.String()
}

// Decode reads what Encode wrote. It reports false for anything that Encode
// would not have written: what another program put there in a form of its own
// cannot be named by its text, because it would be written differently.
func Decode(raw string) (text string, ok bool) {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case plain(c):
			out = append(out, c)
		case c == '*':
			out = append(out, '_')
		case c == '+':
			out = append(out, ' ')
		case c == '/' && i+2 < len(raw):
			high, low := strings.IndexByte(upperHex, raw[i+1]), strings.IndexByte(upperHex, raw[i+2])
			b := byte(high<<4 | low)
			if high < 0 || low < 0 || plain(b) || b == '_' || b == ' ' {
				return "", false
			}
			out = append(out, b)
			i += 2
		default:
			return "", false
		}
	}
	if !utf8.Valid(out) {
		return "", false
	}
	return string(out), true
}

// Prefixes are how the tags of each namespace begin on a cluster. They are in
// the alphabet that Encode leaves as it is, and none begins another.
type Prefixes map[Namespace]string

// DefaultPrefixes are those of the design.
func DefaultPrefixes() Prefixes {
	return Prefixes{User: "cyclades:user:", System: "cyclades:system:", Placed: "drover:placed:"}
}

// MarkPrefix begins the tags that tell for which server an instance was made. It begins no tag of a namespace, and no
// effect may set one.
const MarkPrefix = "drover:server:"

// Raw is how a tag is written on a cluster.
func (p Prefixes) Raw(ns Namespace, name string) string { return p[ns] + Encode(name) }

// Origin is what a tag on a cluster is to us.
type Origin uint8

// What a tag on a cluster may be.
const (
	// Foreign: it has none of our prefixes.
	Foreign Origin = iota
	// Odd: it has one, and is not written as we would write it.
	Odd
	// Ours: it has one and stands for a name.
	Ours
)

// Parse reads a tag of a cluster.
func (p Prefixes) Parse(raw string) (ns Namespace, name string, origin Origin) {
	for _, ns := range []Namespace{User, System} {
		rest, ok := strings.CutPrefix(raw, p[ns])
		if !ok {
			continue
		}
		name, ok := Decode(rest)
		if !ok || CheckName(name) != nil || len(raw) > MaxRaw {
			return ns, "", Odd
		}
		return ns, name, Ours
	}
	return "", "", Foreign
}
