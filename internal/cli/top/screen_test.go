package top

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/drover-project/drover/internal/cli/screen"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/testkit"
)

var update = flag.Bool("update", false, "write the golden files")

// atNight is a picture of a cluster of many nodes on which much waits.
func atNight(t *testing.T, nodes int) *Picture {
	t.Helper()
	at := time.Date(2026, 11, 23, 3, 14, 15, 0, time.UTC)
	p := &Picture{
		At: at, Cluster: "cluster.example.com",
		Jobs: map[string]int64{"running": 3, "queued": 1212, "waiting": 4, "canceling": 1}, Rates: Rates{Came: 87, Ended: 64, Failed: 2},
		Held:      []Hold{{"rule lab", 1200, 4711}, {"", 12, 4712}, {"lock instance/web1", 3, 4703}, {"job 4702", 1, 4704}, {"limit nightly", 1, 4705}},
		Instances: map[string]int64{"running": 1840, "ADMIN_down": 12, "ERROR_down": 2, "new": 1},
		Roles:     map[string]int64{"M": 1, "C": 9, "R": int64(nodes) - 13, "D": 2, "O": 1}, Memory: int64(nodes) * 128 * 1024, Free: int64(nodes) * 37 * 1024,
		Running: []Job{
			{4700, "running", at.Add(-3 * time.Hour), "INSTANCE_REPLACE_DISKS(db1.example.com)", "", 0, 0},
			{4701, "running", at.Add(-40 * time.Second), "INSTANCE_CREATE(web\x1b[2Jx.example.com)", "", 0, 0},
		},
		Waiting: []Job{
			{4703, "waiting", at.Add(-5 * time.Minute), "INSTANCE_REBOOT(web1.example.com)", "lock instance/web1.example.com", 2, -10},
			{4706, "canceling", at, "INSTANCE_SHUTDOWN(web1.example.com)", "", 0, 0},
		},
		Holds: []Hold{{"rule lab", 1200, 4711}, {"", 12, 4712}},
		Nodes: []Node{{"node001.example.com", "master", 12, 131072, 20480, ""}, {"node002.example.com", "offline", 0, -1, -1, "power supply, ask Ada"}},
		More:  1216,
	}
	for i := range 36 {
		p.Waiting = append(p.Waiting, Job{4711 + int64(i), "queued", at.Add(-50 * time.Hour), "INSTANCE_STARTUP(lab1.example.com)", "rule lab", 0, 0})
	}
	for i := len(p.Nodes); i < nodes; i++ {
		state := map[bool]string{true: "drained", false: "online"}[i%50 == 7]
		p.Nodes = append(p.Nodes, Node{fmt.Sprintf("node%03d.example.com", i+1), state, int64(i % 20), 131072, int64(i) * 512, ""})
	}
	const explanation = `{"job": 4703, "status": "waiting", "why": "waits for the lock instance/web1.example.com, which job 4701 has",
		"change": [{"kind": "lock", "text": "job 4701 ends, or is cancelled (drover job cancel --kill 4701)"}],
		"expected": {"text": "when job 4701 ends, usually after 2m"}, "reason": "new kernel, OPS-77"}`
	p.Chosen = &machine.Explanation{}
	if err := json.Unmarshal([]byte(explanation), p.Chosen); err != nil {
		t.Fatal(err)
	}
	return p
}

// begun is a screen without colours that shows a picture.
func begun(p *Picture) *State {
	return &State{every: time.Second, paint: func(_, text string) string { return text }, picture: p}
}

// TestAllOfARemedyIsSeenWhereThereIsRoom: rows that are few leave theirs to what is said of the
// chosen one; where there are many, it says that there is more.
func TestAllOfARemedyIsSeenWhereThereIsRoom(t *testing.T) {
	p := atNight(t, 200)
	for i := range 4 {
		p.Chosen.Change = append(p.Chosen.Change, machine.Remedy{Text: fmt.Sprintf("or else remedy %d, which takes more than one line because it is told at such length (drover job cancel 4703)", i+1)})
	}
	lines := begun(p).Lines(screen.Size{Width: 80, Height: 24})
	if text := strings.Join(lines, "\n"); strings.Contains(text, "remedy 2") || !strings.HasSuffix(text, "\n  and more: drover job explain 4703\n"+lines[23]) {
		t.Errorf("beside many rows:\n%s", text)
	}
	p.Waiting, p.Running = p.Waiting[:2], nil
	lines = begun(p).Lines(screen.Size{Width: 80, Height: 24})
	if text := strings.Join(lines, "\n"); len(lines) != 24 || !strings.Contains(text, "remedy 4") || !strings.Contains(text, "new kernel, OPS-77\n"+lines[23]) || strings.Contains(text, "and more: drover") {
		t.Errorf("beside few rows, %d lines:\n%s", len(lines), text)
	}
}

