package top

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cli/jobs"
	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/lists"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/queue/machine"
)

// Picture is what the controller showed at one moment.
type Picture struct {
	At      time.Time
	Cluster string
	Queue   jobs.Queue
	// Jobs are how many unfinished jobs there are in each status.
	Jobs map[string]int64
	// Rates are how many jobs came and ended in the last minute.
	Rates Rates
	// Instances are how many there are in each status.
	Instances map[string]int64
	// Roles are how many nodes there are in each role, with the memory in MiB that
	// those told of which answered.
	Roles        map[string]int64
	Memory, Free int64
	// Held is what keeps jobs from going on, most of them first.
	Held []Hold
	// Rows are those of the view that is shown.
	Running, Waiting []Job
	Holds            []Hold
	Nodes            []Node
	// More are rows that the view has beyond those that were asked for.
	More int64
	// Chosen explains the job that was chosen, nil if none was.
	Chosen *machine.Explanation
	wish   Wish
}

// Rates are how many jobs came and ended in the last minute.
type Rates struct{ Came, Ended, Failed int64 }

// Job is an unfinished job.
type Job struct {
	ID       int64
	Status   string
	Since    time.Time // since when it runs, or waits for what it waits for
	Summary  string
	Why      string // what keeps it from going on
	Place    int64  // its place in the line that it waits in, from 1
	Priority int64
}

// Hold is what keeps jobs from going on.
type Hold struct {
	What  string // in the words of wait_reason; empty for what only waits for its turn
	Jobs  int64
	First job.ID // the one of them that came first
}

// Node is a node of the cluster.
type Node struct {
	Name      string
	State     string
	Instances int64
	// Memory and Free are in MiB, -1 where the node did not tell.
	Memory, Free int64
	Changed      string // why it was changed last
}

// Wish is what a picture is to show.
type Wish struct {
	View   View
	Sort   []string // fields of the rows
	Filter qlang.Node
	Chosen job.ID
}

