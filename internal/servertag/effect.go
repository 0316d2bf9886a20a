package servertag

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
)

// Effect is what a tag does beside being there: it sets a backend parameter of
// the instance, or puts a label on it, a tag of the cluster that stands as it is
// written here, for programs on nodes that look at such labels.
type Effect struct {
	Namespace Namespace `json:"namespace" toml:"namespace"`
	// Tag is the name of the tag.
	Tag string `json:"tag" toml:"tag"`
	// Parameter is the backend parameter, and Value what it becomes. Without the
	// tag it is the cluster's default again.
	Parameter string `json:"parameter,omitempty" toml:"parameter"`
	Value     any    `json:"value,omitempty"     toml:"value"`
	// Label is the label, in place of a parameter.
	Label string `json:"label,omitempty" toml:"label"`
}

// String says it for a person.
func (e *Effect) String() string {
	if e.Label != "" {
		return "label " + e.Label
	}
	return fmt.Sprintf("parameter %s=%v", e.Parameter, e.Value)
}

// key tells what it changes.
func (e *Effect) key() string {
	if e.Label != "" {
		return "label " + e.Label
	}
	return "parameter " + e.Parameter
}

func (e *Effect) same(other *Effect) bool { return e.String() == other.String() }

// check refuses an effect that means nothing, or would change what belongs to
// tags.
func (e *Effect) check(p *Policy) error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Invalid, "the effect of tag %q: %s", e.Tag, fmt.Sprintf(format, args...)).At("effect")
	}
	_, _, origin := p.Prefixes.Parse(e.Label)
	switch {
	case p.Prefixes[e.Namespace] == "":
		return bad("there is no namespace %q", e.Namespace)
	case (e.Parameter == "") == (e.Label == ""):
		return bad("it has either a parameter or a label")
	case e.Parameter != "" && e.Value == nil:
		return bad("its parameter has no value")
	case e.Label != "" && (len(e.Label) > MaxRaw || strings.ContainsFunc(e.Label, func(r rune) bool { return !inAlphabet(r) })):
		return bad("a cluster takes no label %q", e.Label)
	case origin != Foreign:
		return bad("its label is one of servers' tags")
	case strings.HasPrefix(e.Label, MarkPrefix):
		return bad("its label would tell whose an instance is")
	}
	return CheckName(e.Tag)
}

// inAlphabet reports whether clusters allow a character in tags.
func inAlphabet(r rune) bool {
	return r < 0x80 && (plain(byte(r)) || strings.ContainsRune("_+*/@", r))
}

// CheckEffects refuses a policy whose table of effects means nothing, or sets
// one thing to two values for one tag.
func (p *Policy) CheckEffects() error {
	for i := range p.Effects {
		e := &p.Effects[i]
		if err := e.check(p); err != nil {
			return err
		}
		if slices.ContainsFunc(p.Effects[:i], func(o Effect) bool { return o.Namespace == e.Namespace && o.Tag == e.Tag && o.key() == e.key() }) {
			return fault.New(fault.Invalid, "tag %q has two effects on %s", e.Tag, e.key()).At("effect")
		}
	}
	return nil
}

