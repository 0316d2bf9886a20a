package ganeti

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/server"
)

// Follow asks for the jobs of servers again and again while there are any, and
// for all instances more rarely: a remote API tells nothing of itself. When the
// cluster answers again after it did not, any instance may be different.
func (c *Cluster) Follow(ctx context.Context, changed func(instance server.Ref)) error {
	f := &follower{Cluster: c, changed: changed, odd: map[job.ID]bool{}}
	for {
		c.mu.Lock()
		waiting, news := maps.Clone(c.jobs), c.news
		c.mu.Unlock()
		f.step(ctx, waiting)
		pause := time.Until(f.next)
		if len(waiting) > 0 {
			pause, news = min(pause, c.cfg.Every), nil
		}
		timer := time.NewTimer(max(pause, 0))
		select {
		case <-timer.C:
		case <-news:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// follower is what was told of a cluster so far.
type follower struct {
	*Cluster
	changed func(server.Ref)
	// next is when all instances are asked for again.
	next time.Time
	away bool
	// odd are the jobs that the cluster, though it is there, could not tell of.
	odd map[job.ID]bool
}

// mostOdd is how many such jobs are met before no more are asked for at a time: it may be that none can be told of.
const mostOdd = 3

// step asks once.
func (f *follower) step(ctx context.Context, waiting map[job.ID]server.Ref) {
	err := f.jobsEnded(ctx, waiting)
	if err == nil && (f.away || !time.Now().Before(f.next)) {
		err = f.instances(ctx)
		f.next = time.Now().Add(f.cfg.All)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		if !f.away {
			f.cfg.Log.Warn("a cluster of servers cannot be asked; it is tried again", "cluster", f.cfg.URL, "error", err)
		}
		f.away, f.next = true, time.Now().Add(f.cfg.Every)
	case f.away:
		f.cfg.Log.Info("a cluster of servers answers again", "cluster", f.cfg.URL)
		f.away = false
		f.changed(server.Ref{})
	}
}

// jobsEnded tells of the jobs that ended. One of which the cluster cannot tell keeps neither the others nor instances from
// being asked for.
func (f *follower) jobsEnded(ctx context.Context, waiting map[job.ID]server.Ref) error {
	odd := 0
	for id, instance := range waiting {
		_, over, err := f.ended(ctx, id)
		if _, answered := errors.AsType[*answeredError](err); answered {
			if !f.odd[id] {
				f.cfg.Log.Warn("a cluster of servers cannot tell of a job; it is asked again", "cluster", f.cfg.URL, "job", id, "error", err)
			}
			f.odd[id] = true
			if odd++; odd == mostOdd {
				return nil
			}
			continue
		}
		if err != nil {
			return err
		}
		delete(f.odd, id)
		if over {
			f.mu.Lock()
			delete(f.jobs, id)
			f.mu.Unlock()
			f.changed(instance)
		}
	}
	return nil
}

// instances tells of the instances that look different.
func (f *follower) instances(ctx context.Context) error {
	now, kept := map[string]*remoteInstance{}, 0
	err := f.eachInstance(ctx, func(i *remoteInstance) error {
		now[i.Name] = i
		if kept += i.weight(); kept > maxKept {
			return f.tooLarge("a list of instances", maxKept)
		}
		return nil
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	before := f.known
	f.known = now
	f.mu.Unlock()
	for name, i := range now {
		if was := before[name]; was == nil || !was.same(i) {
			f.changed(server.Ref{UUID: i.UUID, Name: name})
		}
	}
	for name, was := range before {
		if now[name] == nil {
			f.changed(server.Ref{UUID: was.UUID, Name: name})
		}
	}
	return nil
}
