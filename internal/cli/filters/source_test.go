package filters

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/jobfilter"
)

// TestPartsOfRulesAreKnownToTheCommandLine: whatever part a rule may have, it can be given in a file and by an option, and what is exported is read again.
func TestPartsOfRulesAreKnownToTheCommandLine(t *testing.T) {
	_, err := jobfilter.ParseRule([]byte(`{"0":0}`))
	refused, ok := errors.AsType[*fault.Error](err)
	if !ok {
		t.Fatalf("what is no part is taken: %v", err)
	}
	list, told := strings.CutPrefix(refused.Hint, "the parameters are ")
	if !told {
		t.Fatalf("which parts there are is not told: %v", err)
	}
	cmd := &cobra.Command{}
	new(labels).register(cmd)
	for part := range strings.SplitSeq(list, ", ") {
		if !slices.Contains(ruleKeys, part) {
			t.Errorf("ruleKeys lacks %s", part)
		}
		if of, known := partOf[part]; !known || of != part && part != "reason" {
			t.Errorf("partOf has %s as %q", part, of)
		}
		if !slices.Contains(ruleParts, part) && part != "reason" {
			t.Errorf("ruleParts lacks %s", part)
		}
		if slices.Contains([]string{"predicates", "action", "priority", "reason"}, part) {
			continue // each has an option of its own
		}
		if cmd.Flags().Lookup(part) == nil {
			t.Errorf("there is no option --%s", part)
		}
	}
	for _, key := range ruleKeys {
		if key != "when" && !slices.Contains(strings.Split(list, ", "), key) {
			t.Errorf("ruleKeys has %s, which no rule has", key)
		}
	}
}
