package items

import (
	"iter"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/reason"
)

type rule = *jobfilter.Rule

var filterTable = query.Table[rule]{
	What:   "filter",
	Stored: true,
	Absent: map[string]string{
		"name": "the name of a rule is the field rule_name",
		"id":   "rules have a uuid, a rule_name, and rule, which is what to mean them by",
	},
	Fields: slices.Concat([]query.Field[rule]{
		{Def: def("uuid", "UUID", query.KindOther, "Identity of the rule"),
			Get: func(_ *query.View, r rule) query.Cell { return text(r.UUID) }},
		{Def: def("watermark", "Watermark", query.KindOther, "Highest job number that was in use when the rule was added or replaced"),
			Get: func(_ *query.View, r rule) query.Cell { return known(r.Watermark) }},
		{Def: def("priority", "Priority", query.KindOther, "Place among the rules, the smallest first"),
			Get: func(_ *query.View, r rule) query.Cell { return known(int64(r.Priority)) }},
		{Def: def("predicates", "Predicates", query.KindOther, "Conditions that must all hold"), Words: "predicates_text",
			Get: func(_ *query.View, r rule) query.Cell { return known(r.Predicates) }},
		{Def: def("action", "Action", query.KindOther, "What becomes of jobs that meet the conditions"), Words: "action_text",
			Get: func(_ *query.View, r rule) query.Cell { return known(actionValue(r.Action)) }},
		{Def: def("reason_trail", "ReasonTrail", query.KindOther, "Who added the rule and why"), Words: "reason",
			Get: func(_ *query.View, r rule) query.Cell { return known(r.Reason) }},
	}, strictly([]query.Field[rule]{
		{Def: def("rule", "Rule", query.KindText, "What to mean the rule by: its name, or else the beginning of its UUID"), Get: func(_ *query.View, r rule) query.Cell { return text(r.Short()) }},
		{Def: def("rule_name", "Rule_name", query.KindText, "What people call the rule by"), Get: func(_ *query.View, r rule) query.Cell { return textOrUnavail(r.Name) }},
		{Def: def("comment", "Comment", query.KindText, "What people say about it"), Get: func(_ *query.View, r rule) query.Cell { return textOrUnavail(r.Comment) }},
		{Def: def("until", "Until", query.KindTimestamp, "When the rule ends by itself"), Get: func(_ *query.View, r rule) query.Cell {
			if r.Until.IsZero() {
				return query.Cell{Status: query.Unavail}
			}
			return timestamp(r.Until.UnixNano())
		}},
		{Def: def("shadow", "Shadow", query.KindBool, "Whether the rule is asked without deciding"), Get: func(_ *query.View, r rule) query.Cell { return truth(r.Shadow) }},
		{Def: def("action_text", "Action_text", query.KindText, "The action as text, for searching: PAUSE, RATE_LIMIT 3"),
			Get: func(_ *query.View, r rule) query.Cell { return text(r.Action.String()) }},
		{Def: def("predicates_text", "Predicates_text", query.KindText, "The conditions as text, for searching"),
			Get: func(_ *query.View, r rule) query.Cell { return text(jobfilter.WhenText(r.Predicates)) }},
		{Def: def("reason", "Reason", query.KindText, "The reasons of the trail as one text, for searching: what people and programs said, without who said it"),
			Get: func(_ *query.View, r rule) query.Cell { return text(reasonsText(r.Reason)) }},
		{Def: def("added_by", "Added_by", query.KindText, "Account that added or last changed the rule"),
			Get: func(_ *query.View, r rule) query.Cell { return textOrUnavail(accountOf(r.Reason)) }},
		{Def: def("held", "Held", query.KindNumber, "How many jobs the rule holds now"), From: query.InMemory, Mutual: true,
			Get: func(v *query.View, r rule) query.Cell { return known(heldBy(v, r.UUID)) }},
		{Def: def("longest_hold", "Longest_hold", query.KindTimestamp, "Since when the rule has held the job that it has held longest"), From: query.InMemory, Mutual: true,
			Get: func(v *query.View, r rule) query.Cell {
				since := longestHold(v, r.UUID)
				if since == 0 {
					return query.Cell{Status: query.Unavail}
				}
				return timestamp(int64(since) * 1000)
			}},
		{Def: def("decides", "Decides", query.KindNumber, "How many jobs that have not ended the rule decides about, as it stands among the others"), From: query.InMemory, Mutual: true,
			Get: func(v *query.View, r rule) query.Cell { return known(verdictsOf(v).decides[r.UUID]) }},
		{Def: def("would_hold", "Would_hold", query.KindNumber, "How many jobs that have not ended a shadow would decide about if it were in force"), From: query.InMemory, Mutual: true,
			Get: func(v *query.View, r rule) query.Cell {
				if !r.Shadow {
					return query.Cell{Status: query.Unavail}
				}
				return known(verdictsOf(v).shadows[r.UUID])
			}},
		{Def: def("changed", "Changed", query.KindTimestamp, "When the rule was added or last changed"), Get: func(_ *query.View, r rule) query.Cell {
			if len(r.Reason) == 0 {
				return query.Cell{Status: query.Unavail}
			}
			return timestamp(r.Reason[len(r.Reason)-1].Time) // the queue's own hop
		}},
	})),
	All: func(v *query.View) iter.Seq[rule] {
		if v.Rules == nil {
			return none[rule]
		}
		list := slices.Clone(v.Rules())
		slices.SortFunc(list, func(a, b rule) int { return query.CompareIdentities(a.UUID, b.UUID) })
		return slices.Values(list)
	},
	Identity: func(r rule) string { return r.UUID },
	Affected: rulesOf,
	RowsOf:   ruleNow,
}.Indexed()

