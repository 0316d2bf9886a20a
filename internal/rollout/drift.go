package rollout

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/deploy/plan"
	"github.com/drover-project/drover/internal/deploy/secret"
	"github.com/drover-project/drover/internal/exec"
	"github.com/drover-project/drover/internal/fault"
)

// How machines are asked: for so many who wish it at a time, so many machines, each so many things, all together for so long; and how much of what differs
// is kept of all.
const (
	mostAsking    = 2
	askedAtOnce   = 32
	checksAtOnce  = 4
	askingTime    = 10 * time.Minute
	keptOfAll     = 4 << 20 // bytes
	mostOfSummary = 300     // characters
)

// checkDrift refuses to ask the machines about what would run anyhow.
func (w *Wish) checkDrift() error {
	switch {
	case !w.Drift:
		return nil
	case w.Force:
		return fault.New(fault.Invalid, "with force all runs that is wanted, so that nothing is left to ask the machines about").At("drift")
	case len(w.Refreshed) > 0:
		return fault.New(fault.Invalid, "which tasks run for resources that changed says no machine: only these do").At("drift")
	}
	return nil
}

// found is what the machines told, and what they were asked of.
type found struct {
	course.Drift

	basis course.Basis
	what  map[place]string
}

// told is what is shown; nil if nobody was asked.
func (f *found) told() *course.Drift {
	if f == nil {
		return nil
	}
	return &f.Drift
}

// differs is plan.Input.Differs.
func (f *found) differs() func(task, uid string) (string, bool) {
	if f == nil {
		return nil
	}
	return func(task, uid string) (string, bool) {
		what, yes := f.what[place{uid, task}]
		return what, yes
	}
}

// still refuses what the machines told if they were asked about another state than the one that is planned.
func (f *found) still(from *ground) error {
	if f == nil || f.basis.Equal(from.basis) {
		return nil
	}
	return fault.New(fault.Conflict, "the environment %s changed while its machines were asked: %s", from.env.Name, moved(f.basis, from.basis)).WithHint("ask again")
}

// Compare tells what a deployment would do once the machines are asked whether what was deployed is there still. Nothing is stored, and nothing on the
// machines is changed, as far as checks of tasks keep to that.
func (e *Engine) Compare(ctx context.Context, w Wish, by By) (*Preview, error) {
	w.Drift = true
	if err := w.check(); err != nil {
		return nil, err
	}
	asked, err := e.askMachines(ctx, w)
	if err != nil {
		return nil, err
	}
	from, err := e.groundOf(ctx, w)
	if err != nil {
		return nil, err
	}
	if err := e.planning.begin(ctx); err != nil {
		return nil, err
	}
	defer e.planning.end()
	p, err := e.draft(ctx, w, by, from, asked)
	if err != nil {
		return nil, err
	}
	shown := p.preview()
	shown.Drift = asked.told()
	return shown, nil
}

// askMachines asks about the tasks that would not run, if that is wished; nil if it is not.
func (e *Engine) askMachines(ctx context.Context, w Wish) (*found, error) {
	if !w.Drift {
		return nil, nil
	}
	if e.cfg.Nodes == nil {
		return nil, fault.New(fault.Unsupported, "this controller cannot ask machines").At("drift")
	}
	if _, err := environmentOf(e.known(), w.Environment); err != nil {
		return nil, err
	}
	if d := e.known().ActiveIn(w.Environment); d != nil { // it is half done
		return nil, underWay(d)
	}
	if err := e.asking.begin(ctx); err != nil {
		return nil, err
	}
	defer e.asking.end()
	out, questions, hide, err := e.questions(ctx, w)
	if err != nil {
		return nil, err
	}
	out.take(questions, e.answers(ctx, questions), hide)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return out, nil
}

// question is what a machine is asked about a task of a node.
type question struct {
	place

	host  string
	check agent.Check
}

