package agentd

import (
	"bufio"
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agentwire"
	"github.com/drover-project/drover/internal/authority/authoritytest"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/gate"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/joining"
	"github.com/drover-project/drover/internal/metrics"
)

// controller takes agents in, as one that leads.
type controller struct {
	*authoritytest.House
	t   *testing.T
	hub *agentwire.Hub
	at  string
}

// patience bounds what a test waits for.
const patience = 20 * time.Second

func newController(t *testing.T) *controller {
	t.Helper()
	c := &controller{House: authoritytest.New(t), t: t, hub: agentwire.NewHub(slog.New(slog.DiscardHandler))}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.at = l.Addr().String()
	c.Door.Places = func() []string { return []string{c.at} }
	c.hub.Open(c)
	ended := make(chan error, 1)
	go func() { ended <- c.hub.Serve(l, c.Server()) }()
	t.Cleanup(func() {
		_ = l.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		c.hub.Shut()
	})
	return c
}

// token is one for a node, as it is handed over.
func (c *controller) token(node string) joining.Token {
	return joining.Token{Node: node, Secret: c.Secret(node), Addresses: []string{c.at}, Authority: c.Authority.Fingerprint()}
}

func (c *controller) options(dir string) Options {
	return Options{Data: dir, Now: c.Clock, Log: slog.New(slog.DiscardHandler)}
}

// must fails the test if something failed.
func (c *controller) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// run runs an agent until what is returned is called, which returns how it ended.
func (c *controller) run(o Options) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	done := false
	stop = func() error {
		if done {
			return nil
		}
		done = true
		cancel()
		return <-ended
	}
	c.t.Cleanup(func() { _ = stop() })
	return stop
}

// linked waits for the link of a node.
func (c *controller) linked(node string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	if _, err := c.hub.Conn(node)(ctx); err != nil {
		c.t.Fatal(err)
	}
}

// eventually waits until something is so of what an agent has on disk.
func (c *controller) eventually(dir, what string, is func(*known) bool) {
	c.t.Helper()
	again, limit := time.NewTicker(5*time.Millisecond), time.After(patience) // nobody tells of a file
	defer again.Stop()
	for {
		k, err := openIdentity(c.options(dir))
		c.must(err)
		if is(k) {
			return
		}
		select {
		case <-again.C:
		case <-limit:
			c.t.Fatalf("the agent does not keep %s", what)
		}
	}
}

