// Package document reads the YAML and JSON files of deployments: task graphs and states of environments.
//
// Invariants:
//   - Every node of a document knows its file, line and column.
//   - Plain texts mean what YAML 1.1 says, as the reference reads them: yes is true, 0755 is octal; times stay texts.
//   - A key that occurs twice in a map has its last value, and there is a warning that names the line.
//   - What a document expands to is bounded, whatever its aliases say.
package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/drover-project/drover/internal/fault"
)

// The limits of a document.
const (
	maxBytes = 256 << 20
	maxAgain = 200_000 // values that aliases repeat
	maxDepth = 200
)

// Position is a place in a file; lines and columns count from 1.
type Position struct {
	File         string
	Line, Column int
}

func (p Position) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Warning is something in a document that is probably not meant.
type Warning struct {
	Position
	Message string
	// Rule is the name of what was looked for, of those of package graph.
	Rule string
}

func (w Warning) String() string { return w.Position.String() + ": " + w.Message }

// Kind says what a node is.
type Kind uint8

// The kinds of nodes.
const (
	Scalar Kind = iota
	List
	Map
)

// Node is a value in a document.
type Node struct {
	Kind
	Position
	Scalar  any     // null, a truth value, a number or a text
	Keys    []Key   // of a map
	Items   []*Node // of a list, or the values of a map
	source  *source
	written yaml.Style
}

// Key is a key of a map.
type Key struct {
	Name string
	Position
}

// Get returns the value of a key of a map, or nil.
func (n *Node) Get(name string) *Node {
	if n == nil || n.Kind != Map {
		return nil
	}
	for i := range n.Keys {
		if n.Keys[i].Name == name {
			return n.Items[i]
		}
	}
	return nil
}

// source is the text of a document.
type source struct {
	text  []byte
	split sync.Once // for the first place that is asked for; documents are read by many at once
	lines []int     // offsets
}

// Parse reads a document of YAML, of which JSON is a part. An empty document is null.
func Parse(file string, text []byte) (*Node, []Warning, error) {
	if len(text) > maxBytes {
		return nil, nil, fault.New(fault.TooLarge, "%s: the file has %d bytes; %d are the limit", file, len(text), maxBytes)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var root yaml.Node
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return &Node{Position: Position{file, 1, 1}}, nil, nil
	case err != nil:
		return nil, nil, badYAML(file, text, err)
	}
	var more yaml.Node
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, nil, badYAML(file, text, err)
		}
		return nil, nil, fault.New(fault.Invalid, "%s:%d: the file holds more than one document", file, more.Line)
	}
	r := &reader{file: file, source: &source{text: text}}
	n, err := r.node(&root, 0)
	return n, r.warnings, err
}

type reader struct {
	file     string
	source   *source
	warnings []Warning
	again    int          // values that aliases have repeated
	followed []*yaml.Node // aliases that are being followed
}

func (r *reader) at(n *yaml.Node) Position { return Position{r.file, n.Line, n.Column} }

func (r *reader) fail(n *yaml.Node, code fault.Code, format string, args ...any) error {
	return fault.New(code, "%s: %s", r.at(n), fmt.Sprintf(format, args...))
}

func (r *reader) node(n *yaml.Node, depth int) (*Node, error) {
	if len(r.followed) > 0 {
		if r.again++; r.again > maxAgain {
			return nil, r.fail(n, fault.TooLarge, "the aliases of the document repeat more than %d values", maxAgain)
		}
	}
	if depth > maxDepth {
		return nil, r.fail(n, fault.TooLarge, "values are nested more than %d deep", maxDepth)
	}
	out := &Node{Position: r.at(n), source: r.source, written: n.Style}
	switch n.Kind {
	case yaml.DocumentNode:
		return r.node(n.Content[0], depth)
	case yaml.AliasNode:
		return r.alias(n, depth)
	case yaml.SequenceNode:
		out.Kind = List
		for _, c := range n.Content {
			item, err := r.node(c, depth+1)
			if err != nil {
				return nil, err
			}
			out.Items = append(out.Items, item)
		}
		return out, nil
	case yaml.MappingNode:
		out.Kind = Map
		return out, r.entries(out, n, depth)
	}
	out.Scalar = scalar(n)
	return out, nil
}

func (r *reader) alias(n *yaml.Node, depth int) (*Node, error) {
	if slices.Contains(r.followed, n.Alias) {
		return nil, r.fail(n, fault.Invalid, "the alias *%s stands within what it names", n.Value)
	}
	r.followed = append(r.followed, n.Alias)
	defer func() { r.followed = r.followed[:len(r.followed)-1] }()
	return r.node(n.Alias, depth+1)
}

// entries reads the entries of a map. Those that << brings in do not replace its own.
func (r *reader) entries(out *Node, n *yaml.Node, depth int) error {
	places := map[string]int{}
	var merges []*Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		item, err := r.node(value, depth+1)
		if err != nil {
			return err
		}
		if key.Kind == yaml.ScalarNode && key.Value == "<<" && key.Style == 0 {
			merges = append(merges, item)
			continue
		}
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return r.fail(n.Content[i], fault.Invalid, "a key is a list or a map; keys must be texts")
		}
		name := key.Value
		if at, twice := places[name]; twice {
			r.warnings = append(r.warnings, Warning{Position: r.at(n.Content[i]), Rule: "repeated-key",
				Message: fmt.Sprintf("the key %q is there twice, first in line %d; the last one counts", name, out.Keys[at].Line)})
			out.Keys[at].Position = r.at(n.Content[i])
			out.Items[at] = item
			continue
		}
		places[name] = len(out.Keys)
		out.Keys = append(out.Keys, Key{name, r.at(n.Content[i])})
		out.Items = append(out.Items, item)
	}
	for _, m := range merges {
		out.merge(m, places)
	}
	return nil
}

func (n *Node) merge(from *Node, places map[string]int) {
	if from.Kind == List {
		for _, item := range from.Items {
			n.merge(item, places)
		}
	}
	for i, k := range from.Keys {
		if _, there := places[k.Name]; !there {
			places[k.Name] = len(n.Keys)
			n.Keys = append(n.Keys, k)
			n.Items = append(n.Items, from.Items[i])
		}
	}
}
