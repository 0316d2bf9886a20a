package app

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/fault"
)

// TestATermAnswersWhatItTook: a term that is given up takes no more requests, and waits for the answers of those that it took: of changes
// for as long as they may take, of questions for a moment.
func TestATermAnswersWhatItTook(t *testing.T) {
	for _, c := range []struct {
		method string
		lasts  time.Duration
		waits  time.Duration
	}{
		{http.MethodPut, time.Second, time.Second},
		{http.MethodPut, time.Hour, changesEnd},
		{http.MethodGet, 20 * time.Millisecond, 20 * time.Millisecond},
		{http.MethodGet, time.Hour, questionsEnd},
	} {
		synctest.Test(t, func(t *testing.T) {
			var o owed
			answered, taken := o.takeHTTP(&http.Request{Method: c.method})
			if !taken {
				t.Fatal("it is not taken")
			}
			go func() {
				time.Sleep(c.lasts)
				answered()
			}()
			defer time.Sleep(c.lasts) // until it was answered
			began := time.Now()
			o.close()
			if took := time.Since(began); took != c.waits {
				t.Errorf("%s that takes %v was waited for %v, not %v", c.method, c.lasts, took, c.waits)
			}
			if _, taken := o.takeHTTP(&http.Request{Method: c.method}); taken {
				t.Error("another is taken")
			}
		})
	}
}

// TestALostLeadIsNotOneThatWasGivenUp, also if somebody asked for it at that moment: effects end with it, and nobody is waited for.
func TestALostLeadIsNotOneThatWasGivenUp(t *testing.T) {
	for cause, lost := range map[error]bool{errResigned: false, fault.New(fault.Fenced, "another controller leads"): true} {
		c := &controller{member: &member{}, successor: "another"}
		if told := c.overFor(cause); !errors.Is(told, errNotLeading) {
			t.Errorf("%v: clients are told %v", cause, told)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if got := errors.Is(c.lead.Await(gone), cause); got != lost || c.owed.closed == lost {
			t.Errorf("%v: it is lost: %t, and takes no more requests: %t", cause, got, c.owed.closed)
		}
	}
}
