package servertag

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/job"
)

// TestDifferencesSayWhyAndWhatToDo: each way in which three sides may differ has
// its kind.
func TestDifferencesSayWhyAndWhatToDo(t *testing.T) {
	p := DefaultPolicy()
	s, _ := having(t, "taken", "fine", "goes", "lingers").seen(1, nil, "taken", "fine", "goes", "lingers")
	for _, name := range []string{"goes", "lingers"} {
		s, _ = s.Unwant(p, User, name, alice)
	}
	s, _, err := s.Want(p, User, []string{"added", "bad", "lacking"}, alice)
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Tags {
		if s.Tags[i].Name == "bad" {
			s.Tags[i].Failure = &Failure{Text: "too long", Final: true}
		}
	}
	busy, _, err := s.Want(p, User, []string{"busy"}, alice)
	if err != nil {
		t.Fatal(err)
	}
	busy = busy.Begin(Step{Action: Add, Tags: []*Tag{busy.Find(User, "busy")}}, 2)
	busy = busy.Submitted(busy.Serial, 9, 2)
	sight := Sight{Now: 3, Instance: true, Tags: []string{rawUser("fine"), rawUser("lingers"), rawUser("added"), rawUser("new"),
		"cyclades:user:a_b", "other", "synnefo:network:0:protected"}}
	want := map[string]Kind{"taken": TakenAway, "goes": Unconfirmed, "lingers": Lingering, "added": Unconfirmed, "bad": GivenUp, "lacking": Waits,
		"busy": UnderWay, "new": Stranger, "": Misspelt}
	got := busy.Compare(p, sight)
	for _, d := range got {
		if want[d.Name] != d.What || d.Why == "" || d.Do == "" || d.Raw == "" || d.IsDrift() == (d.Name == "busy") {
			t.Errorf("%+v, want %s", d, want[d.Name])
		}
		delete(want, d.Name)
	}
	if len(want) != 0 {
		t.Errorf("nothing is said of %v", want)
	}
	if i := slices.IndexFunc(got, func(d Difference) bool { return d.Name == "busy" }); !strings.Contains(got[i].Why, "job 9") {
		t.Errorf("of a tag that a job is at: %q", got[i].Why)
	}
	if len(busy.Compare(p, Sight{Now: 3})) != 0 {
		t.Error("something is said without an instance")
	}
}

// TestNoDifferenceMeansNothingToDo: where Compare finds no drift, settling
// changes nothing that is wanted and there is nothing to submit; and the other way round.
func TestNoDifferenceMeansNothingToDo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := DefaultPolicy()
		var s Set
		cluster := map[string]bool{}
		for range rapid.IntRange(0, 8).Draw(rt, "steps") {
			name := rapid.SampledFrom(names).Draw(rt, "name")
			now := job.Time(s.Generation + 1)
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0:
				s, _, _ = s.Want(p, User, []string{name}, alice)
			case 1:
				s, _ = s.Unwant(p, User, name, alice)
			case 2:
				cluster[rawUser(name)] = !cluster[rawUser(name)]
			case 3:
				s = s.Settle(p, Sight{Now: now, Instance: true, Tags: there(cluster)})
			}
		}
		sight := Sight{Now: job.Time(s.Generation + 1), Instance: true, Tags: there(cluster)}
		drift := slices.ContainsFunc(s.Compare(p, sight), func(d Difference) bool { return d.IsDrift() })
		next := s.Settle(p, sight)
		if idle := next.Same(&s) && len(next.Next(sight).Steps) == 0; idle == drift {
			rt.Fatalf("drift %v, nothing to do %v: %+v on %q", drift, idle, s, sight.Tags)
		}
	})
}

func there(cluster map[string]bool) []string {
	var out []string
	for raw, is := range cluster {
		if is {
			out = append(out, raw)
		}
	}
	slices.Sort(out)
	return out
}

// TestWhatWaitsForAnotherJobSaysSo: there is no job of its own yet.
func TestWhatWaitsForAnotherJobSaysSo(t *testing.T) {
	p := DefaultPolicy()
	s := having(t, "first")
	s = s.Begin(s.Next(Sight{Now: 10, Instance: true}).Steps[0], 10)
	if found := s.Compare(p, Sight{Now: 10, Instance: true}); len(found) != 1 || strings.Contains(found[0].Do, "explain") {
		t.Errorf("before it has an id: %+v", found)
	}
	s = s.Submitted(s.Jobs[0].Serial, 7, 11)
	s, _, err := s.Want(p, User, []string{"second"}, alice)
	if err != nil {
		t.Fatal(err)
	}
	found := s.Compare(p, Sight{Now: 11, Instance: true})
	if len(found) != 2 || found[0].What != UnderWay || !strings.Contains(found[0].Do, "drover job explain 7") || found[1].What != Waits || !found[1].IsDrift() || !strings.Contains(found[1].Do, "drover job explain 7") {
		t.Errorf("found is %+v", found)
	}
	found = s.Compare(p, Sight{Now: 11, Instance: true, Ended: map[job.ID]Outcome{7: {OK: true}}})
	if len(found) != 2 || found[1].What != Lacking {
		t.Errorf("when it has ended: %+v", found)
	}
}
