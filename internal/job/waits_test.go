package job

import "testing"

// TestWaitKinds: each kind of wait of a timeline has a row, and what is told of all of them is what lists say.
func TestWaitKinds(t *testing.T) {
	seen := map[SpanKind]bool{}
	for _, w := range WaitKinds {
		if s := (&Span{Kind: w.Kind}); seen[w.Kind] || !s.Waiting() || w.Word == "" || w.What == "" || w.Ends == "" || w.Led == "" != w.Past {
			t.Errorf("%s: a bad row %+v", w.Kind, w)
		}
		if seen[w.Kind] = true; w.Kind != WaitForDependency && w.Word != string(w.Kind) { // which tells jobs
			t.Errorf("lists say %s of %s", w.Word, w.Kind)
		}
	}
	for _, k := range []SpanKind{HeldByRule, WaitForDependency, WaitForNode, WaitForLimit, WaitForLock, WaitForSlot, Restart} {
		if !seen[k] {
			t.Errorf("%s has no row", k)
		}
	}
	if got := WaitNames(true); got != "rule UUID, job N, node NAME, limit NAME, lock NAME, slot, restart" {
		t.Errorf("it may have waited for %s", got)
	}
	if got := WaitReasons(); got != "a filter rule, another job, a node that is away, a full limit, a lock, or a slot that is not free" {
		t.Errorf("it waits for %s", got)
	}
	if Ran.Led() != "ran" || WasEnded.Led() != "" || WaitForNode.Led() != "waited" {
		t.Error("the lines of a timeline begin otherwise")
	}
}
