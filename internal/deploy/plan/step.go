package plan

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/drover-project/drover/internal/deploy/expression"
	"github.com/drover-project/drover/internal/deploy/graph"
	"github.com/drover-project/drover/internal/deploy/legacy"
	"github.com/drover-project/drover/yaql"
)

// step computes a task on a node.
func (h *shard) step(ctx context.Context, t *graph.Task, n int32) (*Step, error) {
	in, err := h.surroundings(t, n)
	if err != nil {
		return nil, err
	}
	p, texts := h.prepared[t], h.fillerOf(n)
	s := &Step{Task: t, Node: n, Type: p.kind}
	h.computed = h.computed[:0]
	for _, f := range p.dynamic {
		var decisions *[]*expression.Decision
		if f.Name == "condition" {
			decisions = &s.Why.Decisions
		}
		v, err := h.value(ctx, f.Template, in, texts, decisions)
		if err != nil {
			return nil, h.wrap(t, h.nodes[n].UID, f.Name, f.Template, err)
		}
		h.computed = append(h.computed, v)
	}
	if err := h.take(ctx, h.computed); err != nil {
		return nil, err
	}
	get := func(name string) (any, bool) {
		for i := range p.dynamic {
			if p.dynamic[i].Name == name {
				return h.computed[i], true
			}
		}
		if f := t.Get(name); f != nil {
			return texts.constant(f), true
		}
		return nil, false
	}
	if err := h.decide(s, in, get); err != nil {
		return nil, h.wrap(t, h.nodes[n].UID, "condition", t.Get("condition"), err)
	}
	if err := h.drift(ctx, s, in, texts, get); err != nil {
		return nil, err
	}
	s.keep(p.dynamic, h.computed)
	if !s.Run {
		s.Type, s.FailOnError = typeSkipped, false
		return s, nil
	}
	return s, h.outfit(s, get)
}

// drift lets a task run that its condition holds back, if what it brings about is found to differ on the machine, or says how that is asked. A task that
// would not run in a first deployment either is not wanted there: what of it is on the machine means nothing.
func (h *shard) drift(ctx context.Context, s *Step, in expression.Surroundings, texts *filler, get func(string) (any, bool)) error {
	if s.Run || s.Why.Kind != ByCondition || !h.in.Asks && h.in.Differs == nil {
		return nil
	}
	what, found := "", false
	if h.in.Differs != nil {
		what, found = h.in.Differs(s.Task.ID, h.nodes[s.Node].UID)
	}
	if !found && !h.in.Asks {
		return nil
	}
	wanted, err := h.wanted(ctx, s, in, texts)
	if err != nil || !wanted {
		return err
	}
	if found {
		s.Run, s.Why = true, Reason{Kind: ByDrift, Event: what}
		return nil
	}
	s.Question = &Question{Type: s.Type}
	s.Question.Check, _ = get("check")
	s.Question.Parameters, err = h.parameters(s, get)
	return err
}

// wanted tells whether a task would run on a node in a first deployment.
func (h *shard) wanted(ctx context.Context, s *Step, in expression.Surroundings, texts *filler) (bool, error) {
	f := s.Task.Get("condition")
	if f.Static { // it looks at no old state
		return false, nil
	}
	in.Old = h.view(nil, nil)
	v, err := h.value(ctx, f, in, texts, nil)
	if err == nil {
		v, err = h.truth(v, in)
	}
	if err != nil {
		return false, h.wrap(s.Task, h.nodes[s.Node].UID, "condition", f, err)
	}
	return legacy.Truth(v), nil
}

// truth is what a condition came to; of a text, which is one of the old language, what that comes to.
func (h *shard) truth(v any, in expression.Surroundings) (any, error) {
	text, ok := v.(string)
	if !ok {
		return v, nil
	}
	c, err := h.legacy(text)
	if err != nil {
		return nil, err
	}
	return c.Value(in.New)
}

// keep remembers what relations are computed of.
func (s *Step) keep(fields []graph.Field, computed []any) {
	for i, v := range computed {
		switch fields[i].Name {
		case "requires", "required_for", "cross_depends", "cross_depended_by":
			if s.computed == nil {
				s.computed = map[string]any{}
			}
			s.computed[fields[i].Name] = v
		}
	}
}

// decide says whether a task runs, and why.
func (h *shard) decide(s *Step, in expression.Surroundings, get func(string) (any, bool)) error {
	switch {
	case s.Type == typeStage || s.Type == typeSkipped:
		s.Why.Kind = Internal
		return nil
	case h.only != nil && !h.only[s.Task.ID]:
		s.Why.Kind = NotSelected
		return nil
	case len(h.in.Refreshed) > 0:
		s.onRefresh(h.in.Refreshed, get)
		return nil
	case s.onEvent(h.in.Events, get):
		return nil
	}
	v, there := get("condition")
	if !there {
		s.Run, s.Why.Kind = true, Unconditional
		return nil
	}
	s.Why.Kind, s.Why.Condition = ByCondition, conditionText(s.Task.Get("condition"))
	v, err := h.truth(v, in)
	if err != nil {
		return err
	}
	s.Why.Value = v
	s.Run = legacy.Truth(v)
	return nil
}

