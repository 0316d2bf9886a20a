package quota_test

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/store/format"
	"github.com/drover-project/drover/internal/store/sqlite"
)

// rig is a service over a real store, and the events that it noted.
type rig struct {
	*testing.T
	*quota.Service
	store  *faultstore.Store
	events []audit.Event
	format int
	epoch  int64
	used   quota.Limits
}

var ask = quota.Ask{By: audit.By{Account: reason.Account{Name: "root"}}}

func newRig(t *testing.T) *rig {
	t.Helper()
	beneath, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, store: faultstore.New(beneath), format: format.Newest}
	t.Cleanup(func() { _ = r.store.Close() })
	r.open()
	return r
}

// open opens the service anew, as the next leader does.
func (r *rig) open() {
	r.Helper()
	note := func(_ *store.Tx, e audit.Event) *audit.Event {
		r.events = append(r.events, e)
		return &e
	}
	var err error
	if r.Service, err = quota.Open(r.Context(), quota.Config{Store: r.store, Epoch: r.epoch, Picture: picture.New(), Note: note, Format: func() int { return r.format },
		Used: func(string) quota.Limits { return r.used }, Log: slog.New(slog.DiscardHandler)}); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) set(project string, limits quota.Limits) {
	r.Helper()
	if _, err := r.Set(r.Context(), project, limits, ask); err != nil {
		r.Fatal(err)
	}
}

// has fails the test unless these limits hold for a project.
func (r *rig) has(when, project string, want quota.Limits) {
	r.Helper()
	got := r.Of(project)
	for name, limit := range want {
		if got[name] != limit {
			r.Errorf("%s: %s of %s is %d, want %d", when, name, project, got[name], limit)
		}
	}
}

// TestWhichLimitHolds: a project's own, then the default, then the program's.
func TestWhichLimitHolds(t *testing.T) {
	r := newRig(t)
	r.has("at first", "p", quota.Limits{quota.Instances: -1, quota.Cores: -1, quota.RAM: -1, quota.KeyPairs: 100, quota.Metadata: 128, quota.ServerGroups: 10, "security_groups": 0})
	r.set(quota.Default, quota.Limits{quota.Cores: 20, quota.RAM: 4096})
	r.set("p", quota.Limits{quota.Cores: 8})
	r.set("p", quota.Limits{quota.Instances: 4})
	r.has("with its own", "p", quota.Limits{quota.Instances: 4, quota.Cores: 8, quota.RAM: 4096})
	r.has("another one", "q", quota.Limits{quota.Instances: -1, quota.Cores: 20, quota.RAM: 4096})
	if all := r.All(); len(all) != 2 || all[0].Project != quota.Default || all[1].Project != "p" {
		t.Errorf("there are %v", all)
	}
	if got := r.Of("p").Servers(); got.Instances != 4 || got.Cores != 8 || got.RAM != 4096 {
		t.Errorf("of servers: %+v", got)
	}
	if _, err := r.Unset(t.Context(), "p", ask); err != nil {
		t.Error(err)
	}
	r.has("without its own", "p", quota.Limits{quota.Instances: -1, quota.Cores: 20})
	if _, err := r.Unset(t.Context(), "p", ask); !fault.Is(err, fault.NotFound) {
		t.Errorf("twice: %v", err)
	}
}

// TestQuotasLast: with who set them; a dry run changes nothing, and setting what holds is no event.
func TestQuotasLast(t *testing.T) {
	r := newRig(t)
	r.set("p", quota.Limits{quota.Cores: 8})
	r.set("p", quota.Limits{quota.Cores: 8})
	dry := ask
	dry.Dry = true
	if got, err := r.Set(t.Context(), "p", quota.Limits{quota.Cores: 9}, dry); err != nil || got[quota.Cores] != 9 {
		t.Errorf("a dry run: %v %v", got, err)
	}
	if len(r.events) != 1 || r.events[0].What != audit.QuotaSet || r.events[0].Object != "p" || r.events[0].Who != "root" || string(r.events[0].After) != `{"cores":8}` {
		t.Errorf("events: %+v", r.events)
	}
	r.open()
	r.has("after a restart", "p", quota.Limits{quota.Cores: 8})
	if _, err := r.Unset(t.Context(), "p", ask); err != nil {
		t.Fatal(err)
	}
	r.open()
	r.has("taken away", "p", quota.Limits{quota.Cores: -1})
}

