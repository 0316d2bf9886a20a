package watcher_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/watcher"
)

var at = time.Date(2026, 3, 4, 3, 0, 0, 0, time.UTC)

func done(int64) bool { return true }

// look tells of one look what is done and said, in a line.
func look(b *watcher.Book, i watcher.Instance, ended func(int64) bool, now time.Time) (said string) {
	i.UUID, i.Name = "u", "web"
	before := maps.Clone(*b)
	tasks, notes, next := watcher.Look(*b, []watcher.Instance{i}, ended, time.Minute, now)
	if !maps.Equal(before, *b) {
		return "the book was changed"
	}
	*b = next
	for _, t := range tasks {
		said += fmt.Sprintf("%s %d: %s;", t.Do, t.Attempt, t.Why)
	}
	for _, n := range notes {
		said += fmt.Sprintf("%t %s;", n.GaveUp, n.Text)
	}
	return said
}

func TestLook(t *testing.T) {
	const started = "start 1: Restarting instance web;"
	for name, tc := range map[string]struct {
		seen watcher.Instance
		want string
	}{
		"it is to run and does not":  {watcher.Instance{Status: "ERROR_down", Wanted: true}, started},
		"a job works on it":          {watcher.Instance{Status: "ERROR_down", Wanted: true, Busy: true}, ""},
		"it is not to run":           {watcher.Instance{Status: "ERROR_down"}, ""},
		"it runs":                    {watcher.Instance{Status: "running", Wanted: true}, ""},
		"its node is away":           {watcher.Instance{Status: "ERROR_nodedown", Wanted: true}, ""},
		"it runs elsewhere":          {watcher.Instance{Status: "ERROR_wrongnode", Wanted: true}, ""},
		"it runs though not to":      {watcher.Instance{Status: "ERROR_up"}, ""},
		"it was shut down by itself": {watcher.Instance{Status: "USER_down", Wanted: true}, "cleanup 1: Cleaning up instance web;"},
		"it counts as stopped":       {watcher.Instance{Status: "USER_down"}, ""},
	} {
		if got := look(&watcher.Book{}, tc.seen, done, at); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	down := watcher.Instance{Status: "ERROR_down", Wanted: true}
	runs := watcher.Instance{Status: "running", Wanted: true}
	// The same book from look to look.
	for name, looks := range map[string][]struct {
		after time.Duration
		seen  watcher.Instance
		ended bool
		want  string
	}{
		"pauses grow": {
			{0, down, true, started}, {59 * time.Second, down, true, ""}, {time.Minute, down, true, "start 2: Restarting instance web (attempt 2 of 5);"},
			{2 * time.Minute, down, true, ""}, {3 * time.Minute, down, true, "start 3: Restarting instance web (attempt 3 of 5);"},
		},
		"its last job has not ended": {{0, down, true, started}, {time.Hour, down, false, ""}, {2 * time.Hour, down, true, "start 2: Restarting instance web (attempt 2 of 5);"}},
		"it runs for a while": {{0, down, true, started}, {time.Minute, runs, true, ""}, {9 * time.Minute, runs, true, ""},
			{9*time.Minute + time.Second, down, true, "start 2: Restarting instance web (attempt 2 of 5);"}},
		"it runs": {{0, down, true, started}, {10 * time.Minute, runs, true, "false running by now, after 1 attempt;"}, {11 * time.Minute, runs, true, ""}, {12 * time.Minute, down, true, started}},
		"its node goes away, and comes back": {{0, down, true, started}, {time.Minute, watcher.Instance{Status: "ERROR_nodedown", Wanted: true}, true, ""},
			{2 * time.Minute, down, true, "start 2: Restarting instance web (attempt 2 of 5);"}},
		"it was long ago":             {{0, down, true, started}, {watcher.Forget, down, true, started}},
		"it is something else by now": {{0, down, true, started}, {time.Second, watcher.Instance{Status: "USER_down", Wanted: true}, true, "cleanup 1: Cleaning up instance web;"}},
	} {
		b := watcher.Book{}
		for n, l := range looks {
			if got := look(&b, l.seen, func(int64) bool { return l.ended }, at.Add(l.after)); got != l.want {
				t.Errorf("%s, look %d: %q, want %q", name, n, got, l.want)
			}
		}
	}
}

func TestUntried(t *testing.T) {
	before := watcher.Book{"u": {Name: "web", Do: watcher.Start, Count: 2, Job: 7}}
	next := watcher.Book{"u": {Name: "web", Do: watcher.Start, Count: 3}, "v": {Name: "db", Do: watcher.Start, Count: 1}}
	next.Untried(watcher.Task{UUID: "u"}, before)
	next.Untried(watcher.Task{UUID: "v"}, before)
	if !maps.Equal(next, before) {
		t.Errorf("%v", next)
	}
}

func TestGivingUp(t *testing.T) {
	b, down := watcher.Book{}, watcher.Instance{Status: "ERROR_down", Wanted: true}
	var minutes []int
	gaveUp := 0
	for m := range 8 * 60 {
		switch got := look(&b, down, done, at.Add(time.Duration(m)*time.Minute)); got {
		case "":
		case "true still ERROR_down after 5 attempts;":
			gaveUp = m
		default:
			minutes = append(minutes, m)
		}
	}
	if want := []int{0, 1, 3, 7, 15}; !slices.Equal(minutes, want) || gaveUp != 30 || !b["u"].GaveUp {
		t.Errorf("tried at %v, given up at %d; want %v and 30", minutes, gaveUp, want)
	}
	helped := maps.Clone(b)
	if got := look(&helped, watcher.Instance{Status: "running", Wanted: true}, done, at.Add(31*time.Minute)); got != "false running by now, after 5 attempts;" || len(helped) > 0 {
		t.Errorf("when somebody has helped: %q, %v", got, helped)
	}
	if got := look(&b, down, done, at.Add(15*time.Minute+watcher.Forget)); got != "start 1: Restarting instance web;" {
		t.Errorf("when it is forgotten: %q", got)
	}
	if _, _, next := watcher.Look(b, nil, done, time.Minute, at); len(next) > 0 {
		t.Error("an instance that is gone is remembered")
	}
}
