package luxi

import (
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
)

func TestWatchRefusesWhatItCannotFollow(t *testing.T) {
	r := newRig(t)
	for _, with := range []map[string]any{
		{"watch": 0, "group_by": []string{"status"}}, {"watch": 0, "figures": []string{"count"}}, {"watch": 0, "explain": true}, {"watch": 0, "after": "x"},
	} {
		err := r.client().Call(t.Context(), "Query", []any{"job", []string{"id"}, nil, with}, nil)
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%v: %v", with, err)
		}
	}
}

// Clients that send a revision are told the one that shows what they changed; the
// answers of others are as they were.
func TestRevisionsAreForThoseWhoAsk(t *testing.T) {
	r := newRig(t)
	ask := func(more string) string {
		t.Helper()
		c := r.dial()
		c.send(`{"method":"SetDrainFlag","args":[true]` + more + "}\x03")
		frame, err := c.frames.Next()
		if err != nil {
			t.Fatal(err)
		}
		return string(frame)
	}
	if got := ask(""); got != `{"success":true,"result":true}` {
		t.Errorf("without: %s", got)
	}
	if got := ask(`,"revision":0`); !strings.HasPrefix(got, `{"success":true,"result":true,"revision":`) {
		t.Errorf("with: %s", got)
	}
	if got := ask(`,"revision":-1`); !strings.Contains(got, "'revision'") {
		t.Errorf("a bad one: %s", got)
	}
}

// TestAStandbyAnswersWhatIsTheNewestStill: what is read for a controller that stands by is told only if what there was when it was asked is the newest when it has
// been read, too; and it is that revision that is asked about, however far the picture has moved meanwhile.
func TestAStandbyAnswersWhatIsTheNewestStill(t *testing.T) {
	r := newRig(t)
	for name, still := range map[string]bool{"it is the newest still": true, "another one led meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			var asked []int64
			deps := r.server.deps
			deps.Current = func(revision int64) bool {
				asked = append(asked, revision)
				return still || len(asked) == 1
			}
			deps.Assured = func(ctx context.Context) error { // something is stored before it is read
				return r.queue.SetDrained(ctx, still, queue.By{})
			}
			client, server := net.Pipe()
			defer func() { _ = client.Close() }()
			defer func() { _ = server.Close() }()
			told := make(chan int, 1)
			go func() {
				n, _ := client.Read(make([]byte, 1<<10))
				told <- n
			}()
			done, open := New(deps).AnswerStored(t.Context(), server, reason.Account{}, luxiwire.Request{Method: "QueryTags", Args: json.RawMessage(`["cluster",""]`)})
			if done != still || !open {
				t.Errorf("it answers: %t, and keeps the connection: %t", done, open)
			}
			if len(asked) != 2 || asked[0] != asked[1] || asked[1] >= r.server.deps.Querier.Picture.Load().Revision {
				t.Errorf("asked about are the revisions %v, and the picture has %d", asked, r.server.deps.Querier.Picture.Load().Revision)
			}
			if _ = server.Close(); (<-told > 0) != still {
				t.Errorf("something was told, or nothing: %t", still)
			}
		})
	}
}
