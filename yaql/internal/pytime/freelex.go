package pytime

import (
	"strings"
	"unicode"

	"github.com/drover-project/drover/yaql/internal/pytext"
)

// freeTokens cuts a text into words, numbers, single spaces and single other characters, as dateutil
// does. A dot or, after two digits, a comma may belong to a number; when what was collected turns out
// not to be one number, it is cut at its dots and commas.
func freeTokens(text string) []string {
	runes := []rune(strings.ReplaceAll(text, "\x00", ""))
	tokens := []string{}
	for len(runes) > 0 {
		n := tokenLength(runes)
		tokens = append(tokens, cutToken(string(runes[:n]), n == len(runes))...)
		runes = runes[n:]
	}
	return tokens
}

// The states of the scanner: what the token holds so far.
const (
	inWord = iota
	inNumber
	inDottedWord
	inDottedNumber
)

func tokenLength(runes []rune) int {
	state := inWord
	switch {
	case isFreeDigit(runes[0]):
		state = inNumber
	case !unicode.IsLetter(runes[0]):
		return 1
	}
	for n := 1; n < len(runes); n++ {
		next, ok := nextState(state, runes[n], runes[n-1], n)
		if !ok {
			return n
		}
		state = next
	}
	return len(runes)
}

// nextState says whether r continues the token of n characters that ends with last.
func nextState(state int, r, last rune, n int) (int, bool) {
	word, digit, dot := unicode.IsLetter(r), isFreeDigit(r), r == '.'
	switch state {
	case inWord:
		if dot {
			return inDottedWord, true
		}
		return inWord, word
	case inNumber:
		if dot || r == ',' && n >= 2 {
			return inDottedNumber, true
		}
		return inNumber, digit
	case inDottedWord:
		if digit && last == '.' {
			return inDottedNumber, true
		}
		return inDottedWord, dot || word
	default:
		if word && last == '.' {
			return inDottedWord, true
		}
		return inDottedNumber, dot || digit
	}
}

// cutToken splits a token that is not one word or one number, and normalises white space, digits and a
// decimal comma. At the end of the text a number, a dot and one letter stay together: the reference
// notices a letter only when it reads on.
func cutToken(token string, atEnd bool) []string {
	first := []rune(token)[0]
	if pytext.IsSpace(first) {
		return []string{" "}
	}
	if pytext.Len(token) == 1 || !strings.ContainsAny(token, ".,") {
		return []string{asciiDigits(token)}
	}
	end := token[len(token)-1]
	letters := strings.ContainsFunc(token, unicode.IsLetter)
	if atEnd && !unicode.IsLetter(first) && strings.IndexFunc(token, unicode.IsLetter) == strings.LastIndexByte(token, '.')+1 &&
		pytext.Len(token[strings.LastIndexByte(token, '.'):]) == 2 {
		letters = false
	}
	if letters || strings.Count(token, ".") > 1 || end == '.' || end == ',' {
		parts := []string{}
		for token != "" {
			at := strings.IndexAny(token, ".,")
			if at < 0 {
				return append(parts, asciiDigits(token))
			}
			if at > 0 {
				parts = append(parts, asciiDigits(token[:at]))
			}
			parts = append(parts, token[at:at+1])
			token = token[at+1:]
		}
		return parts
	}
	if !strings.Contains(token, ".") {
		token = strings.ReplaceAll(token, ",", ".")
	}
	return []string{asciiDigits(token)}
}

func isFreeDigit(r rune) bool { _, ok := pytext.DigitValue(r); return ok }

func asciiDigits(token string) string {
	return strings.Map(func(r rune) rune {
		if digit, ok := pytext.DigitValue(r); ok {
			return '0' + rune(digit)
		}
		return r
	}, token)
}