// onEvent lets a task run that is to be executed again on one of some events.
func (s *Step) onEvent(events []string, get func(string) (any, bool)) bool {
	v, _ := get("reexecute_on")
	for _, name := range texts(itemsOf(v)) {
		if slices.Contains(events, name) {
			s.Run, s.Why.Kind, s.Why.Event = true, ByEvent, name
			return true
		}
	}
	return false
}

// onRefresh lets a task run if it is for one of some resources that changed.
func (s *Step) onRefresh(resources []string, get func(string) (any, bool)) {
	s.Why.Kind = NotSelected
	v, _ := get("refresh_on")
	for _, name := range texts(itemsOf(v)) {
		if name == everyone || slices.Contains(resources, name) {
			s.Run, s.Why.Kind, s.Why.Event = true, ByRefresh, name
			return
		}
	}
}

func conditionText(f *graph.Template) string {
	if f.Computed != nil {
		return f.Computed.String()
	}
	return fmt.Sprint(f.Constant)
}

func (h *shard) legacy(text string) (*legacy.Condition, error) {
	if c := h.conditions[text]; c != nil {
		return c, nil
	}
	c, err := legacy.Parse(text)
	if err == nil {
		h.conditions[text] = c
	}
	return c, err
}

// outfit gives a task that runs its parameters.
func (h *shard) outfit(s *Step, get func(string) (any, bool)) error {
	s.FailOnError = true
	if v, there := get("fail_on_error"); there {
		s.FailOnError = v
	}
	v, err := h.parameters(s, get)
	s.Parameters = v
	return err
}

// parameters are those of a task.
func (h *shard) parameters(s *Step, get func(string) (any, bool)) (any, error) {
	v, there := get("parameters")
	if !there {
		v = yaql.NewDict(0)
	}
	given, ok := v.(yaql.Mapping)
	if !ok {
		return nil, h.fail(s.Task, h.nodes[s.Node].UID, "parameters", yaql.AttributeError, "parameters are "+told(v)+", which is no map", "")
	}
	if _, has := given.Get("cwd"); !has {
		return h.withCwd(s.Task.Get("parameters"), given), nil
	}
	return given, nil
}

// withCwd adds the directory that tasks run in if they name none.
func (h *shard) withCwd(f *graph.Template, given yaql.Mapping) *yaql.Dict {
	if f != nil && f.Static {
		if d, ok := h.cwd[given]; ok {
			return d
		}
	}
	d := yaql.NewDict(given.Len() + 1)
	given.Range(func(k, v any) bool {
		_ = d.Set(k, v) // it was a key
		return true
	})
	_ = d.Set("cwd", "/") // texts can be keys
	if f != nil && f.Static {
		h.cwd[given] = d
	}
	return d
}

// value evaluates a template. What is computed is taken as it is, without filling placeholders.
func (h *shard) value(ctx context.Context, t *graph.Template, in expression.Surroundings, texts *filler,
	decisions *[]*expression.Decision) (any, error) {
	switch {
	case t.Static:
		return texts.constant(t), nil
	case t.Computed != nil:
		r, err := h.evaluator.Eval(ctx, t.Computed, in)
		if err != nil {
			return nil, t.Located(err)
		}
		if decisions != nil {
			*decisions = r.Decisions
		}
		return r.Value, nil
	}
	if t.Keys == nil {
		items := make([]any, len(t.Items))
		for i, x := range t.Items {
			v, err := h.value(ctx, x, in, texts, nil)
			if err != nil {
				return nil, err
			}
			items[i] = v
		}
		return items, nil
	}
	d := yaql.NewDict(len(t.Keys))
	for i, x := range t.Items {
		v := x.Constant
		if t.Keys[i] != "regex" {
			var err error
			if v, err = h.value(ctx, x, in, texts, nil); err != nil {
				return nil, err
			}
		}
		_ = d.Set(t.Keys[i], v) // texts can be keys
	}
	return d, nil
}

var versionForm = regexp.MustCompile(`^(\d+)\.(\d+)(?:\.(\d+))?$`)

// version refuses tasks of versions that know no relations between nodes, or warns of them.
func (b *builder) version(ctx context.Context, t *graph.Task, kind string) error {
	if kind == typeStage || kind == typeSkipped || kind == typeGroup {
		return nil
	}
	v, err := b.whole(ctx, t, "version")
	if err != nil {
		return err
	}
	text, ok := v.(string)
	if v == nil {
		text, ok = "1.0.0", true
	}
	m := versionForm.FindStringSubmatch(text)
	if !ok || m == nil {
		return b.fail(t, "", "version", yaql.ValueError, "invalid version number '"+told(v)+"'", "versions look like 2.1.0")
	}
	if major, err := strconv.Atoi(m[1]); err == nil && major >= 2 {
		return nil
	}
	if b.in.CheckVersions {
		return b.fail(t, "", "version", "TaskBaseDeploymentNotAllowed", fmt.Sprintf("Task '%s' does not support cross-dependencies.", t.ID),
			"set the version of the task to 2.0.0 or later")
	}
	return nil
}