// TestAnAgentJoinsAndServes has an agent join, carry an order out, end, and come again with what it had.
func TestAnAgentJoinsAndServes(t *testing.T) {
	c, dir := newController(t), t.TempDir()
	c.must(Join(t.Context(), c.options(dir), c.token("node1")))
	node, one := agentwire.NewClient("node1", c.hub.Conn("node1"), 0), hypervisor.Spec{UUID: "u1", Name: "web1", Memory: 64, VCPUs: 1}
	stop := c.run(c.options(dir))
	c.must(node.Start(t.Context(), agent.Order{Epoch: authoritytest.Epoch, Life: "l", Job: 1}, one, nil))
	c.must(stop())
	c.run(c.options(dir))
	found, err := node.Instance(t.Context(), one.Thing())
	if err != nil || found.State != hypervisor.Running {
		t.Errorf("after a restart of the agent the instance is %q, %v", found.State, err)
	}
	if err := node.Start(t.Context(), agent.Order{Epoch: authoritytest.Epoch - 1, Job: 2}, one, nil); !fault.Is(err, fault.Fenced) {
		t.Errorf("an order of a leader that another has followed: %v", err)
	}
	for _, name := range []string{identityName, "agent.lock"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// TestFiguresAreThoseOfTheTable asks an agent with an instance for its figures.
func TestFiguresAreThoseOfTheTable(t *testing.T) {
	c, dir := newController(t), t.TempDir()
	c.must(Join(t.Context(), c.options(dir), c.token("node1")))
	o, log := c.options(dir), make(lines, 100)
	o.Metrics, o.Log = "127.0.0.1:0", slog.New(slog.NewTextHandler(log, nil))
	c.run(o)
	node := agentwire.NewClient("node1", c.hub.Conn("node1"), 0)
	c.must(node.Start(t.Context(), agent.Order{Epoch: authoritytest.Epoch, Life: "l", Job: 1}, hypervisor.Spec{UUID: "u1", Name: "web1", Memory: 64, VCPUs: 1}, nil))
	at := log.after(t, "address=")
	get := func(path string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+path, http.NoBody)
		c.must(err)
		answer, err := http.DefaultClient.Do(r)
		c.must(err)
		defer answer.Body.Close() //nolint:errcheck // it is read
		text, err := io.ReadAll(answer.Body)
		c.must(err)
		return string(text)
	}
	text := get("/metrics")
	for _, f := range metrics.AgentTable() {
		if !strings.Contains(text, "\n"+f.Name) {
			t.Errorf("%s is not shown", f.Name)
		}
	}
	for _, line := range []string{"drover_agent_linked 1", `drover_agent_instance_running{instance="web1"} 1`, `drover_agent_instance_memory_bytes{instance="web1"} 6.7108864e+07`} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("%s is not shown", line)
		}
	}
	if got := get("/healthz"); got != "ok\n" {
		t.Errorf("/healthz: %q", got)
	}
	// Who is one too many is told so.
	for n := 1; ; n++ {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at)
		c.must(err)
		defer conn.Close() //nolint:errcheck // with the test
		if n < gate.Monitors.Most/2 {
			continue
		}
		_, err = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		c.must(err)
		c.must(conn.SetReadDeadline(time.Now().Add(patience)))
		text, err := bufio.NewReader(conn).ReadString('\n')
		c.must(err)
		if strings.HasPrefix(text, "HTTP/1.1 503 ") {
			break
		}
		if n > gate.Monitors.Most {
			t.Fatalf("connection %d is answered with %q", n, text)
		}
	}
}

// lines are those of a log.
type lines chan string

func (l lines) Write(text []byte) (int, error) {
	select {
	case l <- string(text):
	default:
	}
	return len(text), nil
}

// after waits for a line with a text, and returns the word behind it.
func (l lines) after(t *testing.T, text string) string {
	t.Helper()
	for limit := time.After(patience); ; {
		select {
		case line := <-l:
			if _, rest, ok := strings.Cut(line, text); ok {
				return strings.Fields(rest)[0]
			}
		case <-limit:
			t.Fatalf("nothing is said of %s", text)
		}
	}
}

// TestTheAgentFollowsWhoLeads gives an order of an earlier leader, before any of the one that leads has come.
func TestTheAgentFollowsWhoLeads(t *testing.T) {
	c, dir := newController(t), t.TempDir()
	c.must(Join(t.Context(), c.options(dir), c.token("node1")))
	c.run(c.options(dir))
	node := agentwire.NewClient("node1", c.hub.Conn("node1"), 0)
	for _, epoch := range []int64{authoritytest.Epoch - 1, authoritytest.Epoch} {
		err := node.Start(t.Context(), agent.Order{Epoch: epoch, Life: "l", Job: 1}, hypervisor.Spec{UUID: "u1", Name: "web1", Memory: 64, VCPUs: 1}, nil)
		if fault.Is(err, fault.Fenced) != (epoch < authoritytest.Epoch) {
			t.Errorf("an order of epoch %d: %v", epoch, err)
		}
	}
}

// TestTheMachineMaySleep: a timer that waits for the renewal itself would sleep with it.
func TestTheMachineMaySleep(t *testing.T) {
	now := time.Now()
	for in, want := range map[time.Duration]time.Duration{-time.Hour: 0, time.Second: time.Second, 16 * time.Hour: lookEvery} {
		if got := pauseUntil(now.Add(in), now); got != want {
			t.Errorf("due in %v it is waited %v, want %v", in, got, want)
		}
	}
}

