package app

import (
	"context"
	"strings"

	"github.com/drover-project/drover/internal/events"
	"github.com/drover-project/drover/internal/events/amqp"
	"github.com/drover-project/drover/internal/store"
)

// openEvents takes the broker's URL in, if there is one.
func (c *controller) openEvents(url string) (err error) {
	if url != "" {
		c.broker, err = amqp.Open(url, c.log)
	}
	return err
}

// eventParts are what a controller with a broker does all the time: it publishes
// how opcodes ended, here and on further clusters, and hears of instances what it and others published. What
// goes on in this process it knows without a broker.
func (c *controller) eventParts() []func(context.Context) error {
	if c.ground != nil && c.ground.Publish != nil {
		c.outbox.Publish = c.ground.Publish
		return []func(context.Context) error{c.outbox.Run}
	}
	if c.broker == nil {
		return nil
	}
	c.outbox.Publish = c.broker.Publish
	key := "ganeti." + strings.TrimSuffix(instancePrefix, "-") + ".event.op"
	parts := []func(context.Context) error{
		c.outbox.Run,
		func(ctx context.Context) error {
			c.broker.Consume(ctx, amqp.Queue("servers"), key, c.takeEvent)
			return nil
		},
	}
	for name, remote := range c.remotes {
		follower := &events.Follower{Remote: remote, Cluster: name, Store: c.store, Epoch: c.lease.Epoch, Every: remote.Every(), Publish: c.broker.Publish, Log: c.log}
		parts = append(parts, follower.Run)
	}
	return parts
}

// told tells up to which revision events are published; nil where nobody is told of any.
func (c *controller) told() func() store.Revision {
	if c.broker == nil && (c.ground == nil || c.ground.Publish == nil) {
		return nil
	}
	return func() store.Revision {
		if c.outbox == nil {
			return 0
		}
		return store.Revision(c.outbox.Looked())
	}
}

// takeEvent takes a message in.
func (c *controller) takeEvent(ctx context.Context, body []byte) error {
	e, err := events.Parse(body)
	if err != nil {
		return err
	}
	return c.servers.Heard(ctx, e.Instance)
}
