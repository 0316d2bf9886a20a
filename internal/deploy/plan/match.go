package plan

import (
	"context"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/yaql"
)

// The names of nodes and roles with a meaning of their own.
const (
	Master   = "master" // the node that the deployment is led from
	Virtual  = "null"   // stands for the node of stages, which is none
	everyone = "*"
	itself   = "self"
)

// Node is a node as the roles of tasks are resolved to it.
type Node struct {
	UID  string
	Tags []string // roles and tags; the first of a role has primary-ROLE instead of ROLE
}

// matcher compares names with patterns: text between slashes is a regular expression that must fit the beginning of
// a name, any other text is the name itself.
type matcher struct {
	compile  *yaql.Expression
	compiled map[string]*compiled
	known    map[[2]string]bool // whether a pattern fits a name
}

// compiled is a pattern with what each name begins with that it fits: most names of a large graph need no further look.
type compiled struct {
	*yaql.Regex
	prefix string
}

func newMatcher() (*matcher, error) {
	engine, err := yaql.New()
	if err != nil {
		return nil, err
	}
	compile, err := engine.Compile("regex($)")
	return &matcher{compile: compile, compiled: map[string]*compiled{}, known: map[[2]string]bool{}}, err
}

func pattern(name string) (string, bool) {
	if len(name) < 1 || name[0] != '/' || name[len(name)-1] != '/' {
		return "", false
	}
	if len(name) < 2 {
		return "", true
	}
	return name[1 : len(name)-1], true
}

func (m *matcher) match(ctx context.Context, name, text string) (bool, error) {
	p, ok := pattern(name)
	if !ok {
		return name == text, nil
	}
	re := m.compiled[p]
	if re == nil {
		v, err := m.compile.Eval(ctx, p)
		regex, ok := v.(*yaql.Regex)
		if err != nil || !ok {
			return false, fault.New(fault.Invalid, "the pattern %s: %w", name, err)
		}
		re = &compiled{regex, prefixOf(p)}
		m.compiled[p] = re
	}
	if !strings.HasPrefix(text, re.prefix) {
		return false, nil
	}
	key := [2]string{p, text}
	fits, done := m.known[key]
	if done {
		return fits, nil
	}
	found, err := re.Search(text, nil)
	if err != nil {
		return false, fault.New(fault.Invalid, "the pattern %s: %w", name, err)
	}
	fits = found != nil && found.Group(0).Start == 0 // of several matches the first is found
	m.known[key] = fits
	return fits, nil
}

// prefixOf is what all names begin with that a regular expression fits from their beginning on: its first letters, as far as they mean themselves.
// Where there are alternatives, or flags, nothing is said.
func prefixOf(p string) string {
	if strings.Contains(p, "|") || strings.Contains(p, "(?") {
		return ""
	}
	p = strings.TrimPrefix(p, "^")
	n := 0
	for n < len(p) && plainLetter(p[n]) {
		n++
	}
	if n > 0 && n < len(p) && strings.IndexByte("*?{", p[n]) >= 0 { // the last one need not be there
		n--
	}
	return p[:n]
}

func plainLetter(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// Resolve returns the UIDs of the nodes that a role means; see resolve. Of several that anyOne is asked of it is the
// first.
func Resolve(ctx context.Context, nodes []Node, selector any, anyOne bool) ([]string, error) {
	m, err := newMatcher()
	if err != nil {
		return nil, err
	}
	b := &builder{matcher: m, nodes: append(slices.Clone(nodes), Node{UID: Master}), master: int32(len(nodes))}
	found, _, err := b.resolve(ctx, selector)
	if err != nil {
		return nil, err
	}
	if anyOne && len(found) > 1 {
		found = found[:1]
	}
	uids := make([]string, len(found))
	for i, n := range found {
		uids[i] = b.nodes[n].UID
	}
	return uids, nil
}

// resolve returns the nodes that a role of a task or a relation means, in the order of the plan: "*" all nodes with
// a tag, "master" the master, other names and patterns the nodes with a tag that fits. Lists are the union of what
// their items mean, in which "*" means nothing. Anything else means no node, which is what ok says.
func (b *builder) resolve(ctx context.Context, selector any) (nodes []int32, ok bool, err error) {
	var names []string
	switch x := selector.(type) {
	case string:
		if x == everyone {
			for i := range b.nodes {
				if len(b.nodes[i].Tags) > 0 && b.nodes[i].UID != Master {
					nodes = append(nodes, int32(i))
				}
			}
			return nodes, true, nil
		}
		names = []string{x}
	case []any, *yaql.List:
		if names, err = namesIn(itemsOf(x), "a role"); err != nil {
			return nil, true, err
		}
	default:
		return nil, false, nil
	}
	found := map[int32]bool{}
	for _, name := range names {
		if err := b.resolveName(ctx, name, found); err != nil {
			return nil, true, err
		}
	}
	for i := range found {
		nodes = append(nodes, i)
	}
	slices.Sort(nodes)
	return nodes, true, nil
}

func (b *builder) resolveName(ctx context.Context, name string, found map[int32]bool) error {
	if name == Master {
		found[b.master] = true
		return nil
	}
	for i := range b.nodes {
		if b.nodes[i].UID == Master {
			continue
		}
		for _, tag := range b.nodes[i].Tags {
			fits, err := b.matcher.match(ctx, name, tag)
			if err != nil {
				return err
			}
			if fits {
				found[int32(i)] = true
				break
			}
		}
	}
	return nil
}

// namesIn returns the items of a list, which must be texts.
func namesIn(items []any, what string) ([]string, error) {
	out := make([]string, len(items))
	for i, x := range items {
		s, ok := x.(string)
		if !ok {
			return nil, noAttribute(what + " is " + told(x) + ", which is no text")
		}
		out[i] = s
	}
	return out, nil
}

// noAttribute is an error about a value of another kind than is used there.
func noAttribute(message string) error {
	return &yaql.Error{Class: yaql.AttributeError, Message: message, Offset: -1}
}

// told writes a value for a message.
func told(v any) string {
	text, ok := v.(string)
	if !ok {
		text = Canonical(v)
	}
	return fault.Clip(text, 100)
}

// texts returns the items of a list that are texts.
func texts(items []any) []string {
	var out []string
	for _, x := range items {
		if s, ok := x.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// CompareUIDs orders nodes by their UIDs: numbers by value, before other names.
func CompareUIDs(a, b string) int {
	an, bn := numeric(a), numeric(b)
	switch {
	case an && bn:
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	case an:
		return -1
	case bn:
		return 1
	}
	return strings.Compare(a, b)
}

func numeric(s string) bool {
	for _, r := range s {
		if r < '0' || r > '9' {
			return false
		}
	}
	return s != ""
}