// questions are those about the tasks of a wish that would not run, with what hides secrets.
func (e *Engine) questions(ctx context.Context, w Wish) (*found, []question, *secret.Veil, error) {
	from, err := e.groundOf(ctx, w)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := e.planning.begin(ctx); err != nil {
		return nil, nil, nil, err
	}
	defer e.planning.end()
	d := &course.Deployment{Environment: w.Environment, Mode: w.Mode}
	p, _, hide, err := e.compute(ctx, d, w, from, func(in *plan.Input) { in.Asks = true })
	if err != nil {
		return nil, nil, nil, err
	}
	out := &found{basis: from.basis, what: map[place]string{}, Drift: course.Drift{Differ: []course.Differs{}, Unknown: []course.Unknown{}}}
	nodes, master, hidden := byUID(d), masterOf(from.hosts), secret.NewValues(hide.Texts())
	var all []question
	for i := range p.Steps {
		s := &p.Steps[i]
		q := s.Question
		switch {
		case q == nil:
			continue
		case q.Check == nil && q.Type != "upload_file":
			out.Uncompared++
			continue
		}
		uid := p.Nodes[s.Node]
		x := question{place: place{uid, s.ID()}, host: hostOf(nodes[uid], &course.Step{Type: q.Type, Node: uid}, master),
			check: agent.Check{Type: q.Type, Parameters: json.RawMessage(plan.Canonical(q.Parameters)), Hidden: hidden}}
		if q.Check != nil {
			x.check.Command = json.RawMessage(plan.Canonical(q.Check))
		}
		all = append(all, x)
	}
	return out, all, hide, nil
}

// answer is what a machine told, or why it did not.
type answer struct {
	agent.Finding

	err error
}

// answers asks all machines at the same time, as far as that is bounded.
func (e *Engine) answers(ctx context.Context, questions []question) []answer {
	ctx, cancel := context.WithTimeoutCause(ctx, askingTime, fault.New(fault.Failed, "asking all machines took longer than %s", askingTime))
	defer cancel()
	byHost, out := map[string][]int{}, make([]answer, len(questions))
	for i := range questions {
		byHost[questions[i].host] = append(byHost[questions[i].host], i)
	}
	var all sync.WaitGroup
	turn := make(turns, askedAtOnce)
	for host, list := range byHost {
		all.Go(func() {
			if err := turn.begin(ctx); err != nil {
				for _, i := range list {
					out[i].err = err
				}
				return
			}
			defer turn.end()
			e.ask(ctx, host, list, questions, out)
		})
	}
	all.Wait()
	return out
}

// ask asks a machine some of the questions. One that cannot be asked one of them is not asked the rest.
func (e *Engine) ask(ctx context.Context, host string, list []int, questions []question, out []answer) {
	node, err := e.reachable(host)
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	if err != nil {
		giveUp(err)
	}
	var all sync.WaitGroup
	turn := make(turns, checksAtOnce)
	for _, i := range list {
		if turn.begin(ctx) != nil || ctx.Err() != nil { // of several that are ready any may be taken
			out[i].err = context.Cause(ctx)
			continue
		}
		all.Go(func() {
			defer turn.end()
			out[i].Finding, out[i].err = node.Compare(ctx, questions[i].check)
			if fault.Is(out[i].err, fault.Unavailable) || fault.Is(out[i].err, fault.WrongState) {
				giveUp(out[i].err)
			}
		})
	}
	all.Wait()
}

// reachable finds a node that can be asked.
func (e *Engine) reachable(host string) (exec.Node, error) {
	if host == "" {
		return nil, fault.New(fault.NotFound, "no node of the cluster stands for it")
	}
	in, err := e.inventory().FindNode(host)
	if err != nil {
		return nil, err
	}
	if in.Offline {
		return nil, fault.New(fault.Unavailable, "node %s is offline, for somebody marked it so", host)
	}
	node, err := e.cfg.Nodes(in.Name)
	if err == nil && node.Away() > 0 {
		err = fault.New(fault.Unavailable, "node %s cannot be reached", host)
	}
	return node, err
}

// take takes in what machines told.
func (f *found) take(questions []question, answers []answer, hide *secret.Veil) {
	kept := 0
	for i, a := range answers {
		q := &questions[i]
		if a.err != nil {
			f.Unknown = append(f.Unknown, course.Unknown{Task: q.task, Node: q.node, Host: q.host, Why: oneLine(hide.Text(a.err.Error()))})
			continue
		}
		f.Compared++
		if !a.Differs {
			continue
		}
		x := course.Differs{Task: q.task, Node: q.node, Host: q.host, Summary: oneLine(hide.Text(a.Summary)), Difference: []string{}, More: a.More}
		for _, line := range a.Difference[:min(len(a.Difference), agent.MostDifference)] {
			if kept += len(line); kept > keptOfAll {
				x.More = true
				break
			}
			x.Difference = append(x.Difference, hide.Text(line))
		}
		f.Differ = append(f.Differ, x)
		f.what[q.place] = x.Summary
	}
}

// oneLine is the beginning of a text as a line.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > mostOfSummary {
		return string(slices.Concat(r[:mostOfSummary-1], []rune("…")))
	}
	return text
}
