package graph_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/document"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit"
)

// TestFormat has what people write by hand laid out.
func TestFormat(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"# nothing\n", "# nothing\n"},
		{"- {id: a, type: stage}\n- {type: stage, id: b}\n", "- {id: a, type: stage}\n\n- {id: b, type: stage}\n"},
		{`# What there is.

-   parameters:
        cmd: |
          - echo 1 # not a comment

          - echo 2
        timeout:   010
    # where
    role: ['*'] # all
    type: shell
    id: a
    colour: 'red'


# The next.
-   id: b
    type:   stage
    requires:
    - a
    - "yes"
    - yes
`, `# What there is.

- id: a
  type: shell
  # where
  role: ['*'] # all
  parameters:
    cmd: |
      - echo 1 # not a comment

      - echo 2
    timeout: 010
  colour: 'red'

# The next.
- id: b
  type: stage
  requires:
    - a
    - "yes"
    - yes
`},
		{"name: g\ntasks:\n- id: a\n  type: stage\n# b\n- id: b\n  type: stage\non_stop: {}\n", "name: g\ntasks:\n  - id: a\n    type: stage\n\n  # b\n  - id: b\n    type: stage\non_stop: {}\n"},
		{"- id: a\n  type: shell\n  parameters:\n      cmd: > # a comment\n\n          a # b\n            c\n\n          - block0.\n\n\n      list:\n      - |-\n       x\n      - |+\n       y\n\n      - >2\n            z\n  # end\n",
			"- id: a\n  type: shell\n  parameters:\n    cmd: > # a comment\n\n      a # b\n        c\n\n      - block0.\n    list:\n      - |-\n        x\n      - |+\n        y\n\n      - >2\n            z\n  # end\n"},
		{"- &a\n  type: stage\n  id: a\n- <<: *a\n  id: b\n", "- &a\n  type: stage\n  id: a\n\n- <<: *a\n  id: b\n"},
	} {
		got, err := graph.Format("g", []byte(c.text))
		if err != nil || string(got) != c.want {
			t.Errorf("%s\ncame to %v\n%s\nwant\n%s", c.text, err, got, c.want)
			continue
		}
		formatted(t, "g", got)
	}
	for text, want := range map[string]string{"- a\n b: c: d": "bad YAML", "a: b": "a graph is a list of tasks", "3": "a graph is a list of tasks"} {
		if _, err := graph.Format("g", []byte(text)); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// formatted tells whether a text is as it would be formatted.
func formatted(t *testing.T, file string, text []byte) {
	t.Helper()
	again, err := graph.Format(file, text)
	if err != nil || !bytes.Equal(again, text) {
		t.Errorf("%s: formatted again it is another: %v\n%s", file, err, again)
	}
}

// TestFormatOfAllGraphs lays out all graphs that there are in tests, pages and Fuel's library, and each of them again: nothing is lost (Format itself
// looks), and it stays so.
func TestFormatOfAllGraphs(t *testing.T) {
	for name, of := range map[string]func() string{"ours": func() string { return testkit.Root(t) }, "Fuel's": nil} {
		t.Run(name, func(t *testing.T) {
			if of == nil {
				of = func() string { return testkit.FuelLibrary(t) }
			}
			n := 0
			for path, text := range graphsBelow(t, of()) {
				out, err := graph.Format(path, []byte(text))
				switch {
				case fault.Is(err, fault.Unsupported):
					t.Error(err)
				case err == nil: // and no graph otherwise
					n++
					formatted(t, path, out)
				}
			}
			if n < 20 {
				t.Errorf("there are only %d graphs", n)
			}
		})
	}
}

// section is what begins a file in a script of tests, or a block in a page.
var section = regexp.MustCompile("(?m)^(?:-- (.*) --|```(.*))$")

// graphsBelow are the texts that may be graphs below a directory: files, and those in scripts of tests and in pages.
func graphsBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" || d.Name() == ".cache" || d.Name() == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		kind := filepath.Ext(path)
		if kind != ".yaml" && kind != ".txtar" && kind != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if kind == ".yaml" {
			all[path] = string(text)
			return err
		}
		at := section.FindAllIndex(text, -1)
		for i, from := range at {
			to := len(text)
			if i+1 < len(at) {
				to = at[i+1][0]
			}
			all[fmt.Sprintf("%s, text %d", path, i)] = strings.TrimPrefix(string(text[from[1]:to]), "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// byHand is a graph as nobody should write one: any indent, comments anywhere, texts in any form.
type byHand struct {
	*rand.Rand
	strings.Builder

	comments []string
}

func (h *byHand) comment() string {
	c := fmt.Sprintf("# comment %d", len(h.comments))
	h.comments = append(h.comments, c)
	return c
}

// end ends a line, perhaps with a comment, and perhaps with more lines before the next.
func (h *byHand) end(indent string) {
	if h.IntN(6) == 0 {
		h.WriteString("  " + h.comment())
	}
	h.WriteString("\n")
	for range h.IntN(8) / 6 {
		if h.IntN(2) == 0 {
			h.WriteString(indent + h.comment())
		}
		h.WriteString("\n")
	}
}

func (h *byHand) value(key, indent string, depth int) {
	more := indent + strings.Repeat(" ", 1+h.IntN(4))
	switch h.IntN(9 - 2*depth) {
	case 0:
		h.WriteString(key + " 'it''s #1'")
		h.end(indent)
	case 1:
		h.WriteString(key + " |\n" + more + "a # no comment\n\n" + more + "  - b\n")
	case 2:
		h.WriteString(key + " >-\n" + more + "a\n" + more + "b: c\n\n\n")
	case 3:
		h.WriteString(key + " {yaql_exp: 'changed($.x)', b: [1, 2]}")
		h.end(indent)
	case 4:
		h.WriteString(key + " [a, \"b\", 0755, yes, ~]")
		h.end(indent)
	case 5:
		h.WriteString(key + "\n")
		for i := range 1 + h.IntN(3) {
			h.WriteString(more)
			h.value(fmt.Sprintf("k%d:", i), more, depth+1)
		}
	case 6:
		h.WriteString(key + "\n")
		for range 1 + h.IntN(3) {
			h.WriteString(more)
			h.value("-", more, depth+1)
		}
	default:
		h.WriteString(key + " plain text")
		h.end(indent)
	}
}

func (h *byHand) graph() string {
	if h.IntN(3) == 0 {
		h.WriteString(h.comment() + "\n\n")
	}
	for i := range 1 + h.IntN(4) {
		if h.IntN(3) == 0 {
			h.WriteString(h.comment() + "\n")
		}
		indent := strings.Repeat(" ", 2+2*h.IntN(2))
		fields := []string{"id:", "type:", "parameters:", "role:", "condition:", "colour:"}
		h.Shuffle(len(fields), func(a, b int) { fields[a], fields[b] = fields[b], fields[a] })
		for j, f := range fields {
			h.WriteString(map[bool]string{true: "-" + indent[1:], false: indent}[j == 0])
			switch f {
			case "id:":
				h.WriteString("id: t" + strconv.Itoa(i))
				h.end(indent)
			case "type:":
				h.WriteString("type:   shell")
				h.end(indent)
			default:
				h.value(f, indent, 0)
			}
		}
	}
	return h.String()
}

// TestFormatKeepsEverything lays out random graphs: each means what it meant, has all of its comments once, and stays as it is then.
func TestFormatKeepsEverything(t *testing.T) {
	const many = 400
	refused := 0
	for seed := range uint64(many) {
		h := &byHand{Rand: rand.New(rand.NewPCG(seed, 7))}
		text := h.graph()
		out, err := graph.Format("g", []byte(text))
		if fault.Is(err, fault.Unsupported) {
			refused++
			continue
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		before, _, err := document.Parse("g", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		after, _, err := document.Parse("g", out)
		if err != nil || plan.Canonical(before.Value()) != plan.Canonical(after.Value()) {
			t.Fatalf("%v\n%s\nmeans something else:\n%s", err, text, out)
		}
		for _, c := range h.comments {
			if n := len(regexp.MustCompile(c+`\b`).FindAllIndex(out, -1)); n != 1 {
				t.Fatalf("%s is there %d times\n%s\ncame to\n%s", c, n, text, out)
			}
		}
		again, err := graph.Format("g", out)
		if err != nil || string(again) != string(out) {
			t.Fatalf("%v\n%s\ncame to\n%s\nand then to\n%s", err, text, out, again)
		}
	}
	if refused > many/20 {
		t.Errorf("%d of %d were refused", refused, many)
	}
}
