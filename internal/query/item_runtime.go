package query

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/reason"
)

type rule = *jobfilter.Rule

var filterTable = table[rule]{
	what: "filter",
	absent: map[string]string{
		"name": "the name of a rule is the field rule_name",
		"id":   "rules have a uuid, a rule_name, and rule, which is what to mean them by",
	},
	fields: slices.Concat([]field[rule]{
		{Def: Def{"uuid", "UUID", KindOther, "Identity of the rule"},
			get: func(_ *view, r rule) Cell { return text(r.UUID) }},
		{Def: Def{"watermark", "Watermark", KindOther, "Highest job number that was in use when the rule was added or replaced"},
			get: func(_ *view, r rule) Cell { return known(r.Watermark) }},
		{Def: Def{"priority", "Priority", KindOther, "Place among the rules, the smallest first"},
			get: func(_ *view, r rule) Cell { return known(int64(r.Priority)) }},
		{Def: Def{"predicates", "Predicates", KindOther, "Conditions that must all hold"}, words: "predicates_text",
			get: func(_ *view, r rule) Cell { return known(r.Predicates) }},
		{Def: Def{"action", "Action", KindOther, "What becomes of jobs that meet the conditions"}, words: "action_text",
			get: func(_ *view, r rule) Cell { return known(actionValue(r.Action)) }},
		{Def: Def{"reason_trail", "ReasonTrail", KindOther, "Who added the rule and why"}, words: "reason",
			get: func(_ *view, r rule) Cell { return known(r.Reason) }},
	}, strictly([]field[rule]{
		{Def: Def{"rule", "Rule", KindText, "What to mean the rule by: its name, or else the beginning of its UUID"}, get: func(_ *view, r rule) Cell { return text(r.Short()) }},
		{Def: Def{"rule_name", "Rule_name", KindText, "What people call the rule by"}, get: func(_ *view, r rule) Cell { return textOrUnavail(r.Name) }},
		{Def: Def{"comment", "Comment", KindText, "What people say about it"}, get: func(_ *view, r rule) Cell { return textOrUnavail(r.Comment) }},
		{Def: Def{"until", "Until", KindTimestamp, "When the rule ends by itself"}, get: func(_ *view, r rule) Cell {
			if r.Until.IsZero() {
				return Cell{Status: Unavail}
			}
			return timestamp(r.Until.UnixNano())
		}},
		{Def: Def{"shadow", "Shadow", KindBool, "Whether the rule is asked without deciding"}, get: func(_ *view, r rule) Cell { return truth(r.Shadow) }},
		{Def: Def{"action_text", "Action_text", KindText, "The action as text, for searching: PAUSE, RATE_LIMIT 3"},
			get: func(_ *view, r rule) Cell { return text(r.Action.String()) }},
		{Def: Def{"predicates_text", "Predicates_text", KindText, "The conditions as text, for searching"},
			get: func(_ *view, r rule) Cell { return text(predicatesText(r)) }},
		{Def: Def{"reason", "Reason", KindText, "The reasons of the trail as one text, for searching: what people and programs said, without who said it"},
			get: func(_ *view, r rule) Cell { return text(reasonsText(r.Reason)) }},
		{Def: Def{"added_by", "Added_by", KindText, "Account that added or last changed the rule"},
			get: func(_ *view, r rule) Cell { return textOrUnavail(accountOf(r.Reason)) }},
		{Def: Def{"held", "Held", KindNumber, "How many jobs the rule holds now"}, from: InMemory, mutual: true,
			get: func(v *view, r rule) Cell { return known(heldBy(v, r.UUID)) }},
		{Def: Def{"longest_hold", "Longest_hold", KindTimestamp, "Since when the rule has held the job that it has held longest"}, from: InMemory, mutual: true,
			get: func(v *view, r rule) Cell {
				since := longestHold(v, r.UUID)
				if since == 0 {
					return Cell{Status: Unavail}
				}
				return timestamp(int64(since) * 1000)
			}},
		{Def: Def{"decides", "Decides", KindNumber, "How many jobs that have not ended the rule decides about, as it stands among the others"}, from: InMemory, mutual: true,
			get: func(v *view, r rule) Cell { return known(v.verdicts().decides[r.UUID]) }},
		{Def: Def{"would_hold", "Would_hold", KindNumber, "How many jobs that have not ended a shadow would decide about if it were in force"}, from: InMemory, mutual: true,
			get: func(v *view, r rule) Cell {
				if !r.Shadow {
					return Cell{Status: Unavail}
				}
				return known(v.verdicts().shadows[r.UUID])
			}},
		{Def: Def{"changed", "Changed", KindTimestamp, "When the rule was added or last changed"}, get: func(_ *view, r rule) Cell {
			if len(r.Reason) == 0 {
				return Cell{Status: Unavail}
			}
			return timestamp(r.Reason[len(r.Reason)-1].Time) // the queue's own hop
		}},
	})),
	all: func(v *view) iter.Seq[rule] {
		if v.Rules == nil {
			return none[rule]
		}
		list := slices.Clone(v.Rules())
		slices.SortFunc(list, func(a, b rule) int { return compareIdentities(a.UUID, b.UUID) })
		return slices.Values(list)
	},
	identity: func(r rule) string { return r.UUID },
	affected: rulesOf,
	rowsOf:   ruleNow,
}.indexed()

