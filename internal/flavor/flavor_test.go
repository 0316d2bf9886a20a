package flavor_test

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/flavor"
	"github.com/drover-project/drover/internal/picture"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/testkit"
)

// rig is a service over a real store, and the events that it noted.
type rig struct {
	*testing.T
	*flavor.Service
	store  *faultstore.Store
	events []audit.Event
	first  []server.Flavor
	epoch  int64
}

func newRig(t *testing.T) *rig {
	t.Helper()
	beneath, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, store: faultstore.New(beneath), first: []server.Flavor{{ID: "1", Name: "m1.tiny", RAM: 512, Disk: 1, VCPUs: 1}, {ID: "2", Name: "m1.small", RAM: 1024, Disk: 5, VCPUs: 1}}}
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
	if r.Service, err = flavor.Open(r.Context(), flavor.Config{Store: r.store, Epoch: r.epoch, Picture: picture.New(), Note: note, First: r.first, NewUUID: testkit.NewUUID, Log: slog.New(slog.DiscardHandler)}); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) names() (out []string) {
	for _, f := range r.All() {
		out = append(out, f.Name)
	}
	return out
}

// has fails the test unless there are these flavors, now and for who leads next.
func (r *rig) has(when string, names ...string) {
	r.Helper()
	for range 2 {
		if got := r.names(); !slices.Equal(got, names) {
			r.Errorf("%s there are %q, want %q", when, got, names)
		}
		r.open()
	}
}

var (
	big = flavor.Flavor{Flavor: server.Flavor{ID: "9", Name: "big", RAM: 4096, Disk: 40, VCPUs: 4}}
	ask = flavor.Ask{By: audit.By{Account: reason.Account{Name: "op", Surface: "luxi"}}}
	dry = flavor.Ask{Dry: true}
)

func TestFlavorsLast(t *testing.T) {
	r := newRig(t)
	if _, err := r.Add(t.Context(), big, dry); err != nil || len(r.events) > 0 {
		t.Errorf("for a trial: %v, %v", err, r.events)
	}
	if f, err := r.Add(t.Context(), flavor.Flavor{Flavor: server.Flavor{Name: "other", RAM: 64, VCPUs: 1}}, dry); err != nil || f.ID != "" {
		t.Errorf("a trial tells an id that no flavor will have: %q, %v", f.ID, err)
	}
	r.has("at first", "m1.tiny", "m1.small")
	if _, err := r.Add(t.Context(), big, ask); err != nil {
		t.Fatal(err)
	}
	r.has("added,", "m1.tiny", "m1.small", "big")
	text := "for databases"
	if f, err := r.Change(t.Context(), "9", flavor.Edit{Description: &text}, ask); err != nil || f.Description != text {
		t.Errorf("%+v: %v", f, err)
	}
	if r.open(); r.All()[2].Description != text {
		t.Errorf("described, it is %+v", r.All()[2])
	}
	if _, err := r.Remove(t.Context(), "9", dry); err != nil {
		t.Error(err)
	}
	r.has("not removed,", "m1.tiny", "m1.small", "big")
	if _, err := r.Remove(t.Context(), "9", ask); err != nil {
		t.Error(err)
	}
	r.has("removed,", "m1.tiny", "m1.small")
	for o, err := range r.store.List(t.Context(), flavor.Kind, store.Options{}) {
		t.Errorf("of what is removed the store has %s (%v)", o.Value, err)
	}
	var got []audit.Verb
	for _, e := range r.events {
		if got = append(got, e.What); e.Object != "9" || e.Name != "big" || e.Who != "op" {
			t.Errorf("an event is %+v", e)
		}
	}
	if !slices.Equal(got, []audit.Verb{audit.FlavorAdd, audit.FlavorModify, audit.FlavorRemove}) || r.events[0].Before != nil || r.events[2].After != nil ||
		strings.Contains(string(r.events[1].Before), text) || !strings.Contains(string(r.events[1].After), text) {
		t.Errorf("the events are %+v", r.events)
	}
}

