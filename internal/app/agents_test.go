package app_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/drover-project/drover/internal/agentd"
	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/joining"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// job carries out an opcode, and returns its result. A job that does not succeed ends the test.
func (c cluster) job(t *testing.T, op map[string]any) any {
	t.Helper()
	status, result := c.jobEnds(t, op)
	if status != "success" {
		t.Fatalf("%v ended as %s: %v", op, status, result)
	}
	return result
}

func (c cluster) jobEnds(t *testing.T, op map[string]any) (status string, result any) {
	t.Helper()
	op["reason"] = [][]any{{"user", "a test", 1}}
	var id int
	c.call(t, "SubmitJob", &id, []any{op})
	var rows [][]any
	until(t, fmt.Sprintf("the end of job %d", id), func() bool {
		c.call(t, "QueryJobs", &rows, []int{id}, []string{"status", "opresult"})
		status = fmt.Sprint(rows[0][0])
		return status == "success" || status == "error" || status == "canceled"
	})
	return status, rows[0][1].([]any)[0]
}

// token has a node wait for an agent.
func (c cluster) token(t *testing.T, node string) joining.Token {
	t.Helper()
	secret := rand.Text()
	told := c.job(t, map[string]any{"OP_ID": "OP_NODE_TOKEN", "node_name": node, "token_hash": joining.HashOf(secret)}).(map[string]any)
	token := joining.Token{Node: told["node"].(string), Secret: secret, Authority: told["authority"].(string)}
	for _, a := range told["addresses"].([]any) {
		token.Addresses = append(token.Addresses, a.(string))
	}
	return token
}

// transcript is a log that tests look into.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *transcript) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *transcript) times(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func (l *transcript) has(text string) bool { return l.times(text) > 0 }

// runAgent has an agent join, and runs it until what is returned is called.
func runAgent(t *testing.T, token joining.Token) (log *transcript, stop func()) {
	t.Helper()
	return runAgentAt(t, agentd.Options{Data: t.TempDir()}, &token)
}

