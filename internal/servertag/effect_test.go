package servertag

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
)

var failover = Effect{Namespace: User, Tag: "a", Parameter: "always_failover", Value: true}

func TestBadEffects(t *testing.T) {
	for name, effects := range map[string][]Effect{
		"nothing":      {{Namespace: User, Tag: "a"}},
		"two things":   {{Namespace: User, Tag: "a", Parameter: "p", Value: 1, Label: "l"}},
		"no value":     {{Namespace: User, Tag: "a", Parameter: "p"}},
		"no namespace": {{Namespace: "root", Tag: "a", Label: "l"}},
		"our label":    {{Namespace: System, Tag: "a", Label: "cyclades:user:b"}},
		"odd label":    {{Namespace: System, Tag: "a", Label: "cyclades:user:b_"}},
		"bad label":    {{Namespace: System, Tag: "a", Label: "a b"}},
		"bad tag":      {{Namespace: User, Tag: "a/b", Label: "l"}},
		"twice":        {failover, {Namespace: User, Tag: "a", Parameter: "always_failover", Value: false}},
	} {
		p := DefaultPolicy()
		p.Effects = effects
		if err := p.CheckEffects(); !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.BadTag) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := DefaultPolicy()
	p.Effects = []Effect{failover, {Namespace: System, Tag: "a", Label: "synnefo:network:0:unprotected"}, {Namespace: System, Tag: "smtp", Label: "smtp_open"}}
	if err := p.CheckEffects(); err != nil {
		t.Error(err)
	}
}

// TestNobodyBringsAboutTheEffectOfAnothersTag: a user's tag is not the operator's of
// that name, nor the other way round.
func TestNobodyBringsAboutTheEffectOfAnothersTag(t *testing.T) {
	for _, of := range []Namespace{User, System} {
		for _, tagged := range []Namespace{User, System} {
			p := DefaultPolicy()
			p.Effects = []Effect{{Namespace: of, Tag: "a", Label: "open"}}
			s, _, err := Set{}.Want(p, tagged, []string{"a"}, alice)
			if err != nil {
				t.Fatal(err)
			}
			if change, _ := s.NextEffect(p, Sight{Now: 1, Instance: true}); (change != nil) != (of == tagged) {
				t.Errorf("the effect of a tag of %s where there is one of %s: %+v", of, tagged, change)
			}
		}
	}
}

// TestEffectsFollowTheirTags: tags come and go, jobs fail, the table changes, and
// in the end what is in force is what the tags and the table say, and nothing else.
func TestEffectsFollowTheirTags(t *testing.T) {
	tables := [][]Effect{
		{failover, {Namespace: User, Tag: "b", Label: "open"}},
		{{Namespace: User, Tag: "b", Parameter: "always_failover", Value: false}, failover, {Namespace: User, Tag: "c", Label: "open"}},
		nil,
	}
	rapid.Check(t, func(rt *rapid.T) {
		p, now := DefaultPolicy(), job.Time(1)
		var s Set
		cluster := map[string]string{} // what effects changed, by key
		id := job.ID(0)
		step := func(fails bool) (done bool) {
			sight := Sight{Now: now, Instance: true, Ended: map[job.ID]Outcome{}}
			change, wake := s.NextEffect(p, sight)
			if change == nil {
				now = max(now, wake)
				return wake == 0
			}
			s = s.BeginEffect(change)
			a := *s.UnsubmittedEffect()
			id++
			s = s.EffectSubmitted(a.Serial, id)
			if again, _ := s.NextEffect(p, sight); again != nil {
				rt.Fatal("two jobs of effects at once")
			}
			sight.Ended[id] = Outcome{OK: !fails, Text: "no"}
			switch {
			case fails:
			case a.Undo:
				delete(cluster, a.key())
			default:
				cluster[a.key()] = a.String()
			}
			s.settleEffects(sight)
			return false
		}
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			name := rapid.SampledFrom(names[:3]).Draw(rt, "name")
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				s, _, _ = s.Want(p, User, []string{name}, alice)
			case 1:
				s, _ = s.Unwant(p, User, name, alice)
			case 2:
				p.Effects = rapid.SampledFrom(tables).Draw(rt, "table")
			case 3:
				step(rapid.Bool().Draw(rt, "fails"))
			}
		}
		for n := 0; !step(false); n++ {
			if n > 100 {
				rt.Fatalf("no end is found: %+v", s.Effects)
			}
		}
		want := map[string]string{}
		for _, e := range p.dueEffects(&s) {
			want[e.key()] = e.String()
		}
		if !maps.Equal(want, cluster) || len(s.Effects) != len(want) {
			rt.Fatalf("in force is %v, want %v; known is %+v", cluster, want, s.Effects)
		}
	})
}

// TestAnEffectThatIsGoneIsTakenBack: a job that finds nothing to take back is the end of an effect, as somebody else has done it; another failure is not, and nothing
// that was to be applied is in force because something was missing.
func TestAnEffectThatIsGoneIsTakenBack(t *testing.T) {
	open := Effect{Namespace: User, Tag: "a", Label: "open"}
	p := DefaultPolicy()
	p.Effects = []Effect{open}
	for _, c := range []struct {
		undo    bool
		outcome Outcome
		left    int
	}{
		{true, Outcome{OK: true}, 0},
		{true, Outcome{Text: "no such tag", Missing: true}, 0},
		{true, Outcome{Text: "no"}, 1},
		{false, Outcome{Text: "no such instance", Missing: true}, 1},
	} {
		s := Set{}.BeginEffect(&Change{Effect: open, Undo: c.undo}).EffectSubmitted(1, 7)
		s = s.Settle(p, Sight{Now: 10, Instance: true, Ended: map[job.ID]Outcome{7: c.outcome}})
		if len(s.Effects) != c.left || c.left == 1 && (s.Effects[0].InForce || s.Effects[0].Retry <= 10) {
			t.Errorf("taken back: %t; when its job ended as %+v there is %+v", c.undo, c.outcome, s.Effects)
		}
	}
}

// TestATurnWakesForWhatIsDueFirst: tags and effects each have their own time, and neither waits for the other's.
func TestATurnWakesForWhatIsDueFirst(t *testing.T) {
	p := DefaultPolicy()
	p.Effects = []Effect{{Namespace: User, Tag: "a", Label: "open"}}
	for _, c := range []struct{ tag, effect, want job.Time }{{0, 0, 0}, {20, 0, 20}, {0, 20, 20}, {20, 30, 20}, {30, 20, 20}} {
		sight := Sight{Now: 10, Instance: true, Tags: []string{rawUser("a"), rawUser("b")}}
		if c.tag != 0 {
			sight.Tags = sight.Tags[:1]
		}
		s := having(t, "a", "b").Settle(p, sight).BeginEffect(&Change{Effect: p.Effects[0]})
		s.Find(User, "b").Retry = c.tag
		if c.effect != 0 {
			s.Effects[0].Serial, s.Effects[0].Retry = 0, c.effect
		}
		if next, wake := s.Turn(p, sight); wake != c.want || next.Serial != s.Serial {
			t.Errorf("a tag due at %d and an effect at %d wake at %d, want %d; begun: %+v", c.tag, c.effect, wake, c.want, next.Jobs)
		}
	}
}