// TestTheFirstOnes: they are there until the operator removes them, and come back when he makes them again.
func TestTheFirstOnes(t *testing.T) {
	r := newRig(t)
	if _, err := r.Remove(t.Context(), "1", ask); err != nil {
		t.Fatal(err)
	}
	r.has("removed,", "m1.small")
	if _, err := r.Remove(t.Context(), "1", ask); !fault.Is(err, fault.NotFound) {
		t.Errorf("again: %v", err)
	}
	if _, err := r.Remove(t.Context(), "2", ask); err != nil {
		t.Fatal(err)
	}
	r.has("with none left")
	if _, err := r.Add(t.Context(), flavor.Flavor{Flavor: server.Flavor{ID: "1", Name: "tiny", RAM: 64, VCPUs: 1}}, ask); err != nil {
		t.Fatal(err)
	}
	r.has("made anew,", "tiny")
	r.first = append(r.first, server.Flavor{ID: "3", Name: "m1.medium", RAM: 2048, Disk: 10, VCPUs: 2})
	r.open()
	r.has("with a program that has another first one,", "tiny", "m1.medium")
}

// TestASizeStays: nothing that is done to a flavor changes a size that somebody has chosen.
func TestASizeStays(t *testing.T) {
	r := newRig(t)
	chosen, err := r.Find("1")
	if err != nil {
		t.Fatal(err)
	}
	other := flavor.Flavor{Flavor: server.Flavor{ID: "1", Name: "m1.tiny", RAM: 9, VCPUs: 9}}
	if _, err := r.Add(t.Context(), other, ask); !fault.Is(err, fault.Exists) {
		t.Errorf("another size of the same id: %v", err)
	}
	other.ID = "7"
	if _, err := r.Add(t.Context(), other, ask); !fault.Is(err, fault.Exists) {
		t.Errorf("another size of the same name: %v", err)
	}
	text := "x"
	if now, err := r.Change(t.Context(), "1", flavor.Edit{Description: &text}, ask); err != nil || now.Flavor != chosen.Flavor {
		t.Errorf("%+v, was %+v: %v", now, chosen, err)
	}
	r.open()
	if now, err := r.Called("m1.tiny"); err != nil || now.Flavor != chosen.Flavor || now.Description != text {
		t.Errorf("%+v, was %+v: %v", now, chosen, err)
	}
}

func TestWhoMayChoose(t *testing.T) {
	r := newRig(t)
	secret := big
	secret.Private, secret.Projects = true, []string{"p2", "p1", "p2"}
	f, err := r.Add(t.Context(), secret, ask)
	if err != nil || !slices.Equal(f.Projects, []string{"p1", "p2"}) || !f.For("p1") || f.For("p3") {
		t.Errorf("%+v: %v", f, err)
	}
	for _, c := range []struct {
		id   string
		edit flavor.Edit
		want fault.Code
	}{
		{"9", flavor.Edit{Grant: []string{"p1"}}, fault.Exists}, {"9", flavor.Edit{Revoke: []string{"p3"}}, fault.NotFound}, {"1", flavor.Edit{Grant: []string{"p1"}}, fault.Conflict},
		{"nosuch", flavor.Edit{Grant: []string{"p1"}}, fault.NotFound},
	} {
		if _, err := r.Change(t.Context(), c.id, c.edit, ask); !fault.Is(err, c.want) {
			t.Errorf("%+v: %v, want %s", c.edit, err, c.want)
		}
	}
	if f, err = r.Change(t.Context(), "9", flavor.Edit{Grant: []string{"p3"}, Revoke: []string{"p1"}}, ask); err != nil || !slices.Equal(f.Projects, []string{"p2", "p3"}) {
		t.Errorf("%+v: %v", f, err)
	}
	if r.open(); r.All()[2].For("p1") || !r.All()[2].For("p3") {
		t.Errorf("%+v", r.All()[2])
	}
	public := big
	public.ID, public.Name, public.Projects = "10", "x", []string{"p1"}
	if _, err := r.Add(t.Context(), public, ask); !fault.Is(err, fault.Invalid) {
		t.Errorf("a public one for some projects: %v", err)
	}
}

