package pytext

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// ErrEmptySeparator reports an attempt to split by the empty string.
var ErrEmptySeparator = errors.New("empty separator")

// IsSpace reports whether Python counts the character as white space. Beside Unicode's space
// separators these are the ASCII controls tab to carriage return, the four information separators
// and the next line control.
func IsSpace(r rune) bool {
	switch {
	case r < 0x80:
		return r == ' ' || r >= '\t' && r <= '\r' || r >= 0x1c && r <= 0x1f
	case r >= 0x2000 && r <= 0x200a:
		return true
	}
	switch r {
	case 0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000:
		return true
	}
	return false
}

// TrimSpace removes white space from both ends.
func TrimSpace(text string) string { return strings.TrimFunc(text, IsSpace) }

// Trim removes white space from both ends when chars is nil, else all leading and trailing
// characters that occur in *chars.
func Trim(text string, chars *string) string { return TrimRight(TrimLeft(text, chars), chars) }

// TrimLeft is Trim for the start of text only.
func TrimLeft(text string, chars *string) string { return strings.TrimLeftFunc(text, trimSet(chars)) }

// TrimRight is Trim for the end of text only.
func TrimRight(text string, chars *string) string { return strings.TrimRightFunc(text, trimSet(chars)) }

func trimSet(chars *string) func(rune) bool {
	if chars == nil {
		return IsSpace
	}
	if len(*chars) <= fewChars {
		return func(r rune) bool { return strings.ContainsRune(*chars, r) }
	}
	set := map[rune]struct{}{}
	for _, r := range *chars {
		set[r] = struct{}{}
	}
	return func(r rune) bool {
		_, in := set[r]
		return in
	}
}

// fewChars are looked through for each character of a text.
const fewChars = 32

// Fields splits at runs of white space and drops empty parts. A limit of zero or more stops after so
// many splits; what is left is the last part, with the white space at its end kept.
func Fields(text string, limit int) []string {
	parts := []string{}
	rest := strings.TrimLeftFunc(text, IsSpace)
	for rest != "" {
		end := strings.IndexFunc(rest, IsSpace)
		if end < 0 || limit == 0 {
			return append(parts, rest)
		}
		parts = append(parts, rest[:end])
		rest = strings.TrimLeftFunc(rest[end:], IsSpace)
		limit--
	}
	return parts
}

// FieldsRight is Fields counting the splits from the end. The parts come in the order of the text.
func FieldsRight(text string, limit int) []string {
	parts := []string{}
	rest := strings.TrimRightFunc(text, IsSpace)
	for rest != "" {
		at := strings.LastIndexFunc(rest, IsSpace)
		if at < 0 || limit == 0 {
			parts = append(parts, rest)
			break
		}
		_, width := utf8.DecodeRuneInString(rest[at:])
		parts = append(parts, rest[at+width:])
		rest = strings.TrimRightFunc(rest[:at], IsSpace)
		limit--
	}
	slices.Reverse(parts)
	return parts
}

// Split splits at each occurrence of separator and keeps empty parts. A limit of zero or more stops
// after so many splits. The empty separator is ErrEmptySeparator.
func Split(text, separator string, limit int) ([]string, error) {
	if separator == "" {
		return nil, ErrEmptySeparator
	}
	if limit < 0 {
		return strings.Split(text, separator), nil
	}
	return strings.SplitN(text, separator, min(limit, strings.Count(text, separator))+1), nil // which makes room for as many as it is told
}

// SplitRight is Split counting the splits from the end. The parts come in the order of the text.
func SplitRight(text, separator string, limit int) ([]string, error) {
	if separator == "" {
		return nil, ErrEmptySeparator
	}
	parts := []string{}
	for limit != 0 {
		at := strings.LastIndex(text, separator)
		if at < 0 {
			break
		}
		parts = append(parts, text[at+len(separator):])
		text = text[:at]
		limit--
	}
	parts = append(parts, text)
	slices.Reverse(parts)
	return parts, nil
}
