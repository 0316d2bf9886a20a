package ganeti

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/testkit"
)

// TestWhatIsSeenOfAJobThatEndedIsItsEffect: a job that ends during a look is either
// not known to have ended, or what it did is seen.
func TestWhatIsSeenOfAJobThatEndedIsItsEffect(t *testing.T) {
	for asked := range 3 { // how many requests of the look come before the job ends
		var requests atomic.Int64
		c := stock(t, func(w http.ResponseWriter, r *http.Request) {
			over := int(requests.Add(1)) > asked
			answer := map[string]map[bool]string{
				"/2/jobs/7":          {false: `{"status":"running","opstatus":["running"],"opresult":[null]}`, true: `{"status":"success","opstatus":["success"],"opresult":[null]}`},
				"/2/instances/snf-1": {false: `{"name":"snf-1","uuid":"u1","admin_state":"up","tags":[]}`, true: `{"name":"snf-1","uuid":"u1","admin_state":"up","tags":["x"]}`},
			}[r.URL.Path][over]
			_, _ = w.Write([]byte(answer))
		})
		sight, err := c.Look(t.Context(), server.Ref{Name: "snf-1"}, []job.ID{7})
		if err != nil || requests.Load() != 2 {
			t.Fatalf("%d requests: %+v, %v", requests.Load(), sight, err)
		}
		if _, ended := sight.Ended[7]; ended && !slices.Contains(sight.Tags, "x") {
			t.Errorf("the job ends before request %d: it has ended, and its tag is not there", asked+1)
		}
	}
}

// switched is a cluster that can be away.
type switched struct {
	mu        sync.Mutex
	away      bool
	instances string
	status    int           // what is answered while it is away
	refused   chan struct{} // has one for a request then
}

func (s *switched) set(away bool, instances string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away, s.instances = away, instances
}

func (s *switched) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.away:
		w.WriteHeader(s.status)
		select {
		case s.refused <- struct{}{}:
		default:
		}
	case r.URL.Path == "/2/instances":
		_, _ = w.Write([]byte(s.instances))
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(notFound))
	}
}

// TestAfterAnOutageAnythingMayBeDifferent: also where nothing looks so, for a change and
// its opposite may have happened meanwhile.
func TestAfterAnOutageAnythingMayBeDifferent(t *testing.T) {
	for _, status := range []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		t.Run(strconv.Itoa(status), func(t *testing.T) { anythingMayBeDifferent(t, status) })
	}
}

func anythingMayBeDifferent(t *testing.T, status int) {
	t.Helper()
	s := &switched{status: status, instances: `[{"name":"snf-1","uuid":"u1","admin_state":"up","tags":[]}]`, refused: make(chan struct{}, 1)}
	c := stock(t, s.ServeHTTP)
	c.cfg.Every, c.cfg.All = time.Millisecond, time.Hour
	told, ended := make(chan string, 100), make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience())
	defer cancel()
	go func() { ended <- c.Follow(ctx, func(instance server.Ref) { told <- instance.Name }) }()
	await := func(want string) {
		t.Helper()
		for {
			select {
			case instance := <-told:
				if instance == want {
					return
				}
				t.Errorf("%q is told of, want %q", instance, want)
			case <-ctx.Done():
				t.Fatalf("%q is never told of", want)
			}
		}
	}
	await("snf-1")
	s.set(true, s.instances)
	c.expect(1, server.Ref{Name: "snf-1"})
	<-s.refused
	<-s.refused // whoever asks again knows how it was before
	if now := c.Met(); now.Away.IsZero() || !strings.Contains(now.Why, strconv.Itoa(status)) {
		t.Errorf("in the outage it was met as %+v", now)
	}
	s.set(false, s.instances)
	await("snf-1") // its job is not known any more
	await("")
	if now := c.Met(); !now.Away.IsZero() || now.Answered.IsZero() {
		t.Errorf("behind the outage it was met as %+v", now)
	}
	s.set(true, "")
	c.expect(2, server.Ref{Name: "snf-2"})
	<-s.refused
	s.set(false, `[{"name":"snf-3","uuid":"u3","admin_state":"up","tags":[]}]`)
	await("snf-2") // its job
	gone := map[string]bool{<-told: true, <-told: true}
	if !gone["snf-1"] || !gone["snf-3"] {
		t.Errorf("after the outage %v are told of", gone)
	}
	await("")
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}
