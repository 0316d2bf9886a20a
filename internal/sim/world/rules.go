package world

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/sim/check"
	"github.com/drover-project/drover/internal/sim/history"
)

// rulers is how many clients change rules, each one of its own and those that all share.
// Jobs have labels in their reasons: a ruler's own rule is about the jobs of its label.
const (
	rulers      = 2
	sharedRules = 2
)

// ruler changes filter rules.
type ruler struct {
	*client

	label string
}

// heldLabel is that of jobs which a rule holds from the beginning until all is healed.
const heldLabel = "held"

// ruleUUID is that of a rule by its number, or by its label.
func ruleUUID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

func (w *world) rule(parts *sync.WaitGroup) {
	holding := make(chan struct{})
	for i := range rulers {
		r := &ruler{w.beside("ruler", i), label(i)}
		parts.Go(func() {
			if i == 0 {
				r.hold()
				close(holding)
			}
			<-holding
			r.rounds(r.change)
		})
	}
}

// label is that of the jobs which a ruler's own rule is about.
func label(ruler int) string { return fmt.Sprintf("label%d", ruler+1) }

// drawLabel draws the label of a job; empty for none.
func (c *client) drawLabel() string {
	if n := c.w.streams.IntN("labels/"+c.name, rulers+1); n < rulers {
		return label(n)
	}
	return ""
}

// hold puts the rule that holds jobs to be cancelled.
func (r *ruler) hold() {
	err := r.ask(func(ctx context.Context, t *term) error {
		_, _, err := t.queue.PutFilter(ctx, ruleUUID(1), ruleOf(heldLabel, 0, "PAUSE", time.Time{}), queue.By{})
		return err
	})
	if err != nil {
		panic(err) // it is a good one
	}
}

// ruleOf is a rule about the jobs of a label; an empty one is no job's.
func ruleOf(label string, priority int, action any, until time.Time) jobfilter.Rule {
	predicate := []any{"jobid", []any{"<", "id", 0}}
	if label != "" {
		predicate = []any{"reason", []any{"=", "reason", label}}
	}
	form := map[string]any{"priority": priority, "predicates": []any{predicate}, "action": action}
	if !until.IsZero() {
		form["until"] = until
	}
	text, err := json.Marshal(form)
	if err != nil {
		panic(err) // it has nothing that could not be written
	}
	rule, err := jobfilter.ParseRule(text)
	if err != nil {
		panic(err) // the form above is wrong
	}
	return rule
}

// actions are what rules do, as clients write it.
var actions = []any{"ACCEPT", "PAUSE", "PAUSE", "REJECT", "CONTINUE", []any{"RATE_LIMIT", 1}, []any{"RATE_LIMIT", 2}}

// change changes one rule or another.
func (r *ruler) change(n int) {
	value := 1 + r.id*1000 + n
	switch r.draw.IntN(6) {
	case 0:
		r.own(value)
	case 1:
		r.unown()
	case 2:
		r.expiring(value)
	case 3:
		r.held(n)
	default:
		r.shared(value)
	}
}

// own puts the ruler's own rule. While it is asked for nobody can tell what is in force.
func (r *ruler) own(value int) {
	action := actions[r.draw.IntN(len(actions))]
	rule := ruleOf(r.label, value, action, time.Time{})
	r.w.rules.Asked(r.label)
	if _, known := r.once(history.Input{Object: "rule " + r.label, Do: "put", Value: value}, func(ctx context.Context, t *term) (history.Output, error) {
		_, _, err := t.queue.PutFilter(ctx, ruleUUID(10+r.id), rule, queue.By{})
		return history.Output{}, err
	}); known {
		r.w.rules.InForce(r.label, string(rule.Action.Kind), rule.Action.Limit)
	}
}

func (r *ruler) unown() {
	r.w.rules.Asked(r.label)
	r.delete("rule "+r.label, ruleUUID(10+r.id))
}

// shared changes a rule that others change, too; it is no job's.
func (r *ruler) shared(value int) {
	n := r.draw.IntN(sharedRules)
	object, uuid := fmt.Sprintf("rule shared%d", n), ruleUUID(100+n)
	if r.draw.IntN(3) == 0 {
		r.delete(object, uuid)
		return
	}
	r.once(history.Input{Object: object, Do: "put", Value: value}, func(ctx context.Context, t *term) (history.Output, error) {
		_, _, err := t.queue.PutFilter(ctx, uuid, ruleOf("", value, actions[value%len(actions)], time.Time{}), queue.By{})
		return history.Output{}, err
	})
}