// actionValue is an action as the reference has it: a text, unless it has a limit.
func actionValue(a jobfilter.Action) any {
	if a.Kind == jobfilter.RateLimit {
		return a
	}
	return string(a.Kind)
}

// reasonsText joins the reasons of a trail: what predicates search as the field
// reason, but for the accounts, which added_by tells.
func reasonsText(t reason.Trail) string {
	var texts []string
	for _, e := range t {
		if e.Reason != "" && !strings.HasPrefix(e.Source, reason.SourceAccount) {
			texts = append(texts, e.Reason)
		}
	}
	return strings.Join(texts, "; ")
}

// accountOf is the account of the last hop that tells one.
func accountOf(t reason.Trail) string {
	for _, e := range slices.Backward(t) {
		if strings.HasPrefix(e.Source, reason.SourceAccount) {
			return e.Reason
		}
	}
	return ""
}

// heldBy counts the jobs that a rule holds.
func heldBy(v *query.View, uuid string) int64 {
	n := int64(0)
	for j := range v.JobTable.Unfinished() {
		if j.Hold != nil && j.Hold.Rule == uuid {
			n++
		}
	}
	return n
}

// longestHold is the earliest time since which a rule holds a job, 0 if it holds
// none.
func longestHold(v *query.View, uuid string) job.Time {
	since := job.Time(0)
	for j := range v.JobTable.Unfinished() {
		if j.Hold != nil && j.Hold.Rule == uuid && (since == 0 || j.Hold.Since < since) {
			since = j.Hold.Since
		}
	}
	return since
}

// verdicts count the jobs that have not ended by the rules that decide about them,
// and by the shadows that would.
type verdicts struct{ decides, shadows map[string]int64 }

// verdictsOf asks the rules once for all fields of a query.
func verdictsOf(v *query.View) *verdicts {
	m := memoOf(v)
	if m.decided != nil {
		return m.decided
	}
	m.decided = &verdicts{map[string]int64{}, map[string]int64{}}
	chain, err := jobfilter.Compile(valuesOf(v.Rules()))
	if err != nil {
		return m.decided // not reached: they are in force
	}
	for j := range v.JobTable.Unfinished() {
		in := j.Inputs()
		if d := chain.Decide(int64(j.ID), in); d.Rule != nil {
			m.decided.decides[d.Rule.UUID]++
		}
		for _, r := range chain.Shadows(int64(j.ID), in) {
			m.decided.shadows[r.UUID]++
		}
	}
	return m.decided
}

func valuesOf(rules []rule) []jobfilter.Rule {
	out := make([]jobfilter.Rule, len(rules))
	for i, r := range rules {
		out[i] = *r
	}
	return out
}
