package filters

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/reason"
)

// exported is a rule as files have it: what add and apply take, and what people
// read.
type exported struct {
	Name     string           `json:"name,omitempty"`
	Priority int              `json:"priority"`
	When     string           `json:"when"`
	Action   jobfilter.Action `json:"action"`
	Comment  string           `json:"comment,omitempty"`
	Until    time.Time        `json:"until,omitzero"`
	Shadow   bool             `json:"shadow,omitempty"`
	Reason   reason.Trail     `json:"reason,omitempty"`
}

// export is the rule without what belongs to this cluster: its identity, and the hops
// that the controller added to its trail.
func export(r *jobfilter.Rule) exported {
	e := exported{Name: r.Name, Priority: r.Priority, When: jobfilter.WhenText(r.Predicates), Action: r.Action,
		Comment: r.Comment, Until: r.Until.UTC(), Shadow: r.Shadow}
	for _, hop := range r.Reason {
		if !ofController(hop.Source) {
			e.Reason = append(e.Reason, hop)
		}
	}
	return e
}

// ofController reports whether a hop with this source is the controller's to add.
func ofController(source string) bool {
	return strings.HasPrefix(source, reason.SourceAccount) || source == reason.SourceQueue
}

// same reports whether two rules say the same, whoever said why.
func (e exported) same(other exported) bool {
	return e.Name == other.Name && e.Priority == other.Priority && e.When == other.When && e.Action == other.Action &&
		e.Comment == other.Comment && e.Until.Equal(other.Until) && e.Shadow == other.Shadow
}

// rulesThere are the rules of the cluster, in the order in which they are asked.
func rulesThere(ctx context.Context, sh *shell.Shell, filter qlang.Node) ([]jobfilter.Rule, error) {
	var found listing.Answer
	fields := append(append([]string{}, ruleFields...), infoFields...)
	err := sh.Ask(ctx, "Query", &found, "filter", fields, qlang.JSON(filter), map[string]any{"sort": List.Order, "limit": 0})
	if err != nil {
		return nil, err
	}
	out := make([]jobfilter.Rule, len(found.Data))
	for i, row := range found.Data {
		r, err := readShownRule(row)
		if err != nil {
			return nil, err
		}
		out[i] = r.Rule
		if r.until > 0 {
			out[i].Until = time.Unix(r.until, 0)
		}
	}
	return out, nil
}

func filterExport(sh *shell.Shell) *cobra.Command {
	return &cobra.Command{
		Use: "export [RULE...]", Short: "Write rules as filter add and filter apply read them", Args: cobra.ArbitraryArgs,
		Long:              "Write rules as JSON (or, with --output yaml, as YAML for people), without what\nbelongs to this cluster alone. Such a file can be kept, added elsewhere by filter add,\nand brought back by filter apply.",
		ValidArgsFunction: lists.CompleteNames(sh, "filter", true),
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := rulesMeant(cmd.Context(), sh, args)
			if err != nil {
				return err
			}
			there, err := rulesThere(cmd.Context(), sh, filter)
			if err != nil {
				return err
			}
			out := make([]exported, len(there))
			for i := range there {
				out[i] = export(&there[i])
			}
			return sh.Show(out, func() error { return sh.ShowJSON(out) })
		},
	}
}

func filterApply(sh *shell.Shell) *cobra.Command {
	var prune bool
	var expect string
	cmd := &cobra.Command{
		Use: "apply FILE|-", Short: "Make the rules those of a file", Args: shell.Exactly(1),
		Long: "Make the rules those of a file, all or none. A rule with the name of one that there\nis takes its place, if it says anything else; one that says what another says already\nis left alone. Others are added. With --prune, rules that the file does not have are\nremoved. --dry-run tells what would come of it.",
	}
	cmd.Flags().BoolVar(&prune, "prune", false, "remove the rules that the file does not have")
	registerExpect(cmd, &expect)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		rules, err := readRules(sh, args[0])
		if err != nil {
			return err
		}
		there, err := rulesThere(cmd.Context(), sh, &qlang.All{})
		if err != nil {
			return err
		}
		a := application{there: there}
		if err := a.plan(cmd.Context(), sh, rules, prune); err != nil {
			return err
		}
		return a.carryOut(cmd, sh, expect)
	}
	return cmd
}

// application is what brings the rules of a cluster to those of a file.
type application struct {
	there                             []jobfilter.Rule
	edits                             []ruleEdit
	added, changed, unchanged, pruned int
}

func (a *application) plan(ctx context.Context, sh *shell.Shell, rules []map[string]any, prune bool) error {
	replaced := make([]string, len(rules))
	for i, rule := range rules {
		if at := a.called(rule["name"]); at >= 0 {
			replaced[i] = a.there[at].UUID
		}
	}
	if err := placeRules(ctx, sh, rules, replaced); err != nil {
		return err
	}
	wanted := map[string]bool{}
	for i, rule := range rules {
		text, err := json.Marshal(rule)
		if err != nil {
			return err
		}
		parsed, err := jobfilter.ParseRule(text)
		if err != nil {
			return err
		}
		want := export(&parsed)
		at := slices.IndexFunc(a.there, func(r jobfilter.Rule) bool { return !wanted[r.UUID] && export(&r).same(want) })
		switch {
		case at >= 0:
			wanted[a.there[at].UUID] = true
			a.unchanged++
			continue
		case replaced[i] != "":
			wanted[replaced[i]] = true
			a.changed++
		default:
			a.added++
		}
		a.edits = append(a.edits, ruleEdit{Do: jobfilter.Put, Rule: replaced[i], Parts: rule})
	}
	for _, r := range a.there {
		if prune && !wanted[r.UUID] {
			a.edits = append(a.edits, ruleEdit{Do: jobfilter.Delete, Rule: r.UUID})
			a.pruned++
		}
	}
	return nil
}

// called is the place of the rule with a name, -1 if there is none.
func (a *application) called(name any) int {
	return slices.IndexFunc(a.there, func(r jobfilter.Rule) bool { return r.Name != "" && r.Name == name })
}

func (a *application) carryOut(cmd *cobra.Command, sh *shell.Shell, expect string) error {
	counts := map[string]int{"added": a.added, "changed": a.changed, "unchanged": a.unchanged, "removed": a.pruned}
	tell := func() error {
		return sh.Show(counts, func() error {
			return sh.Printf("%d added, %d changed, %d unchanged, %d removed\n", a.added, a.changed, a.unchanged, a.pruned)
		})
	}
	switch {
	case len(a.edits) == 0:
		return tell()
	case sh.Flags.DryRun:
		sh.Notef("%d would be added, %d changed, %d removed\n", a.added, a.changed, a.pruned)
		return testRules(cmd.Context(), sh, a.edits, ruleTest{expect: expect})
	}
	if err := sureAboutEdits(cmd, sh, a.edits, expect); err != nil {
		return err
	}
	if _, err := changeRules(cmd.Context(), sh, a.edits, expect); err != nil {
		return err
	}
	return tell()
}
