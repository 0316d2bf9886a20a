package app

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/agentwire"
	"github.com/drover-project/drover/internal/authority"
	"github.com/drover-project/drover/internal/fault"
)

// TestTheDoorOpensOnceTheStoreAnswers: agents are taken in as soon as it can be read who signs their certificates, and not only when
// the next token is made. Where nobody signs yet, that is what they wait for.
func TestTheDoorOpensOnceTheStoreAnswers(t *testing.T) {
	away, none := fault.New(fault.Unavailable, "the database is away"), fault.New(fault.NotFound, "there is none")
	for name, tc := range map[string]struct {
		answers []error
		opens   bool
		after   time.Duration
	}{
		"at once":                     {[]error{nil}, true, 0},
		"an error first":              {[]error{away, nil}, true, time.Second},
		"three errors first":          {[]error{away, away, away, nil}, true, 7 * time.Second},
		"nobody signs":                {[]error{none}, false, 0},
		"nobody signs, behind errors": {[]error{away, away, none}, false, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				ca, err := authority.New(begun)
				if err != nil {
					t.Fatal(err)
				}
				log := slog.New(slog.DiscardHandler)
				c := &controller{member: &member{log: log, agents: &agents{hub: agentwire.NewHub(log)}}}
				news, asked := c.agents.hub.News(), 0
				c.openOnceSigned(t.Context(), func(context.Context) (*authority.Authority, error) {
					asked++
					return ca, tc.answers[asked-1]
				}).Wait()
				opens := false
				select {
				case <-news:
					opens = true
				default:
				}
				if took := time.Since(begun); opens != tc.opens || took != tc.after || asked != len(tc.answers) {
					t.Errorf("opens %v after %v, asked %d times; want %v after %v, asked %d times", opens, took, asked, tc.opens, tc.after, len(tc.answers))
				}
			})
		})
	}
}

// TestTheDoorStaysShutBehindTheTerm: who shuts the door at the end of a term waits for the tries, of which none comes later.
func TestTheDoorStaysShutBehindTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		c := &controller{member: &member{log: log, agents: &agents{hub: agentwire.NewHub(log)}}}
		ctx, stop := context.WithCancel(t.Context())
		asked := 0
		trying := c.openOnceSigned(ctx, func(context.Context) (*authority.Authority, error) {
			asked++
			return nil, fault.New(fault.Unavailable, "the database is away")
		})
		time.Sleep(10 * time.Minute)
		stop()
		trying.Wait()
		before := asked
		time.Sleep(time.Hour)
		if before < 10 || asked != before {
			t.Errorf("asked %d times in ten minutes, and %d times afterwards", before, asked-before)
		}
	})
}
