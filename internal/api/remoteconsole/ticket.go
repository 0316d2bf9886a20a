package remoteconsole

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/fault"
)

// Times and numbers of tickets.
const (
	// TicketTime is how long a ticket is good for.
	TicketTime = 2 * time.Minute
	// rememberedFor is how long it is known behind its end, so that who comes late, or again, is told of as such.
	rememberedFor = 10 * time.Minute
	// mostOfUser and mostTickets are how many are remembered, of one user and in all.
	mostOfUser  = 100
	mostTickets = 10_000
)

// Outcome is what becomes of a ticket that somebody shows.
type Outcome string

// The outcomes.
const (
	Opened  Outcome = "opened"
	Used    Outcome = "used"
	Expired Outcome = "expired"
	// Foreign is a ticket for another console, or of somebody who may not act on the machine any more.
	Foreign Outcome = "foreign"
	// Crowded is one whose user has as many consoles open as there may be.
	Crowded Outcome = "crowded"
	// Unknown is what is no ticket, or was one of another controller's term.
	Unknown Outcome = "unknown"
)

// ticket is what is kept of one.
type ticket struct {
	console.Grant
	ends time.Time
	used bool
}

// shown decides what becomes of a ticket that is shown for a console.
func (t *ticket) shown(now time.Time, kind console.Kind, id string) Outcome {
	switch {
	case t == nil:
		return Unknown
	case t.Kind != kind || t.Of != id:
		return Foreign
	case t.used:
		return Used
	case !now.Before(t.ends):
		return Expired
	}
	return Opened
}

// tickets are those that were given out, under the hashes of their texts: what is in memory opens nothing.
type tickets struct {
	now func() time.Time

	mu     sync.Mutex
	byHash map[[sha256.Size]byte]*ticket
}

func newTickets(now func() time.Time) *tickets {
	return &tickets{now: now, byHash: map[[sha256.Size]byte]*ticket{}}
}

// issue makes a ticket. Busy when too many were made.
func (t *tickets) issue(g console.Grant) (text string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, own := t.now(), 0
	for hash, one := range t.byHash {
		if now.Sub(one.ends) > rememberedFor {
			delete(t.byHash, hash)
		} else if one.User == g.User {
			own++
		}
	}
	if own >= mostOfUser || len(t.byHash) >= mostTickets {
		return "", fault.New(fault.Busy, "Too many consoles were asked for; try again in some minutes")
	}
	text = rand.Text()
	t.byHash[sha256.Sum256([]byte(text))] = &ticket{Grant: g, ends: now.Add(TicketTime)}
	return text, nil
}

// redeem takes a ticket that is shown for a console. What it was for is told where it was one, whatever comes of it.
func (t *tickets) redeem(text string, kind console.Kind, id string) (console.Grant, Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.byHash[sha256.Sum256([]byte(text))]
	outcome := one.shown(t.now(), kind, id)
	if one == nil {
		return console.Grant{}, outcome
	}
	one.used = one.used || outcome == Opened || outcome == Foreign // who tries it elsewhere has lost it
	return one.Grant, outcome
}
