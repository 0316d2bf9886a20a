package deployments

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/report"
	"github.com/drover-project/drover/yaql/yaqljson"
)

// How much a page tells by name; the lists tell the rest.
const (
	shownNodes  = 10 // nodes with something to tell, each on a line
	listedNodes = 12 // nodes on a line
	shownTasks  = 8  // tasks of a kind
)

// progressPage tells all that people want to know of a deployment.
func progressPage(p *course.Progress, now time.Time) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "deployment %d of %s: %s", p.ID, p.Environment, p.Status)
	if p.Mode != course.Earnest {
		fmt.Fprintf(b, " (%s)", p.Mode)
	}
	if p.Why != "" {
		fmt.Fprintf(b, ", %s", p.Why)
	}
	fmt.Fprintf(b, "\n%d of %s done\n", p.Done(), shell.Counted(p.Runs, "task"))
	if p.Moved != "" {
		fmt.Fprintf(b, "what it was planned from has changed: %s\n", p.Moved)
	}
	taskLines(b, p)
	nodeLines(b, p)
	some(b, p.Running, "that run", func(t *course.Task) { fmt.Fprintf(b, "running: %s, job %d\n", whereIs(t), t.Job) })
	some(b, p.Held, "that are held", func(t *course.Task) { fmt.Fprintf(b, "held: %s, job %d, by %s\n", whereIs(t), t.Job, holding(t)) })
	some(b, p.Queued, "that wait", func(t *course.Task) {
		fmt.Fprintf(b, "waiting: %s, job %d, for %s\n", whereIs(t), t.Job, waiting(t.Wait, now))
	})
	failures(b, p)
	some(b, p.Stopped, "that were cancelled", func(t *course.Task) {
		fmt.Fprintf(b, "cancelled: %s, job %d%s\n", whereIs(t), t.Job, blocking(t.Blocks))
	})
	if len(p.Longest) > 0 {
		fmt.Fprintf(b, "longest chain: %s\n", strings.Join(p.Longest, ", then "))
	}
	if text := p.Next(); text != "" {
		fmt.Fprintf(b, "next: %s\n", text)
	}
	return b.String()
}

func whereIs(t *course.Task) string { return t.Task + " on node " + t.Node }

// some tells of the first tasks of a list, and how many more there are, as far as the list goes.
func some(b *strings.Builder, tasks []course.Task, what string, tell func(*course.Task)) {
	for i := range tasks[:min(len(tasks), shownTasks)] {
		tell(&tasks[i])
	}
	if n := len(tasks) - shownTasks; n > 0 {
		fmt.Fprintf(b, "and %d more %s\n", n, what)
	}
}

// taskLines tells how far those tasks are that are under way.
func taskLines(b *strings.Builder, p *course.Progress) {
	if !p.Status.Active() {
		return
	}
	shown := 0
	for _, t := range p.ByTask {
		if t.Ended == t.Runs || t.Ended+t.Running == 0 {
			continue
		}
		if shown++; shown > shownTasks {
			b.WriteString("and more tasks that are under way\n")
			return
		}
		fmt.Fprintf(b, "task %s: %s\n", t.Task, tally(&t))
	}
}

// tally says how far a task is.
func tally(t *course.TaskTally) string {
	text := fmt.Sprintf("%d of %d done", t.Passed, t.Runs)
	if t.Running > 0 {
		text += fmt.Sprintf(", %d running", t.Running)
	}
	if t.Failed > 0 {
		text += fmt.Sprintf(", %d failed", t.Failed)
	}
	if n := t.Ended - t.Passed - t.Failed; n > 0 {
		text += fmt.Sprintf(", %d could not begin", n)
	}
	return text
}

// nodeLines tells how far nodes are: those on which all is done together, of the others each by itself.
func nodeLines(b *strings.Builder, p *course.Progress) {
	var done, left []string
	for _, uid := range slices.SortedFunc(maps.Keys(p.ByNode), byNumber) {
		if n := p.ByNode[uid]; n.Passed == n.Runs {
			done = append(done, uid)
		} else {
			left = append(left, uid)
		}
	}
	if len(done) > 0 {
		fmt.Fprintf(b, "all done on %s\n", nodes(done))
	}
	for _, uid := range left[:min(len(left), shownNodes)] {
		n := p.ByNode[uid]
		fmt.Fprintf(b, "node %s: %d of %d", uid, n.Passed, n.Runs)
		if n.Failed > 0 {
			fmt.Fprintf(b, ", %d failed", n.Failed)
		}
		b.WriteString("\n")
	}
	if n := len(left) - shownNodes; n > 0 {
		fmt.Fprintf(b, "and %s more with something left\n", shell.Counted(n, "node"))
	}
}

// byNumber orders UIDs as people do: numbers by their value, before all else.
func byNumber(x, y string) int {
	a, wrongA := strconv.ParseInt(x, 10, 64)
	b, wrongB := strconv.ParseInt(y, 10, 64)
	switch {
	case wrongA == nil && wrongB == nil:
		return cmp.Or(cmp.Compare(a, b), cmp.Compare(x, y))
	case wrongA == nil:
		return -1
	case wrongB == nil:
		return 1
	}
	return cmp.Compare(x, y)
}

// nodes names some nodes on a line.
func nodes(uids []string) string {
	switch n := len(uids); {
	case n == 1:
		return "node " + uids[0]
	case n > listedNodes:
		return fmt.Sprintf("%d nodes: %s and %d more", n, strings.Join(uids[:listedNodes], ", "), n-listedNodes)
	default:
		return fmt.Sprintf("%d nodes: %s", n, strings.Join(uids, ", "))
	}
}

