package cli

import (
	"bytes"
	"encoding/json"

	"go.yaml.in/yaml/v3"
)

// structured reports whether --output asks for data rather than a text.
func (sh *shell) structured() bool { return sh.flags.output != "table" }

// show writes a value as --output says; text makes the form for people.
func (sh *shell) show(value any, text func() error) error {
	switch sh.flags.output {
	case "json":
		return sh.showJSON(value)
	case "yaml":
		return sh.showYAML(value)
	case "csv":
		return usage("only lists can be shown as csv")
	default:
		return text()
	}
}

func (sh *shell) showJSON(value any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(value); err != nil {
		return err
	}
	_, err := sh.out.Write(unescaped(text.Bytes()))
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

// showYAML goes through JSON, so that both forms have the same keys.
func (sh *shell) showYAML(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var node yaml.Node // keeps the order of keys
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&node); err != nil {
		return err
	}
	blockStyle(&node)
	enc := yaml.NewEncoder(sh.out)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		return err
	}
	return enc.Close()
}

// blockStyle takes away the braces and quotes that came with JSON; the encoder
// puts back the quotes that are needed.
func blockStyle(node *yaml.Node) {
	empty := len(node.Content) == 0 && (node.Kind == yaml.MappingNode || node.Kind == yaml.SequenceNode)
	if !empty {
		node.Style = 0
	}
	for _, child := range node.Content {
		blockStyle(child)
	}
}
