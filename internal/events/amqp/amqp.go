// Package amqp publishes and consumes events over RabbitMQ.
//
// Invariants:
//   - A message counts as published when the broker has confirmed it, one by one
//     (TestAMessageCountsWhenItIsConfirmed).
//   - A message that the broker refuses for what it is, and would refuse however often it came, is passed over, with a line in
//     the log: those behind it do not wait for ever.
//   - A message is acknowledged after what it says is dealt with, durably; what
//     cannot be read goes to the dead-letter exchange.
//   - A connection that breaks is made anew, ever more rarely while that fails, for
//     as long as anybody wants one. Nothing is declared in a way that another
//     version of this program could not declare again.
package amqp

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/drover-project/drover/internal/backoff"
	"github.com/drover-project/drover/internal/events"
	"github.com/drover-project/drover/internal/fault"
)

// Exchanges are those of Synnefo; both are topic exchanges and durable.
const (
	exchange    = "ganeti"
	deadLetters = "ganeti-dl"
)

// The limits of a connection.
const (
	dialTimeout = 10 * time.Second
	heartbeat   = 10 * time.Second
	// closeTimeout is how long a broker has to say goodbye.
	closeTimeout = time.Second
)

// pauses are how long it is waited before a broker that did not answer is tried again.
func pauses() backoff.Pauses {
	return backoff.Pauses{First: 100 * time.Millisecond, Longest: 10 * time.Second}
}

// Broker is a RabbitMQ broker. Its methods are safe for concurrent use.
type Broker struct {
	url string
	log *slog.Logger

	mu         sync.Mutex // held while a message is published: their order is kept
	connection *amqp.Connection
	channel    *amqp.Channel
	closed     <-chan *amqp.Error // has why the broker ended the channel

	failing  sync.Mutex // held while troubles are looked at
	troubles map[string]trouble
}

// trouble is why something fails that is tried again and again, and since when.
type trouble struct {
	since time.Time
	err   error
}

// Trouble is why the broker cannot be used at the moment, and since when; no error if nothing fails. Of several it is what fails for the
// longest time.
func (b *Broker) Trouble() (since time.Time, err error) {
	b.failing.Lock()
	defer b.failing.Unlock()
	for _, t := range b.troubles {
		if err == nil || t.since.Before(since) {
			since, err = t.since, t.err
		}
	}
	return since, err
}

// note takes note of how an attempt ended, and returns since when it had failed before; zero if it had not.
func (b *Broker) note(what string, err error) (since time.Time) {
	b.failing.Lock()
	defer b.failing.Unlock()
	since = b.troubles[what].since
	switch {
	case err == nil:
		delete(b.troubles, what)
	case since.IsZero():
		b.troubles[what] = trouble{time.Now(), err}
	default:
		b.troubles[what] = trouble{since, err}
	}
	return since
}

// Open takes a URL such as amqp://user:password@host:5672/vhost. It connects when
// there is something to publish or to consume.
func Open(address string, log *slog.Logger) (*Broker, error) {
	u, err := amqp.ParseURI(address)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the address of the broker is not an AMQP URL: %s", reasonOf(err)).At("events").
			WithHint("for example amqp://user:password@broker.example:5672/")
	}
	return &Broker{url: address, troubles: map[string]trouble{}, log: log.With("broker", net.JoinHostPort(u.Host, "*"))}, nil
}

// reasonOf says what is wrong with a URL without repeating it: it may hold a password.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return err.Error()
}

// Close ends the connection that is published over.
func (b *Broker) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.drop()
}

// drop forgets a connection. The caller holds mu.
func (b *Broker) drop() {
	if b.connection != nil {
		hangUp(b.connection)
	}
	b.connection, b.channel, b.closed = nil, nil, nil
}

// hangUp ends a connection, which may be broken already, or whose broker may say
// nothing any more.
func hangUp(c *amqp.Connection) { _ = c.CloseDeadline(time.Now().Add(closeTimeout)) }

// dial connects and declares the exchanges.
func (b *Broker) dial() (*amqp.Connection, *amqp.Channel, error) {
	connection, err := amqp.DialConfig(b.url, amqp.Config{Heartbeat: heartbeat, Dial: amqp.DefaultDial(dialTimeout)})
	if err != nil {
		return nil, nil, err
	}
	channel, err := connection.Channel()
	for _, name := range []string{exchange, deadLetters} {
		if err == nil {
			err = channel.ExchangeDeclare(name, amqp.ExchangeTopic, true, false, false, false, nil)
		}
	}
	if err != nil {
		hangUp(connection)
		return nil, nil, err
	}
	return connection, channel, nil
}

// Publish publishes a message and returns when the broker has confirmed it, or was found to refuse that message for good. While
// anything else keeps it from being published it is tried again, until ctx ends.
func (b *Broker) Publish(ctx context.Context, m events.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.persist(ctx, "events cannot be published", func() error {
		err := b.publish(ctx, m)
		if err != nil {
			b.drop()
		}
		if fault.Is(err, fault.Invalid) {
			b.log.Error("an event is not published: the broker takes no such message", "id", fault.Clip(m.ID, events.MaxText), "bytes", len(m.Body), "error", err)
			return nil
		}
		return err
	})
}

// checkText refuses what AMQP has no room for.
func checkText(m *events.Message) error {
	for what, text := range map[string]string{"id": m.ID, "routing key": m.Key} {
		if len(text) > events.MaxText {
			return fault.New(fault.Invalid, "its %s has %d bytes, and %d are allowed", what, len(text), events.MaxText)
		}
	}
	return nil
}

// publish publishes a message once. fault.Invalid for one that no broker like this one takes.
func (b *Broker) publish(ctx context.Context, m events.Message) error {
	if err := checkText(&m); err != nil {
		return err
	}
	if b.channel == nil {
		connection, channel, err := b.dial()
		if err != nil {
			return err
		}
		b.connection, b.channel, b.closed = connection, channel, channel.NotifyClose(make(chan *amqp.Error, 1))
		if err := channel.Confirm(false); err != nil {
			return err
		}
	}
	limited, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	confirmation, err := b.channel.PublishWithDeferredConfirmWithContext(limited, exchange, m.Key, false, false, amqp.Publishing{
		MessageId: m.ID, ContentType: "application/json", DeliveryMode: amqp.Persistent, Body: m.Body})
	if err != nil {
		return err
	}
	taken, err := confirmation.WaitContext(limited)
	if err == nil && !taken {
		err = b.refusal()
	}
	return err
}

// refusal is why a message was not taken. One that is larger than the broker allows ends the channel with what it calls a failed precondition, which a
// message of this program can meet in no other way.
func (b *Broker) refusal() error {
	select {
	case why := <-b.closed:
		if why != nil && why.Code == amqp.PreconditionFailed {
			return fault.New(fault.Invalid, "%s", why.Reason)
		}
		if why != nil {
			return why
		}
	default:
	}
	return fault.New(fault.Unavailable, "the broker did not take the message")
}

// persist tries something until it goes well or ctx ends.
func (b *Broker) persist(ctx context.Context, trouble string, try func() error) error {
	defer b.note(trouble, nil)
	for failures := 1; ; failures++ {
		err := try()
		if ctx.Err() != nil && err != nil {
			return context.Cause(ctx)
		}
		if since := b.note(trouble, err); err == nil {
			if !since.IsZero() {
				b.log.Info("the broker can be used again", "since", since.UTC().Format(time.RFC3339))
			}
			return nil
		}
		pause := pauses().After(failures)
		b.log.Warn(trouble+" now; it is tried again", "error", err, "after", pause)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
