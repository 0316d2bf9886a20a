package app_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// crowded is a controller of a group whose surfaces have few places.
type crowded struct {
	cluster
	*testing.T
	other cluster
	dir   string
	log   *keptLog
}

// keptLog is a log as a text.
type keptLog struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *keptLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

// with are the lines that have a text.
func (l *keptLog) with(text string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.all.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// surfaceTest is how a surface is tried at its limit.
type surfaceTest struct {
	// open makes a connection that stays, from one of this machine's own addresses, or says how it is refused.
	open func(c *crowded, from string) (conn net.Conn, refused string)
	// works tells whether it serves those who belong there.
	works func(c *crowded) error
	// strangers: who has not shown that it belongs here ends the one before it, and is not refused itself.
	strangers bool
}

// surfaceTests has a row for each surface of the program.
var surfaceTests = map[string]surfaceTest{
	"rapi":    overHTTP(func(r app.Ready) string { return r.RAPI + "/version" }),
	"compute": overHTTP(func(r app.Ready) string { return r.Identity }),
	"web":     overHTTP(func(r app.Ready) string { return r.Web + "/" }),
	"health":  overHTTP(func(r app.Ready) string { return r.Health + "/healthz" }),
	"mond":    overHTTP(func(app.Ready) string { return "http://" + mondAddress() + "/" }),
	"luxi": {open: (*crowded).openLUXI, works: func(c *crowded) error {
		conn, refused := c.openLUXI("")
		if refused != "" {
			return fmt.Errorf("it is refused: %s", refused)
		}
		return conn.Close()
	}},
	"peer": {strangers: true, open: func(c *crowded, _ string) (net.Conn, string) { return c.dialTCP(c.ready.Peer, "127.0.0.1"), "" }, works: func(c *crowded) error {
		c.other.awaitMasters(c.T, "c1 leader, c2 standby") // it asks this one
		return nil
	}},
	"agents": {strangers: true, open: func(c *crowded, _ string) (net.Conn, string) { return c.dialTCP(c.ready.AgentAddress, "127.0.0.1"), "" }, works: func(c *crowded) error {
		conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(c.Context(), "tcp", c.ready.AgentAddress) // who is there does not matter
		if err != nil {
			return err
		}
		return conn.Close()
	}},
}

// socketTests are the surfaces of datagrams: a flood of them, and what is to work beside it.
var socketTests = map[string]surfaceTest{
	"confd": {open: func(c *crowded, _ string) (net.Conn, string) {
		conn, err := (&net.Dialer{}).DialContext(c.Context(), "udp", c.ready.Confd)
		if err != nil {
			c.Fatal(err)
		}
		for range 2000 {
			_, _ = conn.Write([]byte(`plj0{"msg":"x","salt":"1","hmac":"2"}`)) // those for which there is no room are dropped
		}
		return conn, ""
	}, works: (*crowded).askConfd},
}

// mondAddress is where the monitoring agent of the first node is: at an address of this process alone, as a controller of a group says nowhere which
// port it picked.
func mondAddress() string {
	const low = 0xff
	pid := os.Getpid()
	return fmt.Sprintf("127.77.%d.%d:1815", pid>>8&low, pid&low)
}

// TestSurfacesAtTheirLimit fills each surface: who is one too many is told so, it is said in the log, in figures, by /readyz and by the health of
// the cluster, all other surfaces go on, and so does this one when there is a place again.
func TestSurfacesAtTheirLimit(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t, false)
	c := &crowded{T: t, log: &keptLog{}}
	first := true
	all := groupWith(t, slices.Repeat([]string{server.URL("crowded")}, 2), func(o *app.Options) {
		if !first {
			return
		}
		first, c.dir = false, o.Data
		o.Health, o.Web, o.AgentAddress, o.GanetiDir, o.Confd = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", filepath.Join(o.Data, "ganeti"), "127.0.0.1:0"
		o.Mond = mondAddress()
		o.Log = slog.New(slog.NewTextHandler(c.log, nil))
		*o = o.WithFiles(128)
	})
	c.cluster, c.other = all[0], all[1]
	tests := map[string]surfaceTest{}
	for _, s := range gate.Surfaces() {
		tests[s.Key] = surfaceTests[s.Key]
	}
	for _, s := range gate.Sockets() {
		tests[s.Key] = socketTests[s.Key]
	}
	for key, test := range tests {
		if test.open == nil {
			t.Fatalf("nobody tries the surface %s at its limit: give it a row", key)
		}
		c.works(key, "in quiet times")
	}
	for _, s := range gate.Surfaces() {
		held := c.fill(s.Key)
		for key := range tests {
			if key != s.Key || tests[key].strangers {
				c.works(key, "while "+s.Key+" is full")
			}
		}
		if told := c.log.with("surface=" + s.Key + " "); len(told) != 1 || !strings.Contains(told[0], `level=WARN msg="clients are turned away"`) {
			t.Errorf("of %s the log says %q", s.Key, told)
		}
		for _, conn := range held {
			_ = conn.Close()
		}
		c.works(s.Key, "when there is a place again")
	}
	for _, s := range gate.Sockets() {
		flood, _ := socketTests[s.Key].open(c, "")
		for key := range tests {
			c.works(key, "beside a flood of "+s.Key)
		}
		_ = flood.Close()
	}
	c.tellsOfAll()
}

