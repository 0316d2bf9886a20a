package graph

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/fault"
)

// fieldOrder is the order in which a task's fields stand: what it is, where and when it runs, what it waits for, what it does. All others follow, in the
// order in which they were.
var fieldOrder = []string{"id", "type", "version", "description", "role", "roles", "tags", "groups", "tasks", "stage", "condition", "reexecute_on", "refresh_on",
	"requires", "required_for", "cross-depends", "cross_depends", "cross-depended-by", "cross_depended_by", "fault_tolerance", "fail_on_error", "parameters", "check"}

// Format returns the text of a graph in its canonical layout: two spaces a level, an empty line between tasks, the fields of each in one order. Comments
// stay, with what they are about, and so does how texts are quoted and which lists and maps stand in a line. It means the same, and formatted again it is
// the same.
//
// What cannot be kept is refused, and the file is to stay as it is. So is what is no graph at all.
func Format(file string, text []byte) ([]byte, error) {
	before, _, err := document.Parse(file, text)
	if err != nil {
		return nil, err
	}
	out := text
	for range mostRounds {
		next, err := layOut(file, out)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(next, out) {
			return out, unchanged(file, before, text, out)
		}
		out = next
	}
	return nil, fault.New(fault.Unsupported, "%s cannot be formatted: what comes of it is another each time", file)
}

// mostRounds is how often a text is laid out until it stays as it is: what a comment is about shows by where it stands, and may have to be seen twice.
const mostRounds = 5

// layOut is Format once, without a look at what came of it.
func layOut(file string, text []byte) ([]byte, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var root yaml.Node
	switch err := decoder.Decode(&root); {
	case errors.Is(err, io.EOF):
		return text, nil // nothing but comments, perhaps
	case err != nil:
		return nil, fault.New(fault.Invalid, "%s: %w", file, err)
	}
	list := tasksIn(&root)
	if list == nil {
		return nil, fault.New(fault.Invalid, "%s: a graph is a list of tasks, or a map with the list under tasks", file)
	}
	tidy(&root, aliased(&root))
	if !aliased(&root) {
		for _, t := range list.Content {
			inOrderOfFields(t)
		}
	}
	blocks := &blocks{source: strings.Split(string(text), "\n"), mark: unusedIn(text)}
	blocks.takeOut(&root)
	out, err := written(&root, list)
	if err != nil {
		return nil, fault.New(fault.Unsupported, "%s cannot be formatted: %w", file, err)
	}
	return blocks.putBack(out), nil
}

// tasksIn is the list of the tasks of a document; nil if it has none.
func tasksIn(root *yaml.Node) *yaml.Node {
	n := root.Content[0]
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == "tasks" && n.Content[i+1].Kind == yaml.SequenceNode {
				return n.Content[i+1]
			}
		}
	}
	if n.Kind != yaml.SequenceNode {
		return nil
	}
	return n
}

// aliased tells whether anything stands for something else, which has to stand before it.
func aliased(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || slices.ContainsFunc(n.Content, aliased)
}

// tidy has the writer of YAML write what was read: a key that merges is one only without the tag that it was given when it was read.
func tidy(n *yaml.Node, merges bool) {
	if merges && n.Tag == "!!merge" {
		n.Tag = ""
	}
	for _, c := range n.Content {
		tidy(c, merges)
	}
}

// inOrderOfFields sorts the fields of a task. The comment above a task is above its first field: it stays above the first.
func inOrderOfFields(task *yaml.Node) {
	if task.Kind != yaml.MappingNode {
		return
	}
	type entry struct{ key, value *yaml.Node }
	var entries []entry
	for i := 0; i+1 < len(task.Content); i += 2 {
		entries = append(entries, entry{task.Content[i], task.Content[i+1]})
	}
	for i := range len(entries) - 1 { // what stands between two fields is about the second
		k, next := entries[i].key, entries[i+1].key
		next.HeadComment = strings.TrimPrefix(k.FootComment+"\n"+next.HeadComment, "\n")
		next.HeadComment, k.FootComment = strings.TrimSuffix(next.HeadComment, "\n"), ""
	}
	if len(entries) == 0 {
		return
	}
	last := entries[len(entries)-1].key // and what stands at the end, about the task
	foot := last.FootComment
	last.FootComment = ""
	place := func(e entry) int {
		if i := slices.Index(fieldOrder, e.key.Value); i >= 0 {
			return i
		}
		return len(fieldOrder)
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(place(a), place(b)) })
	for i, e := range entries {
		task.Content[2*i], task.Content[2*i+1] = e.key, e.value
	}
	entries[len(entries)-1].key.FootComment = foot
}

// written is a document as text, with an empty line between tasks.
func written(root, list *yaml.Node) ([]byte, error) {
	b := &bytes.Buffer{}
	e := yaml.NewEncoder(b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(root), e.Close()); err != nil {
		return nil, err
	}
	if list.Style&yaml.FlowStyle != 0 {
		return b.Bytes(), nil
	}
	indent := ""
	if root.Content[0] != list {
		indent = "  "
	}
	return spaced(b.String(), indent), nil
}

// spaced puts an empty line before each task but the first, above the comments that stand directly above it.
func spaced(text, indent string) []byte {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	var out []string
	inside, first := indent == "", true
	for _, line := range lines {
		if indent != "" && line != "" && line[0] != ' ' && line[0] != '#' {
			inside, first = strings.HasPrefix(line, "tasks:"), true
		}
		if inside && strings.HasPrefix(line, indent+"- ") {
			at := len(out)
			for at > 0 && strings.HasPrefix(out[at-1], indent+"#") {
				at--
			}
			if !first && at > 0 && out[at-1] != "" {
				out = slices.Insert(out, at, "")
			}
			first = false
		}
		out = append(out, line)
	}
	return []byte(strings.Join(out, "\n") + "\n")
}

