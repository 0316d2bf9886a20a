package logmessage_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/logmessage"
	"github.com/drover-project/drover/internal/testkit"
)

var update = flag.Bool("update", false, "write docs/messages.md anew")

const root = "../.."

// docs/messages.md must say what the table says.
func TestDocumentIsUpToDate(t *testing.T) {
	testkit.Golden(t, *update, root+"/docs/messages.md", document())
}

func document() string {
	var b strings.Builder
	b.WriteString(`# Messages of the log

What the log says at WARN and ERROR, why, and what to do. ERROR is for somebody to act on; WARN tells of what may become one, or passes by itself. An ellipsis stands for
what differs. What an error says that stands behind ` + "`error`" + ` is its own text. This page is made from the table in internal/logmessage (go test ./internal/logmessage -run
Document -update).
`)
	part := ""
	for _, m := range logmessage.Table() {
		if m.Part != part {
			part = m.Part
			fmt.Fprintf(&b, "\n## %s\n\n| | message | why | what to do |\n|---|---|---|---|\n", part)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", m.Level, m.Text, m.Cause, m.Remedy)
	}
	return b.String()
}

// written are the methods of a log that write at a level that the table tells of, by which argument is the message.
var written = map[string]struct {
	level logmessage.Level
	at    int
}{"Warn": {logmessage.Warn, 0}, "WarnContext": {logmessage.Warn, 1}, "Error": {logmessage.Error, 0}, "ErrorContext": {logmessage.Error, 1}}

// said is a message in the source.
type said struct {
	level logmessage.Level
	text  string
	place string
}

// messages reads the source: what is written into a log, which is known by its name.
func messages(t *testing.T) (all []said) {
	t.Helper()
	files := token.NewFileSet()
	for _, dir := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				method, ok := call.Fun.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				w, writes := written[method.Sel.Name]
				if writes && isLog(method.X) && len(call.Args) > w.at {
					all = append(all, said{w.level, text(call.Args[w.at]), files.Position(call.Pos()).String()})
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// isLog tells whether an expression is a log, by its last name.
func isLog(x ast.Expr) bool {
	name := ""
	switch x := x.(type) {
	case *ast.Ident:
		name = x.Name
	case *ast.SelectorExpr:
		name = x.Sel.Name
	}
	return strings.EqualFold(name, "log") || name == "slog"
}

// text is a message with an ellipsis for each part that is no constant.
func text(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.BasicLit:
		if s, err := strconv.Unquote(x.Value); err == nil {
			return s
		}
	case *ast.BinaryExpr:
		return text(x.X) + text(x.Y)
	}
	return "…"
}

// TestEachMessageHasItsRow: what the program writes at WARN or ERROR has a row of that level, and a row is of something that is written.
func TestEachMessageHasItsRow(t *testing.T) {
	rows, used := map[string]logmessage.Level{}, map[string]bool{}
	for _, m := range logmessage.Table() {
		if rows[m.Text] != "" || m.Part == "" || !strings.HasSuffix(m.Cause, ".") || !strings.HasSuffix(m.Remedy, ".") {
			t.Errorf("this row is there twice, or is not whole: %+v", m)
		}
		rows[m.Text] = m.Level
	}
	all := messages(t)
	const fewest = 50
	if len(all) < fewest {
		t.Fatalf("the source has %d messages", len(all))
	}
	for _, s := range all {
		used[s.text] = true
		switch {
		case strings.Trim(s.text, "… ") == "":
			t.Errorf("%s: a message has to have a text of its own", s.place)
		case rows[s.text] == "":
			t.Errorf("%s: %q has no row in the table", s.place, s.text)
		case rows[s.text] != s.level:
			t.Errorf("%s: %q is written at %s, and the table says %s", s.place, s.text, s.level, rows[s.text])
		}
	}
	for text := range rows {
		if !used[text] {
			t.Errorf("nothing says %q", text)
		}
	}
}
