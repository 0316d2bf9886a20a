package web

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/rights"
)

const (
	// heartbeat is how often a tab hears that the controller is there, also if nothing changes, and how often it is looked whether its account still may look.
	heartbeat = 15 * time.Second
	// sendTime is how long a tab may take for a message.
	sendTime = 10 * time.Second
	// maxWish is the greatest size of what a tab asks for, in bytes, and wishRest the shortest time between two such messages.
	maxWish  = 64 << 10
	wishRest = 50 * time.Millisecond
	// mostViews is how many views a tab shows at a time, and mostTabs how many tabs a session has.
	mostViews = 24
	mostTabs  = 32
	// hiddenRest is the time between two messages to a tab that nobody sees.
	hiddenRest = 5 * time.Second
)

// signedOut is the code with which a stream ends whose session is over.
const signedOut websocket.StatusCode = 4401

// wish is what a tab shows, as it says each time that changes.
type wish struct {
	// Watch are the views by the names that the tab has for them.
	Watch map[string]ask `json:"watch"`
	// Hidden: nobody sees the tab.
	Hidden bool `json:"hidden"`

	// wrong is why it is none; it ends the stream behind what is just being sent, for a message that is cut off would take the reason with it.
	wrong error
}

// tab is a stream: the page in one tab of a browser.
type tab struct {
	s       *Server
	v       *visitor
	conn    *websocket.Conn
	bell    chan struct{} // something is new
	wishes  chan wish
	watched map[string]*watched
	wrong   map[string]unseen // views that cannot be shown at the moment
	hidden  bool
}

// unseen is a view that cannot be shown, and what the tab was told of it.
type unseen struct {
	ask  ask
	text string
}

// watched is a view that a tab shows.
type watched struct {
	ask  ask
	feed *feed
	at   int // which message comes next, -1 for all
}

// tabs counts the open tabs of each session.
type tabs struct {
	mu   sync.Mutex
	open map[key]int
}

func (t *tabs) enter(k key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[k] >= mostTabs {
		return false
	}
	t.open[k]++
	return true
}

func (t *tabs) leave(k key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[k]--; t.open[k] == 0 {
		delete(t.open, k)
	}
}

// openTab takes a WebSocket and serves it until either end ends it. Its Origin has to be this page's.
func openTab(s *Server, w http.ResponseWriter, r *http.Request, v *visitor) (any, error) {
	if !s.tabs.enter(v.session) {
		return nil, fault.New(fault.Busy, "there are already %d tabs open, as many as one session may have", mostTabs)
	}
	defer s.tabs.leave(v.session)
	var options websocket.AcceptOptions
	if s.cfg.URL != nil {
		options.OriginPatterns = []string{s.cfg.URL.Host}
	}
	conn, err := websocket.Accept(w, r, &options)
	if err != nil {
		return nil, nil //nolint:nilnil // it was answered
	}
	conn.SetReadLimit(maxWish)
	t := &tab{s: s, v: v, conn: conn, bell: make(chan struct{}, 1), wishes: make(chan wish), watched: map[string]*watched{}, wrong: map[string]unseen{}}
	ctx, end := context.WithCancelCause(r.Context())
	defer end(nil)
	go func() { end(t.listen(ctx)) }()
	err = t.serve(ctx)
	for _, w := range t.watched {
		w.feed.leave(t)
	}
	status, why := farewell(err)
	_ = conn.Close(status, why) // to a tab that may be gone
	return nil, nil             //nolint:nilnil // it was answered
}

// farewell is what a tab is told at the end.
func farewell(err error) (websocket.StatusCode, string) {
	switch {
	case err == errUnknown: //nolint:errorlint // it is never wrapped
		return signedOut, "the session is over"
	case fault.Is(err, fault.Invalid):
		const most = 100 // a reason has 123 bytes
		return websocket.StatusPolicyViolation, fault.Clip(err.Error(), most)
	case errors.Is(err, context.Canceled):
		return websocket.StatusGoingAway, "the controller ends, or leads no more"
	}
	return websocket.StatusGoingAway, ""
}

// wake has the tab look for what is new.
func (t *tab) wake() {
	select {
	case t.bell <- struct{}{}:
	default: // it will look anyway
	}
}