// look takes a picture.
func look(ctx context.Context, ask jobs.Asking, now time.Time, w Wish) (*Picture, error) {
	p := &Picture{At: now, wish: w}
	rows := map[View]func(context.Context, jobs.Asking, Wish) error{Jobs: p.lookAtJobs, Holds: p.lookAtHolds, Nodes: p.lookAtNodes}[w.View]
	for _, step := range []func(context.Context, jobs.Asking, Wish) error{p.lookAtCluster, p.lookAtCounts, p.lookAtRoles, p.lookAtHeld, rows, p.explain} {
		if err := step(ctx, ask, w); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *Picture) lookAtCluster(ctx context.Context, ask jobs.Asking, _ Wish) error {
	var names []string
	if err := ask(ctx, "QueryConfigValues", &names, []string{"cluster_name"}); err != nil {
		return err
	}
	p.Cluster = strings.Join(names, "")
	var err error
	p.Queue, err = jobs.LookAtQueue(ctx, ask)
	return err
}

// running and waiting are the statuses of jobs that have not ended.
var (
	running = []string{string(job.Running)}
	waiting = []string{string(job.Queued), string(job.Waiting), string(job.Canceling)}
)

// unfinished is the filter for them.
func unfinished() qlang.Node {
	return qlang.AnyOf("status", append(slices.Clone(waiting), running...)...)
}

// lastMinute is the filter for jobs to which something happened in the last minute.
func (p *Picture) lastMinute(field string) qlang.Node {
	return &qlang.Compare{Op: qlang.Gt, Field: field, Value: qlang.IntValue(p.At.Add(-time.Minute).Unix())}
}

func (p *Picture) lookAtCounts(ctx context.Context, ask jobs.Asking, _ Wish) error {
	var err error
	if p.Jobs, err = counts(ctx, ask, "job", "status", unfinished()); err != nil {
		return err
	}
	came, err := counts(ctx, ask, "job", "", p.lastMinute("received_ts"))
	if err != nil {
		return err
	}
	ended, err := counts(ctx, ask, "job", "status", p.lastMinute("end_ts"))
	if err != nil {
		return err
	}
	p.Rates = Rates{Came: came[""], Ended: sum(ended), Failed: ended[string(job.Error)]}
	p.Instances, err = counts(ctx, ask, "instance", "status", &qlang.All{})
	return err
}

// sum is the sum of all counts.
func sum(counts map[string]int64) int64 {
	var out int64
	for _, n := range counts {
		out += n
	}
	return out
}

// groups asks for figures of rows, by a field, or of all of them.
func groups(ctx context.Context, ask jobs.Asking, kind, by string, filter qlang.Node, figures ...string) ([][]listing.Cell, error) {
	fields := []string{}
	if by != "" {
		fields = append(fields, by)
	}
	var a listing.Answer
	err := ask(ctx, "Query", &a, kind, []string{}, qlang.JSON(filter), map[string]any{"group_by": fields, "figures": figures})
	return a.Data, err
}

// counts tells how many rows there are by a field, or of all of them.
func counts(ctx context.Context, ask jobs.Asking, kind, by string, filter qlang.Node) (map[string]int64, error) {
	found, err := groups(ctx, ask, kind, by, filter, "count")
	out := map[string]int64{}
	for _, row := range found {
		name := ""
		if by != "" {
			name = lists.CellText(row[0])
		}
		out[name] += number(row[len(row)-1], 0)
	}
	return out, err
}

// shownRows is how many rows of a kind are asked for. Whoever looks for another one
// filters.
const shownRows = 500

// rows asks for rows of a kind, the first of them in an order.
func rows(ctx context.Context, ask jobs.Asking, kind string, fields []string, filter qlang.Node, sort []string) ([][]listing.Cell, error) {
	var a listing.Answer
	err := ask(ctx, "Query", &a, kind, fields, qlang.JSON(filter), map[string]any{"sort": sort, "limit": shownRows})
	return a.Data, err
}

// jobFields are what is asked of jobs, in the order in which readJob reads them.
var jobFields = []string{"id", "status", "start_ts", "waits_since", "received_ts", "summary", "wait_reason", "place", "priority"}

func (p *Picture) lookAtJobs(ctx context.Context, ask jobs.Asking, w Wish) error {
	for _, part := range []struct {
		to    *[]Job
		which []string
	}{{&p.Running, running}, {&p.Waiting, waiting}} {
		found, err := rows(ctx, ask, "job", jobFields, lists.Both(qlang.AnyOf("status", part.which...), w.Filter), w.Sort)
		if err != nil {
			return err
		}
		for _, row := range found {
			*part.to = append(*part.to, readJob(row))
		}
	}
	all, err := counts(ctx, ask, "job", "", lists.Both(unfinished(), w.Filter))
	if err != nil {
		return err
	}
	p.More = max(all[""]-int64(len(p.Running)+len(p.Waiting)), 0)
	return nil
}

// explain explains the job that was chosen, unless it has gone by now.
func (p *Picture) explain(ctx context.Context, ask jobs.Asking, w Wish) error {
	if w.Chosen == 0 {
		return nil
	}
	var x machine.Explanation
	switch err := ask(ctx, "ExplainJob", &x, w.Chosen); {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	}
	p.Chosen = &x
	return nil
}

func readJob(row []listing.Cell) Job {
	j := Job{ID: number(row[0], 0), Status: lists.CellText(row[1]), Why: lists.CellText(row[6]), Place: number(row[7], 0), Priority: number(row[8], 0)}
	if row[6].Status != 0 {
		j.Why = ""
	}
	var parts []string
	if json.Unmarshal(row[5].Value, &parts) == nil {
		j.Summary = strings.Join(parts, ", ")
	}
	times := []listing.Cell{row[3], row[4]}
	if j.Status == string(job.Running) {
		times = []listing.Cell{row[2], row[4]}
	}
	for _, cell := range times {
		var pair []int64
		if cell.Status == 0 && json.Unmarshal(cell.Value, &pair) == nil && len(pair) == 2 {
			j.Since = time.Unix(pair[0], pair[1]*int64(time.Microsecond))
			break
		}
	}
	return j
}

func (p *Picture) lookAtHeld(ctx context.Context, ask jobs.Asking, _ Wish) error {
	var err error
	p.Held, err = holds(ctx, ask, &qlang.All{}, orders[Holds][0].fields)
	return err
}

func (p *Picture) lookAtHolds(ctx context.Context, ask jobs.Asking, w Wish) error {
	var err error
	p.Holds, err = holds(ctx, ask, w.Filter, w.Sort)
	return err
}

// holds asks what keeps jobs from going on.
func holds(ctx context.Context, ask jobs.Asking, filter qlang.Node, sort []string) ([]Hold, error) {
	found, err := groups(ctx, ask, "job", "wait_reason", lists.Both(qlang.AnyOf("status", waiting...), filter), "count", "min(id)")
	if err != nil {
		return nil, err
	}
	var out []Hold
	for _, row := range found {
		h := Hold{Jobs: number(row[1], 0), First: job.ID(number(row[2], 0))}
		if row[0].Status == 0 {
			h.What = lists.CellText(row[0])
		}
		out = append(out, h)
	}
	slices.SortFunc(out, holdOrder(sort))
	return out, nil
}

// holdOrder compares what keeps jobs by a field of theirs, then by name.
func holdOrder(sort []string) func(a, b Hold) int {
	field, down := strings.CutPrefix(sort[0], "-")
	return func(a, b Hold) int {
		by, down := 0, down
		switch field {
		case "jobs":
			by = cmp.Compare(a.Jobs, b.Jobs)
		case "first":
			by = cmp.Compare(a.First, b.First)
		}
		if by == 0 {
			by = strings.Compare(a.What, b.What)
			down = down && field == "what"
		}
		if down {
			return -by
		}
		return by
	}
}

// lookAtRoles counts the nodes.
func (p *Picture) lookAtRoles(ctx context.Context, ask jobs.Asking, _ Wish) error {
	found, err := groups(ctx, ask, "node", "role", &qlang.All{}, "count", "sum(mtotal)", "sum(mfree)")
	if err != nil {
		return err
	}
	p.Roles = map[string]int64{}
	for _, row := range found {
		p.Roles[lists.CellText(row[0])] = number(row[1], 0)
		p.Memory += number(row[2], 0)
		p.Free += number(row[3], 0)
	}
	return nil
}

// nodeFields are what is asked of nodes, in the order in which readNode reads them.
var nodeFields = []string{"name", "offline", "drained", "master", "pinst_cnt", "mtotal", "mfree", "last_change_reason"}

func (p *Picture) lookAtNodes(ctx context.Context, ask jobs.Asking, w Wish) error {
	found, err := rows(ctx, ask, "node", nodeFields, w.Filter, w.Sort)
	if err != nil {
		return err
	}
	for _, row := range found {
		p.Nodes = append(p.Nodes, readNode(row))
	}
	all, err := counts(ctx, ask, "node", "", w.Filter)
	p.More = max(all[""]-int64(len(p.Nodes)), 0)
	return err
}

func readNode(row []listing.Cell) Node {
	n := Node{Name: lists.CellText(row[0]), State: "online", Instances: number(row[4], 0), Memory: number(row[5], -1), Free: number(row[6], -1)}
	if row[7].Status == 0 {
		n.Changed = lists.CellText(row[7])
	}
	switch {
	case lists.CellText(row[1]) == "true":
		n.State = "offline"
	case lists.CellText(row[2]) == "true":
		n.State = "drained"
	case n.Memory < 0:
		n.State = "silent"
	case lists.CellText(row[3]) == "true":
		n.State = "master"
	}
	return n
}

// number reads a cell; what is not there is the other number.
func number(c listing.Cell, missing int64) int64 {
	var n int64
	if c.Status != 0 || json.Unmarshal(c.Value, &n) != nil {
		return missing
	}
	return n
}
