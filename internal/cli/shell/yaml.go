package shell

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/drover-project/drover/internal/deploy/dump"
)

// WriteYAML writes a value as YAML. It goes through JSON, so that both forms have the same keys in the same order. Every text stays one, whoever
// reads it, by the rules of YAML 1.1 or of 1.2 (test/texts).
func WriteYAML(out io.Writer, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	node, err := yamlNode(dec)
	if err != nil {
		return err
	}
	enc := yaml.NewEncoder(out)
	enc.SetIndent(2)
	if err := enc.Encode(node); err != nil {
		return err
	}
	return enc.Close()
}

// yamlNode makes a node of the next value of a JSON text, with keys in their order.
func yamlNode(dec *json.Decoder) (*yaml.Node, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch x := token.(type) {
	case json.Delim:
		return yamlNodes(dec, x)
	case string:
		return yamlText(x), nil
	case json.Number:
		return yamlNumber(x.String()), nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: map[bool]string{true: "true", false: "false"}[x]}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}

// yamlNodes makes a node of an object or a list whose beginning was read.
func yamlNodes(dec *json.Decoder, begin json.Delim) (*yaml.Node, error) {
	out := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if begin == '{' {
		out.Kind, out.Tag = yaml.MappingNode, "!!map"
	}
	for dec.More() {
		child, err := yamlNode(dec)
		if err != nil {
			return nil, err
		}
		out.Content = append(out.Content, child)
	}
	if len(out.Content) == 0 {
		out.Style = yaml.FlowStyle
	}
	_, err := dec.Token() // the end of it
	return out, err
}

// yamlNumber is a number as all readers see one: those of YAML 1.1 want a point before an exponent, and a sign in it.
func yamlNumber(s string) *yaml.Node {
	base, exponent, large := strings.Cut(strings.ToLower(s), "e")
	if !large {
		tag := "!!int"
		if strings.Contains(s, ".") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: s}
	}
	if !strings.Contains(base, ".") {
		base += ".0"
	}
	if !strings.HasPrefix(exponent, "-") {
		exponent = "+" + strings.TrimPrefix(exponent, "+")
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: base + "e" + exponent}
}

// yamlText is a text with the quotes that it needs beyond those which the encoder gives it: readers of YAML 1.1, such as PyYAML and Drover
// itself, take further texts for something else, and some characters only come through where they are escaped.
func yamlText(s string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	switch {
	case strings.ContainsFunc(s, needsEscape):
		node.Style = yaml.DoubleQuotedStyle
	case dump.Reads(s):
		node.Style = yaml.SingleQuotedStyle
	}
	return node
}

// needsEscape tells a character that a reader may take for the end of a line, for a mark of the file, or for nothing.
func needsEscape(r rune) bool {
	return r != '\n' && !unicode.IsPrint(r)
}
