package gate

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"syscall"
	"time"
)

// Gates are those of a process, one for each surface, however often it is opened.
type Gates struct {
	files int
	log   *slog.Logger

	mu sync.Mutex
	of map[string]*Gate // by the key of the surface
}

// NewGates returns the gates of a process that may open so many files.
func NewGates(files int, log *slog.Logger) *Gates {
	return &Gates{files: files, log: log, of: map[string]*Gate{}}
}

// Of returns the gate of a surface.
func (all *Gates) Of(s Surface) *Gate {
	all.mu.Lock()
	defer all.mu.Unlock()
	g := all.of[s.Key]
	if g == nil {
		g = New(s, all.files, all.log)
		all.of[s.Key] = g
	}
	return g
}

// Account is how it goes at a gate.
type Account struct {
	Surface Surface
	// Open is how many connections are let in at the moment, and Places how many may be.
	Open, Places int
	// Refused is how many were turned away, or ended for the sake of others, since the gate was made.
	Refused int64
	// Crowded is the present time in which clients are turned away, and Starved that in which the system has no file or memory
	// for them; nil while there is none.
	Crowded, Starved *Spell
}

// Spell is a time in which clients are not let in: it is over when that befell nobody for a minute.
type Spell struct {
	// Why is the reason that the last of them had.
	Why   string
	Since time.Time
}

// Accounts returns how it goes at all gates that were opened, in the order of Surfaces. Of none of a process there is nothing to tell.
func (all *Gates) Accounts() (accounts []Account) {
	if all == nil {
		return nil
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, s := range Surfaces() {
		if g := all.of[s.Key]; g != nil {
			accounts = append(accounts, g.account(time.Now()))
		}
	}
	return accounts
}

func (g *Gate) account(now time.Time) Account {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Account{Surface: g.surface, Open: g.open, Places: g.total, Refused: g.refused, Crowded: g.crowded.at(now), Starved: g.starved.at(now)}
}

// quiet is after which time without a client that is not let in a spell is over, and how often one that lasts is told of.
const quiet = time.Minute

// spell is a Spell as it is counted.
type spell struct {
	why               string
	since, last, told time.Time
	untold            int
}

// befell notes that a client is not let in. It is worth telling at the beginning and once a minute; untold is then how many it has been since
// it was told.
func (s *spell) befell(now time.Time, why string) (untold int, tell bool) {
	if now.Sub(s.last) >= quiet {
		*s = spell{since: now}
	}
	s.last, s.why = now, why
	s.untold++
	if now.Sub(s.told) < quiet {
		return 0, false
	}
	untold, s.untold, s.told = s.untold, 0, now
	return untold, true
}

// at is the spell that lasts at a moment, nil for none.
func (s *spell) at(now time.Time) *Spell {
	if now.Sub(s.last) >= quiet {
		return nil
	}
	return &Spell{Why: s.why, Since: s.since}
}

// note counts a connection that is turned away, or ended for the sake of others, and tells of it in the log.
func (g *Gate) note(at, from net.Addr, why string) {
	g.mu.Lock()
	g.refused++
	untold, tell := g.crowded.befell(time.Now(), why)
	g.mu.Unlock()
	if tell {
		g.log.Warn("clients are turned away", "surface", g.surface.Key, "at", at, "reason", why, "from", from, "clients", untold,
			"limit", g.total, "limit_per_address", g.each)
	}
}

// starves notes that the system has nothing for a connection, and says whether it is worth a line of the log.
func (g *Gate) starves(err error) (tell bool) {
	why := err.Error()
	if of, ok := errors.AsType[syscall.Errno](err); ok {
		why = of.Error() // the rest is an address
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	_, tell = g.starved.befell(time.Now(), why)
	return tell
}
