package shell

import (
	"bytes"
	"encoding/json"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/deploy/dump"
	"go.yaml.in/yaml/v3"
)

// Structured reports whether --output asks for data rather than a text.
func (sh *Shell) Structured() bool { return sh.Flags.Output != "table" }

// Show writes a value as --output says; text makes the form for people.
func (sh *Shell) Show(value any, text func() error) error {
	switch sh.Flags.Output {
	case "json":
		return sh.ShowJSON(value)
	case "yaml":
		return sh.ShowYAML(value)
	case "csv":
		return Usage("only lists can be shown as csv")
	default:
		return text()
	}
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

// ShowJSON writes a value as JSON, for people to read: indented, and with <, > and & as they are.
func (sh *Shell) ShowJSON(value any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(value); err != nil {
		return err
	}
	_, err := sh.Out.Write(unescaped(text.Bytes()))
	return err
}

// unescaped writes <, > and & as they are in JSON that a controller wrote for
// pages of the web, too.
func unescaped(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
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

var webEscapes = map[string]byte{`\u003c`: '<', `\u003e`: '>', `\u0026`: '&'}

// ShowYAML goes through JSON, so that both forms have the same keys.
func (sh *Shell) ShowYAML(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var node yaml.Node // keeps the order of keys
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&node); err != nil {
		return err
	}
	blockStyle(&node)
	enc := yaml.NewEncoder(sh.Out)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		return err
	}
	return enc.Close()
}

// blockStyle takes away the braces and quotes that came with JSON; the encoder
// puts back the quotes that readers of YAML 1.2 need. Those of 1.1, such as PyYAML and
// Drover itself, take further texts for something else.
func blockStyle(node *yaml.Node) {
	empty := len(node.Content) == 0 && (node.Kind == yaml.MappingNode || node.Kind == yaml.SequenceNode)
	if !empty {
		node.Style = 0
	}
	if node.Tag == "!!str" && dump.Reads(node.Value) {
		node.Style = yaml.SingleQuotedStyle
	}
	for _, child := range node.Content {
		blockStyle(child)
	}
}
