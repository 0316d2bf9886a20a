package confd

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/testkit"
)

var (
	key = []byte("the key\n")
	now = time.Unix(1_700_000_000, 0)
)

// inventory is a cluster of four nodes with two instances.
func inventory() *cluster.Snapshot {
	c := cluster.New(cluster.Init{Name: "c", UUID: "c", MasterNode: "n1", MasterIP: "192.0.2.100", Hypervisors: []string{"fake"}, DiskTemplates: []string{cluster.DiskDRBD}})
	c.Serial = 41
	c.Collectors = map[string]cluster.Collector{"drbd": {Active: true, Interval: 5}}
	node := func(uuid, name, ip string, change func(*cluster.Node)) cluster.Change {
		n := cluster.NewNode(uuid, name, ip, "g", 1)
		n.Serial = 7
		change(n)
		return cluster.Put(n)
	}
	candidate := func(n *cluster.Node) { n.MasterCandidate = true }
	web := &cluster.Instance{Meta: cluster.NewMeta("i1", 1), Name: "web.example", PrimaryNode: "n2", NICs: []cluster.NIC{{IP: "198.51.100.1"}, {IP: "198.51.100.2", Params: cluster.Params{"link": "br9"}}},
		Disks: []cluster.Disk{{UUID: "d", Name: "root", Type: cluster.DiskDRBD, Size: 1024, Mode: "rw", IVName: "disk/0", CTime: 1_500_000_000, Nodes: []string{"n2", "n1"},
			LogicalID: []any{"n2", "n1", int64(11000), int64(3), int64(4), ""}, Children: []cluster.Disk{{UUID: "k", Type: cluster.DiskPlain}}}}}
	web.Serial = 13
	return cluster.Empty().With(
		cluster.Put(c), cluster.Put(cluster.NewGroup("g", "default", 1)),
		node("n1", "node1.example", "192.0.2.1", candidate), node("n2", "node2.example", "192.0.2.2", candidate),
		node("n3", "node3.example", "192.0.2.3", func(n *cluster.Node) { n.Offline, n.MasterCandidate = true, true }),
		node("n4", "node4.example", "192.0.2.4", func(n *cluster.Node) { n.Drained = true }),
		node("n5", "node5.example", "192.0.2.5", func(*cluster.Node) {}),
		cluster.Put(web), cluster.Put(&cluster.Instance{Meta: cluster.NewMeta("i2", 1), Name: "idle", PrimaryNode: "n1"}),
	)
}

