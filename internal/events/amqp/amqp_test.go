package amqp_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	rabbitmq "github.com/rabbitmq/amqp091-go"

	"github.com/drover-project/drover/internal/events"
	"github.com/drover-project/drover/internal/events/amqp"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/rabbit"
)

// patience is how long something may take that is to come.
var patience = 4 * testkit.Patience()

func open(t *testing.T, url string) *amqp.Broker {
	t.Helper()
	b, err := amqp.Open(url, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func message(n int) events.Message {
	return events.Message{ID: fmt.Sprintf("c:%d:0:success", n), Key: "ganeti.snf.event.op", Body: fmt.Appendf(nil, `{"jobId":%d}`, n)}
}

// receive waits until each of the bodies came at least once.
func receive(t *testing.T, came <-chan string, want ...string) {
	t.Helper()
	left := map[string]bool{}
	for _, w := range want {
		left[w] = true
	}
	limit := time.After(patience)
	for len(left) > 0 {
		select {
		case body := <-came:
			delete(left, body)
		case <-limit:
			t.Fatalf("these never came: %v", left)
		}
	}
}

// TestEventsSurviveTheBroker: what was published is delivered, also after the
// broker was killed and came back; what is not acknowledged comes again, what
// cannot be read becomes a dead letter, and what it takes from nobody is passed over.
func TestEventsSurviveTheBroker(t *testing.T) {
	const most = 1 << 20
	server := rabbit.Start(t, "-rabbit", "max_message_size", strconv.Itoa(most))
	ctx, stop := context.WithTimeout(t.Context(), 2*patience)
	defer stop()
	b := open(t, server.URL())
	queue := amqp.Queue("test")
	came := make(chan string, 100)
	refused := make(chan struct{})
	ended := make(chan struct{}, 2)
	consume := func(ctx context.Context) {
		again := false
		b.Consume(ctx, queue, "ganeti.snf.event.op", func(_ context.Context, body []byte) error {
			switch text := string(body); {
			case text == `{"jobId":1}` && !again:
				again = true
				close(refused)
				return fault.New(fault.Unavailable, "not now")
			case text == "nonsense":
				return fault.New(fault.Invalid, "not to be read")
			}
			came <- string(body)
			return nil
		})
		ended <- struct{}{}
	}
	first, leave := context.WithCancel(ctx)
	go consume(first)
	// Before the queue is there, messages are lost.
	awaitQueue(t, server.URL(), queue)
	if err := b.Publish(ctx, message(1)); err != nil {
		t.Fatal(err)
	}
	<-refused
	receive(t, came, `{"jobId":1}`)
	if err := b.Publish(ctx, events.Message{ID: "x", Key: "ganeti.snf.event.op", Body: []byte("nonsense")}); err != nil {
		t.Fatal(err)
	}
	// It refuses what is too large for it, however often it comes.
	if err := b.Publish(ctx, events.Message{ID: "y", Key: "ganeti.snf.event.op", Body: make([]byte, most+1)}); err != nil {
		t.Fatal(err)
	}
	if got := deadLetter(t, server.URL(), queue); got != "nonsense" {
		t.Errorf("the dead letter is %q", got)
	}
	leave()
	<-ended
	// Nobody consumes, and the broker dies with a message.
	if err := b.Publish(ctx, message(2)); err != nil {
		t.Fatal(err)
	}
	server.Kill(syscall.SIGTERM)
	published := make(chan error, 1)
	go func() { published <- b.Publish(ctx, message(3)) }()
	for _, err := b.Trouble(); err == nil && ctx.Err() == nil; _, err = b.Trouble() { // why, for who asks
		time.Sleep(time.Millisecond)
	}
	server.Up()
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	if since, err := b.Trouble(); err != nil {
		t.Errorf("what was published has failed since %v: %v", since, err)
	}
	second, leave := context.WithCancel(ctx)
	refused = make(chan struct{})
	go consume(second)
	receive(t, came, `{"jobId":2}`, `{"jobId":3}`)
	leave()
	<-ended
}

func connect(t *testing.T, url string) *rabbitmq.Connection {
	t.Helper()
	connection, err := rabbitmq.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() }) // the broker may be gone
	return connection
}

// awaitQueue waits until a queue has a consumer.
func awaitQueue(t *testing.T, url, queue string) {
	t.Helper()
	connection := connect(t, url)
	for limit := time.Now().Add(patience); time.Now().Before(limit); {
		channel, err := connection.Channel() // a queue that is not there ends it
		if err != nil {
			t.Fatal(err)
		}
		if q, err := channel.QueueDeclarePassive(queue, true, false, false, false, nil); err == nil && q.Consumers > 0 {
			return
		}
	}
	t.Fatal("nobody consumes")
}

// deadLetter waits for the next dead letter of a queue.
func deadLetter(t *testing.T, url, queue string) string {
	t.Helper()
	channel, err := connect(t, url).Channel()
	if err != nil {
		t.Fatal(err)
	}
	letters, err := channel.Consume(queue+"-dl", "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case d := <-letters:
		return string(d.Body)
	case <-time.After(patience):
		t.Fatal("there is no dead letter")
		return ""
	}
}

// TestPublishingEndsWithItsContext: with the broker away a message waits, no
// longer than whoever publishes it. Since when it is away is told as long as it is, and not since the last try; and no more when nobody tries.
func TestPublishingEndsWithItsContext(t *testing.T) {
	tries := make(lines, 100)
	b, err := amqp.Open("amqp://guest:secret@127.0.0.1:1/", slog.New(slog.NewTextHandler(tries, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Publish(ctx, message(1)) }()
	<-tries
	first, err := b.Trouble()
	if err == nil || first.IsZero() {
		t.Errorf("it is told of nothing: %v, %v", first, err)
	}
	<-tries
	if since, err := b.Trouble(); err == nil || !since.Equal(first) {
		t.Errorf("the broker is away since %v, and then since %v: %v", first, since, err)
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("a message was published without a broker")
	}
	if since, err := b.Trouble(); err != nil {
		t.Errorf("nobody publishes any more, and that fails since %v: %v", since, err)
	}
}

// lines is a log that hands out what it is told.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

func TestBadAddresses(t *testing.T) {
	for _, address := range []string{"http://x", "amqp://user:pass word@host:x/", "rabbit.example"} {
		_, err := amqp.Open(address, slog.New(slog.DiscardHandler))
		if !fault.Is(err, fault.Invalid) || strings.Contains(err.Error(), "pass word") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
