package job

import (
	"slices"
	"strings"
)

// WaitKind is a kind of thing that keeps a job from going on. What lists, their help, timelines and docs/waiting.md say of it is in its row of
// WaitKinds.
type WaitKind struct {
	Kind SpanKind
	// Word begins what waits_for and waited_for say of it, and Of tells for help what is behind that; empty where there is only one such thing.
	Word, Of string
	// What says for people what is waited for, and Ends what ends that.
	What, Ends string
	// Led begins the lines of a timeline about it; empty where the text says all.
	Led string
	// Past: nothing waits for it any more when somebody looks.
	Past bool
}

// WaitKinds are all of them.
var WaitKinds = []WaitKind{
	{Kind: HeldByRule, Word: "rule", Of: "UUID", What: "a filter rule", Led: "held",
		Ends: "the rule is deleted, changed, or at its end (`drover filter delete`); or one before it lets the job pass (`drover filter add --action ACCEPT`)"},
	{Kind: WaitForDependency, Word: "job", Of: "N", What: "another job", Led: "waited", Ends: "that job ends, or is cancelled"},
	{Kind: WaitForNode, Word: "node", Of: "NAME", What: "a node that is away", Led: "waited", Ends: "its agent connects; after a minute the job goes on without it, and fails"},
	{Kind: WaitForLimit, Word: "limit", Of: "NAME", What: "a full limit", Led: "waited", Ends: "one of the jobs in flight in it ends, or the limit grows"},
	{Kind: WaitForLock, Word: "lock", Of: "NAME", What: "a lock", Led: "waited", Ends: "the jobs that hold it end (`drover lock list`)"},
	{Kind: WaitForSlot, Word: "slot", What: "a slot that is not free", Led: "waited", Ends: "a running job ends, or `max_running_jobs` grows (`drover cluster modify --max-running-jobs N`)"},
	{Kind: Restart, Word: "restart", What: "a start of the controller", Ends: "it leads", Past: true},
}

// WaitNames names for help what a job waits for, as lists say it; with past what it may have waited for.
func WaitNames(past bool) string {
	var names []string
	for _, w := range WaitKinds {
		if past || !w.Past {
			names = append(names, strings.TrimSpace(w.Word+" "+w.Of))
		}
	}
	return strings.Join(names, ", ")
}

// WaitReasons names for help what a job waits for, for people.
func WaitReasons() string {
	var names []string
	for _, w := range WaitKinds {
		if !w.Past {
			names = append(names, w.What)
		}
	}
	n := len(names) - 1
	return strings.Join(names[:n], ", ") + ", or " + names[n]
}

// Led begins a line of a timeline about a stretch of a job's life; empty where its text says all.
func (k SpanKind) Led() string {
	switch k {
	case Ran:
		return "ran"
	case TookStep:
		return "step"
	}
	if i := slices.IndexFunc(WaitKinds, func(w WaitKind) bool { return w.Kind == k }); i >= 0 {
		return WaitKinds[i].Led
	}
	return ""
}
