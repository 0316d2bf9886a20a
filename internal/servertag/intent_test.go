package servertag

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

var alice = Asked{User: "alice", Front: "compute", Request: "req-1", Time: 1}

// having returns a set in which the tags are wanted.
func having(t *testing.T, names ...string) Set {
	t.Helper()
	s, _, err := Set{}.Want(DefaultPolicy(), User, names, alice)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func numbered(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("t%02d", i)
	}
	return out
}

func TestWhatIsRefused(t *testing.T) {
	full := numbered(50)
	for _, c := range []struct {
		what      string
		have, add []string
		code      fault.Code
		words     string
	}{
		{"empty", nil, []string{""}, fault.BadTag, "empty"},
		{"comma", nil, []string{"a,b"}, fault.BadTag, "without characters"},
		{"slash", nil, []string{"a/b"}, fault.BadTag, "without characters"},
		{"61 letters", nil, []string{strings.Repeat("x", 61)}, fault.BadTag, "60"},
		{"60 letters", nil, []string{strings.Repeat("x", 60)}, "", ""},
		{"19 Greek letters", nil, []string{strings.Repeat("ν", 19)}, "", ""},
		{"20 Greek letters", nil, []string{strings.Repeat("ν", 20)}, fault.BadTag, "134 characters"},
		{"NUL", nil, []string{"a\x00"}, fault.BadTag, "control character"},
		{"line feed", nil, []string{"a\nb"}, fault.BadTag, "control character"},
		{"an override of the direction", nil, []string{"\u202egnp.exe"}, fault.BadTag, "turns the direction"},
		{"a separator of lines", nil, []string{"a\u2028b"}, fault.BadTag, "parts lines"},
		{"a mark of the order of bytes", nil, []string{"\ufeffa"}, fault.BadTag, ""},
		{"a joiner, as emoji have", nil, []string{"\u0645\u06cc\u200c\u0634"}, "", ""},
		{"not UTF-8", nil, []string{"a\xff"}, fault.BadTag, "UTF-8"},
		{"dot", nil, []string{"."}, fault.BadTag, "path"},
		{"dots", nil, []string{".."}, fault.BadTag, "path"},
		{"three dots", nil, []string{"..."}, "", ""},
		{"key=value", nil, []string{"k=v", "a:b", "$", "100%", "cyclades:system:x"}, "", ""},
		{"twice the same", nil, []string{"a", "a"}, "", ""},
		{"50", nil, full, "", ""},
		{"51", nil, append(slices.Clone(full), "more"), fault.BadTag, "exceeded the per-server limit 50"},
		{"one more", full, []string{"more"}, fault.BadTag, "exceeded the per-server limit 50"},
		{"one of 50 again", full, []string{"t07"}, "", ""},
		{"two that clash", nil, []string{"high-availability", "x", "high-performance"}, fault.BadTag, "'high-availability' and 'high-performance'"},
		{"a newcomer that clashes", []string{"high-availability"}, []string{"high-performance"}, fault.Conflict, "'high-availability' is on the server already and stays"},
	} {
		t.Run(c.what, func(t *testing.T) {
			before := having(t, c.have...)
			after, _, err := before.Want(DefaultPolicy(), User, c.add, alice)
			if got := fault.CodeOf(err); got != c.code || err != nil && !strings.Contains(err.Error(), c.words) {
				t.Fatalf("got %v, want %q with %q", err, c.code, c.words)
			}
			if err != nil && after.Generation != before.Generation {
				t.Error("a refused request changed something")
			}
		})
	}
}

func TestReplaceIsADifference(t *testing.T) {
	p := DefaultPolicy()
	s := having(t, "a", "b", "high-availability")
	was := *s.Find(User, "b")
	next, err := s.Replace(p, User, []string{"b", "c", "high-performance", "c"}, alice)
	if err != nil {
		t.Fatal(err)
	}
	if got := next.Names(User); !slices.Equal(got, []string{"b", "c", "high-performance"}) {
		t.Errorf("wanted are %v", got)
	}
	if is := next.Find(User, "b"); is.Generation != was.Generation || len(is.Life) != len(was.Life) {
		t.Errorf("a tag that stays was touched: %+v", is)
	}
	if gone := next.Find(User, "a"); gone == nil || gone.Wanted || gone.Status() != PendDel {
		t.Errorf("what was replaced is %+v", gone)
	}
	if same, err := next.Replace(p, User, []string{"high-availability", "high-performance"}, alice); !fault.Is(err, fault.BadTag) || same.Generation != next.Generation {
		t.Errorf("a bad replacement: %v", err)
	}
}