// TestWhatIsNotDoneChangesNothing: a change that is only tried, or refused when a part of it was looked at already.
func TestWhatIsNotDoneChangesNothing(t *testing.T) {
	r := newRig(t)
	private := big
	private.Private, private.Projects = true, []string{"p2", "p3", "p3"}
	if _, err := r.Add(t.Context(), private, ask); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		edit flavor.Edit
		ask  flavor.Ask
		want fault.Code
	}{
		"a project less, on trial":            {flavor.Edit{Revoke: []string{"p2"}}, dry, ""},
		"a project more, on trial":            {flavor.Edit{Grant: []string{"p1"}}, dry, ""},
		"one less, and one that is not there": {flavor.Edit{Revoke: []string{"p2", "p9"}}, ask, fault.NotFound},
		"one more, and one that is there":     {flavor.Edit{Grant: []string{"p1", "p2"}}, ask, fault.Exists},
	} {
		if _, err := r.Change(t.Context(), "9", c.edit, c.ask); fault.CodeOf(err) != c.want {
			t.Errorf("%s: %v", what, err)
		}
		if f, err := r.Find("9"); err != nil || !slices.Equal(f.Projects, []string{"p2", "p3"}) {
			t.Errorf("%s: then it is for %q: %v", what, f.Projects, err)
		}
	}
}

func TestThereIsAnEnd(t *testing.T) {
	r := newRig(t)
	r.first = nil
	for i := range flavor.MaxFlavors {
		r.first = append(r.first, server.Flavor{ID: string(rune('a'+i%26)) + strings.Repeat("x", i/26+1), Name: strings.Repeat("n", i+1), RAM: 1, VCPUs: 1})
	}
	r.open()
	if _, err := r.Add(t.Context(), big, ask); !fault.Is(err, fault.TooLarge) {
		t.Error(err)
	}
}

// TestWhatNobodyKnowsIsRead: when a store does not say what became of a change, what it has is read before the next one.
func TestWhatNobodyKnowsIsRead(t *testing.T) {
	r := newRig(t)
	r.store.Inject(faultstore.Fault{Do: faultstore.FailAfter})
	if _, err := r.Add(t.Context(), big, ask); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("it was answered: %v", err)
	}
	if _, err := r.Add(t.Context(), big, ask); !fault.Is(err, fault.Exists) {
		t.Errorf("it is made twice: %v", err)
	}
	r.has("then", "m1.tiny", "m1.small", "big")
}

// TestWhatCannotBeReadIsNotOffered: also when it stands in place of one of the first.
func TestWhatCannotBeReadIsNotOffered(t *testing.T) {
	r := newRig(t)
	if _, err := store.Commit(t.Context(), r.store, store.Tx{Put: []store.Put{{Key: store.Key{Kind: flavor.Kind, ID: "1"}, Value: json.RawMessage(`[7]`)}}}); err != nil {
		t.Fatal(err)
	}
	r.open()
	r.has("with a damaged object", "m1.small")
}

// TestNoFlavorIsChangedInAnothersTerm: by the controller that led before, and does not know yet that another leads.
func TestNoFlavorIsChangedInAnothersTerm(t *testing.T) {
	r := newRig(t)
	lease, err := r.store.AcquireLease(t.Context(), "leader", "me", time.Hour)
	if err == nil {
		r.epoch = lease.Epoch
		r.open()
		err = r.store.ReleaseLease(t.Context(), lease)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Add(t.Context(), big, ask); !fault.Is(err, fault.Fenced) {
		t.Errorf("added: %v", err)
	}
	if _, err := r.Remove(t.Context(), "1", ask); !fault.Is(err, fault.Fenced) {
		t.Errorf("removed: %v", err)
	}
	r.has("at the end", "m1.tiny", "m1.small")
}
