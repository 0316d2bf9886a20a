package app_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/app"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/health"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/postgres"
	"github.com/drover-project/drover/internal/testkit/pgserver"
)

// controllerDrain is what DrainController says.
type controllerDrain struct {
	Name           string
	Drained        bool
	Changed, Leads bool
	To, Why        string
}

// refused asks for something that is to be refused, and returns why.
func (c cluster) refused(t *testing.T, code fault.Code, method string, args ...any) string {
	t.Helper()
	err := c.dial(t).Call(t.Context(), method, args, new(any))
	if fault.CodeOf(err) != code {
		t.Errorf("%s%v: %v, not %v", method, args, err, code)
		return ""
	}
	return err.Error()
}

// hasEvent checks that there is one event of a kind, of what and why.
func (c cluster) hasEvent(t *testing.T, what, object, why string) {
	t.Helper()
	var answer struct{ Data [][][2]any }
	c.call(t, "Query", &answer, "event", []string{"object", "reason"}, []any{"==", "what", what})
	if want := fmt.Sprintf("[[[0 %s] [0 %s]]]", object, why); fmt.Sprint(answer.Data) != want {
		t.Errorf("of %s there are the events %v, not %s", what, answer.Data, want)
	}
}

// note is what masters notes of a controller.
func (c cluster) note(t *testing.T, name string) string {
	t.Helper()
	var rows []struct{ Name, Note string }
	c.call(t, "QueryMasters", &rows)
	for _, r := range rows {
		if r.Name == name {
			return r.Note
		}
	}
	t.Errorf("there is no %s in %v", name, rows)
	return ""
}

// awaitLeader waits until one of the named leads, as a controller sees it, and returns its name.
func (c cluster) awaitLeader(t *testing.T, names ...string) (name string) {
	t.Helper()
	until(t, "one of "+strings.Join(names, ", ")+" leads", func() bool {
		var rows []master
		_ = c.dial(t).Call(t.Context(), "QueryMasters", nil, &rows) // while the lead goes over there may be nobody to ask
		i := slices.IndexFunc(rows, func(m master) bool { return m.Role == "leader" })
		if i < 0 {
			return false
		}
		name = rows[i].Name
		return slices.Contains(names, name)
	})
	return name
}

var upgradeTrail = []any{[]any{"gnt:user", "new memory", 1}}

