package web

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/query"
)

const (
	// rest is the shortest time between two messages about a view: what changes meanwhile comes together.
	rest = 250 * time.Millisecond
	// feedLinger is how long a view is followed that no tab shows any more: one that was reloaded, or lost its connection, goes on where it was.
	feedLinger = 30 * time.Second
	// mostFeeds is how many different views are followed at once.
	mostFeeds = 512
	// mostKept is how many messages of a view are kept for tabs that have not read them. One that is further behind gets everything.
	mostKept = 32
)

// hub has the views that are followed now, each once for all tabs.
type hub struct {
	s    *Server
	ctx  context.Context
	end  context.CancelFunc
	done sync.WaitGroup

	mu   sync.Mutex
	open map[string]*feed
}

func newHub(s *Server) *hub {
	h := &hub{s: s, open: map[string]*feed{}}
	h.ctx, h.end = context.WithCancel(context.Background())
	return h
}

func (h *hub) close() {
	h.end()
	h.done.Wait()
}

// feed is a view as it changes: the messages about it, encoded once.
type feed struct {
	hub     *hub
	key     string
	command string
	users   int         // guarded by hub.mu, as is gone
	gone    *time.Timer // ends one that no tab shows
	end     context.CancelFunc

	mu    sync.Mutex
	tabs  map[*tab]bool
	now   picture
	whole []byte // the message with everything; nil until it is asked for
	// news are the messages that lead to it, of which the first has the number first.
	news  []message
	first int
	err   error // why it is over
}

// picture is what a view shows at one moment: rows in their order, or one value.
type picture struct {
	known    bool
	revision int64
	fields   []query.Def
	order    []string
	rows     map[string]json.RawMessage
	value    json.RawMessage
}

// message is what is new in a view, as the inside of a JSON object; since is the revision that it is new to.
type message struct {
	since int64
	text  []byte
}

// subscribe returns the feed of a view, which rings the tab's bell when there is something new.
func (h *hub) subscribe(t *tab, a ask) (*feed, error) {
	source, command, err := h.s.sourceOf(a)
	if err != nil {
		return nil, err
	}
	key := a.key()
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.open[key]
	if f == nil {
		if len(h.open) >= mostFeeds && !h.makeRoom() {
			return nil, fault.New(fault.Busy, "there are already %d different views in use", mostFeeds).WithHint("close a tab")
		}
		f = &feed{hub: h, key: key, command: command, tabs: map[*tab]bool{}}
		ctx, end := context.WithCancel(h.ctx)
		f.end, h.open[key] = end, f
		h.done.Go(func() { f.run(source(ctx)) })
	}
	if f.gone != nil {
		f.gone.Stop()
		f.gone = nil
	}
	f.users++
	f.mu.Lock()
	f.tabs[t] = true
	f.mu.Unlock()
	t.wake() // what it shows already was rung for before the tab was there
	return f, nil
}

// makeRoom forgets a feed that no tab shows, if there is one. The caller holds mu.
func (h *hub) makeRoom() bool {
	for _, f := range h.open {
		if f.users == 0 {
			f.gone.Stop()
			f.forget()
			return true
		}
	}
	return false
}

// leave is the end of subscribe.
func (f *feed) leave(t *tab) {
	f.mu.Lock()
	delete(f.tabs, t)
	f.mu.Unlock()
	h := f.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.users--; f.users > 0 {
		return
	}
	f.gone = time.AfterFunc(feedLinger, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if f.users == 0 {
			f.forget()
		}
	})
}

// forget ends the feed. The caller holds hub.mu.
func (f *feed) forget() {
	f.end()
	if f.hub.open[f.key] == f {
		delete(f.hub.open, f.key)
	}
}

// run follows the view until that ends.
func (f *feed) run(source iter.Seq2[*live.Update, error]) {
	err := error(fault.New(fault.Unavailable, "the controller ends, or leads no more"))
	for u, wrong := range source {
		if wrong != nil {
			err = wrong
			break
		}
		f.show(u)
	}
	f.hub.mu.Lock()
	f.forget()
	f.hub.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	f.ring()
}

