package filters

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/qlang"
)

// statsList is what rules do now, rule by rule.
var statsList = lists.List{
	What: "filter", Fields: []string{"rule", "action_text", "decides", "held", "longest_hold", "would_hold", "changed"},
	Brief: []string{"longest_hold", "would_hold"}, Order: List.Order, NameField: "uuid", Means: ruleMeant,
	Short: "Tell of each rule how many jobs it decides about and holds now, and since when",
}

// filterStats is a list with columns of its own.
func filterStats(sh *shell.Shell) *cobra.Command {
	l := statsList
	l.Table = l.Fields
	cmd := lists.Command(sh, l)
	cmd.Use = "stats [RULE...]"
	cmd.Long = l.Short + `.

  Decides       jobs that have not ended and that the rule decides about, as it
                stands among the others
  Held          those of them that do not go on because of it
  Longest_hold  since when the longest of them has been held
  Would_hold    of a shadow: jobs that it would decide about if it were in force
  Changed       when the rule was added or last changed

What a rule has done so far is told by drover filter test --days (of jobs that have
ended) and drover query event (of the rule itself).`
	return cmd
}

// infoFields are the fields of a rule behind ruleFields.
var infoFields = []string{"rule_name", "comment", "until", "shadow", "added_by", "changed", "held", "decides", "would_hold"}

// rulesMeant is the filter for the rules that arguments mean; without any, all.
func rulesMeant(ctx context.Context, sh *shell.Shell, refs []string) (qlang.Node, error) {
	if len(refs) == 0 {
		return &qlang.All{}, nil
	}
	or := &qlang.Or{}
	for _, ref := range refs {
		uuid, err := ruleUUID(ctx, sh, ref)
		if err != nil {
			return nil, err
		}
		if _, err := ruleByUUID(ctx, sh, uuid); err != nil {
			return nil, err
		}
		or.Args = append(or.Args, &qlang.Compare{Op: qlang.Eq, Field: "uuid", Value: qlang.TextValue(uuid)})
	}
	return or, nil
}

// ruleInfo shows rules, or all in the order in which they are asked.
func ruleInfo(ctx context.Context, sh *shell.Shell, refs []string) error {
	filter, err := rulesMeant(ctx, sh, refs)
	if err != nil {
		return err
	}
	var found listing.Answer
	fields := append(append([]string{}, ruleFields...), infoFields...)
	err = sh.Ask(ctx, "Query", &found, "filter", fields, qlang.JSON(filter), map[string]any{"sort": List.Order, "limit": 0})
	if err != nil {
		return err
	}
	data, err := lists.Objects(&found)
	if err != nil {
		return err
	}
	return sh.Show(data, func() error {
		for i, row := range found.Data {
			text, err := describe(sh, row)
			if err != nil {
				return err
			}
			if i > 0 {
				text = "\n" + text
			}
			if err := sh.Printf("%s", text); err != nil {
				return err
			}
		}
		return nil
	})
}

// shownRule is a row of ruleFields and infoFields.
type shownRule struct {
	jobfilter.Rule

	until, changed, held, decides, wouldHold int64
	addedBy                                  string
}

func readShownRule(row []listing.Cell) (r shownRule, err error) {
	var until, changed float64
	places := []any{&r.UUID, &r.Watermark, &r.Priority, &r.Predicates, &r.Action, &r.Reason,
		&r.Name, &r.Comment, &until, &r.Shadow, &r.addedBy, &changed, &r.held, &r.decides, &r.wouldHold}
	for i, place := range places {
		if row[i].Status != 0 {
			continue
		}
		if err := json.Unmarshal(row[i].Value, place); err != nil {
			return r, err
		}
	}
	r.until, r.changed = int64(until), int64(changed)
	return r, nil
}

// describe shows a rule to a person.
func describe(sh *shell.Shell, row []listing.Cell) (string, error) {
	r, err := readShownRule(row)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-11s %s\n", name+":", fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "%s\n", sh.Paint(shell.Bold, strings.TrimSpace(r.Name+" "+r.UUID)))
	line("action", "%s", r.Action)
	line("priority", "%d", r.Priority)
	if len(r.Predicates) == 0 {
		line("applies to", "every job")
	}
	for i := range r.Predicates {
		name := ""
		if i == 0 {
			name = "applies if"
		}
		fmt.Fprintf(&b, "  %-11s %s\n", strings.TrimSuffix(name+":", ":"), r.Predicates[i].String())
	}
	line("watermark", "%d", r.Watermark)
	if r.Shadow {
		line("shadow", "it decides nothing; it would decide about %s", shell.Counted(int(r.wouldHold), "job"))
	} else {
		line("now", "it decides about %s and holds %d", shell.Counted(int(r.decides), "job"), r.held)
	}
	if r.until > 0 {
		line("ends", "%s", time.Unix(r.until, 0).Format(time.DateTime))
	}
	if r.Comment != "" {
		line("comment", "%s", r.Comment)
	}
	if r.changed > 0 {
		line("changed", "%s", time.Unix(r.changed, 0).Format(time.DateTime))
	}
	for _, e := range r.Reason {
		b.WriteString(shell.HopLine(e))
	}
	return b.String(), nil
}