func server(inv *cluster.Snapshot) *Server {
	return &Server{Key: func() []byte { return key }, Inventory: func() *cluster.Snapshot { return inv }, ConfigVersion: 3000000, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
}

// ask is a datagram with a question as JSON, signed with a key at a time.
func ask(key []byte, at, text string) []byte {
	out, err := json.Marshal(signed{Msg: text, Salt: at, HMAC: sum(key, at, text)})
	if err != nil {
		panic(err)
	}
	return append([]byte(magic), out...)
}

const atNow = "1700000000"

// TestAnswers asks each question in each form, as JSON without what all questions have.
func TestAnswers(t *testing.T) {
	const own = "br0" // the link of NICs that name none
	for _, tc := range []struct{ asked, want string }{
		{`"type":0`, `0 3000000 0`},
		{`"type":0,"query":null`, `0 3000000 0`},
		{`"type":1,"query":"node1.example"`, `0 0 41`},
		{`"type":1,"query":"node2"`, `0 1 41`},
		{`"type":1,"query":"n3"`, `0 2 41`},
		{`"type":1,"query":"node4.example"`, `0 3 41`},
		{`"type":1,"query":"node5.example"`, `0 4 41`},
		{`"type":1`, `1 "the query is to be a name" 0`},
		{`"type":3`, `0 "node1.example" 41`},
		{`"type":3,"query":"x"`, `1 2 0`},
		{`"type":3,"query":{"3":[2,0,1]}`, `0 ["192.0.2.1","node1.example","192.0.2.100"] 41`},
		{`"type":3,"query":{}`, `0 [] 41`},
		{`"type":3,"query":{"3":[3]}`, `1 2 0`},
		{`"type":3,"query":{"4":[]}`, `1 2 0`},
		{`"type":4`, `0 ["192.0.2.1","192.0.2.2","192.0.2.3","192.0.2.4","192.0.2.5"] 41`},
		{`"type":5`, `0 ["192.0.2.1","192.0.2.2","192.0.2.3"] 41`},
		{`"type":6`, `0 ["198.51.100.1"] 41`},
		{`"type":6,"query":"` + own + `"`, `0 ["198.51.100.1"] 41`},
		{`"type":6,"query":"br9"`, `0 ["198.51.100.2"] 41`},
		{`"type":6,"query":"none"`, `0 [] 41`},
		{`"type":6,"query":[]`, `1 "the link is to be a text" 0`},
		{`"type":2,"query":{"1":"198.51.100.1"}`, `0 "192.0.2.2" 41`},
		{`"type":2,"query":{"1":"198.51.100.2"}`, `1 0 0`},
		{`"type":2,"query":{"0":"br9","1":"198.51.100.2"}`, `0 "192.0.2.2" 41`},
		{`"type":2,"query":{"1":7}`, `1 2 0`},
		{`"type":2,"query":{"2":["198.51.100.1","198.51.100.9"]}`, `0 [[0,"192.0.2.2",41],[1,0,0]] 41`},
		{`"type":2,"query":{"2":[1]}`, `1 2 0`},
		{`"type":2,"query":{}`, `0 [] 41`},
		{`"type":2,"query":"198.51.100.1"`, `1 2 0`},
		{`"type":7,"query":"node2.example"`, `0 [["node2.example",3,"web.example","disk/0","primary","node1.example"]] 7`},
		{`"type":7,"query":"node1.example"`, `0 [["node1.example",4,"web.example","disk/0","secondary","node2.example"]] 7`},
		{`"type":7,"query":"node5.example"`, `0 [] 7`},
		{`"type":8,"query":"node1.example"`, `2 "this question is not answered here" 0`},
		{`"type":9,"query":"idle"`, `0 [] 1`},
		{`"type":9,"query":"web"`, `0 [{"children":[{"children":[],"ctime":0,"dev_type":"plain","forthcoming":false,"iv_name":"","logical_id":null,"mode":"","mtime":0,"nodes":null,"params":{},` +
			`"serial_no":1,"size":0,"uuid":"k"}],"ctime":1.5,"dev_type":"drbd","forthcoming":false,"iv_name":"disk/0","logical_id":["n2","n1",11000,3,4,""],"mode":"rw","mtime":0,"name":"root",` +
			`"nodes":["n2","n1"],"params":{},"serial_no":1,"size":1024,"uuid":"d"}] 13`},
		{`"type":10,"query":"/cluster"`, `2 "this question is not answered here" 0`},
		{`"type":11`, `0 {"drbd":{"active":true,"interval":5}} 41`},
	} {
		text, err := server(inventory()).Reply(ask(key, atNow, `{"protocol":1,"rsalt":"salt of it",`+tc.asked+`}`))
		if err != nil {
			t.Errorf("%s: %v", tc.asked, err)
			continue
		}
		if got := told(t, text, "salt of it"); got != tc.want {
			t.Errorf("%s:\n%s, want\n%s", tc.asked, got, tc.want)
		}
	}
	for _, query := range []string{`"type":1,"query":"nosuch"`, `"type":7,"query":"nosuch"`, `"type":9,"query":"nosuch"`} {
		text, err := server(inventory()).Reply(ask(key, atNow, `{"protocol":1,"rsalt":"s",`+query+`}`))
		if got := told(t, text, "s"); err != nil || !strings.HasPrefix(got, "1 ") || !strings.Contains(got, "nosuch") {
			t.Errorf("%s: %s, %v", query, got, err)
		}
	}
	for _, inv := range []*cluster.Snapshot{nil, cluster.Empty()} {
		text, err := server(inv).Reply(ask(key, atNow, `{"protocol":1,"rsalt":"s","type":0}`))
		if got := told(t, text, "s"); err != nil || got != `1 "Configuration not yet loaded" 0` {
			t.Errorf("before there is a cluster: %s, %v", got, err)
		}
	}
}

// told is an answer: its status, what it says, and the serial number. It is to be signed with a salt.
func told(t *testing.T, datagram []byte, salt string) string {
	t.Helper()
	text, ours := strings.CutPrefix(string(datagram), magic)
	var s signed
	var a struct {
		Protocol, Status json.Number
		Answer           json.RawMessage
		Serial           json.Number
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil || !ours || s.Salt != salt || s.HMAC != sum(key, salt, s.Msg) {
		t.Fatalf("%s: %v", datagram, err)
	}
	if err := json.Unmarshal([]byte(s.Msg), &a); err != nil || a.Protocol != "1" {
		t.Fatalf("%s: %v", s.Msg, err)
	}
	return a.Status.String() + " " + string(a.Answer) + " " + a.Serial.String()
}

// TestSum has what Python's hmac makes of the salt and the text, one behind the other.
func TestSum(t *testing.T) {
	if got := sum([]byte("TguMTA2K"), "ab6fd12a", "hello"); got != "e04c66815ac9a1cd40a1435f8b7bb00bd1d7760f" {
		t.Error(got)
	}
}

func TestWhoGetsNoAnswer(t *testing.T) {
	const ping = `{"protocol":1,"type":0,"rsalt":"s"}`
	for name, datagram := range map[string][]byte{
		"another key":          ask([]byte("the key"), atNow, ping),
		"too early":            ask(key, "1700000301", ping),
		"too late":             ask(key, "1699999699", ping),
		"far away":             ask(key, "-9223372036854775808", ping),
		"no time":              ask(key, "now", ping),
		"no time, empty":       ask(key, "", ping),
		"another beginning":    append([]byte("plj1"), ask(key, atNow, ping)[4:]...),
		"nothing":              {},
		"no JSON":              []byte(magic + "{"),
		"no signature":         []byte(magic + `{"msg":"{}","salt":"1700000000"}`),
		"no question":          ask(key, atNow, `[]`),
		"an unknown type":      ask(key, atNow, `{"protocol":1,"type":12,"rsalt":"s"}`),
		"a type of another":    ask(key, atNow, `{"protocol":1,"type":"0","rsalt":"s"}`),
		"a key that is twice":  ask(key, atNow, `{"protocol":1,"type":0,"type":1,"rsalt":"s"}`),
		"a key of nothing":     ask(key, atNow, `{"protocol":1,"type":0,"rsalt":"s","more":1}`),
		"too long":             ask(key, atNow, `{"protocol":1,"type":0,"rsalt":"`+strings.Repeat("s", MaxQuestion)+`"}`),
		"signed for something": append(ask(key, atNow, ping), 'x'),
	} {
		if text, err := server(inventory()).Reply(datagram); err == nil || text != nil {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
	question := func(salt int) []byte {
		return ask(key, atNow, `{"protocol":1,"type":0,"rsalt":"`+strings.Repeat("s", salt)+`"}`)
	}
	longest := MaxQuestion - len(question(0))
	if _, err := server(inventory()).Reply(question(longest)); err != nil {
		t.Errorf("the longest question: %v", err)
	}
	if text, err := server(inventory()).Reply(question(longest + 1)); err == nil {
		t.Errorf("a longer one: %s", text)
	}
	for _, at := range []string{"1700000300", "1699999700"} {
		if _, err := server(inventory()).Reply(ask(key, at, ping)); err != nil {
			t.Errorf("at %s: %v", at, err)
		}
	}
}

func TestAnAnswerThatIsTooLong(t *testing.T) {
	var changes []cluster.Change
	for i := range 10_000 {
		name := fmt.Sprint("node", i)
		changes = append(changes, cluster.Put(cluster.NewNode(name, name, "192.0.2.1", "g", 1)))
	}
	text, err := server(inventory().With(changes...)).Reply(ask(key, atNow, `{"protocol":1,"rsalt":"s","type":4}`))
	if got := told(t, text, "s"); err != nil || got != `1 "the answer does not fit into a datagram" 0` {
		t.Errorf("%s, %v", got, err)
	}
}

// TestServe asks over a socket, between rubbish.
func TestServe(t *testing.T) {
	socket := func() net.PacketConn {
		conn, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	at, me := socket(), socket()
	defer func() { _ = me.Close() }()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server(inventory()).Serve(ctx, at) }()
	for _, text := range [][]byte{{}, []byte("rubbish"), make([]byte, 60_000), ask(key, atNow, `{"protocol":1,"rsalt":"s","type":3}`)} {
		if _, err := me.WriteTo(text, at.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	if err := me.SetReadDeadline(time.Now().Add(testkit.Patience())); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 1000)
	n, from, err := me.ReadFrom(buffer)
	if err != nil || from.String() != at.LocalAddr().String() || told(t, buffer[:n], "s") != `0 "node1.example" 41` {
		t.Errorf("%q from %v, %v", buffer[:n], from, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// FuzzReply has what is asked by who has the key: nothing of it ends the server, and what is answered can be read.
func FuzzReply(f *testing.F) {
	for _, text := range []string{`"type":1,"query":"node1"`, `"type":2,"query":{"0":"br9","2":["198.51.100.2"]}`, `"type":3,"query":{"3":[1]}`, `"type":9,"query":"web"`, `"type":6,"query":{}`} {
		f.Add(`{"protocol":1,"rsalt":"s",` + text + `}`)
	}
	s := server(inventory())
	f.Fuzz(func(t *testing.T, text string) {
		out, err := s.Reply(ask(key, atNow, text))
		if err != nil {
			return
		}
		var a signed
		if err := json.Unmarshal(out[len(magic):], &a); err != nil || a.HMAC != sum(key, a.Salt, a.Msg) {
			t.Errorf("%s: %s, %v", text, out, err)
		}
	})
}
