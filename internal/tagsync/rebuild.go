package tagsync

import (
	"context"
	"errors"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/store/format"
)

// What is on a disk is lost when its server is rebuilt, so a rebuild is handed in once for each time that it was asked for, whatever dies meanwhile. Drover's own
// queue sees to that by the submission key, which it keeps for longer than jobs. Other clusters may know no keys: it is written down before that a job is about to be
// handed in, and behind which one, and who finds that and no answer looks for the job, and hands in no other.

// Rebuild begins to rebuild a server. In the same change first is done to it, which may refuse that.
func (e *Engine) Rebuild(id string, w server.Renewal, by servertag.Asked, first func(*server.Server) (*server.Server, error)) (*server.Server, error) {
	if now := e.format(); now < format.Rebuilds {
		return nil, fault.New(fault.WrongState, "rebuilds of servers need format %d of the store, which has %d", format.Rebuilds, now).At("rebuild").
			WithHint("it is raised when all controllers know it: drover cluster format info")
	}
	w.Life = e.cfg.Life
	return e.Change(id, func(s *server.Server) (*server.Server, error) {
		next, err := first(s)
		if err != nil {
			return nil, err
		}
		return next.Rebuild(w, by)
	})
}

// arrives is how long a request may be on its way to a cluster after who sent it gave it up: a job that comes later is taken for none.
const arrives = job.Time(2 * time.Minute / time.Microsecond)

// submitOnce hands in the job of a rebuild, or finds it where it may have been handed in before. An error about the job (temporary) is one too where nobody can tell
// whether it was: the server is in error then, and who wants it rebuilt asks for it again.
func (e *Engine) submitOnce(ctx context.Context, b Backend, s *server.Server, task *server.Task, ops []*opcode.Opcode) (job.ID, error) {
	anew := task.Anew
	if anew.Life != e.cfg.Life {
		return 0, fault.New(fault.Invalid, "the store was restored from a backup after the rebuild was asked for, so it may have been done, and is not done now")
	}
	if anew.Handed != 0 {
		id, err := b.Find(ctx, anew.After, ops...)
		switch {
		case err != nil || id != 0:
			return id, err
		case e.Now() < anew.Handed+arrives:
			return 0, fault.New(fault.Unavailable, "the cluster did not answer when it was asked to rebuild server %s, and has no such job yet", s.ID)
		}
		return 0, fault.New(fault.Invalid, "the cluster did not answer when it was asked to rebuild the server, and has no such job: nobody can tell whether it was done, and it is not asked twice")
	}
	after, keyed, err := b.Newest(ctx)
	if err != nil {
		return 0, err
	}
	key := keyOf(s, "task", task.Serial)
	if keyed {
		return b.Submit(ctx, key, ops...)
	}
	if err := e.handed(s.ID, task.Serial, e.Now(), after); err != nil {
		return 0, err
	}
	id, err := b.Submit(ctx, key, ops...)
	if _, untaken := errors.AsType[*UntakenError](err); untaken && temporary(err) {
		return 0, errors.Join(err, e.handed(s.ID, task.Serial, 0, 0))
	}
	return id, err
}

// handed writes down that a job may be with its cluster from now on, or is not.
func (e *Engine) handed(id string, serial int64, at job.Time, after job.ID) error {
	_, err := e.change(id, func(s *server.Server) (*server.Server, error) { return s.Handed(serial, at, after), nil })
	return err
}