// failures tells of tasks that failed: of each the first node with what it printed last, and which nodes failed likewise.
func failures(b *strings.Builder, p *course.Progress) {
	byTask := map[string][]*course.Task{}
	var order []string
	for i := range p.Unsuccessful {
		t := &p.Unsuccessful[i]
		if byTask[t.Task] == nil {
			order = append(order, t.Task)
		}
		byTask[t.Task] = append(byTask[t.Task], t)
	}
	for _, id := range order[:min(len(order), shownTasks)] {
		first, others := byTask[id][0], byTask[id][1:]
		failure(b, first)
		if len(others) > 0 {
			uids := make([]string, len(others))
			for i, t := range others {
				uids[i] = t.Node
			}
			fmt.Fprintf(b, "    it failed also on %s\n", nodes(uids))
		}
	}
	if told, n := shownTasks, p.States[course.Failed]; len(order) > told || n > len(p.Unsuccessful) {
		fmt.Fprintf(b, "%d failed in all: drover deploy tasks %d --filter 'state == \"error\"'\n", n, p.ID)
	}
}

// failure tells why a task failed, and what it printed last.
func failure(b *strings.Builder, t *course.Task) {
	fmt.Fprintf(b, "failed: %s", whereIs(t))
	if t.Job > 0 {
		fmt.Fprintf(b, ", job %d", t.Job)
	}
	fmt.Fprintf(b, ": %s%s\n", t.Error, blocking(t.Blocks))
	printed(b, t)
}

// printed tells what a task printed last, and where all of it is.
func printed(b *strings.Builder, t *course.Task) {
	for _, line := range t.Output {
		fmt.Fprintf(b, "    | %s\n", line)
	}
	if t.Job > 0 && len(t.Output) > 0 {
		fmt.Fprintf(b, "    all of it: drover deploy logs %d %s %s\n", t.Deployment, t.Task, t.Node)
	}
}

// blocking says how many tasks cannot run for one that did not succeed.
func blocking(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 task waits for it"
	}
	return fmt.Sprintf("; %d tasks wait for it", n)
}

// waiting says what a job waits for, and who has it.
func waiting(w *course.Wait, now time.Time) string {
	what := strings.TrimPrefix(w.Lock, "node/")
	if w.Job == 0 {
		return what
	}
	text := fmt.Sprintf("%s: job %d has it", what, w.Job)
	if w.What != "" {
		text += " (" + w.What + ")"
	}
	if w.Since > 0 {
		text += ", for " + now.Sub(time.Unix(0, w.Since)).Round(time.Second).String()
	}
	return text
}

// holding names the filter rule that holds a task.
func holding(t *course.Task) string {
	if t.HeldWhy != "" {
		return t.HeldWhy
	}
	return "filter rule " + t.Held
}

// explanationPage tells for people all about a task of a stored plan.
func explanationPage(x *course.Explanation, now time.Time) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s/%s (%s): %s\n%s", x.Node, x.Task.Task, x.Type, x.Why, x.State)
	switch {
	case x.Held != "":
		fmt.Fprintf(b, ", held by %s", holding(&x.Task))
	case x.Running:
		b.WriteString(", running")
	}
	if x.Job > 0 {
		fmt.Fprintf(b, ", job %d", x.Job)
	}
	if x.Begun > 0 && x.Ended > x.Begun {
		fmt.Fprintf(b, ", took %s", time.Duration(x.Ended-x.Begun).Round(time.Millisecond))
	}
	b.WriteString("\n")
	if x.Wait != nil {
		fmt.Fprintf(b, "waits for %s\n", waiting(x.Wait, now))
	}
	if x.Error != "" {
		fmt.Fprintf(b, "error: %s\n", x.Error)
		printed(b, &x.Task)
	}
	some(b, x.Roots, "are in its way", func(root *course.Task) {
		fmt.Fprintf(b, "cannot run since %s %s\n", whereIs(root), ended(root))
		if root == &x.Roots[0] {
			printed(b, root)
		}
	})
	if x.State == course.Waiting && len(x.Roots) == 0 && !x.Status.Active() && x.Status != course.Planned {
		fmt.Fprintf(b, "it was not begun before the deployment ended: %s, %s\n", x.Status, x.Over)
	}
	if x.Parameters != nil {
		if v, err := yaqljson.Decode(x.Parameters); err == nil {
			b.WriteString(report.Parameters(v))
		}
	}
	for i, name := range x.Requires {
		fmt.Fprintf(b, "requires %s", name)
		if t := &x.Requirements[i]; x.Status != course.Planned || t.State == course.Skipped {
			fmt.Fprintf(b, " (%s)", stateOf(t))
		}
		b.WriteString("\n")
	}
	for _, name := range x.RequiredFor {
		fmt.Fprintf(b, "is required for %s\n", name)
	}
	if text := (&course.Progress{Deployment: &course.Deployment{ID: x.Deployment, Environment: x.Environment, Status: x.Status}}).Next(); text != "" && !x.State.Passed() {
		fmt.Fprintf(b, "next: %s\n", text)
	}
	return b.String()
}

// stateOf says in a few words what has become of a task.
func stateOf(t *course.Task) string {
	switch {
	case t.Running:
		return "running"
	case t.Held != "":
		return "held"
	}
	return string(t.State)
}

// ended says how a task came to an end that did not succeed.
func ended(t *course.Task) string {
	if t.State == course.Stopped {
		return "was cancelled"
	}
	return "failed: " + t.Error
}