// works waits until a surface serves those who belong there.
func (c *crowded) works(key, when string) {
	c.Helper()
	test := surfaceTests[key]
	if test.works == nil {
		test = socketTests[key]
	}
	var last error
	for limit := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if last = test.works(c); last == nil {
			return
		}
		if time.Now().After(limit) {
			c.Fatalf("%s does not work %s: %v", key, when, last)
		}
	}
}

// fill opens connections until one is refused, or of strangers one ended, and returns those that are open.
func (c *crowded) fill(key string) (held []net.Conn) {
	c.Helper()
	before, limit := c.figure("drover_connections_refused_total", key), int(c.figure("drover_connections_limit", key))
	refused := ""
	for n := 0; refused == ""; n++ {
		if n > 10*limit {
			c.Fatalf("%s has %d places, and %d connections are open", key, limit, n)
		}
		conn, no := surfaceTests[key].open(c, fmt.Sprintf("127.0.%d.1", n+1))
		if refused = no; no == "" {
			held = append(held, conn)
			c.Cleanup(func() { _ = conn.Close() })
		}
		if surfaceTests[key].strangers && c.figure("drover_connections_refused_total", key) > before {
			return held
		}
	}
	if want := fmt.Sprintf("already %d connections,", limit); !strings.Contains(refused, want) {
		c.Errorf("%s refuses with %q, not %q", key, refused, want)
	}
	until(c.T, key+" counts whom it refused", func() bool { return c.figure("drover_connections_refused_total", key) > before })
	if got := int(c.figure("drover_connections", key)); key != "health" && got != limit {
		c.Errorf("%s has %d connections open, of %d", key, got, limit)
	}
	return held
}

// tellsOfAll: /readyz has a note for each surface, and so has the health of the cluster.
func (c *crowded) tellsOfAll() {
	c.Helper()
	_, ready := c.asked(c.ready.Health + "/readyz")
	var report struct {
		Lines []struct{ State, Part, What string }
	}
	c.call(c.T, "QueryHealth", &report)
	var said []string
	for _, l := range report.Lines {
		if l.Part == "clients" {
			said = append(said, l.State+" "+l.What)
		}
	}
	for _, s := range gate.Surfaces() {
		if want := `{"part":"clients","text":"` + s.Name + `: clients are not let in: `; !strings.Contains(ready, want) || !strings.Contains(ready, `"ready":true`) {
			c.Errorf("/readyz has no %s in %s", want, ready)
		}
		if want := "note c1 turns clients away (" + s.Name + ")"; !slices.Contains(said, want) {
			c.Errorf("the health of the cluster has no %q in %q", want, said)
		}
	}
}

