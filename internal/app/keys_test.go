package app_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/sealed"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// What the tests plant, in an environment with a task graph.
const (
	plantedGraph = `- {id: t, type: shell, version: 2.1.0, role: [n], parameters: {cmd: {yaql_exp: '"true " + $.db.password'}}}`
	plantedState = `{settings: {token: planted-1}, common: {db: {password: planted-2}}, nodes: {"1": {uid: "1", roles: [n], name: node1.drover.example, secret: planted-3}}}`
)

// ask sends a request over RAPI with the account, and returns a good answer.
func (c cluster) ask(t *testing.T, method, path string, body any) string {
	t.Helper()
	user, password := c.ready.RAPIUser, c.ready.RAPIPassword
	if user == "" {
		user, password = "op", "secret"
	}
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), method, c.ready.RAPI+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(user, password)
	r.Header.Set("Content-Type", "application/json")
	answer, err := trusting().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // it is only read
	got, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s (%v)", method, path, answer.StatusCode, got, err)
	}
	return string(got)
}

// plant puts an environment with secrets, and plans a deployment of it.
func (c cluster) plant(t *testing.T) {
	t.Helper()
	c.ask(t, http.MethodPut, "/2/task-graphs/g", map[string]any{"files": []any{map[string]any{"path": "t.yaml", "text": plantedGraph}}})
	c.ask(t, http.MethodPut, "/2/environments/e", map[string]any{"file": map[string]any{"path": "e.yaml", "text": plantedState}, "graphs": []string{"g"}})
	c.ask(t, http.MethodPost, "/2/deployments", map[string]any{"environment": "e"})
}

// reveals fails if the environment is not as it was planted.
func (c cluster) reveals(t *testing.T) {
	t.Helper()
	got := c.ask(t, http.MethodGet, "/2/environments/e?show-secrets=1", nil)
	for i := range 3 {
		if want := fmt.Sprintf("planted-%d", i+1); !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if got := c.ask(t, http.MethodGet, "/2/deployments/1/tasks/1/t", nil); !strings.Contains(got, `"cmd":"true <redacted>"`) {
		t.Errorf("the task is told as %s", got)
	}
}

// imageOf is the text of a backup of a store.
func imageOf(t *testing.T, place string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup")
	must(t, app.BackupCommand(), "create", file, "--at", place)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// refusedStart is the error of a controller that must not start.
func refusedStart(t *testing.T, o app.Options) error {
	t.Helper()
	o.RAPI, o.Nodes, o.Out, o.Log = "127.0.0.1:0", 1, io.Discard, slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := app.Run(ctx, o)
	if err == nil {
		t.Fatal("it started")
	}
	return err
}

// TestSecretsAreSealedInTheStore: what a store, or a backup or copy of it, holds is of no use without the key, and whoever lacks it
// is told which one it is.
func TestSecretsAreSealedInTheStore(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { sealedInTheStore(t, "") })
	t.Run("PostgreSQL", func(t *testing.T) { sealedInTheStore(t, pgserver.Start(t, false).URL("sealed")) })
}

func sealedInTheStore(t *testing.T, url string) {
	t.Helper()
	dir := t.TempDir()
	place, key, aside := dir, filepath.Join(dir, "key"), filepath.Join(t.TempDir(), "key")
	if url != "" {
		place = url
	}
	o := app.Options{Data: dir, Store: url}
	c := startWith(t, o)
	c.plant(t)
	c.reveals(t)
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	ring, err := sealed.ReadRing(key)
	if err != nil {
		t.Fatal(err)
	}
	if text := imageOf(t, place); strings.Contains(text, "planted") || !strings.Contains(text, ring.ID()) {
		t.Error("the store holds secrets in clear")
	}

	if err := os.Rename(key, aside); err != nil {
		t.Fatal(err)
	}
	if err := refusedStart(t, o); !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), ring.ID()) || !strings.Contains(err.Error(), key) {
		t.Errorf("without the key: %v", err)
	}
	if _, err := os.Stat(key); !os.IsNotExist(err) {
		t.Error("another key was made")
	}
	// All that does not look into values works.
	file, copied := filepath.Join(t.TempDir(), "backup"), t.TempDir()
	if out := must(t, app.BackupCommand(), "create", file, "--at", place); !strings.Contains(out, ring.ID()) {
		t.Errorf("the backup does not say which key it needs: %s", out)
	}
	if out := must(t, app.BackupCommand(), "verify", file); !strings.Contains(out, ring.ID()) {
		t.Errorf("verify does not say which key it needs: %s", out)
	}
	must(t, app.StoreCommand(), "check", place)
	must(t, app.StoreCommand(), "copy", place, copied)
	if out := must(t, app.BackupCommand(), "restore", file, "--at", filepath.Join(copied, "restored")); !strings.Contains(out, ring.ID()) {
		t.Errorf("the restore does not say which key is missing: %s", out)
	}

	o.KeyFile = aside
	c = startWith(t, o)
	c.reveals(t)
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}

	// Where the key is lost for good its secrets are given up, and nothing else.
	if _, err := command(t, app.StoreCommand(), "forget-key", "0123", copied, "--yes"); !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), ring.ID()) {
		t.Errorf("another key: %v", err)
	}
	if out := must(t, app.StoreCommand(), "forget-key", ring.ID(), copied); !strings.Contains(out, "nothing was changed") {
		t.Error(out)
	}
	_ = refusedStart(t, app.Options{Data: copied})
	must(t, app.StoreCommand(), "forget-key", ring.ID(), copied, "--yes")
	c = startWith(t, app.Options{Data: copied})
	if got := c.ask(t, http.MethodGet, "/2/environments/e", nil); !strings.Contains(got, `"graphs":["g"]`) || strings.Contains(got, "sealed") {
		t.Errorf("the environment is %s", got)
	}
	c.plant(t)
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
}

