package app_test

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/events"
	"github.com/drover-project/drover/internal/testkit/rabbit"
)

// TestEventsReachABroker: how jobs ended is told to whoever listens there, and
// tags become ACTIVE with the broker and without it.
func TestEventsReachABroker(t *testing.T) {
	broker := rabbit.Start(t)
	c := startCompute(t, app.Options{Data: t.TempDir(), Events: broker.URL()})
	heard := listen(t, broker.URL())
	id := c.create()
	active := func(status, _, _ string) bool { return status == "ACTIVE" }
	c.request(http.MethodPut, c.ready.Compute+"/servers/"+id+"/tags/a_b", nil, nil, http.StatusCreated)
	c.tagged(id, "a_b", active)
	limit := time.After(4 * patience) // the broker is slow to begin with
	for told := false; !told; {
		select {
		case d := <-heard:
			e, err := events.Parse(d.Body)
			if err != nil {
				t.Fatal(err)
			}
			if e.Operation == "OP_INSTANCE_CREATE" && (e.Disks == nil || e.NICs == nil || e.HVParams == nil) {
				t.Errorf("the message about a new instance tells nothing of it: %s", d.Body)
			}
			told = e.Operation == "OP_TAGS_SET" && strings.Contains(string(d.Body), `"tags":["cyclades:user:a*b"]`)
			if told && (d.RoutingKey != "ganeti.snf.event.op" || e.Instance != "snf-1" || d.MessageId == "" || d.DeliveryMode != amqp.Persistent) {
				t.Errorf("the message %q under %s is %s", d.MessageId, d.RoutingKey, d.Body)
			}
		case <-limit:
			t.Fatal("nothing is told of the tag's job")
		}
	}
	broker.Kill(syscall.SIGKILL)
	c.request(http.MethodPut, c.ready.Compute+"/servers/"+id+"/tags/alone", nil, nil, http.StatusCreated)
	c.tagged(id, "alone", active)
}

// listen gets all messages of the exchange from now on.
func listen(t *testing.T, url string) <-chan amqp.Delivery {
	t.Helper()
	connection, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() }) // the broker may be gone
	channel, err := connection.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := channel.ExchangeDeclare("ganeti", amqp.ExchangeTopic, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	q, err := channel.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := channel.QueueBind(q.Name, "#", "ganeti", false, nil); err != nil {
		t.Fatal(err)
	}
	deliveries, err := channel.Consume(q.Name, "", true, true, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return deliveries
}
