package jobfilter_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/reason"
)

// TestOnePatienceForAllTextsOfAJob: a job of a hundred opcodes, or of one with a hundred reasons, is searched for as long as one with two.
func TestOnePatienceForAllTextsOfAJob(t *testing.T) {
	runaway := strings.Repeat("a", 60) + "!"
	many := op("OP_TEST_DELAY", nil, slices.Repeat([]reason.Entry{{Source: "user", Reason: runaway}}, 100)...)
	one := op("OP_TEST_DELAY", nil)
	one.Comment = &runaway
	for name, c := range map[string]struct {
		predicate string
		ops       []*opcode.Opcode
	}{
		"opcodes": {`[["opcode", ["=~", "comment", "^(?!z)(a|aa)+$"]]]`, slices.Repeat([]*opcode.Opcode{one}, 100)},
		"reasons": {`[["reason", ["=~", "reason", "^(?!z)(a|aa)+$"]]]`, []*opcode.Opcode{many}},
	} {
		t.Run(name, func(t *testing.T) {
			r := rule(t, 0, 0, jobfilter.Pause, c.predicate)
			r.UUID = "p"
			d := chain(t, r)
			search := d.Rules()[0].Predicates[0].Expr.(*qlang.Match).Regex //nolint:forcetypeassert // it is one
			if got := d.Decide(1, c.ops); got.Rule == nil || !got.Unsearched {
				t.Errorf("decided: %s", got)
			}
			if n := search.Strikes(); n != 2 {
				t.Errorf("%d searches were let run until their limit of %s, want 2", n, qlang.MatchLimit)
			}
		})
	}
}

// TestPatienceIsOfOneChain: a preview that meets slow texts does not cost the jobs that come meanwhile theirs.
func TestPatienceIsOfOneChain(t *testing.T) {
	slow := op("OP_TEST_DELAY", nil, reason.Entry{Source: "user", Reason: strings.Repeat("a", 60) + "!"})
	quick := op("OP_TEST_DELAY", nil, reason.Entry{Source: "user", Reason: "z"})
	r := rule(t, 0, 0, jobfilter.Reject, `[["reason", ["=~", "reason", "^(?!z)(a|aa)+$"]]]`)
	r.UUID = "p"
	inForce := chain(t, r)
	preview, err := inForce.With([]jobfilter.Rule{*inForce.Rules()[0]})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		preview.Decide(2, []*opcode.Opcode{slow})
	}()
	for limit := time.Now().Add(time.Minute); ; {
		if d := inForce.Decide(1, []*opcode.Opcode{quick}); d.Rule != nil {
			t.Fatalf("a job of another reason: %s", d)
		}
		select {
		case <-over:
			if d := inForce.Decide(1, []*opcode.Opcode{quick}); d.Rule != nil {
				t.Errorf("a job of another reason: %s", d)
			}
			return
		default:
		}
		if time.Now().After(limit) {
			t.Fatal("the preview does not end")
		}
	}
}
