package readlease

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// world is a leader, controllers that stand by, and what is between them: any message
// may be late, overtaken or lost. It has one clock, which is the pace of all.
type world struct {
	now, heard time.Time
	leader     book
	// newest is what is committed, and batch one that is not yet.
	newest int64
	batch  bool
	// succeeded: another leads, and commits as it likes.
	succeeded bool
	standbys  []*standby
	// asked are requests on their way, waiting those that wait at the leader, and told the
	// answers on their way.
	asked, waiting, told []message
}

type standby struct {
	*Lessee

	// shown is how far its picture has come.
	shown int64
	sent  time.Time // its last request
}

type message struct {
	from *standby
	Request

	came time.Time
	Answer
}

// assured is how long the leader answers from its picture after it has heard that it
// leads, and how long at least a successor waits before it begins.
const assured = 300 * time.Millisecond

// draw takes one of some messages, whichever; false if there is none.
func draw(t *rapid.T, from *[]message) (m message, ok bool) {
	if len(*from) == 0 {
		return m, false
	}
	i := rapid.IntRange(0, len(*from)-1).Draw(t, "message")
	m = (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return m, true
}

func (w *world) actions() map[string]func(*rapid.T) {
	some := func(t *rapid.T) *standby { return rapid.SampledFrom(w.standbys).Draw(t, "standby") }
	return map[string]func(*rapid.T){
		"time passes": func(t *rapid.T) {
			w.now = w.now.Add(time.Duration(rapid.SampledFrom([]int{1, 5, 10, 66, 100, 199, 200}).Draw(t, "ms")) * time.Millisecond)
		},
		"a standby asks": func(t *rapid.T) {
			s := some(t)
			s.sent = w.now
			w.asked = append(w.asked, message{from: s, Request: s.Request(w.now)})
		},
		"a request comes": func(t *rapid.T) {
			if m, ok := draw(t, &w.asked); ok && w.leader.ask(m.Request) {
				m.came = w.now
				w.waiting = append(w.waiting, m)
			}
		},
		"a request is looked at": func(t *rapid.T) {
			m, ok := draw(t, &w.waiting)
			if !ok {
				return
			}
			a, again, done := w.leader.answer(m.Request, m.came, w.now, w.heard.Add(assured))
			if !done {
				if !again.After(w.now) {
					t.Fatalf("to be looked at again at %v, and it is %v", again, w.now)
				}
				w.waiting = append(w.waiting, m)
				return
			}
			m.Answer = a
			w.told = append(w.told, m)
		},
		"an answer comes": func(t *rapid.T) {
			if m, ok := draw(t, &w.told); ok && m.Serial == m.from.serial {
				m.from.Take(m.Answer, m.from.sent)
			}
		},
		"a message is lost": func(t *rapid.T) {
			draw(t, rapid.SampledFrom([]*[]message{&w.asked, &w.waiting, &w.told}).Draw(t, "where"))
		},
		"a batch begins": func(*rapid.T) {
			if !w.batch {
				w.batch = true
				w.leader.begin(w.now)
			}
		},
		"a batch is committed": func(*rapid.T) {
			if _, out := w.leader.out(w.now); w.batch && !out && !w.succeeded {
				w.newest++
			}
		},
		"a batch ends": func(*rapid.T) {
			if w.batch {
				w.batch = false
				w.leader.end(w.now, w.newest, true)
			}
		},
		"the leader hears that it leads": func(*rapid.T) {
			if !w.succeeded {
				w.heard = w.now
			}
		},
		"another leads": func(t *rapid.T) {
			if rapid.IntRange(0, 9).Draw(t, "odds") == 0 && !w.now.Before(w.heard.Add(assured)) {
				w.succeeded = true
			}
			if w.succeeded {
				w.newest++
			}
		},
		"a picture moves": func(t *rapid.T) {
			s := some(t)
			s.shown = rapid.Int64Range(s.shown, w.newest).Draw(t, "shown")
		},
		// After every action:
		"": func(t *rapid.T) {
			for _, s := range w.standbys {
				if s.covers(s.shown, func() time.Time { return w.now }) && s.shown != w.newest {
					t.Fatalf("a standby answers as of %d, and %d is committed", s.shown, w.newest)
				}
			}
		},
	}
}

// TestWhatALeaseCoversIsTheNewest holds standbys to what their leases promise.
func TestWhatALeaseCoversIsTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{now: time.Unix(1000, 0), heard: time.Unix(1000, 0), leader: book{holders: map[string]*holder{}}}
		for _, name := range []string{"a", "b"} {
			w.standbys = append(w.standbys, &standby{Lessee: NewLessee(name)})
		}
		t.Repeat(w.actions())
	})
}
