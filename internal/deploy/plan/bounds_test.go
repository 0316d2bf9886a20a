package plan

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/state"
	"github.com/drover-project/drover/internal/fault"
)

// TestPlansAreBounded plans with all that a plan may have, and with one less of each. Ten nodes have five tasks each, of which the last comes after
// all others on all nodes and on its own, and each has a text of a hundred letters.
func TestPlansAreBounded(t *testing.T) {
	language, err := expression.NewLanguage()
	if err != nil {
		t.Fatal(err)
	}
	text := &strings.Builder{}
	for i := range 5 {
		fmt.Fprintf(text, "- {id: t%d, type: shell, version: 2.1.0, role: '*', parameters: {cmd: {yaql_exp: '\"x\" * 100'}}", i)
		if i == 4 {
			text.WriteString(", requires: ['/t[0-3]/'], cross-depends: [{name: '/t[0-3]/', role: '*'}]")
		}
		text.WriteString("}\n")
	}
	g, err := graph.Read(language, "g.yaml", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	planned := func(ctx context.Context, most bounds) error {
		space := state.NewSpace()
		in := Input{Tasks: g.Tasks, Space: space, Common: space.NewPart(nil), Parts: map[string]*state.Part{}}
		for i := range 10 {
			uid := strconv.Itoa(i)
			in.Nodes, in.Parts[uid] = append(in.Nodes, Node{UID: uid, Tags: []string{"n"}}), space.NewPart(nil)
		}
		p, err := build(ctx, language, in, most)
		if err != nil {
			return err
		}
		_, err = p.Order()
		return err
	}
	// 40 steps before the point, 10 behind it, and 4 on each node before its last.
	most := bounds{steps: 50, bytes: 50 * (4 + 4 + len("cmd") + 4 + 100), relations: 40 + 10 + 40}
	if err := planned(t.Context(), most); err != nil {
		t.Fatalf("what may be is refused: %v", err)
	}
	for says, less := range map[string]bounds{
		"more than 49 tasks on nodes":                {most.steps - 1, most.bytes, most.relations},
		"more than 5749 bytes of computed values":    {most.steps, most.bytes - 1, most.relations},
		"the plan would have more than 89 relations": {most.steps, most.bytes, most.relations - 1},
		"the plan would have more than 39 relations": {most.steps, most.bytes, 39}, // found before they are spelt out
	} {
		if err := planned(t.Context(), less); !fault.Is(err, fault.TooLarge) || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want %q", less, err, says)
		}
	}
	ctx, leave := context.WithCancelCause(t.Context())
	left := errors.New("the client has left")
	leave(left)
	if err := planned(ctx, most); !errors.Is(err, left) {
		t.Errorf("for who has left it is %v", err)
	}
}
