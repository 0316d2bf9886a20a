package yaqlcmd

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drover-project/drover/yaql"
)

// onTab completes the word before the cursor. When there is more than one way it goes as far as all agree, and
// lists them when that is no way at all.
func (c *console) onTab(screen io.Writer, line string, pos int, key rune) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}
	candidates, start := c.complete(line[:pos])
	if len(candidates) == 0 {
		return line, pos, true
	}
	common := commonPrefix(candidates)
	if len(candidates) > 1 && common == line[start:pos] {
		_, _ = fmt.Fprintln(screen, strings.Join(candidates, "  ")) // a help only
		return line, pos, true
	}
	return line[:start] + common + line[pos:], start + len(common), true
}

// path matches, at the end of a text, the receiver whose members may be completed.
var path = regexp.MustCompile(`\$\w*(?:\??\.\w+|\[-?\d+\])*$`)

// complete returns what the word at the end of text may become, sorted, and where the word starts.
func (c *console) complete(text string) (candidates []string, start int) {
	start = len(strings.TrimRightFunc(text, isWordRune))
	word := text[start:]
	before := text[:start]
	switch {
	case before == ":":
		for _, command := range consoleCommands() {
			candidates = append(candidates, command.name)
		}
	case strings.HasSuffix(before, "."):
		receiver := path.FindString(strings.TrimRight(before, "?."))
		candidates = c.members(receiver)
		if word != "" || len(candidates) == 0 { // the keys alone tell more than all methods
			candidates = append(candidates, c.callable(yaql.MethodKind)...)
		}
	case strings.HasSuffix(before, "$"):
		candidates = nil
	default:
		candidates = c.callable(yaql.FunctionKind)
	}
	candidates = slices.DeleteFunc(candidates, func(name string) bool { return !strings.HasPrefix(name, word) })
	slices.Sort(candidates)
	return slices.Compact(candidates), start
}

func isWordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// callable returns the names of the functions of a kind, with the parenthesis that follows.
func (c *console) callable(kind yaql.Kind) []string {
	var names []string
	for _, f := range c.engine.Functions() {
		if isWord(f.Name()) && (f.Kind() == kind || f.Kind() == yaql.ExtensionKind) {
			names = append(names, f.Name()+"(")
		}
	}
	return names
}

// memberSteps bounds the evaluation of a receiver, so that a key press never waits.
const memberSteps = 100000

// members returns the keys that the value of a path has, or that the items of a list have.
func (c *console) members(receiver string) []string {
	if receiver == "" {
		return nil
	}
	engine, err := yaql.New(yaql.StepBudget(memberSteps), yaql.OrderedResults())
	if err != nil {
		return nil
	}
	compiled, err := engine.Compile(receiver)
	if err != nil {
		return nil
	}
	scope := engine.NewContext()
	scope.Set("_", c.last)
	value, err := compiled.EvalIn(context.Background(), scope, c.data)
	if err != nil {
		return nil
	}
	if list, ok := value.([]any); ok && len(list) > 0 {
		value = list[0]
	}
	dict, ok := value.(*yaql.Dict)
	if !ok {
		return nil
	}
	var keys []string
	dict.Range(func(key, _ any) bool {
		if name, ok := key.(string); ok && name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !isWordRune(r) }) {
			keys = append(keys, name)
		}
		return true
	})
	return keys
}

func commonPrefix(words []string) string {
	prefix := words[0]
	for _, word := range words[1:] {
		for !strings.HasPrefix(word, prefix) {
			_, size := utf8.DecodeLastRuneInString(prefix)
			prefix = prefix[:len(prefix)-size]
		}
	}
	return prefix
}