// TestDrained: a controller that is drained gives the lead to another, leaves it to others also after a restart, has it while no other
// lives, and says all that; one that is drained no more is as it was.
func TestDrained(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t, false)
	var options []app.Options
	log := &heldLog{}
	all := groupWith(t, slices.Repeat([]string{server.URL("drained")}, 3), func(o *app.Options) {
		o.Log = slog.New(slog.NewTextHandler(log, nil))
		options = append(options, *o)
	})
	drain := func(c cluster, method string, more ...any) (d controllerDrain) {
		t.Helper()
		c.call(t, method, &d, append([]any{"c1"}, more...)...)
		return d
	}
	d := drain(all[1], "DrainController", upgradeTrail, true)
	if !d.Drained || !d.Changed || !d.Leads || (d.To != "c2" && d.To != "c3") || all[1].note(t, "c1") != "" {
		t.Errorf("it would be %+v, and is noted %q", d, all[1].note(t, "c1"))
	}
	d = drain(all[1], "DrainController", upgradeTrail)
	to := all[1].awaitLeader(t, "c2", "c3")
	if d.To == "" || !strings.Contains(d.Why, "new memory") {
		t.Errorf("it is said of the drained one: %+v", d)
	}
	if text := all[1].note(t, "c1"); !strings.Contains(text, "it is drained by ") || !strings.Contains(text, "new memory") {
		t.Errorf("masters notes %q", text)
	}
	if status, h := all[0].health(t); status != http.StatusOK || !slices.ContainsFunc(h.Notes, func(p app.Problem) bool { return strings.Contains(p.Text, "this controller is drained") }) {
		t.Errorf("/readyz says %d, %+v", status, h)
	}
	for i, want := range []string{"drover_controller_drained 1\n", "drover_controller_drained 0\n"} {
		if _, text := all[i].page(t, "/metrics"); !strings.Contains(text, want) {
			t.Errorf("figures of controller %d do not have %s", i+1, want)
		}
	}
	all[1].awaitLine(t, health.Note, "member", "controller c1 is drained: it leads only if no other could drained by ")
	if why := all[0].refused(t, fault.WrongState, "MasterFailover"); !strings.Contains(why, "new memory") {
		t.Errorf("it is not to lead because %s", why)
	}
	all[1].hasEvent(t, "controller.drain", "c1", "new memory")
	if d = drain(all[1], "DrainController"); d.Changed || !strings.Contains(d.Why, "new memory") {
		t.Errorf("a second time it is %+v", d)
	}

	// It stays so in its next life, in which it leads while no other lives, and not a moment longer.
	if err := all[0].stop(); err != nil {
		t.Error(err)
	}
	all[0] = startWith(t, options[0])
	if text := all[1].note(t, "c1"); !strings.Contains(text, "new memory") {
		t.Errorf("after a restart masters notes %q", text)
	}
	other := map[string]int{"c2": 2, "c3": 1}[to]
	for _, i := range []int{other, 3 - other} { // whoever leads goes last, with none but the drained one to follow
		if err := all[i].stop(); err != nil {
			t.Error(err)
		}
	}
	all[0].awaitLeader(t, "c1")
	all[0].awaitLine(t, health.Problem, "member", "controller c1 leads although it is drained")
	until(t, "the log says that it leads although it is drained", func() bool {
		return strings.Contains(log.text(), "this controller leads although it is drained, for no other could")
	})
	all[1] = startWith(t, options[1])
	all[0].awaitLeader(t, "c2")

	if d = drain(all[0], "UndrainController", upgradeTrail); d.Drained || !d.Changed || d.Why != "" {
		t.Errorf("at the end it is %+v", d)
	}
	until(t, "nothing is noted of it", func() bool { return all[1].note(t, "c1") == "" })
	all[0].call(t, "MasterFailover", new(any))
	all[1].awaitLeader(t, "c1")
	if why := all[0].refused(t, fault.NotFound, "DrainController", "c9"); !strings.Contains(why, `there is no controller "c9"`) {
		t.Error(why)
	}
	for _, c := range all[:2] {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestDrainedStandby: a drained controller does not take the lead of one that dies, as long as another lives that may.
func TestDrainedStandby(t *testing.T) {
	t.Parallel()
	var options []app.Options
	all := groupWith(t, slices.Repeat([]string{pgserver.Start(t, false).URL("standby")}, 3), func(o *app.Options) { options = append(options, *o) })
	all[0].call(t, "DrainController", new(any), "c2")
	until(t, "c2 knows it", func() bool { return all[0].note(t, "c2") != "" })
	time.Sleep(2500 * time.Millisecond) // nothing tells that it does not wait for the lead: it looks each second whether it may, and would do so by then
	leads, next := 0, 2
	for range 4 { // each time the drained one has waited for longer than the other
		if err := all[leads].stop(); err != nil {
			t.Error(err)
		}
		if leader := all[1].awaitLeader(t, "c1", "c2", "c3"); leader != options[next].Name {
			t.Errorf("%s leads, which is drained", leader)
		}
		all[leads] = startWith(t, options[leads])
		leads, next = next, leads
	}
	for _, c := range all {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestForget: a controller that is lost is removed with what is known of it; one that lives is not, and comes back when it was.
func TestForget(t *testing.T) {
	t.Parallel()
	url := pgserver.Start(t, false).URL("forget")
	all := groupOf(t, url, 2)
	other, err := postgres.Open(t.Context(), url, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	commit := func(tx store.Tx) {
		t.Helper()
		if _, err := store.Commit(t.Context(), other, tx); err != nil {
			t.Fatal(err)
		}
	}
	lost := `{"name": "c9", "instance": "x", "address": "127.0.0.1:1", "fingerprint": "00", "started": "2026-01-02T03:04:05Z", "version": "0.1.0"}`
	commit(store.Tx{Put: []store.Put{{Key: store.Key{Kind: "controller", ID: "c9"}, Value: []byte(lost)}}})
	for _, name := range []string{"c1", "c2"} {
		if why := all[1].refused(t, fault.WrongState, "ForgetMaster", name); !strings.Contains(why, name+" lives") {
			t.Error(why)
		}
	}
	all[1].refused(t, fault.NotFound, "ForgetMaster", "c8")
	all[1].call(t, "DrainController", new(any), "c9")
	var f struct {
		Name    string
		Started time.Time
		Drained bool
	}
	all[1].call(t, "ForgetMaster", &f, "c9", upgradeTrail, true)
	if f.Name != "c9" || !f.Drained || f.Started.Year() != 2026 || all[1].note(t, "c9") != "" {
		t.Errorf("it would be forgotten: %+v", f)
	}
	all[1].call(t, "ForgetMaster", &f, "c9", upgradeTrail)
	all[1].awaitMasters(t, "c1 leader, c2 standby")
	all[1].refused(t, fault.NotFound, "UndrainController", "c9") // that it was drained went with it
	all[1].hasEvent(t, "controller.forget", "c9", "new memory")
	commit(store.Tx{Delete: []store.Key{{Kind: "controller", ID: "c2"}}})
	all[0].awaitMasters(t, "c1 leader, c2 standby")
	for _, c := range slices.Backward(all) {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	}
	left := 0
	for _, err := range other.List(t.Context(), "controller", store.Options{}) {
		if left++; err != nil {
			t.Fatal(err)
		}
	}
	if left != 0 {
		t.Errorf("%d controllers are there that have stopped", left)
	}
}
