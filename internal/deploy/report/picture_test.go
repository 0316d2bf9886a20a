package report_test

import (
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/report"
)

// TestPicturesOfDeployments: what is in names and texts is text in both languages, each task has its state, and arrows lead to what comes later.
func TestPicturesOfDeployments(t *testing.T) {
	boxes := []report.Box{{Title: `say "hi" <b>`, Text: "ready, 2 of 2 nodes", State: "ready"}, {Title: `back\slash`, Text: "waiting", State: "waiting"}}
	for form, want := range map[string][]string{
		"mermaid": {"flowchart LR\n", "  t0[\"say #quot;hi#quot; #lt;b#gt;<br/>ready, 2 of 2 nodes\"]:::ready\n", "  t0 --> t1\n", "  classDef ready stroke:#17693b"},
		"dot":     {"digraph deployment {\n", `  t0 [label="say \"hi\" <b>\nready, 2 of 2 nodes", color="#17693b", fillcolor="#e5f4ea"];`, `  t1 [label="back\\slash\nwaiting"];`, "  t0 -> t1;\n", "}\n"},
	} {
		b := &strings.Builder{}
		if err := report.PictureForm(form)(b, boxes, [][2]int{{0, 1}}); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s lacks %q:\n%s", form, w, b)
			}
		}
	}
	if report.PictureForm("svg") != nil {
		t.Error("there is a form that nobody made")
	}
}