// Applied is an effect that is in force, or on its way there or back. It is kept
// as it was in the table then, so that it can be taken back when the table has
// changed.
type Applied struct {
	Effect
	// InForce: the cluster carried it out.
	InForce bool `json:"in_force,omitempty"`
	// Serial is that of the job that is under way, zero for none; Undo says that it
	// takes the effect back, ID that the cluster took it.
	Serial int64  `json:"serial,omitempty"`
	ID     job.ID `json:"id,omitempty"`
	Undo   bool   `json:"undo,omitempty"`
	// Tries counts the jobs that failed since the last one that did not, Retry is
	// before when there is no other, and Failure why the last of them failed.
	Tries   int      `json:"tries,omitempty"`
	Retry   job.Time `json:"retry,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}

// Change is a change of an effect that is to be made.
type Change struct {
	Effect Effect
	Undo   bool
}

// dueEffects returns what is to be in force: of what several tags change, the first
// tag of the table decides.
func (p *Policy) dueEffects(s *Set) []Effect {
	var out []Effect
	for i := range p.Effects {
		e := &p.Effects[i]
		if s.Has(e.Namespace, e.Tag) && !slices.ContainsFunc(out, func(o Effect) bool { return o.key() == e.key() }) {
			out = append(out, *e)
		}
	}
	return out
}

// NextEffect decides which effect to apply or to take back; nil for none. There
// is one at a time. The time is when something is to be tried again, zero for
// never.
func (s *Set) NextEffect(p *Policy, sight Sight) (*Change, job.Time) {
	if !sight.Instance || slices.ContainsFunc(s.Effects, func(a Applied) bool { return a.Serial != 0 }) {
		return nil, 0
	}
	due, wake := p.dueEffects(s), job.Time(0)
	held := func(a *Applied) bool {
		if a.Retry <= sight.Now {
			return false
		}
		wake = sooner(wake, a.Retry)
		return true
	}
	for i := range s.Effects {
		a := &s.Effects[i]
		if !slices.ContainsFunc(due, func(e Effect) bool { return e.key() == a.key() }) && !held(a) {
			return &Change{Effect: a.Effect, Undo: true}, 0
		}
	}
	for _, e := range due {
		a := s.applied(&e)
		if a != nil && (a.InForce && a.same(&e) || held(a)) {
			continue
		}
		return &Change{Effect: e}, 0
	}
	return nil, wake
}

// applied finds what is known of what an effect changes.
func (s *Set) applied(e *Effect) *Applied {
	if i := slices.IndexFunc(s.Effects, func(a Applied) bool { return a.key() == e.key() }); i >= 0 {
		return &s.Effects[i]
	}
	return nil
}

// BeginEffect records that a job for the change is about to be submitted.
func (s Set) BeginEffect(c *Change) Set {
	next := s.clone()
	next.Serial++
	a := next.applied(&c.Effect)
	if a == nil {
		next.Effects = append(next.Effects, Applied{})
		a = &next.Effects[len(next.Effects)-1]
	}
	// What is in force is not known before the job has ended well.
	a.Effect, a.InForce, a.Serial, a.ID, a.Undo = c.Effect, false, next.Serial, 0, c.Undo
	return next
}

// UnsubmittedEffect returns the effect whose job has no id yet, nil for none.
func (s *Set) UnsubmittedEffect() *Applied {
	if i := slices.IndexFunc(s.Effects, func(a Applied) bool { return a.Serial != 0 && a.ID == 0 }); i >= 0 {
		return &s.Effects[i]
	}
	return nil
}

// EffectSubmitted records the id that the job of an effect got.
func (s Set) EffectSubmitted(serial int64, id job.ID) Set {
	next := s.clone()
	for i := range next.Effects {
		if next.Effects[i].Serial == serial {
			next.Effects[i].ID = id
		}
	}
	return next
}

// EffectRefused records that the cluster does not take the job of an effect.
func (s Set) EffectRefused(serial int64, text string, now job.Time) Set {
	next := s.clone()
	for i := range next.Effects {
		if next.Effects[i].Serial == serial {
			next.Effects[i] = next.Effects[i].ended(Outcome{Text: text}, now)
		}
	}
	return next
}

// settleEffects takes in how jobs of effects ended. The set is not shared yet.
func (s *Set) settleEffects(sight Sight) {
	s.Effects = slices.DeleteFunc(s.Effects, func(a Applied) bool {
		outcome, over := sight.Ended[a.ID]
		return a.ID != 0 && over && a.Undo && (outcome.OK || outcome.Missing)
	})
	for i := range s.Effects {
		if outcome, over := sight.Ended[s.Effects[i].ID]; over && s.Effects[i].ID != 0 {
			s.Effects[i] = s.Effects[i].ended(outcome, sight.Now)
		}
	}
}

// ended returns the effect after its job.
func (a Applied) ended(outcome Outcome, now job.Time) Applied {
	id := a.ID
	a.Serial, a.ID = 0, 0
	if outcome.OK {
		a.InForce, a.Tries, a.Retry, a.Failure = !a.Undo, 0, 0, nil
		return a
	}
	a.Tries++
	a.Failure = &Failure{Job: id, Text: outcome.Text, Time: now}
	a.Retry = now + job.Time(pauses().After(a.Tries).Microseconds())
	return a
}
