package lists

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/shelltest"
)

func TestWatchShowsWhatIsDifferent(t *testing.T) {
	var w watched
	var got strings.Builder
	s := shelltest.New("", nil)
	s.Flags.Output = "table"
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
		s.Out.Reset()
		u.Fields = []listing.Field{{Title: "ID", Kind: "number"}, {Title: "Status", Kind: "text"}}
		if err := showEvents(s.Shell, "job", u, w.apply(u), &w, &Options{}); err != nil {
			t.Fatal(err)
		}
		got.WriteString(s.Out.String() + ".\n")
	}
	want := "  At       ID Status\n+ 11:00:00  1 running\n+ 11:00:00  2 queued\n.\n.\n" +
		"~ 11:00:00  2 -\n+ 11:00:00  3 queued\n- 11:00:00  1 running\n.\n- 11:00:00  2 -\n.\n"
	want = strings.ReplaceAll(want, "11:00:00", s.Now().Format(time.TimeOnly))
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestWatchAsJSON(t *testing.T) {
	s := shelltest.New("", nil)
	s.Flags.Output = "json"
	events := []rowEvent{{"enter", "1", []listing.Cell{{Value: json.RawMessage(`"<a>"`)}}}}
	if err := showEvents(s.Shell, "job", &update{Fields: []listing.Field{{Name: "summary"}}}, events, &watched{}, &Options{}); err != nil {
		t.Fatal(err)
	}
	if got := s.Out.String(); got != `{"at":"`+s.Now().Format(time.RFC3339Nano)+`","id":"1","row":{"summary":"<a>"},"type":"enter"}`+"\n" {
		t.Errorf("got %s", got)
	}
}
