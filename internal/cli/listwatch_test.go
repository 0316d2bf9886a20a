package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cli/listing"
)

func TestWatchShowsWhatIsDifferent(t *testing.T) {
	var w watched
	var got strings.Builder
	s := newScreen("", nil)
	s.flags.output = "table"
	for _, text := range []string{
		`{"revision":1,"reset":true,"fields":[{"name":"id","title":"ID","kind":"number"},{"name":"status","title":"Status","kind":"text"}],
			"events":[{"type":"enter","id":"1","row":[[0,1],[0,"running"]]},{"type":"enter","id":"2","row":[[0,2],[0,"queued"]]}]}`,
		`{"revision":2,"events":[{"type":"change","id":"2","row":[[0,2],[0,"queued"]]}]}`,
		`{"revision":3,"events":[{"type":"change","id":"2","row":[[0,2],[3,null]]},{"type":"change","id":"3","row":[[0,3],[0,"queued"]]},{"type":"leave","id":"1"},{"type":"leave","id":"9"}]}`,
		`{"revision":9,"reset":true,"events":[{"type":"enter","id":"3","row":[[0,3],[0,"queued"]]}]}`,
	} {
		u := &update{}
		if err := json.Unmarshal([]byte(text), u); err != nil {
			t.Fatal(err)
		}
		s.out.Reset()
		u.Fields = []listing.Field{{Title: "ID", Kind: "number"}, {Title: "Status", Kind: "text"}}
		if err := s.showEvents("job", u, w.apply(u), &w, &listOptions{}); err != nil {
			t.Fatal(err)
		}
		got.WriteString(s.out.String() + ".\n")
	}
	want := "  At       ID Status\n+ 11:00:00  1 running\n+ 11:00:00  2 queued\n.\n.\n" +
		"~ 11:00:00  2 -\n+ 11:00:00  3 queued\n- 11:00:00  1 running\n.\n- 11:00:00  2 -\n.\n"
	want = strings.ReplaceAll(want, "11:00:00", s.now().Format(time.TimeOnly))
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestWatchAsJSON(t *testing.T) {
	s := newScreen("", nil)
	s.flags.output = "json"
	events := []rowEvent{{"enter", "1", []listing.Cell{{Value: json.RawMessage(`"<a>"`)}}}}
	if err := s.showEvents("job", &update{Fields: []listing.Field{{Name: "summary"}}}, events, &watched{}, &listOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := s.out.String(); got != `{"at":"`+s.now().Format(time.RFC3339Nano)+`","id":"1","row":{"summary":"<a>"},"type":"enter"}`+"\n" {
		t.Errorf("got %s", got)
	}
}
