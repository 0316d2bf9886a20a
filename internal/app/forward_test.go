package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store"
)

// leaderless is a store in which nobody leads.
type leaderless struct{ store.Store }

func (leaderless) Get(context.Context, store.Key) (store.Object, error) {
	return store.Object{}, fault.New(fault.NotFound, "nobody")
}

// TestRefusalsAreInTheWordsOfTheSurface: what no controller carries out is
// refused as the clients of each surface read it, whatever they say where they came to.
func TestRefusalsAreInTheWordsOfTheSurface(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &group{m: &member{store: leaderless{}, figures: newFigures(), log: slog.New(slog.DiscardHandler)}}
		g.leader = newLeaderClient(g)
		const said = "no controller leads: nobody (drover cluster masters tells which there are)"
		for _, c := range []struct {
			front      http.Handler
			path, want string
		}{
			{g.front(), "/2/info", `{"code":503,"explain":"` + said + `","message":"Service Unavailable"}`},
			{g.computeFront(), "/compute/v2.1/servers", `{"serviceUnavailable":{"code":503,"message":"` + said + `"}}`},
			{g.computeFront(), "/compute/v2.0/servers", `{"serviceUnavailable":{"code":503,"details":"","message":"` + said + `"}}`},
			{g.computeFront(), "/identity/v3/auth/tokens", `{"error":{"code":503,"message":"` + said + `","title":"Service Unavailable"}}`},
		} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, http.NoBody)
			r.Header.Set(headerSurface, "another")
			r.Header.Set("Connection", headerSurface+", "+headerRemote) // the proxy takes out what this names
			out := httptest.NewRecorder()
			c.front.ServeHTTP(out, r)
			if got := strings.TrimSpace(out.Body.String()); out.Code != http.StatusServiceUnavailable || got != c.want {
				t.Errorf("%s: %d %s, want %s", c.path, out.Code, got, c.want)
			}
		}
	})
}

// TestForwardedRequestsOutliveTheirServer: a controller that stops has those forwarded that it took, while another takes the lead, for a while; one whose client goes
// ends at once.
func TestForwardedRequestsOutliveTheirServer(t *testing.T) {
	for _, leaving := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var stopping atomic.Bool
			stopping.Store(leaving)
			asked := func() (*http.Request, context.CancelFunc, func()) {
				ctx, over := context.WithCancel(t.Context())
				r, done := outliving(httptest.NewRequestWithContext(ctx, http.MethodGet, "/2/info", nil), &stopping)
				return r, over, done
			}
			r, over, done := asked()
			begun := time.Now()
			over()
			<-r.Context().Done()
			if took := time.Since(begun); took != map[bool]time.Duration{true: lastAnswers}[leaving] || !errors.Is(context.Cause(r.Context()), context.Canceled) {
				t.Errorf("leaving %v: it ends %v behind its server, because %v", leaving, took, context.Cause(r.Context()))
			}
			done()
			r, over, done = asked()
			over()
			synctest.Wait()
			if alive := r.Context().Err() == nil; alive != leaving {
				t.Errorf("leaving %v: it lives: %v", leaving, alive)
			}
			done()
			if r.Context().Err() == nil {
				t.Error("one that was answered goes on")
			}
		})
	}
}

// TestAStoppingControllerLooksForTheLeader: what it forwards has its last moments, and then an answer that says that nothing was done.
func TestAStoppingControllerLooksForTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &group{m: &member{store: leaderless{}, figures: newFigures(), log: slog.New(slog.DiscardHandler)}}
		g.leader = newLeaderClient(g)
		g.m.stopping.Store(true)
		ctx, over := context.WithCancel(t.Context())
		over()
		out, begun := httptest.NewRecorder(), time.Now()
		g.front().ServeHTTP(out, httptest.NewRequestWithContext(ctx, http.MethodPut, "/2/tags", http.NoBody))
		if took := time.Since(begun); took != lastAnswers {
			t.Errorf("it is answered %v behind the end: %d %s", took, out.Code, out.Body)
		}
	})
}