func TestScreens(t *testing.T) {
	for _, c := range []struct {
		name          string
		width, height int
		nodes         int
		keys          string
	}{
		{"jobs-80x24", 80, 24, 200, "down down"},
		{"jobs-second-page-80x24", 80, 24, 200, "pgdown pgdown"},
		{"jobs-132x50", 132, 50, 200, ""},
		{"jobs-40x10", 40, 10, 200, ""},
		{"holds-80x24", 80, 24, 200, "2"},
		{"nodes-80x24", 80, 24, 200, "3 down"},
		{"nodes-last-of-200-132x24", 132, 24, 200, "3 end"},
		{"nodes-of-three-80x24", 80, 24, 14, "3"},
		{"filter-80x24", 80, 24, 200, "/ s t a t u s"},
		{"wrong-filter-80x24", 80, 24, 200, "/ s = = enter"},
		{"help-80x24", 80, 24, 200, "?"},
		{"held-still-80x24", 80, 24, 200, "space"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := atNight(t, c.nodes)
			s := begun(p)
			size := screen.Size{Width: c.width, Height: c.height}
			for name := range strings.FieldsSeq(c.keys) {
				s.Key(name, size)
				if s.picture.Running == nil { // another view was chosen: its picture came
					s.picture = p
				}
			}
			lines := s.Lines(size)
			if len(lines) > c.height {
				t.Errorf("%d lines on a screen of %d", len(lines), c.height)
			}
			for _, line := range lines {
				if utf8.RuneCountInString(line) > c.width {
					t.Errorf("wider than %d: %s", c.width, line)
				}
			}
			compare(t, c.name, strings.Join(lines, "\n")+"\n")
		})
	}
}

// compare compares with a golden file.
func compare(t *testing.T, name, got string) {
	t.Helper()
	testkit.Golden(t, *update, filepath.Join("testdata", name+".txt"), got)
}

// TestTheHelpIsWholeAgain on a terminal that is made wider.
func TestTheHelpIsWholeAgain(t *testing.T) {
	s := begun(atNight(t, 20))
	s.Key("?", screen.Size{Width: 80, Height: 24})
	wide := s.Lines(screen.Size{Width: 80, Height: 24})
	s.Lines(screen.Size{Width: 10, Height: 24})
	if again := s.Lines(screen.Size{Width: 80, Height: 24}); !slices.Equal(again, wide) {
		t.Errorf("it is %q", again)
	}
}

func TestKeys(t *testing.T) {
	size := screen.Size{Width: 80, Height: 24}
	for _, c := range []struct {
		keys string
		want screen.Action
		is   func(s *State) bool
	}{
		{"q", screen.Leave, func(*State) bool { return true }},
		{"tab", screen.Again, func(s *State) bool { return s.view == Holds }},
		{"tab tab tab", screen.Again, func(s *State) bool { return s.view == Jobs }},
		{"down", screen.Again, func(s *State) bool { return s.chosen == 4701 }},
		{"down up", screen.Again, func(s *State) bool { return s.chosen == 4700 }},
		{"up", screen.Again, func(s *State) bool { return s.cursor[Jobs] == 0 && s.chosen == 4700 }},
		{"end", screen.Again, func(s *State) bool { return s.cursor[Jobs] == 39 }},
		{"end end", screen.Stay, func(s *State) bool { return s.cursor[Jobs] == 39 }}, // it is explained already
		{"s", screen.Again, func(s *State) bool { return s.sort()[0] == "id" }},
		{"s r", screen.Again, func(s *State) bool { return s.sort()[0] == "-id" }},
		{"s s s s", screen.Again, func(s *State) bool { return s.sort()[0] == "priority" }},
		{"/ 4 2 enter", screen.Again, func(s *State) bool { return s.filters[Jobs].text == "42" && s.wrong == nil }},
		{"/ 4 2 backspace enter", screen.Again, func(s *State) bool { return s.filters[Jobs].text == "4" }},
		{"/ 4 2 esc", screen.Stay, func(s *State) bool { return s.filters[Jobs].text == "" }},
		{"/ 4 enter esc", screen.Again, func(s *State) bool { return s.filters[Jobs].text == "" }},
		{"/ q enter", screen.Again, func(s *State) bool { return s.filters[Jobs].text == "" && s.wrong != nil }},
		{"? q", screen.Stay, func(s *State) bool { return !s.help }},
		{"space", screen.Again, func(s *State) bool { return s.still }},
		{"f12", screen.Stay, func(*State) bool { return true }},
	} {
		s := begun(atNight(t, 20))
		var last screen.Action
		for name := range strings.FieldsSeq(c.keys) {
			last = s.Key(name, size)
		}
		if last != c.want || !c.is(s) {
			t.Errorf("%s: %v, %+v", c.keys, last, s)
		}
	}
}

