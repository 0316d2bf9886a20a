package amqp

import (
	"context"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/drover-project/drover/internal/fault"
)

const (
	// prefetch is how many messages are worked on at once.
	prefetch = 64
	// deliveryLimit is how often a message is handed out that nobody acknowledges;
	// then it is a dead letter.
	deliveryLimit = 20
)

// Queue names a queue by what it is for, and by the version of how it is
// declared: a queue that is there cannot be declared otherwise, so another version
// of this program that wants it otherwise needs another name.
func Queue(purpose string) string { return "drover-" + purpose + "-1" }

// Consume hands out the messages with a routing key, from a queue that keeps them
// while nobody consumes, until ctx ends. A message is
// acknowledged when handle returns nil, is a dead letter when it returns
// fault.Invalid, and is handed out again, sooner or later, for any other error.
// handle is called from several goroutines at once.
func (b *Broker) Consume(ctx context.Context, queue, key string, handle func(ctx context.Context, body []byte) error) {
	for ctx.Err() == nil {
		var connection *amqp.Connection
		var deliveries <-chan amqp.Delivery
		err := b.persist(ctx, "events cannot be consumed", func() (err error) {
			connection, deliveries, err = b.subscribe(queue, key)
			return err
		})
		if err != nil { // ctx has ended
			return
		}
		serve(ctx, connection, deliveries, handle)
	}
}

// subscribe connects, and declares the queue with the one for its dead letters.
func (b *Broker) subscribe(queue, key string) (*amqp.Connection, <-chan amqp.Delivery, error) {
	connection, channel, err := b.dial()
	if err != nil {
		return nil, nil, err
	}
	deliveries, err := consumeFrom(channel, queue, key)
	if err != nil {
		hangUp(connection)
		return nil, nil, err
	}
	return connection, deliveries, nil
}

func consumeFrom(channel *amqp.Channel, queue, key string) (<-chan amqp.Delivery, error) {
	quorum := amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum}
	dead := queue + "-dl"
	if _, err := channel.QueueDeclare(dead, true, false, false, false, quorum); err != nil {
		return nil, err
	}
	if err := channel.QueueBind(dead, queue, deadLetters, false, nil); err != nil {
		return nil, err
	}
	_, err := channel.QueueDeclare(queue, true, false, false, false, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum,
		"x-delivery-limit": deliveryLimit, "x-dead-letter-exchange": deadLetters, "x-dead-letter-routing-key": queue})
	if err != nil {
		return nil, err
	}
	if err := channel.QueueBind(queue, key, exchange, false, nil); err != nil {
		return nil, err
	}
	if err := channel.Qos(prefetch, 0, false); err != nil {
		return nil, err
	}
	return channel.Consume(queue, "", false, false, false, false, nil)
}

// serve handles messages until the connection breaks or ctx ends. What is not
// acknowledged then is handed out again.
func serve(ctx context.Context, connection *amqp.Connection, deliveries <-chan amqp.Delivery, handle func(context.Context, []byte) error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { hangUp(connection) })() // that ends the deliveries
	var working sync.WaitGroup
	defer working.Wait()
	for d := range deliveries {
		working.Go(func() { finish(&d, handle(ctx, d.Body)) })
	}
}

// finish tells the broker what became of a message. If the connection is broken
// by then, the message is handed out again.
func finish(d *amqp.Delivery, err error) {
	switch {
	case err == nil:
		_ = d.Ack(false)
	case fault.Is(err, fault.Invalid):
		_ = d.Nack(false, false)
	default:
		_ = d.Nack(false, true)
	}
}