// TestJoiningTwice joins with a used token: with the key that used it, whose answer was lost, and with another.
func TestJoiningTwice(t *testing.T) {
	c, dir := newController(t), t.TempDir()
	token := c.token("node1")
	c.must(Join(t.Context(), c.options(dir), token))
	if err := Join(t.Context(), c.options(dir), token); !fault.Is(err, fault.Exists) || !strings.Contains(err.Error(), "the agent of node node1 already") {
		t.Errorf("joining a directory that has joined: %v", err)
	}
	id, err := readIdentity(dir)
	c.must(err)
	// As if the agent had been killed before it kept the answer.
	lost := t.TempDir()
	c.must(os.WriteFile(filepath.Join(lost, keyName), id.Key, 0o600))
	c.must(Join(t.Context(), c.options(lost), token))
	if _, err := os.Stat(filepath.Join(lost, keyName)); !os.IsNotExist(err) {
		t.Errorf("the key is in a file of its own still: %v", err)
	}
	c.run(c.options(lost))
	c.linked("node1")
	if err := Join(t.Context(), c.options(t.TempDir()), token); !fault.Is(err, fault.Denied) {
		t.Errorf("another agent with the same token: %v", err)
	}
}

// TestAControllerThatIsNone meets one of another cluster: the token's secret is not told.
func TestAControllerThatIsNone(t *testing.T) {
	c, foreign := newController(t), newController(t)
	token := c.token("node1")
	token.Addresses = []string{foreign.at}
	foreign.Put("node1", c.Named("node1")) // it would know the secret
	if err := Join(t.Context(), c.options(t.TempDir()), token); err == nil || !strings.Contains(err.Error(), "no controller of the cluster") {
		t.Errorf("%v", err)
	}
	if foreign.Named("node1").Agent.Serial != "" {
		t.Error("the foreign controller has signed")
	}
}

// TestOneProcess runs two agents of one directory.
func TestOneProcess(t *testing.T) {
	c, dir := newController(t), t.TempDir()
	c.must(Join(t.Context(), c.options(dir), c.token("node1")))
	stop := c.run(c.options(dir))
	c.linked("node1")
	if err := Run(t.Context(), c.options(dir)); !fault.Is(err, fault.Busy) {
		t.Errorf("a second process: %v", err)
	}
	c.must(stop())
	wrong := filepath.Join(t.TempDir(), "wrong")
	if err := Run(t.Context(), c.options(wrong)); !fault.Is(err, fault.NotFound) {
		t.Errorf("a directory that has not joined: %v", err)
	}
	if _, err := os.Stat(wrong); !os.IsNotExist(err) {
		t.Errorf("it was made: %v", err)
	}
}

// TestRenewals has an agent come whose certificate is about to end, and one that was away until behind that.
func TestRenewals(t *testing.T) {
	for name, away := range map[string]time.Duration{"about to end": joining.CertificateTime - time.Hour, "ended": 30 * joining.CertificateTime} {
		t.Run(name, func(t *testing.T) {
			c, dir := newController(t), t.TempDir()
			c.must(Join(t.Context(), c.options(dir), c.token("node1")))
			first := c.Named("node1").Agent.Serial
			c.Later(away)
			k, err := openIdentity(c.options(dir))
			c.must(err)
			if k.renewAt().After(c.Clock()) {
				t.Fatalf("it is to be renewed at %v, and ends at %v", k.renewAt(), k.ends())
			}
			stop := c.run(c.options(dir))
			c.eventually(dir, "another certificate", func(k *known) bool { return joining.SerialOf(k.pair.Leaf) != first && k.ends().After(c.Clock()) })
			c.linked("node1")
			c.must(stop())
		})
	}
}

