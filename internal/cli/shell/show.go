package shell

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/cli/listing"
)

// Structured reports whether --output asks for data rather than a text.
func (sh *Shell) Structured() bool { return sh.Format().Data != nil }

// Show writes a value as --output says; text makes the form for people.
func (sh *Shell) Show(value any, text func() error) error {
	if f := sh.Format(); f.Data != nil {
		return f.Data(sh.Out, value)
	}
	return text()
}

// ShowTimes is Show for what a controller sent with times in a form of its own: those
// at the keys are shown as lists show theirs.
func (sh *Shell) ShowTimes(value any, keys []string, text func() error) error {
	if !sh.Structured() {
		return sh.Show(value, text)
	}
	data, err := Timed(value, keys)
	if err != nil {
		return err
	}
	return sh.Show(data, text)
}

// Timed is a value as data, with its times as lists show theirs.
func Timed(value any, keys []string) (json.RawMessage, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return listing.Times(raw, keys...)
}

// ShowJSON writes a value as JSON.
func (sh *Shell) ShowJSON(value any) error { return WriteJSON(sh.Out, value) }

// WriteJSON writes a value as JSON, for people to read: indented, and with <, > and & as they are.
func WriteJSON(out io.Writer, value any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(value); err != nil {
		return err
	}
	_, err := out.Write(unescaped(text.Bytes()))
	return err
}

// unescaped writes <, > and & as they are in JSON that a controller wrote for
// pages of the web, too; and with escapes what only JSON allows to stand without: readers of YAML, who are to read JSON as well, refuse it.
func unescaped(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] >= 0x7f {
			r, size := utf8.DecodeRune(text[i:])
			if unicode.IsControl(r) || r == byteOrderMark {
				out = fmt.Appendf(out, `\u%04x`, r)
			} else {
				out = append(out, text[i:i+size]...)
			}
			i += size - 1
			continue
		}
		if text[i] != '\\' {
			out = append(out, text[i])
			continue
		}
		if c, ok := webEscapes[string(text[i:min(i+6, len(text))])]; ok {
			out = append(out, c)
			i += 5
			continue
		}
		out = append(out, text[i:min(i+2, len(text))]...) // what stands behind belongs to it
		i++
	}
	return out
}

const byteOrderMark = 0xfeff

var webEscapes = map[string]byte{`\u003c`: '<', `\u003e`: '>', `\u0026`: '&'}