// TestTagsOnTheirWayOutAreBounded: who puts and takes away without end, while the cluster takes nothing, does not fill the store.
func TestTagsOnTheirWayOutAreBounded(t *testing.T) {
	p, s := DefaultPolicy(), Set{}
	var err error
	for i := range 1000 {
		name := fmt.Sprint("t", i)
		var next Set
		if next, _, err = s.Want(p, User, []string{name}, Asked{}); err != nil {
			break
		}
		s, _ = next.Unwant(p, User, name, Asked{})
	}
	if !fault.Is(err, fault.Conflict) || len(s.Tags) != 201 {
		t.Errorf("%d tags are kept: %v", len(s.Tags), err)
	}
	if _, _, err := s.Want(p, System, []string{"x"}, Asked{}); err != nil {
		t.Errorf("the operator is held up: %v", err)
	}
	if next, _, err := s.Want(p, User, []string{"t0"}, Asked{}); err != nil || !next.Has(User, "t0") {
		t.Errorf("one that is on its way out cannot be wanted again: %v", err)
	}
}

func TestNamespacesAreApart(t *testing.T) {
	p := DefaultPolicy()
	s, _, err := having(t, "x").Want(p, System, []string{"x", "y"}, alice)
	if err != nil {
		t.Fatal(err)
	}
	if s, err = s.Replace(p, User, nil, alice); err != nil {
		t.Fatal(err)
	}
	if users, systems := s.Names(User), s.Names(System); len(users) != 0 || !slices.Equal(systems, []string{"x", "y"}) {
		t.Errorf("users have %v, the system %v", users, systems)
	}
	if _, ok := s.Unwant(p, User, "y", alice); ok {
		t.Error("a user removed a system tag")
	}
}

// TestTagsExcludeOneAnotherAcrossNamespaces: both would be put on the instance.
func TestTagsExcludeOneAnotherAcrossNamespaces(t *testing.T) {
	for _, c := range []struct {
		first, second Namespace
		hint          string
	}{{User, System, "remove 'high-availability' first"}, {System, User, "set by the operator"}} {
		p := DefaultPolicy()
		s, _, err := Set{}.Want(p, c.first, []string{"high-availability"}, alice)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Want(p, c.second, []string{"high-performance"}, alice); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), c.hint) {
			t.Errorf("%s after %s: %v", c.second, c.first, err)
		}
		if _, err := s.Replace(p, c.second, []string{"high-performance"}, alice); !fault.Is(err, fault.Conflict) {
			t.Errorf("replacing %s after %s: %v", c.second, c.first, err)
		}
		if _, _, err := s.Want(p, c.second, []string{"high-availability"}, alice); err != nil {
			t.Errorf("the same name in both: %v", err)
		}
	}
}

func TestReadYourWrites(t *testing.T) {
	p := DefaultPolicy()
	s, created, err := Set{}.Want(p, User, []string{"a"}, alice)
	if err != nil || !slices.Equal(created, []string{"a"}) || !s.Has(User, "a") || s.Find(User, "a").Status() != PendAdd {
		t.Fatalf("%v %v %v", created, err, s)
	}
	s, ok := s.Unwant(p, User, "a", alice)
	if !ok || s.Has(User, "a") {
		t.Fatal("delete right after add does not work")
	}
	if s, created, _ = s.Want(p, User, []string{"a"}, alice); len(created) != 1 || s.Find(User, "a").Generation != 3 {
		t.Fatalf("add after delete: %v %+v", created, s.Find(User, "a"))
	}
	if _, created, _ = s.Want(p, User, []string{"a"}, alice); len(created) != 0 {
		t.Error("a tag is created twice")
	}
}