// actionValue is an action as the reference has it: a text, unless it has a limit.
func actionValue(a jobfilter.Action) any {
	if a.Kind == jobfilter.RateLimit {
		return a
	}
	return string(a.Kind)
}

func predicatesText(r rule) string {
	texts := make([]string, len(r.Predicates))
	for i := range r.Predicates {
		texts[i] = r.Predicates[i].String()
	}
	return strings.Join(texts, "; ")
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
func heldBy(v *view, uuid string) int64 {
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
func longestHold(v *view, uuid string) job.Time {
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

// verdicts asks the rules once for all fields of a query.
func (v *view) verdicts() *verdicts {
	if v.decided != nil {
		return v.decided
	}
	v.decided = &verdicts{map[string]int64{}, map[string]int64{}}
	chain, err := jobfilter.Compile(valuesOf(v.Rules()))
	if err != nil {
		return v.decided // not reached: they are in force
	}
	for j := range v.JobTable.Unfinished() {
		in := j.Inputs()
		if d := chain.Decide(int64(j.ID), in); d.Rule != nil {
			v.decided.decides[d.Rule.UUID]++
		}
		for _, r := range chain.Shadows(int64(j.ID), in) {
			v.decided.shadows[r.UUID]++
		}
	}
	return v.decided
}

func valuesOf(rules []rule) []jobfilter.Rule {
	out := make([]jobfilter.Rule, len(rules))
	for i, r := range rules {
		out[i] = *r
	}
	return out
}

var lockTable = table[lock.State]{
	what: "lock",
	fields: []field[lock.State]{
		{Def: Def{"name", "Name", KindOther, "Name of the lock"}, from: InMemory,
			get: func(_ *view, s lock.State) Cell { return text(s.Name.String()) }},
		{Def: Def{"mode", "Mode", KindOther, "How it is held: exclusive or shared; null when it is only waited for"}, from: InMemory,
			get: func(_ *view, s lock.State) Cell {
				if s.Holders.Len() == 0 {
					return known(nil)
				}
				return text(s.Mode.String())
			}},
		{Def: Def{"owner", "Owner", KindOther, "Jobs that hold it"}, from: InMemory,
			get: func(_ *view, s lock.State) Cell {
				out := make([]string, 0, s.Holders.Len())
				for o := range s.Holders.All() {
					out = append(out, owner(o))
				}
				return known(out)
			}},
		{Def: Def{"pending", "Pending", KindOther, "Who waits for it: mode and job of each"}, from: InMemory,
			get: func(_ *view, s lock.State) Cell {
				out := make([]any, len(s.Pending))
				for i, p := range s.Pending {
					out[i] = []any{p.Mode.String(), []any{owner(p.Owner)}}
				}
				return known(out)
			}},
	},
	all: func(v *view) iter.Seq[lock.State] {
		if v.Locks == nil {
			return none[lock.State]
		}
		list := slices.Clone(v.Locks())
		slices.SortStableFunc(list, func(a, b lock.State) int { return cluster.CompareNames(a.Name.String(), b.Name.String()) })
		return slices.Values(list)
	},
	identity: func(s lock.State) string { return s.Name.String() },
	affected: locksOf,
	rowsOf:   lockNow,
}.indexed()

// owner writes a job's number as clients read it: text that holds JSON.
func owner(o lock.Owner) string { return strconv.FormatInt(int64(o), 10) }

// exportRow is an export on a node; status tells why there is none to show.
type exportRow struct {
	node   *cluster.Node
	export string
	status Status
}

var exportTable = table[exportRow]{
	what:      "export",
	nameField: "node",
	fields: []field[exportRow]{
		{Def: Def{"node", "Node", KindText, "Name of the node that keeps the export"}, from: Live, mode: hostname, need: NeedExports,
			get: func(_ *view, r exportRow) Cell { return text(r.node.Name) }},
		{Def: Def{"export", "Export", KindText, "Name of the export"}, from: Live, need: NeedExports,
			get: func(_ *view, r exportRow) Cell {
				if r.status != Normal {
					return Cell{Status: r.status}
				}
				return text(r.export)
			}},
	},
	all: func(v *view) iter.Seq[exportRow] { return exportRows(v.inv.Nodes()) },
	named: func(v *view, names []qlang.Value) ([]exportRow, bool, error) {
		nodes, ok, err := nodeNamed(v, names)
		return slices.Collect(exportRows(slices.Values(nodes))), ok, err
	},
	identity: func(r exportRow) string { return r.node.UUID + "/" + r.export },
	nodes:    func(_ *view, r exportRow) string { return r.node.UUID },
	always:   NeedExports,
	expand:   exportsOf,
}.indexed()

// exportRows yields a row for each node, which stands for the exports there.
func exportRows(nodes iter.Seq[*cluster.Node]) iter.Seq[exportRow] {
	return func(yield func(exportRow) bool) {
		for n := range nodes {
			if !yield(exportRow{node: n}) {
				return
			}
		}
	}
}

// exportsOf makes a row of each export of a node, and one of a node that could
// not tell.
func exportsOf(v *view, r exportRow) []exportRow {
	if r.node.Offline {
		r.status = Offline
		return []exportRow{r}
	}
	answer, ok := v.live.of(r.node.UUID)
	if !ok {
		r.status = NoData
		return []exportRow{r}
	}
	out := make([]exportRow, len(answer.Exports))
	for i, name := range answer.Exports {
		out[i] = exportRow{node: r.node, export: name}
	}
	return out
}
