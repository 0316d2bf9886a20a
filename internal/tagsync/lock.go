package tagsync

import (
	"context"
	"encoding/json"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/state"
	"github.com/drover-project/drover/internal/store"
)

// Locks of servers are objects of their own: a program of before that leads for a while passes them over, and writes servers
// without forgetting them. It does not hold them.

func lockKey(id string) store.Key { return store.Key{Kind: KindLock, ID: id} }

// withLock puts what a change does to the lock of a server into its transaction. next is nil for a server that is removed.
func withLock(tx *store.Tx, old, next *server.Server) error {
	switch {
	case next != nil && next.Lock == old.Lock:
	case next == nil && old.Lock == nil:
	case next == nil || next.Lock == nil:
		tx.Delete = append(tx.Delete, lockKey(old.ID))
	default:
		value, err := next.Lock.Encode()
		if err != nil {
			return err
		}
		tx.Put = append(tx.Put, store.Put{Key: lockKey(old.ID), Value: value})
	}
	return nil
}

// unreadable is a lock of which nobody can tell who may take it away: an operator.
var unreadable = server.Lock{Operator: true, Reason: "the lock cannot be read any more"}

// locks gives servers the locks that are stored, and returns what removes those of servers that are gone: a program of before leaves them. A server that is set
// aside is not gone: when it is mended it has its lock.
func (e *Engine) locks(ctx context.Context, servers []*server.Server, aside map[string]bool) (left store.Tx, err error) {
	byID := map[string]*server.Server{}
	for _, s := range servers {
		byID[s.ID] = s
	}
	for o, err := range e.cfg.Store.List(ctx, KindLock, store.Options{}) {
		if err != nil {
			return left, err
		}
		s := byID[o.ID]
		if s == nil {
			if !aside[o.ID] {
				left.Delete = append(left.Delete, o.Key)
			}
			continue
		}
		if s.Lock, err = server.DecodeLock(o.Value); err != nil {
			e.aside = append(e.aside, "the lock of server "+o.ID+" cannot be read, so it is an operator's: "+err.Error())
			s.Lock = &unreadable
		}
	}
	return left, nil
}

// lockOf reads the lock of one server; nil where there is none. One that cannot be read is an operator's.
func (e *Engine) lockOf(id string) (*server.Lock, error) {
	o, err := e.cfg.Store.Get(e.ctx, lockKey(id))
	switch {
	case fault.Is(err, fault.NotFound):
		return nil, nil //nolint:nilnil // it has none
	case err != nil:
		return nil, err
	}
	l, err := server.DecodeLock(o.Value)
	if err != nil {
		return &unreadable, nil //nolint:nilerr // as when the engine was opened, which told of it
	}
	return l, nil
}

// Lock locks a server for a user or, as the lock says, an operator.
func (e *Engine) Lock(id string, l server.Lock) (*server.Server, error) {
	return e.Change(id, func(s *server.Server) (*server.Server, error) { return s.Locked(l) })
}

// Unlock takes the lock of a server away. Denied for an operator's, unless an operator asks.
func (e *Engine) Unlock(id string, operator bool, by servertag.Asked) (*server.Server, error) {
	return e.Change(id, func(s *server.Server) (*server.Server, error) { return s.Unlock(operator, by) })
}

// lockEvent is what an event tells of a lock.
type lockEvent struct {
	Operator bool   `json:"operator"`
	Reason   string `json:"reason,omitempty"`
}

func encodeLock(l *server.Lock) json.RawMessage {
	if l == nil {
		return nil
	}
	text, _ := json.Marshal(lockEvent{l.Operator, l.Reason}) //nolint:errchkjson // a text and a truth value
	return text
}

// HoldServer locks a server in the operator's name, with a reason that may be empty, or takes any lock of it away. With dry nothing is changed. It
// reports whether that changes anything.
func (e *Engine) HoldServer(id string, locked bool, reason string, dry bool, by audit.By) (changed bool, err error) {
	verb := map[bool]audit.Verb{true: audit.ServerLock, false: audit.ServerUnlock}[locked]
	event := audit.New(verb, id, by)
	asked := servertag.Asked{User: by.Account.Name, Front: by.Account.Surface, From: by.Account.From, Time: e.Now()}
	change := func(s *server.Server) (*server.Server, error) {
		next, err := s.Unlock(true, asked)
		if locked {
			next, err = s.Locked(server.Lock{Operator: true, Reason: reason, Asked: asked})
		}
		if changed = err == nil && next != s; !changed {
			return next, err
		}
		event.Name, event.Before, event.After = s.Name, encodeLock(s.Lock), encodeLock(next.Lock)
		if dry {
			return s, nil
		}
		return next, nil
	}
	_, err = e.changeBeside(id, change, func(tx *store.Tx, c *state.Change) { c.Events = append(c.Events, e.cfg.Note(tx, event)) })
	return changed, err
}
