package amqp_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/events"
	"github.com/drover-project/drover/internal/events/amqp"
)

// method is what a side of AMQP asks of the other: its class and its number there (AMQP 0-9-1, chapter 1).
type method [2]uint16

// answers are those of a broker that agrees to all. What is missing needs none.
var answers = map[method][]byte{
	{10, 11}: payload(method{10, 30}, 0, 0, 0, 2, 0, 0, 0, 0),                                                          // start-ok: tune
	{10, 40}: payload(method{10, 41}, 0),                                                                               // open
	{10, 50}: payload(method{10, 51}),                                                                                  // close
	{20, 10}: payload(method{20, 11}, 0, 0, 0, 0),                                                                      // a channel's open
	{40, 10}: payload(method{40, 11}),                                                                                  // an exchange's declare
	{85, 10}: payload(method{85, 11}),                                                                                  // confirm.select
	{}:       payload(method{10, 10}, []byte("\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US")...), // start
}

var (
	ack  = method{60, 80}
	nack = method{60, 120}
)

func payload(m method, args ...byte) []byte {
	return append(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, m[0]), m[1]), args...)
}

// The kinds of frames, and what ends each.
const (
	methodFrame = 1
	bodyFrame   = 3
	frameEnd    = 0xce
)

// taken is a message that a broker has, and of which it has said nothing yet.
type taken struct {
	body    string
	conn    net.Conn
	channel uint16
}

// hangUp ends the connection, as a broker does that is killed.
func (m *taken) hangUp() { _ = m.conn.Close() }

// say confirms the message, or refuses it: it is the first of its connection.
func (m *taken) say(what method) {
	const first, alone = 1, 0
	_ = send(m.conn, m.channel, payload(what, 0, 0, 0, 0, 0, 0, 0, first, alone)) // the other side notices
}

func send(w io.Writer, channel uint16, payload []byte) error {
	frame := binary.BigEndian.AppendUint16([]byte{methodFrame}, channel)
	frame = append(binary.BigEndian.AppendUint32(frame, uint32(len(payload))), payload...)
	_, err := w.Write(append(frame, frameEnd))
	return err
}

// slowBroker takes messages and leaves it to the test to confirm them. It returns its URL and where they come.
func slowBroker(t *testing.T) (url string, came <-chan *taken) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	messages := make(chan *taken)
	ctx, stop := context.WithCancel(context.Background())
	var open sync.WaitGroup
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
				defer func() { _ = conn.Close() }()
				serve(ctx, conn, messages)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		stop()
		open.Wait()
	})
	return "amqp://guest:guest@" + l.Addr().String() + "/", messages
}

// serve agrees to what it is asked on a connection until that ends.
func serve(ctx context.Context, conn net.Conn, messages chan<- *taken) {
	r := bufio.NewReader(conn)
	if _, err := r.Discard(len("AMQP\x00\x00\x09\x01")); err != nil || send(conn, 0, answers[method{}]) != nil {
		return
	}
	for {
		var head [7]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		text := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
		if _, err := io.ReadFull(r, text); err != nil {
			return
		}
		channel := binary.BigEndian.Uint16(head[1:])
		switch head[0] {
		case methodFrame:
			answer := answers[method{binary.BigEndian.Uint16(text), binary.BigEndian.Uint16(text[2:])}]
			if answer != nil && send(conn, channel, answer) != nil {
				return
			}
		case bodyFrame:
			select {
			case messages <- &taken{string(text[:len(text)-1]), conn, channel}:
			case <-ctx.Done():
				return
			}
		}
	}
}

// TestAMessageCountsWhenItIsConfirmed: one that the broker has, and died with, is published again, and so is one that it
// did not want. Whoever publishes knows of none of that before it is confirmed.
func TestAMessageCountsWhenItIsConfirmed(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	url, came := slowBroker(t)
	b := open(t, url)
	published := make(chan error, 1)
	go func() { published <- b.Publish(ctx, message(1)) }()
	for _, then := range []func(*taken){
		(*taken).hangUp,
		func(m *taken) { m.say(nack) },
		func(m *taken) { m.say(ack) },
	} {
		select {
		case m := <-came:
			if m.body != `{"jobId":1}` {
				t.Fatalf("the broker is told %q", m.body)
			}
			then(m)
		case err := <-published:
			t.Fatalf("it counts as published before it is confirmed: %v", err)
		}
	}
	select {
	case err := <-published:
		if err != nil {
			t.Errorf("it is confirmed, and publishing it ends with %v", err)
		}
	case m := <-came:
		t.Errorf("it is confirmed, and published again: %q", m.body)
	}
}

// refuse ends the channel, as a broker does that is told what it cannot take.
func (m *taken) refuse(code uint16, why string) {
	text := append([]byte{byte(code >> 8), byte(code), byte(len(why))}, why...)
	_ = send(m.conn, m.channel, payload(method{20, 40}, append(text, 0, 60, 0, 40)...)) // the other side notices
}

// TestAMessageThatNoBrokerTakesHoldsNothingUp: AMQP itself, or the broker for what the message is, refuses it however often it comes. It is passed over,
// and said so; what a broker refuses for what it allows at the moment comes again.
func TestAMessageThatNoBrokerTakesHoldsNothingUp(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	url, came := slowBroker(t)
	var said logLines
	b, err := amqp.Open(url, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	longKey, longID := message(1), message(2)
	longKey.Key = "ganeti." + strings.Repeat("a", events.MaxText) + ".event.op"
	longID.ID = strings.Repeat("a", events.MaxText+1)
	published := make(chan error, 1)
	go func() {
		for _, m := range []events.Message{longKey, longID, message(3), message(4)} {
			if err := b.Publish(ctx, m); err != nil {
				published <- err
				return
			}
		}
		published <- nil
	}()
	for _, step := range []struct {
		body string
		then func(*taken)
	}{
		{`{"jobId":3}`, func(m *taken) { m.refuse(403, "ACCESS_REFUSED - write access refused") }},
		{`{"jobId":3}`, func(m *taken) {
			m.refuse(406, "PRECONDITION_FAILED - message size 11 is larger than configured max size 10")
		}},
		{`{"jobId":4}`, func(m *taken) { m.say(ack) }},
	} {
		select {
		case m := <-came:
			if m.body != step.body {
				t.Fatalf("the broker is told %q, not %q: %s", m.body, step.body, said.String())
			}
			step.then(m)
		case err := <-published:
			t.Fatalf("publishing ends with %v: %s", err, said.String())
		}
	}
	if err := <-published; err != nil {
		t.Error(err)
	}
	for _, want := range []string{"id=c:1:0:success", "its routing key has", "its id has", "id=c:3:0:success", "message size 11", "write access refused"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("the log does not tell of %q: %s", want, said.String())
		}
	}
	if _, err := b.Trouble(); err != nil {
		t.Errorf("a message that is passed over counts as trouble: %v", err)
	}
}

// logLines is a log.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