func (r *ruler) delete(object, uuid string) {
	r.once(history.Input{Object: object, Do: "delete"}, func(ctx context.Context, t *term) (history.Output, error) {
		err := t.queue.DeleteFilter(ctx, uuid, queue.By{})
		if fault.Is(err, fault.NotFound) {
			return history.Output{Is: history.Absent}, nil
		}
		return history.Output{Is: history.There}, err
	})
}

// expiring puts a rule that ends by itself.
func (r *ruler) expiring(value int) {
	until := time.Now().Add(time.Duration(1+r.draw.IntN(20)) * time.Second)
	err := r.ask(func(ctx context.Context, t *term) error {
		_, _, err := t.queue.PutFilter(ctx, ruleUUID(1000+value), ruleOf("", value, "PAUSE", until), queue.By{})
		if fault.Is(err, fault.Invalid) && !time.Now().Before(until) {
			return nil // it would have ended before it was taken
		}
		return err
	})
	if err != nil {
		r.w.verdict.Breakf(check.Answered, "a rule that ends by itself: %v", err)
	}
	r.w.tellf(r.name, "puts a rule until %v", until.Sub(r.w.begun))
}

// held hands in a job that a rule holds, or cancels one.
func (r *ruler) held(n int) {
	object := fmt.Sprintf("job %s-%d", r.name, n/2)
	r.w.mu.Lock()
	known := r.w.keys[object]
	r.w.mu.Unlock()
	if known != nil && known.job != 0 {
		r.cancelHeld(object, known)
		return
	}
	if known == nil {
		known = &request{what: "a held job"}
		r.w.mu.Lock()
		r.w.keys[object] = known
		r.w.mu.Unlock()
	}
	op := opcodeOf("OP_TEST_DELAY", map[string]any{"duration": 1.0, "on_master": false}, heldLabel)
	out, answered := r.once(history.Input{Object: object, Do: "submit"}, func(ctx context.Context, t *term) (history.Output, error) {
		id, err := t.queue.Submit(ctx, queue.Submission{Ops: []*opcode.Opcode{op}, Key: object})
		return history.Output{Value: int(id)}, err
	})
	if answered {
		r.w.mu.Lock()
		known.job = job.ID(out.Value)
		r.w.mu.Unlock()
	}
}

func (r *ruler) cancelHeld(object string, known *request) {
	out, answered := r.once(history.Input{Object: object, Do: "cancel"}, func(ctx context.Context, t *term) (history.Output, error) {
		a, err := t.queue.Cancel(ctx, known.job, false, queue.By{})
		return history.Output{Is: map[bool]string{true: "done", false: "too late"}[a.OK]}, err
	})
	r.w.mu.Lock()
	known.cancelled = known.cancelled || answered && out.Is == "done"
	r.w.mu.Unlock()
}

// obeys holds what a job does to the rule about its label.
func (t *term) obeys(id job.ID) {
	w := t.life.w
	j := t.shown.Load().Jobs.Get(id)
	if j == nil {
		return
	}
	w.mu.Lock()
	r := w.keys[j.Key]
	w.mu.Unlock()
	if r == nil || r.label == "" {
		return
	}
	running := 0
	for other := range t.shown.Load().Jobs.All() {
		w.mu.Lock()
		its := w.keys[other.Key]
		w.mu.Unlock()
		if other.Status() == job.Running && its != nil && its.label == r.label {
			running++
		}
	}
	if t.interrupted > 0 { // what had begun goes on whatever the rules are
		running = 0
	}
	w.rules.Acts(r.label, int64(id), r.asked, running)
}

// clearRules deletes all rules, so that what they hold can end.
func (w *world) clearRules() {
	c := &client{w: w, name: "operator", draw: w.streams.Of("operator")}
	for i := range rulers {
		w.rules.Asked(label(i))
	}
	err := c.ask(func(ctx context.Context, t *term) error {
		for _, rule := range t.shown.Load().Rules {
			if err := t.queue.DeleteFilter(ctx, rule.UUID, queue.By{}); err != nil && !fault.Is(err, fault.NotFound) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.verdict.Breakf(check.Answered, "rules cannot be deleted: %v", err)
	}
}

// lateTime is how long a rule may be there behind its end, once all is well.
const lateTime = time.Minute

// rulesAreOver: no rule is there whose time is over for long.
func (t *term) rulesAreOver() {
	for _, rule := range t.shown.Load().Rules {
		if !rule.Until.IsZero() && time.Since(rule.Until) > lateTime {
			t.life.w.verdict.Breakf(check.RuleEnds, "rule %s was to end %v ago", rule.UUID, time.Since(rule.Until))
		}
	}
}
