package lists

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/screen"
	"github.com/drover-project/drover/internal/cli/shelltest"
)

// TestAWatchedListStaysInPlace looks at the screen after each of some answers: what is new
// or changed has a sign and a time, what is gone is not there, jobs that have ended stand last.
func TestAWatchedListStaysInPlace(t *testing.T) {
	s := shelltest.New("", nil)
	s.Flags.Output = "table"
	p := newWatchPage(s.Shell, "job", nil, nil, &Options{})
	size := screen.Size{Width: 30, Height: 5}
	at := s.Now().Format(time.TimeOnly)
	for _, c := range []struct{ answer, want string }{
		{`{"revision":1,"reset":true,"fields":[{"title":"ID","kind":"number"},{"title":"Status","kind":"text"},{"kind":"text"},{"kind":"number"}],
			"events":[{"type":"enter","id":"1","row":[[0,1],[0,"error"],[0,"error"],[0,1]]},{"type":"enter","id":"2","row":[[0,2],[0,"queued"],[0,"queued"],[0,2]]}]}`,
			"  Changed ID Status\n           2 queued\n           1 error\n\n1 to 2 of 2   q leave  ↑↓ pgu…\n"},
		{`{"revision":2,"events":[{"type":"enter","id":"10","row":[[0,10],[0,"queued"],[0,"queued"],[0,10]]},
			{"type":"change","id":"2","row":[[0,2],[0,"running"],[0,"running"],[0,2]]}]}`,
			"  Changed  ID Status\n+ 11:00:00 10 queued\n~ 11:00:00  2 running\n            1 error\n1 to 3 of 3   q leave  ↑↓ pgu…\n"},
		{`{"revision":3,"events":[{"type":"leave","id":"1"},{"type":"change","id":"10","row":[[0,10],[0,"success"],[0,"success"],[0,10]]}]}`,
			"  Changed  ID Status\n~ 11:00:00  2 running\n~ 11:00:00 10 success\n\n1 to 2 of 2   q leave  ↑↓ pgu…\n"},
	} {
		u := &update{}
		if err := json.Unmarshal([]byte(c.answer), u); err != nil {
			t.Fatal(err)
		}
		if err := p.Take(u, nil); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(p.Lines(size), "\n") + "\n"
		if want := strings.ReplaceAll(c.want, "11:00:00", at); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	if away := errors.New("away"); !errors.Is(p.Take(nil, away), away) {
		t.Error("a failure does not end it")
	}
}

// TestAWatchedListShowsWhatHasSomethingToTell: a column that is left out of lists comes when a row has
// something for it, and goes.
func TestAWatchedListShowsWhatHasSomethingToTell(t *testing.T) {
	s := shelltest.New("", nil)
	s.Flags.Output = "table"
	p := newWatchPage(s.Shell, "node", nil, nil, &Options{brief: []string{"why"}})
	for i, c := range []struct{ row, want string }{
		{`[[0,1],[3,null],[0,"a"]]`, "  Changed ID Text\n           1 a\n"},
		{`[[0,1],[0,"rule x"],[0,"a"]]`, "  Changed  ID Why    Text\n~ 11:00:00  1 rule x a\n"},
		{`[[0,1],[0,false],[0,"bc"]]`, "  Changed  ID Text\n~ 11:00:00  1 bc\n"},
	} {
		u := &update{Revision: int64(i + 1), Reset: true, Fields: []listing.Field{{Name: "id", Title: "ID", Kind: "number"}, {Name: "why", Title: "Why", Kind: "text"}, {Name: "text", Title: "Text", Kind: "text"}}}
		event := rowEvent{Type: "enter", ID: "1"}
		if err := json.Unmarshal([]byte(c.row), &event.Row); err != nil {
			t.Fatal(err)
		}
		u.Events = []rowEvent{event}
		if err := p.Take(u, nil); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(p.Lines(screen.Size{Width: 40, Height: 3})[:2], "\n") + "\n"
		if want := strings.ReplaceAll(c.want, "11:00:00", s.Now().Format(time.TimeOnly)); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestAWatchedListScrolls(t *testing.T) {
	p := &watchPage{}
	for i := range 10 {
		p.order = append(p.order, string(rune('a'+i)))
	}
	size := screen.Size{Width: 30, Height: 6} // four rows
	for _, c := range []struct {
		key  string
		want int
	}{{"up", 0}, {"down", 1}, {"pgdown", 5}, {"pgdown", 6}, {"end", 6}, {"k", 5}, {"pgup", 1}, {"home", 0}} {
		if do := p.Key(c.key, size); do != screen.Stay || p.first != c.want {
			t.Errorf("%s: from row %d, want %d (%v)", c.key, p.first, c.want, do)
		}
	}
	if p.Key("q", size) != screen.Leave {
		t.Error("q does not leave")
	}
}
