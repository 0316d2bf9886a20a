package ganeti

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/drover-project/drover/internal/job"
)

// Follow asks for the jobs of servers again and again while there are any, and
// for all instances more rarely: a remote API tells nothing of itself. When the
// cluster answers again after it did not, any instance may be different.
func (c *Cluster) Follow(ctx context.Context, changed func(instance string)) error {
	f := &follower{Cluster: c, changed: changed}
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
	changed func(string)
	// next is when all instances are asked for again.
	next time.Time
	away bool
}

// step asks once.
func (f *follower) step(ctx context.Context, waiting map[job.ID]string) {
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
		f.changed("")
	}
}

// jobsEnded tells of the jobs that ended.
func (f *follower) jobsEnded(ctx context.Context, waiting map[job.ID]string) error {
	for id, instance := range waiting {
		_, over, err := f.ended(ctx, id)
		if err != nil {
			return err
		}
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
	var all []*remoteInstance
	if err := f.do(ctx, request{method: http.MethodGet, path: "/2/instances", query: url.Values{"bulk": {"1"}}}, &all); err != nil {
		return err
	}
	now := make(map[string]*remoteInstance, len(all))
	for _, i := range all {
		now[i.Name] = i
	}
	f.mu.Lock()
	before := f.known
	f.known = now
	f.mu.Unlock()
	for name, i := range now {
		if was := before[name]; was == nil || !was.same(i) {
			f.changed(name)
		}
	}
	for name := range before {
		if now[name] == nil {
			f.changed(name)
		}
	}
	return nil
}
