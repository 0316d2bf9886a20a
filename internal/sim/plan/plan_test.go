package plan

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// TestAPlanIsDrawnFromItsSeed: the same one each time, one that could happen, and one
// that reads back.
func TestAPlanIsDrawnFromItsSeed(t *testing.T) {
	kinds, places, strikes, work := map[Kind]int{}, map[Port]int{}, map[string]int{}, map[Work]int{}
	for _, shape := range []Shape{Small, Large} {
		for seed := range uint64(500) {
			p := DrawOf(seed, shape)
			if again := DrawOf(seed, shape); !reflect.DeepEqual(p, again) {
				t.Fatalf("seed %d is two plans:\n%s%s", seed, p.JSON(), again.JSON())
			}
			read, err := Parse(p.JSON())
			if err != nil || !reflect.DeepEqual(read, p) {
				t.Fatalf("%s reads back as %s (%v)", p.JSON(), read.JSON(), err)
			}
			for _, w := range p.Work {
				work[w]++
			}
			for _, f := range p.Faults {
				kinds[f.Do]++
				places[f.Port]++
				strikes[f.Who]++
				if time.Duration(f.At) > time.Duration(p.Size.Trouble) {
					t.Errorf("%v comes after %v", f, p.Size.Trouble)
				}
			}
		}
	}
	for _, k := range append(slices.Clone(timely), Lose) {
		if kinds[k] < 50 {
			t.Errorf("%s was drawn %d times", k, kinds[k])
		}
	}
	for _, w := range works {
		if work[w] < 50 || work[w] > 500 {
			t.Errorf("%s is in %d of 1000", w, work[w])
		}
	}
	for who := range outside {
		if strikes[who] < 50 {
			t.Errorf("%s was struck %d times", who, strikes[who])
		}
	}
	for _, p := range append(slices.Clone(ports), Publish, "") {
		if places[p] < 50 {
			t.Errorf("%q was struck at %d times", p, places[p])
		}
	}
}

func TestPlansThatCannotBe(t *testing.T) {
	size := `"size":{"controllers":1,"nodes":1,"instances":1,"clients":1,"requests":1,"trouble":"1m"}`
	for text, want := range map[string]fault.Code{
		`{` + size + `,"faults":[{"at":"3s","who":"c1","do":"kill","for":"1s"},{"port":"answer","nth":2,"do":"lose","for":"1s"}]}`: "",
		`{`:                                      fault.Invalid,
		`{"size":{"controllers":1},"faults":[]}`: fault.Invalid,
		`{` + size + `,"faults":[{"do":"kill","for":"1s"}]}`:                                fault.Invalid,
		`{` + size + `,"faults":[{"at":"3s","do":"kill","for":"1s"}]}`:                      fault.Invalid,
		`{` + size + `,"faults":[{"at":"3s","who":"c1","do":"lose","for":"1s"}]}`:           fault.Invalid,
		`{` + size + `,"faults":[{"port":"order","nth":1,"do":"silence","for":"1s"}]}`:      fault.Invalid,
		`{` + size + `,"faults":[{"at":"3s","who":"cluster","do":"kill","for":"1s"}]}`:      fault.Invalid,
		`{` + size + `,"work":["sleep"],"faults":[]}`:                                       fault.Invalid,
		`{` + size + `,"faults":[{"port":"nowhere","nth":1,"do":"kill","for":"1s"}]}`:       fault.Invalid,
		`{` + size + `,"faults":[{"at":"soon","who":"c1","do":"kill","for":"1s"}]}`:         fault.Invalid,
		`{` + size + `,"faults":[{"port":"order","nth":1,"at":"1s","do":"kill","for":""}]}`: fault.Invalid,
	} {
		if _, err := Parse([]byte(text)); fault.CodeOf(err) != want {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestCutLeavesWhatIsNeeded: two faults of six make the failure, in one order of a few,
// with three clients at least.
func TestCutLeavesWhatIsNeeded(t *testing.T) {
	p := DrawOf(1, Small)
	p.Size.Clients = 3
	p.Faults, p.Work = nil, []Work{Rules, Tags, Events}
	for i := range 6 {
		p.Faults = append(p.Faults, Fault{At: Span(i+1) * Span(time.Second), Who: Leader, Do: Kill, For: 1})
	}
	needed := []Fault{p.Faults[1], p.Faults[4]}
	fails := func(p Plan) bool {
		return slices.Contains(p.Faults, needed[0]) && slices.Contains(p.Faults, needed[1]) && p.Size.Clients == 3 && p.Has(Tags) &&
			(p.Order+uint64(len(p.Faults)))%5 == 0
	}
	p.Order = 4
	if !fails(p) {
		t.Fatal("the plan does not fail")
	}
	smallest, runs := Cut(p, 10, fails)
	if !slices.Equal(smallest.Faults, needed) || !slices.Equal(smallest.Work, []Work{Tags}) || !fails(smallest) || smallest.Size.Requests != 1 || smallest.Size.Nodes != 1 || runs == 0 {
		t.Errorf("cut down to %s", smallest.JSON())
	}
}

// TestStreamsAreApart: what one draws is not moved by what another does.
func TestStreamsAreApart(t *testing.T) {
	a, b := NewStreams(7), NewStreams(7)
	for range 10 {
		b.IntN("other", 100)
	}
	same := true
	for range 10 {
		x, y := a.IntN("one", 1000), b.IntN("one", 1000)
		if x != y {
			t.Fatal("a stream was moved by another")
		}
		same = same && x == b.IntN("third", 1000)
	}
	if same {
		t.Error("two streams are one")
	}
}

// TestTroubleOfAGroupIsSpreadOverIt: its histories are shorter, and what goes wrong at a time does so at any of theirs.
func TestTroubleOfAGroupIsSpreadOverIt(t *testing.T) {
	thirds := [3]int{}
	for seed := range uint64(2000) {
		p := Draw(seed)
		if !p.Has(Group) {
			continue
		}
		for _, f := range p.Faults {
			if f.Port == "" {
				thirds[min(2, 3*time.Duration(f.At-Span(quiet))/time.Duration(groupFor))]++
			}
		}
	}
	if min(thirds[0], thirds[1], thirds[2]) == 0 {
		t.Errorf("faults strike in the thirds of the time %v times", thirds)
	}
}
