package app_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// freeAddress is an address of loopback that nobody listens at, or calls from.
func freeAddress(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", testkit.FreePorts(t, 1)[0])
}

// awaitHealth asks an address for /readyz until it says what is wanted.
func awaitHealth(t *testing.T, address string, want func(status int, h app.Health) bool) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	limit := time.After(patience)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	var last string
	for {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/readyz", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := client.Do(r); err != nil {
			last = err.Error()
		} else {
			body, _ := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			last = string(body)
			var h app.Health
			if json.Unmarshal(body, &h) == nil && want(answer.StatusCode, h) {
				return
			}
		}
		select {
		case <-again.C:
		case <-limit:
			t.Fatalf("%s says at last: %s", address, last)
		}
	}
}

func isReady(status int, h app.Health) bool { return status == http.StatusOK && h.Ready }

func waitsForStore(status int, h app.Health) bool {
	return status == http.StatusServiceUnavailable && slices.ContainsFunc(h.Problems, func(p app.Problem) bool {
		return p.Part == "store" && !p.Since.IsZero() && strings.Contains(p.Text, "cannot be reached")
	})
}

// TestControllersWaitForTheirDatabase starts controllers, alone and of a group, while the
// database is away: they wait and say so, and serve when it is there. Then it goes away
// again, and none of them ends.
func TestControllersWaitForTheirDatabase(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t, false)
	server.Kill(os.Interrupt)
	shared := t.TempDir()
	type life struct {
		address, socket string
		stop            func() error
	}
	var lives []life
	for _, of := range []struct{ name, schema, peer string }{{"alone", "alone", ""}, {"c1", "group", "127.0.0.1:0"}, {"c2", "group", "127.0.0.1:0"}} {
		dir, err := os.MkdirTemp("", "drv") //nolint:usetesting // sockets need short paths
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		l := life{freeAddress(t), filepath.Join(dir, "luxi"), nil}
		o := app.Options{Data: dir, Store: server.URL(of.schema), Name: of.name, Peer: of.peer, RAPI: l.address, LUXI: l.socket, Nodes: 1,
			NodeData: filepath.Join(shared, of.schema), Out: io.Discard, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
		l.stop = run(t, o)
		lives = append(lives, l)
	}
	all := func(want func(int, app.Health) bool) {
		t.Helper()
		for _, l := range lives {
			awaitHealth(t, l.address, want)
		}
	}
	all(waitsForStore)
	server.Up()
	all(isReady)
	server.Kill(os.Interrupt)
	all(func(status int, _ app.Health) bool { return status == http.StatusServiceUnavailable })
	// Its last read failed, and nobody asks for another one.
	client, err := luxiwire.Dial(t.Context(), lives[0].socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Call(t.Context(), "QueryJobs", []any{[]any{999}, []any{"id"}}, nil); err == nil {
		t.Error("a job that only the store may know was told of")
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	server.Up()
	all(isReady)
	for i, l := range lives {
		if err := l.stop(); err != nil {
			t.Errorf("controller %d: %v", i, err)
		}
	}
}

// TestWhoWaitsForItsDatabaseEndsWhenAsked: neither a stop nor a mistake is waited out.
func TestWhoWaitsForItsDatabaseEndsWhenAsked(t *testing.T) {
	o := app.Options{Data: t.TempDir(), Store: "postgres://nobody@127.0.0.1:1/nosuch", RAPI: freeAddress(t), Nodes: 1, Out: io.Discard, Log: slog.New(slog.DiscardHandler)}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- app.Run(ctx, o) }()
	awaitHealth(t, o.RAPI, waitsForStore)
	stop()
	if err := <-ended; err != nil {
		t.Errorf("stopped while it waits: %v", err)
	}
	o.Store = "postgres://%zz"
	if err := app.Run(t.Context(), o); !fault.Is(err, fault.Invalid) {
		t.Errorf("a URL that is none: %v", err)
	}
}