// blocks are the texts of a document that are written in lines of their own, which stay as they are: only how far they are indented changes.
type blocks struct {
	source []string // lines of the document
	mark   string   // what stands for one of them in between, with its number behind it
	taken  []block
}

// block is such a text: what stands before it, as |, and its lines, not indented.
type block struct {
	header string
	lines  []string
}

var blockHeader = regexp.MustCompile(`^[|>][+-]?`)

// unusedIn is a word that a text does not have.
func unusedIn(text []byte) string {
	word := "block"
	for bytes.Contains(text, []byte(word)) {
		word += "k"
	}
	return word
}

// takeOut puts a mark in the place of each of them. One that says itself how far it is indented is left to the writer of YAML.
func (b *blocks) takeOut(n *yaml.Node) {
	for _, c := range n.Content {
		b.takeOut(c)
	}
	if n.Kind != yaml.ScalarNode || n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 || n.Style&yaml.TaggedStyle != 0 {
		return
	}
	line := b.source[n.Line-1]
	rest := line[min(n.Column-1, len(line)):]
	if n.Anchor != "" {
		rest = strings.TrimLeft(strings.TrimPrefix(rest, "&"+n.Anchor), " ")
	}
	header := blockHeader.FindString(rest)
	rest = strings.TrimPrefix(rest, header)
	if header == "" || rest != "" && rest[0] >= '0' && rest[0] <= '9' {
		return
	}
	x, depth := block{header: header}, -1
	for _, l := range b.source[n.Line:] {
		in := len(l) - len(strings.TrimLeft(l, " "))
		if depth < 0 && in < len(l) {
			depth = in
		}
		if in < depth && in < len(l) {
			break
		}
		x.lines = append(x.lines, l[min(max(depth, 0), in):])
	}
	for len(x.lines) > 0 && x.lines[len(x.lines)-1] == "" && !strings.HasSuffix(header, "+") {
		x.lines = x.lines[:len(x.lines)-1]
	}
	b.taken = append(b.taken, x)
	n.Value, n.Style, n.Tag = fmt.Sprintf("%s%d.", b.mark, len(b.taken)-1), 0, ""
}

// putBack puts the texts into the places of their marks.
func (b *blocks) putBack(text []byte) []byte {
	if len(b.taken) == 0 {
		return text
	}
	mark := regexp.MustCompile(b.mark + `(\d+)\.`)
	var out []string
	for line := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n") {
		m := mark.FindStringSubmatchIndex(line)
		if m == nil {
			out = append(out, line)
			continue
		}
		i, _ := strconv.Atoi(line[m[2]:m[3]]) // they are digits
		in := len(line) - len(strings.TrimLeft(line, "- "))
		if in < m[0] { // below a key
			in += 2
		}
		out = append(out, line[:m[0]]+b.taken[i].header+line[m[1]:])
		for _, l := range b.taken[i].lines {
			if l != "" {
				l = strings.Repeat(" ", in) + l
			}
			out = append(out, l)
		}
	}
	return []byte(strings.Join(out, "\n") + "\n")
}

// unchanged refuses a text that does not mean what another does, or lacks some of its comments.
func unchanged(file string, before *document.Node, text, out []byte) error {
	after, _, err := document.Parse(file, out)
	if err != nil {
		return fault.New(fault.Internal, "%s cannot be formatted: what came of it cannot be read: %w", file, err)
	}
	if at, same := equal(before, after); !same {
		return fault.New(fault.Unsupported, "%s cannot be formatted: what stands there would mean something else", at)
	}
	if at := lostComment(text, out); at > 0 {
		return fault.New(fault.Unsupported, "%s:%d: the file cannot be formatted: the comment in this line would be lost", file, at).
			WithHint("move it to a line of its own above what it is about")
	}
	return nil
}

// equal tells whether two values are the same, whatever the order of keys, and where they are not.
func equal(a, b *document.Node) (at document.Position, same bool) {
	if a.Kind != b.Kind || len(a.Items) != len(b.Items) || len(a.Keys) != len(b.Keys) || a.Kind == document.Scalar && fmt.Sprintf("%T %[1]v", a.Scalar) != fmt.Sprintf("%T %[1]v", b.Scalar) {
		return a.Position, false
	}
	for i, item := range a.Items {
		other := b.Items[i]
		if a.Kind == document.Map {
			if other = b.Get(a.Keys[i].Name); other == nil {
				return a.Keys[i].Position, false
			}
		}
		if at, same := equal(item, other); !same {
			return at, false
		}
	}
	return document.Position{}, true
}

// lostComment is the line of a comment that another text lacks, 0 if it has all. A number sign in a value is in both.
func lostComment(text, out []byte) int {
	if bytes.Count(text, []byte("#")) == bytes.Count(out, []byte("#")) {
		return 0
	}
	have := map[string]int{}
	for line := range bytes.Lines(out) {
		have[afterSign(line)]++
	}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if comment := afterSign(line); comment != "" {
			if have[comment]--; have[comment] < 0 {
				return n
			}
		}
	}
	return n
}

// afterSign is what stands in a line from its last number sign on.
func afterSign(line []byte) string {
	i := bytes.LastIndexByte(line, '#')
	if i < 0 {
		return ""
	}
	return string(bytes.TrimSpace(line[i:]))
}