// show takes in what the view shows now.
func (f *feed) show(u *live.Update) {
	next := pictureOf(u)
	f.mu.Lock()
	defer f.mu.Unlock()
	text := difference(&f.now, &next)
	if f.now.known {
		f.news = append(f.news, message{f.now.revision, text})
		if len(f.news) > mostKept {
			f.news = slices.Delete(f.news, 0, 1)
			f.first++
		}
	}
	f.now, f.whole = next, nil
	f.ring()
}

// ring tells all tabs that there is something new. The caller holds mu.
func (f *feed) ring() {
	for t := range f.tabs {
		t.wake()
	}
}

// take returns what is new to somebody who was told what came before the message at, and what they will be told next. Somebody who was told nothing,
// which is -1, but knows the view as it was at a revision, gets what is new since, and else everything. The error is why there will be no more.
func (f *feed) take(at int, known int64) (texts [][]byte, next int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next = f.first + len(f.news)
	switch {
	case f.err != nil:
		return nil, at, f.err
	case !f.now.known:
		return nil, at, nil
	case at < 0 && known != 0 && f.now.value == nil: // a value may have become another one at the same revision: it tells of clocks, too
		at = f.place(known)
	}
	if at < f.first {
		if f.whole == nil {
			f.whole = f.everything()
		}
		return [][]byte{f.whole}, next, nil
	}
	for _, m := range f.news[at-f.first:] {
		texts = append(texts, m.text)
	}
	return texts, next, nil
}

// place is the message that comes after a revision, -1 if that is not known.
func (f *feed) place(revision int64) int {
	if revision == f.now.revision {
		return f.first + len(f.news)
	}
	if i := slices.IndexFunc(f.news, func(m message) bool { return m.since == revision }); i >= 0 {
		return f.first + i
	}
	return -1
}

func pictureOf(u *live.Update) picture {
	p := picture{known: true, revision: int64(u.Revision), fields: u.Fields, order: make([]string, len(u.Events)), rows: make(map[string]json.RawMessage, len(u.Events))}
	if u.Fields == nil && len(u.Events) == 1 {
		p.value, p.order, p.rows = u.Events[0].Row, nil, nil
		return p
	}
	for i, e := range u.Events {
		p.order[i], p.rows[e.ID] = e.ID, e.Row
	}
	return p
}

// everything is the message that shows a view to somebody who knows nothing of it.
func (f *feed) everything() []byte {
	p := &f.now
	out := append([]byte(`"reset":true,"revision":"`), strconv.FormatInt(p.revision, 10)...)
	out = append(append(out, `","command":`...), encoded(f.command)...)
	if p.value != nil {
		return append(append(out, `,"value":`...), p.value...)
	}
	out = append(append(out, `,"fields":`...), encoded(p.fields)...)
	return append(append(out, `,"rows":`...), p.list(p.order)...)
}

// difference is the message that leads from one picture to the next.
func difference(was, is *picture) []byte {
	out := append([]byte(`"revision":"`), strconv.FormatInt(is.revision, 10)...)
	out = append(out, '"')
	if is.value != nil {
		return append(append(out, `,"value":`...), is.value...)
	}
	var news, left []string
	order := make([]string, 0, len(is.order)) // what a reader has who takes rows out and adds new ones at the end
	for _, id := range was.order {
		if _, stays := is.rows[id]; stays {
			order = append(order, id)
		} else {
			left = append(left, id)
		}
	}
	for _, id := range is.order {
		before, known := was.rows[id]
		if !known {
			order = append(order, id)
		}
		if !known || !bytes.Equal(before, is.rows[id]) {
			news = append(news, id)
		}
	}
	if len(news) > 0 {
		out = append(append(out, `,"rows":`...), is.list(news)...)
	}
	if len(left) > 0 {
		out = append(append(out, `,"left":`...), encoded(left)...)
	}
	if !slices.Equal(order, is.order) {
		out = append(append(out, `,"order":`...), encoded(is.order)...)
	}
	return out
}

// list is some of the rows, each [id, cells].
func (p *picture) list(ids []string) []byte {
	out := []byte{'['}
	for i, id := range ids {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, '['), encoded(id)...)
		out = append(append(append(out, ','), p.rows[id]...), ']')
	}
	return append(out, ']')
}

func encoded(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil { // texts only
		panic(err)
	}
	return text
}