// TestAnAgentRenewsWhatItIsKnownBy has an agent make another key, with a certificate: it comes with that, and what it had counts no more when that was confirmed.
func TestAnAgentRenewsWhatItIsKnownBy(t *testing.T) {
	c, dir := newController(t), t.TempDir()
	c.must(Join(t.Context(), c.options(dir), c.token("node1")))
	before, err := openIdentity(c.options(dir))
	c.must(err)
	c.run(c.options(dir))
	node := agentwire.NewClient("node1", c.hub.Conn("node1"), 0)
	serial, err := node.RenewCertificate(t.Context(), agent.Order{Epoch: authoritytest.Epoch, Life: "l", Job: 1})
	c.must(err)
	after, err := openIdentity(c.options(dir))
	c.must(err)
	if serial != joining.SerialOf(after.pair.Leaf) || serial == joining.SerialOf(before.pair.Leaf) || string(after.id.Key) == string(before.id.Key) {
		t.Errorf("the number is %s, that of its file %s, and the key is another: %v", serial, joining.SerialOf(after.pair.Leaf), string(after.id.Key) != string(before.id.Key))
	}
	c.must(c.Admit("node1", before.pair.Leaf)) // the answer may have been lost
	next := c.Named("node1").Clone()
	if next.Agent = joining.Confirmed(next, serial); next.Agent == nil {
		t.Fatal("nothing is confirmed")
	}
	c.Put("node1", next)
	if err := c.Admit("node1", before.pair.Leaf); !fault.Is(err, fault.Denied) {
		t.Errorf("the certificate of before: %v", err)
	}
	c.hub.Keep(func(name string, shown *x509.Certificate) bool { return c.Admit(name, shown) == nil })
	if _, err := node.Instances(t.Context()); err != nil { // over another link
		t.Error(err)
	}
	if joining.Confirmed(next, serial) != nil || joining.Confirmed(next, "other") != nil {
		t.Error("what is confirmed changes again")
	}
}

// TestALeaderTellsWhereControllersAre keeps what it tells, and finds it behind a restart.
func TestALeaderTellsWhereControllersAre(t *testing.T) {
	c, dir := newController(t), t.TempDir()
	c.must(Join(t.Context(), c.options(dir), c.token("node1")))
	c.Door.Places = func() []string { return []string{"127.0.0.1:1", c.at} }
	stop := c.run(c.options(dir))
	c.eventually(dir, "the new addresses", func(k *known) bool { return strings.Join(k.addresses(), " ") == "127.0.0.1:1 "+c.at })
	c.must(stop())
	c.run(c.options(dir))
	c.linked("node1") // though nobody is at the first address
}

// TestTheIdentityHasToBeWhole damages it.
func TestTheIdentityHasToBeWhole(t *testing.T) {
	c, dir := newController(t), t.TempDir()
	c.must(os.WriteFile(filepath.Join(dir, identityName), []byte(`{"node":"node1","cert`), 0o600))
	if err := Run(t.Context(), c.options(dir)); !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), identityName) {
		t.Errorf("%v", err)
	}
	if err := Join(t.Context(), c.options(dir), c.token("node1")); !fault.Is(err, fault.Environment) {
		t.Errorf("what cannot be read is not joined over: %v", err)
	}
}

func TestSettings(t *testing.T) {
	dir := t.TempDir()
	file := func(text string) string {
		path := filepath.Join(dir, "agent.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tc := range []struct {
		text string
		args []string
		want string
	}{
		{"data = \"" + dir + "\"\n", nil, "is the directory of no agent"},
		{"date = \"x\"\n", nil, "there is no setting date"},
		{"log-format = \"xml\"\n", nil, "neither text nor json"},
		{"controllers = \"node1\"\n", nil, `"node1" is no address of a controller`},
		{"", []string{"--data="}, "there is no directory"},
		{"metrics = \"here\"\n", nil, `"here" is no address`},
		{"tasks = 1\n", nil, "agent.toml:1:"},
	} {
		cmd := Command()
		cmd.SetArgs(append([]string{"--check-config", "--config", file(tc.text)}, tc.args...))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q %v: %v, want %q", tc.text, tc.args, err, tc.want)
		}
	}
}