// listen hands on what the tab asks for, until the connection ends or says what it should not.
func (t *tab) listen(ctx context.Context) error {
	for {
		_, text, err := t.conn.Read(context.Background()) // the end of a context would cut it, and nobody be told why
		if err != nil {
			return err
		}
		var w wish
		if err := intake.Read(text, &w); err != nil {
			w = wish{wrong: fault.New(fault.Invalid, "what the tab asks for cannot be read: %w", err)}
		} else if len(w.Watch) > mostViews {
			w = wish{wrong: fault.New(fault.Invalid, "a tab shows at most %d views at a time", mostViews)}
		}
		select {
		case t.wishes <- w:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if w.wrong != nil {
			return w.wrong
		}
		time.Sleep(wishRest)
	}
}

// serve sends what is new until ctx ends, the tab does not take it, or its session is over.
func (t *tab) serve(ctx context.Context) error {
	beat := time.NewTicker(t.s.cfg.beat)
	defer beat.Stop()
	if err := t.sendBeat(ctx); err != nil {
		return err
	}
	var rested <-chan time.Time // nil unless the tab is hidden and was told something a moment ago
	for {
		var err error
		bell := t.bell
		if rested != nil {
			bell = nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-rested:
			rested = nil
		case w := <-t.wishes:
			if err = w.wrong; err == nil {
				err = t.take(ctx, w)
			}
		case <-beat.C:
			err = t.still()
			if err == nil {
				err = t.sendBeat(ctx)
			}
			if err == nil {
				err = t.tryAgain(ctx)
			}
		case <-bell:
			err = t.sendNews(ctx)
			if t.hidden {
				rested = time.After(hiddenRest)
			}
		}
		if err != nil {
			return err
		}
	}
}

// still says whether the session is not over, and may look.
func (t *tab) still() error {
	of, ok := t.s.sessions.find(t.v.session)
	if !ok {
		return errUnknown
	}
	may, ok := t.s.rightsOf(of)
	if !ok || may.May(rights.Look, rights.Of{}) != rights.Allowed {
		return errUnknown
	}
	return nil
}

func (t *tab) sendBeat(ctx context.Context) error {
	return t.send(ctx, encoded(map[string]any{"beat": t.s.cfg.Now().UTC().Format(time.RFC3339Nano), "version": t.s.shell.version}))
}

// take follows what the tab asks for, and no more what it does not.
func (t *tab) take(ctx context.Context, w wish) error {
	t.hidden = w.Hidden
	for name, was := range t.watched {
		if is, stays := w.Watch[name]; !stays || is.key() != was.ask.key() {
			was.feed.leave(t)
			delete(t.watched, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Watch)) {
		if t.watched[name] != nil {
			continue
		}
		a := w.Watch[name]
		delete(t.wrong, name) // who asks is told
		if err := t.follow(ctx, name, a); err != nil {
			return err
		}
	}
	for name := range t.wrong {
		if _, stays := w.Watch[name]; !stays {
			delete(t.wrong, name)
		}
	}
	return t.sendNews(ctx)
}

// follow begins to follow a view, or says why it cannot be shown.
func (t *tab) follow(ctx context.Context, name string, a ask) error {
	f, err := t.s.hub.subscribe(t, a)
	if err != nil {
		return t.sendWrong(ctx, name, a, err)
	}
	t.watched[name] = &watched{ask: a, feed: f, at: -1}
	return nil
}

// sendWrong says why a view cannot be shown. It is tried again with each heartbeat: what was missing may come, and what was away may be back.
func (t *tab) sendWrong(ctx context.Context, name string, a ask, why error) error {
	text := errorText(why)
	was, again := t.wrong[name]
	t.wrong[name] = unseen{a, string(text)}
	if again && was.text == string(text) {
		return nil
	}
	return t.sendAbout(ctx, name, text)
}

// tryAgain follows the views that could not be shown.
func (t *tab) tryAgain(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(t.wrong)) {
		if t.watched[name] != nil {
			continue
		}
		a := t.wrong[name].ask
		a.Since = ""
		if err := t.follow(ctx, name, a); err != nil {
			return err
		}
	}
	return nil
}

func errorText(err error) []byte {
	text := encoded(map[string]any{"error": problemOf(err)})
	return text[1 : len(text)-1]
}

// sendNews sends what is new in all views.
func (t *tab) sendNews(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(t.watched)) {
		w := t.watched[name]
		texts, next, over := w.feed.take(w.at, w.ask.since())
		w.at = next
		if over != nil {
			w.feed.leave(t)
			delete(t.watched, name)
			if err := t.sendWrong(ctx, name, w.ask, over); err != nil {
				return err
			}
			continue
		}
		if len(texts) > 0 {
			delete(t.wrong, name)
		}
		for _, text := range texts {
			if err := t.sendAbout(ctx, name, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendAbout sends a message about a view.
func (t *tab) sendAbout(ctx context.Context, name string, text []byte) error {
	out := append([]byte(`{"w":`), encoded(name)...)
	return t.send(ctx, append(append(append(out, ','), text...), '}'))
}

func (t *tab) send(ctx context.Context, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	return t.conn.Write(ctx, websocket.MessageText, text)
}
