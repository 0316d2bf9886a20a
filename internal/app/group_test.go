package app_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/drover-project/drover/internal/api/rapi"
	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// groupOf starts so many controllers over one database, the first of which
// leads.
func groupOf(t testing.TB, url string, n int) []cluster {
	t.Helper()
	return groupOver(t, slices.Repeat([]string{url}, n)...)
}

// groupOver is groupOf with a way of its own to the database for each.
func groupOver(t testing.TB, urls ...string) []cluster {
	t.Helper()
	return groupWith(t, urls, func(*app.Options) {})
}

// groupWith is groupOver with further options.
func groupWith(t testing.TB, urls []string, further func(*app.Options)) []cluster {
	t.Helper()
	shared := t.TempDir()
	users := filepath.Join(shared, "users")
	if err := os.WriteFile(users, []byte("op secret write\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var all []cluster
	for i, url := range urls {
		dir, err := os.MkdirTemp("", "drv") //nolint:usetesting // sockets need short paths
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		o := app.Options{Data: dir, Store: url, Name: fmt.Sprintf("c%d", i+1), Peer: "127.0.0.1:0", Users: users, NodeData: filepath.Join(shared, "nodes"),
			TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
		further(&o)
		c := startWith(t, o)
		if i == 0 {
			c.delay(t) // it leads now
		}
		all = append(all, c)
	}
	return all
}

type master struct{ Name, Role string }

// awaitMasters asks a controller which there are, until it says what is to
// come: on a machine that has much to do, one may not answer another in time.
func (c cluster) awaitMasters(t *testing.T, want string) {
	t.Helper()
	again, limit := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer again.Stop()
	for {
		var rows []master
		c.call(t, "QueryMasters", &rows)
		var said []string
		for _, r := range rows {
			said = append(said, r.Name+" "+r.Role)
		}
		got := strings.Join(said, ", ")
		if got == want {
			return
		}
		select {
		case <-again.C:
		case <-limit:
			t.Fatalf("%s sees %s, not %s", c.ready.LUXI, got, want)
		}
	}
}

// write puts a tag on the cluster over RAPI.
func (c cluster) write(t testing.TB, password, id string) (status int, header http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, c.ready.RAPI+"/2/tags?tag=a", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("op", password)
	r.Header.Set("X-Request-ID", id)
	answer, err := trusting().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode, answer.Header
}

func TestGroup(t *testing.T) {
	server := pgserver.Start(t, false)
	t.Run("standbys forward", func(t *testing.T) { standbysForward(t, server.URL("forward")) })
	t.Run("standbys answer", func(t *testing.T) { standbysAnswer(t, server.URL("answer")) })
	t.Run("standbys answer as the leader", func(t *testing.T) { standbysAnswerAsTheLeader(t, server.URL("same")) })
	t.Run("standbys tell of deployments", func(t *testing.T) { standbysTellOfDeployments(t, server.URL("deployed")) })
	t.Run("takeover", func(t *testing.T) { takeover(t, server.URL("takeover")) })
	t.Run("a former leader shows nothing old", func(t *testing.T) { formerLeader(t, server.URL("former")) })
	t.Run("names are taken once", func(t *testing.T) { namesAreTakenOnce(t, server.URL("names")) })
	t.Run("strangers are turned away", func(t *testing.T) { strangersAreTurnedAway(t, server.URL("strangers")) })
	t.Run("one that is cut off", func(t *testing.T) { cutOff(t, server.URL("cut")) })
	t.Run("keys are learned", func(t *testing.T) { keysAreLearned(t, server.URL("keys")) })
}

// standbysForward asks standbys what only the leader can do.
func standbysForward(t *testing.T, url string) {
	t.Helper()
	all := groupOf(t, url, 3)
	for i, c := range all {
		c.delay(t)
		c.awaitMasters(t, "c1 leader, c2 standby, c3 standby")
		if status, header := c.write(t, "secret", "r-1"); status != http.StatusOK || header.Get("X-Request-ID") != "r-1" {
			t.Errorf("controller %d answers a write with %d, request %q", i+1, status, header.Get("X-Request-ID"))
		}
		if status, _ := c.write(t, "wrong", "r-2"); status != http.StatusUnauthorized {
			t.Errorf("controller %d answers a wrong password with %d", i+1, status)
		}
		if status, h := c.health(t); status != http.StatusOK || !h.Ready || len(h.Notes) != min(i, 1) {
			t.Errorf("controller %d is %d %+v", i+1, status, h)
		}
		_, text := c.page(t, "/metrics")
		if want := fmt.Sprintf("\ndrover_leader %d\n", 1-min(i, 1)); !strings.Contains(text, want) {
			t.Errorf("controller %d does not tell %q", i+1, want)
		}
	}
	standbysKeepTo(t, all[1])
	standbysPassOnWholeQueries(t, all)
	standbysPassOnWhatProxiesTell(t, all[1])
	// Who asked is told as at the leader.
	var job [][]json.RawMessage
	all[2].call(t, "QueryJobs", &job, []int{4}, []string{"ops"})
	if text := string(job[0][0]); !strings.Contains(text, "luxi") {
		t.Errorf("the trail of a forwarded job is %s", text)
	}
	for _, c := range slices.Backward(all) {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}

// standbysPassOnWholeQueries: what of a query cannot be read is refused, and not passed over, at whichever controller somebody asks.
func standbysPassOnWholeQueries(t *testing.T, all []cluster) {
	t.Helper()
	for _, query := range []string{"tag=a&dry-run=1;reason=x", "tag=a&tag=%zz"} {
		for i, c := range all {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, c.ready.RAPI+"/2/tags?"+query, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			r.SetBasicAuth("op", "secret")
			answer, err := trusting().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			if _ = answer.Body.Close(); answer.StatusCode != http.StatusBadRequest {
				t.Errorf("controller %d answers %q with %d", i+1, query, answer.StatusCode)
			}
		}
	}
}

// standbysKeepTo holds what a standby forwards to the surface that was asked: no
// path is cleaned, and none is a request between controllers.
func standbysKeepTo(t *testing.T, standby cluster) {
	t.Helper()
	for at, want := range map[string]int{
		standby.ready.RAPI + "/peer/status":                                         http.StatusNotFound,
		standby.ready.RAPI + "/2/nodes/../info":                                     http.StatusNotFound,
		standby.ready.RAPI + "/compute/v2.1":                                        http.StatusNotFound,
		standby.ready.Compute:                                                       http.StatusOK,
		standby.ready.Compute + "/servers":                                          http.StatusUnauthorized,
		standby.ready.Compute + "/servers/../flavors":                               http.StatusUnauthorized,
		standby.ready.Identity:                                                      http.StatusOK,
		standby.ready.Identity + "/../../2/info":                                    http.StatusNotFound,
		strings.TrimSuffix(standby.ready.Compute, "/compute/v2.1") + "/2/info":      http.StatusNotFound,
		strings.TrimSuffix(standby.ready.Compute, "/compute/v2.1") + "/peer/status": http.StatusNotFound,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Drover-Surface", "compute") // nobody's business but ours
		r.Header.Set("Drover-Remote", "192.0.2.1:1")
		answer, err := trusting().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _ = answer.Body.Close(); answer.StatusCode != want || answer.Request.URL.String() != at {
			t.Errorf("%s answers %d from %s, want %d", at, answer.StatusCode, answer.Request.URL, want)
		}
	}
}

// standbysPassOnWhatProxiesTell: the leader's links lead clients to the proxy that
// they reached the standby by.
func standbysPassOnWhatProxiesTell(t *testing.T, standby cluster) {
	t.Helper()
	for name, value := range map[string]string{"Forwarded": "for=192.0.2.1;proto=https;host=cloud.example", "X-Forwarded-Host": "cloud.example"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, standby.ready.Identity, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(name, value)
		answer, err := trusting().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if _ = answer.Body.Close(); err != nil || !strings.Contains(string(text), "://cloud.example/identity/v3/") {
			t.Errorf("by %s: %s, %v", name, text, err)
		}
	}
}

// takeover stops leaders in good order, and moves the lead on demand, while
// clients of the others go on.
func takeover(t *testing.T, url string) {
	t.Helper()
	all := groupOf(t, url, 3)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	made := make(chan []int, 1)
	client, err := luxiwire.Dial(t.Context(), all[2].ready.LUXI)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		var ids []int
		for n := 0; ctx.Err() == nil; n++ {
			var id int
			op := map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 0.001, "reason": [][]any{{"user", "x", 1}}}
			// The key makes it safe to ask again.
			if err := client.Resend(context.Background(), 20, "SubmitJob", []any{[]any{op}, fmt.Sprintf("key-%d", n)}, &id); err == nil {
				ids = append(ids, id)
			}
		}
		made <- ids
	}()
	all[2].delay(t)
	all[1].call(t, "MasterFailover", new(any))
	all[2].awaitMasters(t, "c1 standby, c2 leader, c3 standby")
	all[2].delay(t)
	if err := all[1].stop(); err != nil {
		t.Error(err)
	}
	all[0].delay(t)
	all[2].delay(t)
	stop()
	ids := <-made
	if len(ids) == 0 || !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("the jobs handed in meanwhile are %v", ids)
	}
	var rows [][]any
	all[0].call(t, "QueryJobs", &rows, ids, []string{"id"})
	if len(rows) != len(ids) || slices.ContainsFunc(rows, func(row []any) bool { return row[0] == nil }) {
		t.Errorf("of %d jobs that were acknowledged, %d are there", len(ids), len(rows))
	}
	_ = client.Close()
	for _, i := range []int{0, 2} {
		if err := all[i].stop(); err != nil {
			t.Error(err)
		}
	}
}

// cutOff cuts a controller that stands by from the database. It goes on to have requests answered by whoever leads, also when
// that is another by then.
func cutOff(t *testing.T, at string) {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	way := newLine(t, filepath.Join(q.Get("host"), ".s.PGSQL.5432"))
	host, port, _ := net.SplitHostPort(way.listener.Addr().String()) // an address has both
	q.Set("host", host)
	q.Set("port", port)
	all := groupOver(t, at, "postgres:///?"+q.Encode(), at)
	all[1].awaitMasters(t, "c1 leader, c2 standby, c3 standby")
	all[1].delay(t)
	all[2].delay(t) // so that whoever leads knows it
	way.set(true)
	for _, leads := range []int{0, 2} {
		if leads == 2 {
			if err := all[0].stop(); err != nil {
				t.Error(err)
			}
			all[2].delay(t)
		}
		if status, _ := all[1].write(t, "secret", "r-cut"); status != http.StatusOK {
			t.Errorf("while %d leads the controller that is cut off answers with %d", leads+1, status)
		}
		all[1].delay(t)
	}
	way.set(false)
	for _, i := range []int{1, 2} {
		if err := all[i].stop(); err != nil {
			t.Error(err)
		}
	}
}

// formerLeader takes the connection from a leader on which it holds the lead, so
// that another leads without its knowledge, and asks both for what the other changed.
func formerLeader(t *testing.T, url string) {
	t.Helper()
	all := groupOf(t, url, 2)
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	for round := range 4 {
		drained := round%2 == 0
		all[round%2].awaitLead(t, db)
		// Whoever leads now was told nothing of what is decided here.
		all[1-round%2].call(t, "SetDrainFlag", new(any), drained)
		for i, c := range all {
			var flags []bool
			if c.call(t, "QueryConfigValues", &flags, []string{"drain_flag"}); len(flags) != 1 || flags[0] != drained {
				t.Errorf("round %d: the queue is drained: %v; controller %d says %v", round, drained, i+1, flags)
			}
		}
	}
	for _, c := range all {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}

// awaitLead takes connections from leaders until this controller leads.
func (c cluster) awaitLead(t *testing.T, db *pgx.Conn) {
	t.Helper()
	again, limit := time.NewTicker(10*time.Millisecond), time.After(patience)
	defer again.Stop()
	const cut = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = hashtext('drover ' || current_schema())::oid"
	for tries := 0; ; tries++ {
		_, text := c.page(t, "/metrics")
		if strings.Contains(text, "\ndrover_leader 1\n") {
			return
		}
		if tries%100 == 0 {
			if _, err := db.Exec(t.Context(), cut); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-again.C:
		case <-limit:
			t.Fatal("the lead was not taken over")
		}
	}
}

// namesAreTakenOnce refuses a second controller with the name of one that
// runs, and a group on a store that cannot be shared.
func namesAreTakenOnce(t *testing.T, url string) {
	t.Helper()
	c := startWith(t, app.Options{Data: t.TempDir(), LUXI: filepath.Join(t.TempDir(), "l"), Store: url, Name: "c1", Peer: "127.0.0.1:0"})
	second := app.Options{Data: t.TempDir(), Store: url, Name: "c1", Peer: "127.0.0.1:0", RAPI: "127.0.0.1:0", Nodes: 1, Out: io.Discard, Log: slog.New(slog.DiscardHandler)}
	if err := app.Run(t.Context(), second); !fault.Is(err, fault.Busy) || !strings.Contains(err.Error(), "a controller with the name c1 runs already") {
		t.Errorf("a second c1: %v", err)
	}
	second.Name, second.Peer, second.LUXI = "c2", ":0", filepath.Join(t.TempDir(), "l")
	if err := app.Run(t.Context(), second); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "others do not reach this controller") {
		t.Errorf("a controller that says it is at any address: %v", err)
	}
	second.Store = ""
	if err := app.Run(t.Context(), second); !fault.Is(err, fault.Invalid) {
		t.Errorf("a group on an embedded store: %v", err)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}

// strangersAreTurnedAway connects to the address for other controllers with a
// certificate that none of them has.
func strangersAreTurnedAway(t *testing.T, url string) {
	t.Helper()
	c := groupOf(t, url, 1)[0]
	var rows []struct{ Address string }
	c.call(t, "QueryMasters", &rows)
	dir := t.TempDir()
	stranger, err := rapi.OpenCertificate(filepath.Join(dir, "c.pem"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for what, certificates := range map[string][]tls.Certificate{"no certificate": nil, "another": {*stranger.Current()}} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}}}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+rows[0].Address+"/2/info", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := client.Do(r); err == nil {
			_ = answer.Body.Close()
			t.Errorf("with %s the answer is %s", what, answer.Status)
		}
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
}
