package app

import (
	"cmp"
	"context"
	"os"
	"time"

	"github.com/drover-project/drover/internal/health"
	"github.com/drover-project/drover/internal/version"
)

// The log tells the life of a controller, one line for each turn of it: that it starts, stands by, leads, leads no more, stops, has ended.

// tellStart says what starts, and with what.
func (o Options) tellStart() {
	build := version.Current()
	o.Log.Info("a controller starts", "version", build.Version, "revision", build.Commit, "pid", os.Getpid(), "data", o.Data,
		"store", cmp.Or(withoutPassword(o.Store), "embedded"), "rapi", o.RAPI, "peer", o.Peer, "agents", o.AgentAddress, "events", withoutPassword(o.Events))
}

// tellEnd says that the controller has ended, and why if it was not told to.
func (o Options) tellEnd(asked context.Context, err *error) {
	switch {
	case *err != nil:
		o.Log.Info("the controller has ended", "error", *err)
	case asked.Err() != nil:
		o.Log.Info("the controller has ended", "why", "it was told to")
	}
}

// ownName is the name of the controller among others, or that of its machine.
func (m *member) ownName() string {
	if m.group != nil {
		return m.group.self.Name
	}
	return m.name
}

// tellBeginning says that this controller leads from now on, with what it has taken over.
func (c *controller) tellBeginning() {
	census := c.queue.Census()
	unfinished := 0
	for range c.picture.Load().Jobs.Unfinished() {
		unfinished++
	}
	c.log.Info("this controller leads", "name", c.ownName(), "epoch", c.lease.Epoch, "format", c.format.Format(), "revision", c.picture.Load().Revision,
		"unfinished_jobs", unfinished, "resumed_jobs", census.Running.Jobs, "took_seconds", time.Since(c.begun).Round(time.Millisecond).Seconds())
}

// waitsEvery is how often it is looked what jobs wait for, for the log.
const waitsEvery = time.Minute

// tellWaits has the log say that jobs wait for something for long: once, and again when they did not for a while.
func (c *controller) tellWaits(ctx context.Context, every time.Duration) error {
	told := map[string]bool{}
	return regularly(ctx, every, func() error {
		var q health.Queue
		c.tellPlaces(&q)
		now := map[string]bool{}
		for _, w := range health.LongWaits(&q, c.now()) {
			if now[w.For] = true; !told[w.For] && w.State == health.Problem {
				c.log.Warn("jobs wait for long", "what", w.What, "do", w.Do)
			}
		}
		told = now
		return nil
	})
}

// leaderEvery is how often one that stands by looks who leads, for its log.
const leaderEvery = 5 * time.Second

// tellLeader says that this controller stands by, and who leads: once, and again when that changes.
func (g *group) tellLeader(ctx context.Context) {
	told := ""
	look := func() error {
		p, err := g.presentLeader(ctx)
		if err == nil && p.Instance != told && p.Instance != g.self.Instance {
			told = p.Instance
			g.m.log.Info("this controller stands by", "name", g.self.Name, "leader", p.Name, "address", p.Address, "epoch", p.Epoch)
		}
		return nil
	}
	_ = look()
	_ = regularly(ctx, leaderEvery, look)
}