func TestEnterShowsTheJobsThatAreHeld(t *testing.T) {
	size := screen.Size{Width: 80, Height: 24}
	for row, want := range []string{`wait_reason == "rule lab"`, `wait_reason is missing and not status == "running"`} {
		s := begun(atNight(t, 20))
		s.view = Holds
		s.moveTo(row)
		s.Key("enter", size)
		if s.view != Jobs || s.filters[Jobs].text != want || s.wrong != nil {
			t.Errorf("%v with filter %q (%v), want %q", s.view, s.filters[Jobs].text, s.wrong, want)
		}
	}
}

func TestAViewWithoutItsPictureSaysSo(t *testing.T) {
	size := screen.Size{Width: 80, Height: 24}
	s := begun(atNight(t, 20))
	s.Key("3", size)
	shown := strings.Join(s.Lines(size), "\n")
	if !strings.Contains(shown, "asking the controller") || strings.Contains(shown, "no nodes") {
		t.Error(shown)
	}
	late := atNight(t, 20) // of the view before
	if err := s.Take(late, nil); err != nil || s.picture == late {
		t.Errorf("a picture of another view is shown: %v", err)
	}
}

func TestTheCursorStaysWithItsJob(t *testing.T) {
	s := begun(atNight(t, 20))
	s.moveTo(2) // 4703
	news := atNight(t, 20)
	news.Running = append([]Job{{ID: 4699}}, news.Running...)
	if err := s.Take(news, nil); err != nil || s.cursor[Jobs] != 3 || s.chosen != 4703 {
		t.Errorf("row %d, job %d: %v", s.cursor[Jobs], s.chosen, err)
	}
	gone := atNight(t, 20)
	gone.Waiting = nil
	if err := s.Take(gone, nil); err != nil || s.cursor[Jobs] != 1 || s.chosen != 4701 {
		t.Errorf("row %d, job %d: %v", s.cursor[Jobs], s.chosen, err)
	}
}

func TestWhatGoesWrongIsToldOverTheLastPicture(t *testing.T) {
	away := fault.New(fault.Unavailable, "the controller is away")
	s := begun(nil)
	if err := s.Take(Wish{}, away); err == nil {
		t.Error("without a picture it goes on")
	}
	s = begun(atNight(t, 20))
	if err := s.Take(Wish{}, away); err != nil {
		t.Fatal(err)
	}
	if title := s.Lines(screen.Size{Width: 80, Height: 24})[0]; !strings.Contains(title, "away") {
		t.Errorf("title %q", title)
	}
	if err := s.Take(atNight(t, 20), nil); err != nil || s.failed != nil {
		t.Errorf("after it is back: %v, %v", err, s.failed)
	}
	for _, refusal := range []error{fault.New(fault.Invalid, "no field nosuch"), fault.New(fault.NotFound, "no node nosuch")} {
		s.setFilter(Jobs, `nosuch == "x"`)
		if err := s.Take(Wish{View: Jobs}, refusal); err != nil || s.filters[Jobs].text != "" || s.wrong == nil || s.failed != nil {
			t.Errorf("a refused filter: %v, %+v", err, s.filters)
		}
	}
}

// TestNothingIsAskedWhileItIsHeldStill looks at the questions that a state asks.
func TestNothingIsAskedWhileItIsHeldStill(t *testing.T) {
	asked := 0
	s := begun(atNight(t, 20))
	s.now = time.Now
	s.ask = func(context.Context, string, any, ...any) error { asked++; return fault.New(fault.Unavailable, "away") }
	s.still = true
	for range 2 {
		question, _ := s.Next()
		_, _ = question(t.Context()) // of the answer nothing is expected
		if want := map[bool]int{true: 0, false: 1}[s.still]; asked != want {
			t.Errorf("asked %d times, held still %v", asked, s.still)
		}
		s.still = false
	}
}

func TestAges(t *testing.T) {
	now := time.Now()
	for want, d := range map[string]time.Duration{"0s": -time.Second, "59s": 59 * time.Second, "59m": time.Hour - 1, "23h": 24*time.Hour - 1, "4d": 100 * time.Hour} {
		if got := age(now, now.Add(-d)); got != want {
			t.Errorf("%v ago is %s, want %s", d, got, want)
		}
	}
	if got := age(now, time.Time{}); got != "" {
		t.Errorf("never is %q", got)
	}
}