// TestWhoLeavesEndsNoChange: and what became of one that nobody heard of is read before the next.
func TestWhoLeavesEndsNoChange(t *testing.T) {
	r := newRig(t)
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := r.Set(left, "p", quota.Limits{quota.Cores: 8}, ask); err != nil {
		t.Fatal(err)
	}
	r.has("set by one who has left", "p", quota.Limits{quota.Cores: 8})
	r.store.Inject(faultstore.Fault{Do: faultstore.FailAfter})
	if _, err := r.Set(t.Context(), "p", quota.Limits{quota.RAM: 64}, ask); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("nobody heard of it: %v", err)
	}
	r.set("p", quota.Limits{quota.Instances: 1})
	r.has("nobody heard of it", "p", quota.Limits{quota.Cores: 8, quota.RAM: 64, quota.Instances: 1})
}

// TestNoLimitIsSetInAnothersTerm: by the controller that led before, and does not know yet that another leads.
func TestNoLimitIsSetInAnothersTerm(t *testing.T) {
	r := newRig(t)
	lease, err := r.store.AcquireLease(t.Context(), "leader", "me", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	r.epoch = lease.Epoch
	r.open()
	r.set("p", quota.Limits{quota.Cores: 8})
	if err := r.store.ReleaseLease(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Set(t.Context(), "p", quota.Limits{quota.Cores: 9}, ask); !fault.Is(err, fault.Fenced) {
		t.Errorf("set: %v", err)
	}
	if _, err := r.Unset(t.Context(), "p", ask); !fault.Is(err, fault.Fenced) {
		t.Errorf("taken away: %v", err)
	}
	r.has("at once", "p", quota.Limits{quota.Cores: 8})
	r.open()
	r.has("after a restart", "p", quota.Limits{quota.Cores: 8})
}

// TestALimitIsHeldByWhoeverLeads: none is set while a program may lead that knows of none.
func TestALimitIsHeldByWhoeverLeads(t *testing.T) {
	r := newRig(t)
	r.format = format.Guests - 1
	if _, err := r.Set(t.Context(), "p", quota.Limits{quota.Cores: 8}, ask); !fault.Is(err, fault.WrongState) || !strings.Contains(err.Error(), "format") {
		t.Errorf("set: %v", err)
	}
	r.has("refused", "p", quota.Limits{quota.Cores: -1})
}

func TestWhatIsNoLimit(t *testing.T) {
	r := newRig(t)
	r.used = quota.Limits{quota.Instances: 3, quota.Cores: 6}
	for _, c := range []struct {
		limits quota.Limits
		code   fault.Code
		says   string
	}{
		{nil, fault.Invalid, "no limit"},
		{quota.Limits{"volumes": 1}, fault.Invalid, "volumes"},
		{quota.Limits{quota.Cores: -2}, fault.Invalid, quota.Cores},
		{quota.Limits{quota.Cores: 1 << 31}, fault.Invalid, quota.Cores},
		{quota.Limits{quota.KeyPairs: -1}, fault.Invalid, quota.KeyPairs},
		{quota.Limits{quota.Metadata: 257}, fault.Invalid, "256"},
		{quota.Limits{quota.Instances: 2}, fault.Conflict, "already used and reserved 3"},
		{quota.Limits{quota.Instances: 3, quota.Cores: 5}, fault.Conflict, "cores"},
	} {
		if _, err := r.Set(t.Context(), "p", c.limits, ask); !fault.Is(err, c.code) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v", c.limits, err)
		}
	}
	if len(r.All()) != 0 {
		t.Error("something was set")
	}
	r.set("p", quota.Limits{quota.Instances: 3, quota.Cores: -1})
	r.set(quota.Default, quota.Limits{quota.Instances: 0}) // what each has is not looked at
	forced := ask
	forced.Force = true
	if _, err := r.Set(t.Context(), "p", quota.Limits{quota.Instances: 0}, forced); err != nil {
		t.Errorf("forced: %v", err)
	}
	if !maps.Equal(r.All()[1].Limits, quota.Limits{quota.Instances: 0, quota.Cores: -1}) {
		t.Errorf("there is %v", r.All())
	}
}