// runAgentAt is runAgent with options; without a token the agent has joined already.
func runAgentAt(t *testing.T, o agentd.Options, token *joining.Token) (log *transcript, stop func()) {
	t.Helper()
	log = &transcript{}
	o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if token != nil {
		if err := agentd.Join(t.Context(), o, *token); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- agentd.Run(ctx, o) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return log, stop
}

func create(name, node string) map[string]any {
	return map[string]any{
		"OP_ID": "OP_INSTANCE_CREATE", "instance_name": name, "mode": "create", "disk_template": "file", "disks": []any{map[string]any{"size": 64}}, "nics": []any{},
		"os_type": "noop", "pnode": node, "name_check": false, "ip_check": false, "wait_for_sync": false, "beparams": map[string]any{"memory": 128},
	}
}

func about(opcode, instance string) map[string]any {
	op := map[string]any{"OP_ID": opcode, "instance_name": instance}
	if opcode == "OP_INSTANCE_REBOOT" {
		op["reboot_type"] = "hard"
	}
	return op
}

// seen is a field of a node, or why there is none.
func (c cluster) seen(t *testing.T, what, name, field string) string {
	t.Helper()
	var answer struct {
		Data [][][2]any `json:"data"`
	}
	c.call(t, "Query", &answer, what, []string{field}, []any{"==", "name", name})
	return fmt.Sprint(answer.Data[0][0])
}

const away = "node9.example.com"

// TestNodesElsewhere has a node whose agent is in a process of its own, as far as a controller that is alone can see.
func TestNodesElsewhere(t *testing.T) {
	dir := t.TempDir()
	c := startWith(t, app.Options{Data: dir, AgentAddress: "127.0.0.1:0"})
	token := c.token(t, away)
	if status, why := c.jobEnds(t, create("web1", away)); status != "error" || !strings.Contains(fmt.Sprint(why), "has no agent yet") {
		t.Errorf("before an agent has joined: %s, %v", status, why)
	}
	log, stop := runAgent(t, token)
	c.job(t, create("web1", away))
	if got := c.seen(t, "instance", "web1", "status"); !strings.Contains(got, "running") {
		t.Errorf("the instance is %s", got)
	}
	c.job(t, about("OP_INSTANCE_REBOOT", "web1"))
	// It lives in another process: a node of this one cannot take its place with what is there.
	if status, why := c.jobEnds(t, map[string]any{"OP_ID": "OP_NODE_TOKEN", "node_name": "node1.drover.example", "token_hash": "x"}); status != "error" || !strings.Contains(fmt.Sprint(why), "SHA-256") {
		t.Errorf("a hash that is none: %s, %v", status, why)
	}
	if _, h := c.health(t); len(h.Notes) > 0 {
		t.Errorf("all is well, but for %v", h.Notes)
	}
	stop()
	until(t, "that the node is away", func() bool { return !strings.Contains(c.seen(t, "node", away, "mtotal"), "131072") })
	if got := c.seen(t, "instance", "web1", "status"); !strings.Contains(got, "ERROR_nodedown") {
		t.Errorf("an instance whose node is away is %s", got)
	}
	if _, h := c.health(t); !h.Ready || len(h.Notes) != 1 || h.Notes[0].Text != "nodes whose agents are not connected: 1 (drover node list shows them with ?)" {
		t.Errorf("with a node away: %+v", h)
	}
	// A new machine takes its place.
	log2, _ := runAgent(t, c.token(t, away))
	until(t, "the other agent", func() bool { return log2.has("linked to the controller that leads") })
	if log.has("panic") || log2.has("panic") {
		t.Error("an agent panicked")
	}
	// A third one joins, and has not come yet: the second is sent away at once, and serves nothing meanwhile.
	third := agentd.Options{Data: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	if err := agentd.Join(t.Context(), third, c.token(t, away)); err != nil {
		t.Fatal(err)
	}
	until(t, "that the agent in whose place another joined is refused", func() bool { return log2.has("was revoked") })
	log2, _ = runAgent(t, c.token(t, away))
	until(t, "the last agent", func() bool { return log2.has("linked to the controller that leads") })
	// It knows nothing of the instance: a new machine.
	if got := c.seen(t, "instance", "web1", "status"); !strings.Contains(got, "ERROR_down") {
		t.Errorf("on a new machine the instance is %s", got)
	}
	c.job(t, map[string]any{"OP_ID": "OP_INSTANCE_REMOVE", "instance_name": "web1", "ignore_failures": true})
	c.job(t, map[string]any{"OP_ID": "OP_NODE_REMOVE", "node_name": away})
	until(t, "that the agent of a removed node is refused", func() bool { return log2.has("is not in the cluster") })
	if err := c.stop(); err != nil {
		t.Error(err)
	}
	// Neither the secret of a token nor the key of who signs is on the controller's disk.
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(token.Secret)) || bytes.Contains(text, []byte("PRIVATE KEY")) && d.Name() != "rapi.pem" {
			t.Errorf("%s has a secret in it", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestNothingNewIsWrittenBelowTheFormat takes agents in at a store of before: nothing of them is stored, and there are no tokens.
func TestNothingNewIsWrittenBelowTheFormat(t *testing.T) {
	dir, _ := ofBefore(t, "")
	c := startWith(t, app.Options{Data: dir, AgentAddress: "127.0.0.1:0"})
	var id int
	err := c.dial(t).Call(t.Context(), "SubmitJob", []any{[]any{map[string]any{"OP_ID": "OP_NODE_TOKEN", "node_name": away, "token_hash": joining.HashOf("x"), "reason": []any{}}}}, &id)
	if err == nil || !strings.Contains(err.Error(), "format") {
		t.Errorf("below the format: %v", err)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
	s, err := sqlite.Open(filepath.Join(dir, "store"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // nothing was written
	if _, err := s.Get(t.Context(), store.Key{Kind: "agent-authority", ID: "authority"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("there is an authority: %v", err)
	}
}

// TestAgentsNeedAnAddress asks a controller for a token that takes no agents in.
func TestAgentsNeedAnAddress(t *testing.T) {
	c := startWith(t, app.Options{Data: t.TempDir()})
	status, why := c.jobEnds(t, map[string]any{"OP_ID": "OP_NODE_TOKEN", "node_name": away, "token_hash": joining.HashOf("x")})
	if status != "error" || !strings.Contains(fmt.Sprint(why), "takes no agents in") {
		t.Errorf("%s, %v", status, why)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}

// TestAgentsFollowTheLead moves the lead, and stops a leader, under an agent that goes on.
func TestAgentsFollowTheLead(t *testing.T) {
	url := pgserver.Start(t, false).URL("agents")
	all := groupWith(t, []string{url, url}, func(o *app.Options) { o.AgentAddress, o.AutoFinalize = "127.0.0.1:0", true })
	all[0].awaitMasters(t, "c1 leader, c2 standby")
	all[0].awaitFormat(t, format.Newest)
	token := all[0].token(t, away)
	if len(token.Addresses) != 2 {
		t.Errorf("the token names %v", token.Addresses)
	}
	// The first address is of a controller that stands by, which is no hindrance.
	token.Addresses[0], token.Addresses[1] = token.Addresses[1], token.Addresses[0]
	log, _ := runAgent(t, token)
	all[0].job(t, create("web1", away))
	all[1].call(t, "MasterFailover", new(any))
	all[1].awaitMasters(t, "c1 standby, c2 leader")
	all[1].job(t, about("OP_INSTANCE_REBOOT", "web1"))
	if err := all[1].stop(); err != nil {
		t.Error(err)
	}
	all[0].job(t, about("OP_INSTANCE_SHUTDOWN", "web1"))
	if got := all[0].seen(t, "instance", "web1", "status"); !strings.Contains(got, "ADMIN_down") {
		t.Errorf("the instance is %s", got)
	}
	if n := log.times("linked to the controller that leads"); n < 3 {
		t.Errorf("the agent has followed %d leaders", n)
	}
	if err := all[0].stop(); err != nil {
		t.Error(err)
	}
}
