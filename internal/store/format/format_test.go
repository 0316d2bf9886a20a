package format_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store/format"
)

func program(oldest, newest int) format.Program {
	r := format.Range{Oldest: oldest, Newest: newest}
	return format.Program{Reads: r, Writes: r}
}

func TestEachFormatSaysWhatItBrought(t *testing.T) {
	for n := format.First; n <= format.Newest; n++ {
		if format.Brought(n) == "" {
			t.Errorf("format %d says nothing", n)
		}
	}
	for _, n := range []int{-1, 0, format.Newest + 1} {
		if text := format.Brought(n); text != "" {
			t.Errorf("format %d, which there is not, brought %q", n, text)
		}
	}
	own := format.Own()
	if own.CanLead(format.First) != nil || own.CanLead(format.Newest) != nil || own.CanLead(format.Newest+1) == nil {
		t.Errorf("this program is %+v", own)
	}
}

func TestAProgramThatTellsNothingKnowsTheFirst(t *testing.T) {
	var told struct{ Formats *format.Program }
	for text, want := range map[string]format.Program{
		`{}`:               program(1, 1),
		`{"formats":null}`: program(1, 1),
		`{"formats":{"reads":{"oldest":2,"newest":4},"writes":{"oldest":2,"newest":3}}}`: {Reads: format.Range{Oldest: 2, Newest: 4}, Writes: format.Range{Oldest: 2, Newest: 3}},
	} {
		told.Formats = nil
		if err := json.Unmarshal([]byte(text), &told); err != nil {
			t.Fatal(err)
		}
		if got := format.Told(told.Formats); got != want {
			t.Errorf("%s is %+v", text, got)
		}
	}
}

func TestCanLead(t *testing.T) {
	reader := format.Program{Reads: format.Range{Oldest: 1, Newest: 3}, Writes: format.Range{Oldest: 2, Newest: 2}}
	for _, c := range []struct {
		p          format.Program
		present    int
		read, lead string // what a refusal says; nothing where there is none
	}{
		{program(1, 2), 1, "", ""},
		{program(1, 2), 2, "", ""},
		{program(1, 2), 3, "has format 3, and this program reads 1-2 (use the program version that raised it", "reads 1-2"},
		{program(2, 2), 1, "reads 2 (let a program of a version between raise it first", "reads 2"},
		{reader, 3, "", "has format 3, and this program writes 2 (use"},
		{reader, 1, "", "writes 2 (let"},
		{reader, 2, "", ""},
	} {
		refused(t, c.p.CanRead(c.present), c.read)
		refused(t, c.p.CanLead(c.present), c.lead)
	}
}

// refused looks for what a refusal is to say; nothing where there is to be none.
func refused(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (!fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), want)) {
		t.Errorf("%v, want %q", err, want)
	}
}

func TestStoredFormat(t *testing.T) {
	for n := 1; n < 20; n++ {
		if got, err := format.Parse(format.Encode(n)); err != nil || got != n {
			t.Errorf("format %d comes back as %d, %v", n, got, err)
		}
	}
	if n, err := format.Parse([]byte(`{"format":7,"more":{}}`)); err != nil || n != 7 {
		t.Errorf("one of later: %d, %v", n, err)
	}
	for _, text := range []string{``, `2`, `"2"`, `{}`, `{"format":0}`, `{"format":-1}`, `{"format":"2"}`, `{"format":1.5}`, `[2]`} {
		if n, err := format.Parse([]byte(text)); !fault.Is(err, fault.Unsupported) {
			t.Errorf("%s is format %d, %v", text, n, err)
		}
	}
}

func TestPresent(t *testing.T) {
	var p format.Present
	if p.Format() != format.First {
		t.Errorf("before anything was set it is %d", p.Format())
	}
	if p.Set(2); p.Format() != 2 {
		t.Errorf("once set it is %d", p.Format())
	}
}

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func member(name string, p format.Program, ago time.Duration) format.Member {
	return format.Member{Name: name, Program: p, Heard: noon.Add(-ago)}
}

