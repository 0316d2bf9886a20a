package work

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/lock"
)

func creation() *Work {
	return &Work{Steps: []Step{
		{Verb: "prepare", Undo: &Step{Verb: "remove"}}, {Verb: "add", Keeps: true}, {Verb: "install", Anew: true}, {Verb: "start"}, {Verb: "mark"},
	}}
}

func TestNext(t *testing.T) {
	w := creation()
	for _, c := range []struct {
		at     Progress
		verb   string
		stays  bool
		sealed bool // nothing was noted but the addition
	}{
		{Progress{}, "prepare", false, false},
		{Progress{Done: 1}, "add", false, false},
		{Progress{Done: 2}, "install", true, false},
		{Progress{Done: 3}, "start", true, true},
		{Progress{Done: 5}, "", true, true},
		{Progress{}.Fail(), "prepare", false, false},
		{Progress{Done: 1}.Fail(), "prepare", false, false},
		{Progress{Done: 1}.Fail().Undone(0), "", false, false},
	} {
		verb := ""
		if s := w.Next(c.at); s != nil {
			verb = s.Verb
		}
		if verb != c.verb {
			t.Errorf("%+v: next is %q, want %q", c.at, verb, c.verb)
		}
		if !c.at.Undoing && (w.Stays(c.at) != c.stays || w.Sealed(c.at, 2) != c.sealed) {
			t.Errorf("%+v: stays %v, sealed %v", c.at, w.Stays(c.at), w.Sealed(c.at, 2))
		}
	}
	if (Progress{Try: 1, Done: 3}).Of(&Work{Try: 2}).Done != 0 || (Progress{Try: 2, Done: 3}).Of(&Work{Try: 2}).Done != 3 {
		t.Error("the progress of another try counts")
	}
}

// TestEverythingIsUndoneOnce walks through random works in which one step fails: what was begun and can be taken back is taken back,
// the newest first, and nothing twice; behind a step that keeps nothing is.
func TestEverythingIsUndoneOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &Work{}
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			s := Step{Keeps: rapid.IntRange(0, 5).Draw(rt, "keeps") == 0}
			if rapid.Bool().Draw(rt, "undo") {
				s.Undo = &Step{}
			}
			w.Steps = append(w.Steps, s)
		}
		fails := rapid.IntRange(0, len(w.Steps)-1).Draw(rt, "fails")
		p := Progress{}
		for p.Done < fails {
			if w.Index(w.Next(p)) != p.Done {
				rt.Fatalf("at %+v comes %d", p, w.Index(w.Next(p)))
			}
			p.Done++
		}
		var want, got []int
		for i := fails; i >= 0; i-- {
			if w.Steps[i].Undo != nil {
				want = append(want, i)
			}
		}
		if slices.ContainsFunc(w.Steps[:fails], func(s Step) bool { return s.Keeps }) {
			want = nil
		}
		if w.Stays(p) {
			if len(want) > 0 {
				rt.Fatalf("it stays, and %v was to be undone", want)
			}
			return
		}
		for p = p.Fail(); w.Next(p) != nil; {
			i := w.Index(w.Next(p))
			got = append(got, i)
			p = p.Undone(i)
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("undone %v, want %v", got, want)
		}
	})
}

func TestBounds(t *testing.T) {
	w := creation()
	w.Locks = lock.Request{{Name: lock.Name{Level: lock.Instance, Item: "one"}, Mode: lock.Exclusive}}
	w.Result = json.RawMessage(`["node1"]`)
	text, err := w.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Decode(text); err != nil || !reflect.DeepEqual(again, w) {
		t.Errorf("read again: %+v, %v", again, err)
	}
	for _, bad := range []string{"", "{}", `{"steps":[]}`, `{"steps":5}`} {
		if _, err := Decode([]byte(bad)); !fault.Is(err, fault.WrongState) {
			t.Errorf("%q was read: %v", bad, err)
		}
	}
	if _, err := (&Work{Steps: make([]Step, MaxSteps)}).Encode(); err != nil {
		t.Errorf("as many steps as there may be: %v", err)
	}
	for what, large := range map[string]*Work{"steps": {Steps: make([]Step, MaxSteps+1)}, "bytes": {Steps: []Step{{Text: strings.Repeat("x", MaxSize)}}}} {
		if _, err := large.Encode(); !fault.Is(err, fault.TooLarge) {
			t.Errorf("too many %s: %v", what, err)
		}
	}
}

// filled sets every field of a struct that is stored, at any depth, to something that is not its zero value; numbers and texts may be anything.
func filled(t *testing.T, v reflect.Value, deep int) {
	t.Helper()
	if raw, ok := reflect.TypeAssert[*json.RawMessage](v.Addr()); ok {
		*raw = json.RawMessage(`{"any":"thing"}`)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				filled(t, v.Field(i), deep)
			}
		}
	case reflect.Pointer:
		if deep > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			filled(t, v.Elem(), deep-1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			filled(t, v.Index(i), deep)
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("text")
	case reflect.Int, reflect.Uint8:
		v.Set(reflect.ValueOf(2).Convert(v.Type())) // of modes, one that may be stored
	default:
		t.Fatalf("a field of a work is a %s: have it filled in", v.Type())
	}
}

// TestWhatIsKeptIsAllOfAWork: who goes on with a work finds all that was planned, also that nothing is taken back behind a step, that a failure ends nothing, and
// what to tell of what is left. But for what is said not to be stored nothing is dropped.
func TestWhatIsKeptIsAllOfAWork(t *testing.T) {
	w := new(Work)
	filled(t, reflect.ValueOf(w).Elem(), 1)
	text, err := w.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Decode(text); err != nil || !reflect.DeepEqual(again, w) {
		t.Errorf("it is kept as %s, and read as %+v, %v, from %+v", text, again, err, w)
	}
	for what, kept := range map[string]bool{"Tolerated": w.Steps[0].Tolerated, "Left": w.Steps[0].Undo.Left != "", "Placement": w.Placement != nil} {
		if !kept {
			t.Errorf("%s was left out", what)
		}
	}
}
