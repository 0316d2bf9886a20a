package history

import (
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// told is an operation of a test: from and to are its times in seconds, and 0 as an end
// is no answer.
type told struct {
	do       string
	value    int
	from, to int
	out      Output
}

func recorded(object string, all []told) *Record {
	r := &Record{}
	for i, op := range all {
		op.out.Unknown = op.to == 0
		r.Told(i, Input{object, op.do, op.value}, time.Duration(op.from)*time.Second, time.Duration(op.to)*time.Second, op.out)
	}
	return r
}

// TestAnswersAgreeOrNot has one history that is right beside each that is not.
func TestAnswersAgreeOrNot(t *testing.T) {
	there := func(value int) Output { return Output{Is: There, Value: value} }
	is := func(is string) Output { return Output{Is: is} }
	for _, tc := range []struct {
		name, object string
		ops          []told
		right        bool
	}{
		{"a rule is as it was put", "rule r", []told{{"put", 7, 1, 2, is("")}, {"read", 0, 3, 4, there(7)}}, true},
		{"an old rule is read", "rule r", []told{{"put", 7, 1, 2, is("")}, {"put", 8, 3, 4, is("")}, {"read", 0, 5, 6, there(7)}}, false},
		{"either of two at once", "rule r", []told{{"put", 7, 1, 4, is("")}, {"put", 8, 2, 3, is("")}, {"read", 0, 5, 6, there(7)}}, true},
		{"what nobody put", "rule r", []told{{"put", 7, 1, 2, is("")}, {"read", 0, 3, 4, there(9)}}, false},
		{"what was lost may come late", "rule r", []told{{"put", 7, 1, 0, is("")}, {"read", 0, 2, 3, is(Absent)}, {"read", 0, 4, 5, there(7)}}, true},
		{"and goes no more", "rule r", []told{{"put", 7, 1, 0, is("")}, {"read", 0, 2, 3, there(7)}, {"read", 0, 4, 5, is(Absent)}}, false},
		{"deleted twice", "rule r", []told{{"put", 7, 1, 2, is("")}, {"delete", 0, 3, 4, is(There)}, {"delete", 0, 5, 6, is(There)}}, false},
		{"one job a key", "job j", []told{{"submit", 0, 1, 2, Output{Value: 5}}, {"submit", 0, 3, 4, Output{Value: 5}}}, true},
		{"two jobs of a key", "job j", []told{{"submit", 0, 1, 2, Output{Value: 5}}, {"submit", 0, 3, 4, Output{Value: 6}}}, false},
		{"a job that is forgotten", "job j", []told{{"submit", 0, 1, 2, Output{Value: 5}}, {"read", 0, 3, 4, is(Absent)}}, false},
		{"cancelled once", "job j", []told{{"submit", 0, 1, 2, Output{Value: 5}}, {"cancel", 0, 3, 4, is("done")}, {"cancel", 0, 5, 6, is("too late")}}, true},
		{"a cancel that is forgotten", "job j", []told{{"submit", 0, 1, 2, Output{Value: 5}}, {"cancel", 0, 3, 4, is("done")}, {"read", 0, 5, 6, is("queued")}}, false},
		{"a tag", "tag t", []told{{"add", 0, 1, 2, is("")}, {"remove", 0, 3, 4, is(There)}, {"read", 0, 5, 6, is(Absent)}}, true},
		{"a tag that comes back", "tag t", []told{{"add", 0, 1, 2, is("")}, {"remove", 0, 3, 4, is(There)}, {"read", 0, 5, 6, is(There)}}, false},
	} {
		v := recorded(tc.object, tc.ops).Check(time.Minute)
		if right := v.Result == porcupine.Ok; right != tc.right || (v.Wrong == "") != tc.right {
			t.Errorf("%s: %s\n%s", tc.name, v.Result, v.Wrong)
		}
	}
}

// TestOldAnswers may be old, but not older than their revisions.
func TestOldAnswers(t *testing.T) {
	ops := []told{{"put", 7, 1, 2, Output{Revision: 10}}, {"put", 8, 3, 4, Output{Revision: 20}}, {"put", 9, 9, 10, Output{Revision: 30}}}
	for _, tc := range []struct {
		out  Output
		want string
	}{
		{Output{Is: Absent, Revision: 9}, ""},
		{Output{Is: Absent, Revision: 10}, "revision 10 shows put rule r 7"},
		{Output{Is: There, Value: 7, Revision: 19}, ""},
		{Output{Is: There, Value: 8, Revision: 19}, ""},
		{Output{Is: There, Value: 7, Revision: 20}, "revision 20 shows put rule r 8"},
		{Output{Is: There, Value: 9, Revision: 9}, "nobody asked for that"},
	} {
		r := recorded("rule r", ops)
		r.ToldOld("rule r", 5*time.Second, tc.out)
		v := r.Check(time.Minute)
		if got := strings.Join(v.StaleWrong, "; "); tc.want == "" && got != "" || !strings.Contains(got, tc.want) || v.Stale != 1 {
			t.Errorf("%+v: %q, want %q in it", tc.out, got, tc.want)
		}
	}
}