func TestDecide(t *testing.T) {
	halfReady := format.Program{Reads: format.Range{Oldest: 1, Newest: 2}, Writes: format.Range{Oldest: 1, Newest: 1}}
	for _, c := range []struct {
		name    string
		present int
		own     format.Program
		members []format.Member
		to, top int
		holds   string
	}{
		{"alone", 1, program(1, 2), nil, 2, 2, ""},
		{"nothing is newer", 2, program(1, 2), nil, 2, 2, ""},
		{"all can", 1, program(1, 2), []format.Member{member("b", program(1, 2), 0), member("a", program(1, 3), 0)}, 2, 2, ""},
		{"two of before", 1, program(1, 2), []format.Member{member("b", program(1, 1), time.Hour), member("c", program(1, 2), 0), member("a", program(1, 1), 0)}, 1, 2,
			"a: its program reads format 1 and writes 1, not 2, until 3 12:00; b: its program reads format 1 and writes 1, not 2, until 3 11:00"},
		{"one that reads and does not write", 1, program(1, 2), []format.Member{member("b", halfReady, 0)}, 1, 2, "b: its program reads format 1-2 and writes 1, not 2, until 3 12:00"},
		{"heard a day less a moment ago", 1, program(1, 2), []format.Member{member("b", program(1, 1), format.Grace-1)}, 1, 2, "b: its program reads format 1 and writes 1, not 2, until 2 12:00"},
		{"not heard for a day", 1, program(1, 2), []format.Member{member("b", program(1, 1), format.Grace)}, 2, 2, ""},
		{"heard in the time to come, by a clock that was ahead", 1, program(1, 2), []format.Member{member("b", program(1, 1), -time.Hour)}, 1, 2,
			"b: its program reads format 1 and writes 1, not 2, until 3 13:00"},
		{"as far as it goes", 1, program(1, 4), []format.Member{member("b", program(1, 3), 0), member("c", program(1, 9), 0)}, 3, 4, "b: its program reads format 1-3 and writes 1-3, not 4, until 3 12:00"},
		{"who decides cannot go further", 1, program(1, 2), []format.Member{member("b", program(1, 9), 0)}, 2, 2, ""},
		{"one that no longer knows the present", 1, program(1, 3), []format.Member{member("b", program(3, 3), 0)}, 1, 3, "b: its program reads format 3 and writes 3, not 2, until 3 12:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := format.Decide(c.present, c.own, c.members, noon)
			var holds []string
			for _, h := range r.Holds {
				holds = append(holds, fmt.Sprintf("%s: %s, until %s", h.Name, h.Why, h.Until.Format("2 15:04")))
			}
			if got := strings.Join(holds, "; "); r.From != c.present || r.To != c.to || r.Newest != c.top || got != c.holds || r.Wanted() != (c.to > c.present) {
				t.Errorf("from %d to %d of %d, held by %q; want %d of %d, %q", r.From, r.To, r.Newest, got, c.to, c.top, c.holds)
			}
		})
	}
}

// TestARaiseLeavesNobodyBehind: whoever was heard of and can lead before a raise can lead behind it.
func TestARaiseLeavesNobodyBehind(t *testing.T) {
	ranges := rapid.Custom(func(t *rapid.T) format.Range {
		oldest := rapid.IntRange(1, 4).Draw(t, "oldest")
		return format.Range{Oldest: oldest, Newest: rapid.IntRange(oldest, 5).Draw(t, "newest")}
	})
	programs := rapid.Custom(func(t *rapid.T) format.Program {
		return format.Program{Reads: ranges.Draw(t, "reads"), Writes: ranges.Draw(t, "writes")}
	})
	rapid.Check(t, func(t *rapid.T) {
		present, own := rapid.IntRange(1, 5).Draw(t, "present"), programs.Draw(t, "own")
		var members []format.Member
		for i := range rapid.IntRange(0, 4).Draw(t, "members") {
			ago := rapid.SampledFrom([]time.Duration{0, time.Hour, format.Grace, 2 * format.Grace}).Draw(t, "ago")
			members = append(members, member(strconv.Itoa(i), programs.Draw(t, "program"), ago))
		}
		r := format.Decide(present, own, members, noon)
		if r.From != present || r.To < present || r.To > r.Newest {
			t.Fatalf("%+v", r)
		}
		if r.Wanted() && own.CanLead(r.To) != nil {
			t.Fatalf("who decides cannot lead at %d: %+v", r.To, own)
		}
		alive := slices.DeleteFunc(slices.Clone(members), func(m format.Member) bool { return noon.Sub(m.Heard) >= format.Grace })
		stopped := false
		for _, m := range alive {
			if r.Wanted() && m.Program.CanLead(r.To) != nil {
				t.Fatalf("%s is left behind by %+v", m.Name, r)
			}
			stopped = stopped || m.Program.CanLead(r.To+1) != nil
		}
		if (len(r.Holds) > 0) != (r.To < r.Newest) || len(r.Holds) > 0 && !stopped {
			t.Fatalf("%+v of %+v", r, members)
		}
	})
}
