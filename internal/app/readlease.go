package app

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/readlease"
)

// leasePath is where controllers that stand by ask the leader for read leases.
const leasePath = "/peer/readlease"

// lend begins to grant read leases to controllers that stand by, in the term of c.
func (c *controller) lend() {
	if c.group == nil {
		return
	}
	c.lessor = readlease.NewLessor(c.sureUntil, c.picture.Publish)
	c.shared.Lend(c.lessor)
	c.group.lessor.Store(c.lessor)
}

// endLending calls all leases off: who takes the lead next need not know what was
// granted. What is returned is for when the lead was given up.
func (c *controller) endLending() (gone func()) {
	if c.group == nil {
		return func() {}
	}
	c.lessor.Close()
	return func() {
		c.group.lessor.Store(nil)
		c.shared.Lend(nil)
	}
}

// grantLease answers a controller that asks for a read lease.
func (g *group) grantLease(w http.ResponseWriter, r *http.Request) {
	var asked readlease.Request
	if err := readPeer(r.Body, maxLeaseMessage, &asked); err != nil {
		http.Error(w, "what is asked for cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	lessor := g.lessor.Load()
	if lessor == nil {
		notLeading(w)
		return
	}
	answer := lessor.Answer(r.Context(), asked)
	if !asked.Holds && answer.For == 0 && g.m.leads() == nil {
		notLeading(w) // the term ends, and it was taken in that nothing is held
		return
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		g.m.log.Debug("another controller did not wait for a lease", "error", err)
	}
}

const (
	// maxLeaseMessage bounds a request for a lease, and its answer, in bytes.
	maxLeaseMessage = 4 << 10
	// leaseAnswer is how long an answer may take. While none comes nothing is called
	// off either: a new request makes up for it.
	leaseAnswer = 3 * time.Second
	// lastWord is how long a controller takes to give its lease back. The leader would
	// have to wait as long for the end of it.
	lastWord = readlease.Time
)

// keepLease keeps asking the leader for a read lease until ctx ends.
func (g *group) keepLease(ctx context.Context) {
	for ctx.Err() == nil {
		sent := time.Now()
		answer, err := g.leader.askLease(ctx, g.lessee.Request(sent), leaseAnswer)
		if err == nil {
			g.lessee.Take(answer, sent)
			continue
		}
		select { // the leader may be paused, or another may lead by now
		case <-ctx.Done():
		case <-time.After(leaderPause):
		}
	}
	if last, held := g.lessee.Last(time.Now()); held {
		_, _ = g.leader.askLease(context.WithoutCancel(ctx), last, lastWord) // or it waits for the end of the lease
	}
}

// askLease sends a request for a read lease to the leader.
func (l *leaderClient) askLease(ctx context.Context, asked readlease.Request, limit time.Duration) (a readlease.Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	text, err := json.Marshal(asked)
	if err != nil {
		return a, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://leader"+leasePath, bytes.NewReader(text))
	if err != nil {
		return a, err
	}
	answer, err := l.http.RoundTrip(r)
	if err != nil {
		return a, err
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	if answer.StatusCode != http.StatusOK {
		l.http.CloseIdleConnections()
		return a, fault.New(fault.Unavailable, "the controller that was asked for a read lease answers %s", answer.Status)
	}
	return a, readPeer(answer.Body, maxLeaseMessage, &a)
}
