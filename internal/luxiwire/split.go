package luxiwire

import (
	"encoding/json"
	"iter"
)

// Elements returns the elements of a JSON list as parts of its text, without
// copying them. The text must be JSON; ok is false if it is no list.
func Elements(list []byte) (elements []json.RawMessage, ok bool) {
	at := skipSpace(list, 0)
	if at == len(list) || list[at] != '[' {
		return nil, false
	}
	elements = []json.RawMessage{}
	for at = skipSpace(list, at+1); at < len(list) && list[at] != ']'; {
		end := valueEnd(list, at)
		elements = append(elements, list[at:end])
		if at = skipSpace(list, end); at < len(list) && list[at] == ',' {
			at = skipSpace(list, at+1)
		}
	}
	return elements, true
}

// members yields the keys of a JSON object and their values as parts of its
// text, in the order in which they were written. The text must be JSON.
func members(object []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		at := skipSpace(object, 0)
		for at = skipSpace(object, at+1); at < len(object) && object[at] != '}'; {
			end := valueEnd(object, at)
			var key string
			if json.Unmarshal(object[at:end], &key) != nil {
				return // not reached: it is JSON
			}
			at = skipSpace(object, skipSpace(object, end)+1) // over the colon
			end = valueEnd(object, at)
			if !yield(key, object[at:end]) {
				return
			}
			if at = skipSpace(object, end); at < len(object) && object[at] == ',' {
				at = skipSpace(object, at+1)
			}
		}
	}
}

func skipSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r') {
		at++
	}
	return at
}

// valueEnd returns the end of the JSON value that begins at a place.
func valueEnd(text []byte, at int) int {
	for depth := 0; at < len(text); at++ {
		switch text[at] {
		case '"':
			for at++; at < len(text) && text[at] != '"'; at++ {
				if text[at] == '\\' {
					at++
				}
			}
		case '[', '{':
			depth++
			continue
		case ']', '}':
			depth--
		default: // a letter or digit of a word or number, or what stands between values
			if depth > 0 || isScalar(text, at+1) {
				continue
			}
		}
		if depth == 0 {
			return min(at+1, len(text))
		}
	}
	return len(text)
}

// isScalar reports whether a word or number goes on at a place.
func isScalar(text []byte, at int) bool {
	if at >= len(text) {
		return false
	}
	switch text[at] {
	case ' ', '\t', '\n', '\r', ',', ':', ']', '}':
		return false
	}
	return true
}
