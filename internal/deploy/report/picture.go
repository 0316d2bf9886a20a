package report

import (
	"bufio"
	"io"
	"strings"
)

// Box is a task in a picture of a deployment.
type Box struct {
	Title, Text string
	State       string // one of course.Sum
}

// PictureForms are the languages of pictures of deployments, the usual one first.
var PictureForms = []struct {
	Name string
	draw func(w io.Writer, boxes []Box, after [][2]int) error
}{{"mermaid", mermaidOf}, {"dot", dotOf}}

// PictureForm returns what draws tasks in a language, with lines from each to those that come after it; nil for one that there is not.
func PictureForm(name string) func(w io.Writer, boxes []Box, after [][2]int) error {
	for _, f := range PictureForms {
		if f.Name == name {
			return f.draw
		}
	}
	return nil
}

// pictureColours are those of the states that stand out: of the line, and of the ground.
var pictureColours = []struct{ state, line, ground string }{
	{"ready", "#17693b", "#e5f4ea"}, {"error", "#b3261e", "#fdecea"}, {"running", "#1756a9", "#e8f0fb"}, {"begun", "#1756a9", "#ffffff"},
	{"held", "#8a5300", "#fff4e0"}, {"given", "#8a5300", "#ffffff"}, {"blocked", "#8a5300", "#fff4e0"}, {"stopped", "#8a5300", "#fff4e0"}, {"skipped", "#888888", "#ffffff"},
}

func mermaidOf(w io.Writer, boxes []Box, after [][2]int) error {
	out := page{bufio.NewWriter(w)}
	out.printf("flowchart LR\n")
	escape := strings.NewReplacer(`"`, "#quot;", "<", "#lt;", ">", "#gt;")
	for i, b := range boxes {
		out.printf("  t%d[\"%s<br/>%s\"]:::%s\n", i, escape.Replace(b.Title), escape.Replace(b.Text), b.State)
	}
	for _, l := range after {
		out.printf("  t%d --> t%d\n", l[0], l[1])
	}
	for _, c := range pictureColours {
		out.printf("  classDef %s stroke:%s,fill:%s,color:#152024\n", c.state, c.line, c.ground)
	}
	return out.Flush()
}

func dotOf(w io.Writer, boxes []Box, after [][2]int) error {
	out := page{bufio.NewWriter(w)}
	out.printf("digraph deployment {\n  rankdir=LR;\n  node [shape=box, style=filled, fillcolor=\"#ffffff\"];\n")
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	for i, b := range boxes {
		colour := ""
		for _, c := range pictureColours {
			if c.state == b.State {
				colour = ", color=\"" + c.line + "\", fillcolor=\"" + c.ground + "\""
			}
		}
		out.printf("  t%d [label=\"%s\\n%s\"%s];\n", i, escape.Replace(b.Title), escape.Replace(b.Text), colour)
	}
	for _, l := range after {
		out.printf("  t%d -> t%d;\n", l[0], l[1])
	}
	out.printf("}\n")
	return out.Flush()
}