// TestStoresOfBeforeAreSealed: what a version that did not seal left in clear, under names that tell who guesses it that the
// guess is right, is sealed and renamed at the first start, which the log says.
func TestStoresOfBeforeAreSealed(t *testing.T) {
	dir := t.TempDir()
	c := startWith(t, app.Options{Data: dir})
	c.plant(t)
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	asBefore(t, dir)
	if text := imageOf(t, dir); !strings.Contains(text, "planted-2") || !regexp.MustCompile(`"common":"[0-9a-f]{64}"`).MatchString(text) {
		t.Fatal("the store is not as before")
	}
	log := &heldLog{}
	c = startWith(t, app.Options{Data: dir, Log: slog.New(slog.NewTextHandler(log, nil))})
	c.reveals(t)
	if got := c.ask(t, http.MethodPut, "/2/deployments/1/begin", nil); !strings.Contains(got, `"running"`) {
		t.Errorf("the plan of before: %s", got)
	}
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	text := imageOf(t, dir)
	if strings.Contains(text, "planted") || regexp.MustCompile(`"[0-9a-f]{64}"`).MatchString(text[:strings.LastIndex(text, `{"objects":`)]) {
		t.Error("it is not sealed, or has names that tell what is named")
	}
	for _, want := range []string{"secrets that stood in the store in clear", "states of environments have names"} {
		if !strings.Contains(log.text(), want) {
			t.Errorf("the log does not say %q", want)
		}
	}
	log = &heldLog{}
	c = startWith(t, app.Options{Data: dir, Log: slog.New(slog.NewTextHandler(log, nil))})
	c.reveals(t)
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.text(), "in clear") || strings.Contains(log.text(), "have names") {
		t.Errorf("it is done again: %s", log.text())
	}
}

// asBefore has a store be as a version left it that did not seal.
func asBefore(t *testing.T, dir string) {
	t.Helper()
	ring, err := sealed.ReadRing(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(filepath.Join(dir, "store"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // what is written is committed
	opened := sealed.Over(s, ring, sealed.Parts{"state-part": nil, "environment": {"settings"}, "deployment": {"settings"}, "task-graph": {"files"},
		"deployment-plan": {"hidden", "parameters"}})
	var tx store.Tx
	var names []string
	for _, kind := range []store.Kind{"state-part", "environment", "deployment", "task-graph", "deployment-plan"} {
		for o, err := range opened.List(t.Context(), kind, store.Options{}) {
			if err != nil {
				t.Fatal(err)
			}
			if kind == "state-part" {
				sum := sha256.Sum256(o.Value)
				names = append(names, o.ID, hex.EncodeToString(sum[:]))
				tx.Delete = append(tx.Delete, o.Key)
				o.ID = hex.EncodeToString(sum[:])
			}
			tx.Put = append(tx.Put, store.Put{Key: o.Key, Value: []byte(strings.NewReplacer(names...).Replace(string(o.Value)))})
		}
	}
	// A part that nothing refers to any more.
	tx.Put = append(tx.Put, store.Put{Key: store.Key{Kind: "state-part", ID: strings.Repeat("0a", 32)}, Value: []byte(`"planted-4"`)})
	tx.Delete = append(tx.Delete, store.Key{Kind: "sealing", ID: "done"}, store.Key{Kind: sealed.KindKey, ID: ring.ID()})
	if _, err := store.Commit(t.Context(), s, tx); err != nil {
		t.Fatal(err)
	}
}

// TestKeysAreChanged: with a new key before the old one all is sealed anew, and the old one can go.
func TestKeysAreChanged(t *testing.T) {
	dir := t.TempDir()
	c := startWith(t, app.Options{Data: dir})
	c.plant(t)
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "key")
	old, err := sealed.ReadRing(file)
	if err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 32)
	_, _ = rand.Read(line)
	for _, text := range []string{base64.StdEncoding.EncodeToString(line) + "\n" + string(old.Text()), base64.StdEncoding.EncodeToString(line)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c = startWith(t, app.Options{Data: dir})
		c.reveals(t)
		if err := c.stop(); err != nil {
			t.Fatal(err)
		}
		if text := imageOf(t, dir); strings.Contains(text, old.ID()) || strings.Contains(text, "planted") {
			t.Error("the old key is needed still")
		}
	}
}

// keysAreLearned: controllers of a group need not be given the same key file. Those that stand by learn the key of the
// one that leads, so that each of them can take over.
func keysAreLearned(t *testing.T, url string) {
	t.Helper()
	all := groupOf(t, url, 3)
	all[0].plant(t)
	ids := map[string]bool{}
	for i, c := range all {
		until(t, "the key is known", func() bool {
			ring, err := sealed.ReadRing(c.keyFile())
			if err == nil {
				ids[ring.ID()] = true
			}
			return err == nil
		})
		if len(ids) != 1 {
			t.Fatalf("controller %d has another key: %v", i+1, ids)
		}
	}
	all[2].reveals(t)
	for i := range 2 {
		if err := all[i].stop(); err != nil {
			t.Error(err)
		}
		all[i+1].delay(t)
		all[2].reveals(t)
	}
	if text := imageOf(t, url); strings.Contains(text, "planted") {
		t.Error("the store holds secrets in clear")
	}
	if err := all[2].stop(); err != nil {
		t.Error(err)
	}
}

func (c cluster) keyFile() string { return filepath.Join(filepath.Dir(c.ready.LUXI), "key") }

// until waits until something holds of which nobody tells.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	again, limit := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-limit:
			t.Fatalf("%s: this never came about", what)
		}
	}
}
