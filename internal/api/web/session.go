package web

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"
)

// How long sessions and codes last, and how many there are.
const (
	// sessionIdle is how long a session lasts of which nothing is heard, and sessionTime how long at most.
	sessionIdle = time.Hour
	sessionTime = 12 * time.Hour
	// mostOfAccount is how many sessions an account has at a time, and mostSessions how many all have; one more ends the one that was used longest ago.
	mostOfAccount = 64
	mostSessions  = 4096
	// codeTime is how long a code signs in, and mostCodes how many there are at a time; one more ends the oldest.
	codeTime  = 5 * time.Minute
	mostCodes = 100
)

// session is somebody who has signed in.
type session struct {
	name string
	// operator: by a link, so it is whoever reaches the controller's socket. Else it is an account, with the password that stamp is of.
	operator   bool
	stamp      string
	made, used time.Time
}

func (s *session) over(now time.Time) bool {
	return now.Sub(s.made) >= sessionTime || now.Sub(s.used) >= sessionIdle
}

// key is what is kept of a secret.
type key [sha256.Size]byte

func keyOf(secret string) key { return sha256.Sum256([]byte(secret)) }

// sessions are all who have signed in, and the codes by which somebody may. They are in memory: a controller that begins to lead knows none.
type sessions struct {
	now func() time.Time

	mu    sync.Mutex
	open  map[key]*session
	codes map[key]*session // made is when the code was
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, open: map[key]*session{}, codes: map[key]*session{}}
}

// begin makes a session and returns its secret, of 130 random bits.
func (s *sessions) begin(of session) (secret string) {
	secret = rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	of.made = s.now()
	of.used = of.made
	s.sweep()
	same := func(o *session) bool { return o.name == of.name && o.operator == of.operator }
	for count(s.open, same) >= mostOfAccount {
		drop(s.open, same)
	}
	if len(s.open) >= mostSessions {
		drop(s.open, func(*session) bool { return true })
	}
	s.open[keyOf(secret)] = &of
	return secret
}

// find returns the session of a secret, and notes that it is in use; ok is false if there is none.
func (s *sessions) find(k key) (found session, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.open[k]
	if of == nil {
		return session{}, false
	}
	now := s.now()
	if of.over(now) {
		delete(s.open, k)
		return session{}, false
	}
	of.used = now
	return *of, true
}

// end ends a session.
func (s *sessions) end(k key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, k)
}

// code makes a code that signs an operator in.
func (s *sessions) code(name string) string {
	secret := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	if len(s.codes) >= mostCodes {
		drop(s.codes, func(*session) bool { return true })
	}
	now := s.now()
	s.codes[keyOf(secret)] = &session{name: name, operator: true, made: now, used: now}
	return secret
}

// redeem takes a code, which is then of no more use; ok is false if it is not good.
func (s *sessions) redeem(secret string) (of session, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := keyOf(secret)
	found := s.codes[k]
	if found == nil {
		return session{}, false
	}
	delete(s.codes, k)
	return session{name: found.name, operator: true}, s.now().Sub(found.made) < codeTime
}

// sweep forgets what is over. The caller holds mu.
func (s *sessions) sweep() {
	now := s.now()
	for k, of := range s.open {
		if of.over(now) {
			delete(s.open, k)
		}
	}
	for k, of := range s.codes {
		if now.Sub(of.made) >= codeTime {
			delete(s.codes, k)
		}
	}
}

func count(in map[key]*session, which func(*session) bool) (n int) {
	for _, of := range in {
		if which(of) {
			n++
		}
	}
	return n
}

// drop ends the one of some that was used longest ago.
func drop(in map[key]*session, which func(*session) bool) {
	var oldest key
	var found *session
	for k, of := range in {
		if which(of) && (found == nil || of.used.Before(found.used)) {
			oldest, found = k, of
		}
	}
	delete(in, oldest)
}