// figure is the value of a figure of a surface, as RAPI's port shows it, or as that for health does while that one is full.
func (c *crowded) figure(name, key string) float64 {
	c.Helper()
	from := c.ready.Health
	if key == "health" {
		from = c.ready.RAPI
	}
	status, text := c.asked(from + "/metrics")
	found := regexp.MustCompile(`(?m)^` + name + `\{surface="` + key + `"\} (\S+)$`).FindStringSubmatch(text)
	if found == nil {
		c.Fatalf("there is no %s of %s: %d\n%s", name, key, status, text)
	}
	value, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		c.Fatal(err)
	}
	return value
}

// asked is a page of a listener that has few places: who asked before may not have been noticed to be gone, so what is refused for that is asked again.
func (c *crowded) asked(url string) (status int, text string) {
	c.Helper()
	for limit := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		client := trusting()
		r, err := http.NewRequestWithContext(c.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			c.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			c.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err = errors.Join(err, answer.Body.Close()); err != nil {
			c.Fatal(err)
		}
		client.CloseIdleConnections()
		if answer.StatusCode != http.StatusServiceUnavailable || time.Now().After(limit) {
			return answer.StatusCode, string(body)
		}
	}
}

// overHTTP is how a surface of HTTP is tried: what stays open has asked once.
func overHTTP(at func(app.Ready) string) surfaceTest {
	return surfaceTest{
		open: func(c *crowded, from string) (net.Conn, string) { return c.openHTTP(at(c.ready), from) },
		works: func(c *crowded) error {
			conn, refused := c.openHTTP(at(c.ready), "127.0.0.1")
			if refused != "" {
				return fmt.Errorf("it is refused: %s", refused)
			}
			return conn.Close()
		},
	}
}

func (c *crowded) openHTTP(target, from string) (conn net.Conn, refused string) {
	c.Helper()
	u, err := url.Parse(target)
	if err != nil {
		c.Fatal(err)
	}
	conn = c.dialTCP(u.Host, from)
	if u.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // who is there does not matter
	}
	if _, err := io.WriteString(conn, "GET "+u.Path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return conn, err.Error()
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return conn, err.Error()
	}
	text, err := io.ReadAll(answer.Body)
	if err == nil {
		err = answer.Body.Close()
	}
	if err != nil {
		return conn, err.Error()
	}
	if answer.StatusCode == http.StatusServiceUnavailable {
		_ = conn.Close()
		return nil, string(text)
	}
	return conn, ""
}

func (c *crowded) dialTCP(address, from string) net.Conn {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(ctx, "tcp", address)
	if err != nil {
		c.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		c.Fatal(err)
	}
	return conn
}

func (c *crowded) openLUXI(string) (conn net.Conn, refused string) {
	c.Helper()
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(c.Context(), "unix", c.ready.LUXI)
	if err != nil {
		c.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		c.Fatal(err)
	}
	_, _ = io.WriteString(conn, `{"method":"QueryConfigValues","args":[["cluster_name"]]}`+"\x03") // who is refused is told all the same
	answer, err := bufio.NewReader(conn).ReadString('\x03')
	if err != nil || !strings.Contains(answer, `"success":true`) {
		_ = conn.Close()
		return nil, fmt.Sprint(answer, err)
	}
	return conn, ""
}

// askConfd asks which node is the master.
func (c *crowded) askConfd() error {
	key, err := os.ReadFile(filepath.Join(c.dir, "ganeti/var/lib/ganeti/hmac.key"))
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{}).DialContext(c.Context(), "udp", c.ready.Confd)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	text, salt := `{"protocol":1,"type":0,"query":null,"rsalt":"r"}`, strconv.FormatInt(time.Now().Unix(), 10)
	sum := hmac.New(sha1.New, key)
	sum.Write([]byte(salt + text))
	question, err := json.Marshal(map[string]string{"msg": text, "salt": salt, "hmac": hex.EncodeToString(sum.Sum(nil))})
	if err != nil {
		return err
	}
	if _, err := conn.Write(append([]byte("plj0"), question...)); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil { // it may have been dropped, and is asked again
		return err
	}
	answer := make([]byte, 4096)
	n, err := conn.Read(answer)
	if err == nil && !strings.Contains(string(answer[:n]), `\"status\":0`) && !strings.Contains(string(answer[:n]), `\"status\": 0`) {
		err = fmt.Errorf("it answers with %s", answer[:n])
	}
	return err
}
