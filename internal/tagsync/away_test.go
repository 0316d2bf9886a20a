package tagsync_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/faultstore"
	"github.com/drover-project/drover/internal/tagsync"
)

// mute is a cluster that takes requests and does not answer before it is told to.
type mute struct {
	asked  chan struct{} // has one for each look
	answer chan error
	met    tagsync.Met
}

func newMute() *mute { return &mute{asked: make(chan struct{}, 1000), answer: make(chan error)} }

func (m *mute) Submit(context.Context, string, ...*opcode.Opcode) (job.ID, error) {
	return 0, fault.New(fault.Unavailable, "nobody answers")
}

func (m *mute) Look(ctx context.Context, _ server.Ref, _ []job.ID) (server.Sight, error) {
	m.asked <- struct{}{}
	select {
	case err := <-m.answer:
		return server.Sight{}, err
	case <-ctx.Done():
		return server.Sight{}, context.Cause(ctx)
	}
}

func (m *mute) Creation(context.Context, string, *server.Server) (servertag.Outcome, bool, error) {
	return servertag.Outcome{}, false, nil
}

func (m *mute) Has(string) bool { return false }

func (m *mute) Met() tagsync.Met { return m.met }

func (m *mute) Newest(context.Context) (job.ID, bool, error) { return 0, true, nil }

func (m *mute) Find(context.Context, job.ID, ...*opcode.Opcode) (job.ID, error) { return 0, nil }

func (m *mute) Follow(ctx context.Context, _ func(server.Ref)) error {
	<-ctx.Done()
	return nil
}

// rigBeside is a rig with a further cluster, which is called far.
func rigBeside(t *testing.T, far tagsync.Backend) *rig {
	t.Helper()
	r := &rig{Failing: t, ctx: t.Context(), dir: t.TempDir(), log: slog.New(slog.NewTextHandler(t.Output(), nil)), more: map[string]tagsync.Backend{"far": far}}
	r.start()
	t.Cleanup(r.stop)
	return r
}

// TestAClusterThatHangsHoldsUpNobodyElse: however many servers it has.
func TestAClusterThatHangsHoldsUpNobodyElse(t *testing.T) {
	far := newMute()
	r := rigBeside(t, far)
	near := r.create()
	const servers = 70
	for range servers {
		w := r.wish()
		w.Backend = "far"
		_, err := r.engine.Create(t.Context(), w)
		r.check(err)
	}
	const places = 64
	for range places { // of far are taken
		<-far.asked
	}
	_, err := r.engine.Want(near.ID, user, []string{"a"}, r.asked())
	r.check(err)
	r.until(near.ID, "has its tag", func(s *server.Server) bool { t := s.Tags.Find(user, "a"); return t.Status() == servertag.Active })
	if len(far.asked) != 0 {
		t.Errorf("more than %d requests are under way at one cluster", places)
	}
}

// TestWhoWaitsForAClusterIsToldAtOnce: also who came while it was being asked.
func TestWhoWaitsForAClusterIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := newMute()
		r := rigBeside(t, far)
		w := r.wish()
		w.Backend = "far"
		s, err := r.engine.Create(t.Context(), w)
		r.check(err)
		<-far.asked
		const callers = 2
		told, begun := make(chan error, callers), time.Now()
		for range callers {
			go func() { told <- r.engine.Attend(t.Context(), s.ID) }()
		}
		synctest.Wait()
		far.answer <- errors.New("no route to host")
		for range callers {
			if err := <-told; err == nil || time.Since(begun) != 0 {
				t.Errorf("told after %v: %v", time.Since(begun), err)
			}
		}
	})
}

// taking is a mute cluster that takes jobs.
type taking struct{ *mute }

func (taking) Submit(context.Context, string, ...*opcode.Opcode) (job.ID, error) { return 7, nil }

// TestAClusterThatIsAwayIsAskedEverMoreRarely: whatever happens meanwhile; and the next
// time that it is away it begins anew.
func TestAClusterThatIsAwayIsAskedEverMoreRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := newMute()
		r := rigBeside(t, taking{far})
		w := r.wish()
		w.Backend = "far"
		begun := time.Now()
		_, err := r.engine.Create(t.Context(), w)
		r.check(err)
		away := func(pauses ...time.Duration) {
			for i, want := range pauses {
				<-far.asked
				if took := time.Since(begun); took != want {
					t.Fatalf("look %d comes after %v, want %v", i+1, took, want)
				}
				r.engine.Reconcile() // something happens while it is being asked
				begun = time.Now()
				far.answer <- errors.New("no route to host")
			}
		}
		const ms = time.Millisecond
		away(0, 100*ms, 200*ms, 400*ms, 800*ms)
		<-far.asked
		far.answer <- nil
		synctest.Wait()
		begun = time.Now()
		r.engine.Reconcile()
		away(0, 100*ms, 200*ms)
		<-far.asked
		far.answer <- nil
	})
}

// TestLongFailuresAreCutShort: a cluster's text is kept with the server.
func TestLongFailuresAreCutShort(t *testing.T) {
	const long, most = 100_000, 1<<10 + 100 // the rest says how much is left out
	for what, result := range map[string]string{
		"an error":      `["OpExecError",["` + strings.Repeat("x", long) + `"]]`,
		"a text":        `"` + strings.Repeat("x", long) + `"`,
		"no JSON":       strings.Repeat("x", long),
		"a strange one": `["` + strings.Repeat("x", long) + `"]`,
	} {
		if o := tagsync.ReadOutcome(job.Error, []byte(result)); len(o.Text) > most || !strings.Contains(o.Text, "xxx") {
			t.Errorf("%s: %d bytes are kept", what, len(o.Text))
		}
	}
}

// TestAWishAfterAnUnknownWriteIsMadeUponWhatIsStored: whether the store took the
// change before it or not, of which it says that it did not.
func TestAWishAfterAnUnknownWriteIsMadeUponWhatIsStored(t *testing.T) {
	for what, c := range map[string]struct {
		do    faultstore.Effect
		after []string
	}{
		"taken":     {faultstore.FailAfter, []string{"first", "second", "third"}},
		"not taken": {faultstore.FailBefore, []string{"second", "third"}},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			s := r.create()
			r.store.Inject(faultstore.Fault{Do: c.do, When: writes("first")})
			if _, err := r.engine.Want(s.ID, user, []string{"first"}, r.asked()); err == nil {
				t.Fatal("it is acknowledged")
			}
			for _, name := range []string{"second", "third"} {
				if created, err := r.engine.Want(s.ID, user, []string{name}, r.asked()); err != nil || !slices.Equal(created, []string{name}) {
					t.Errorf("a wish after it adds %v, %v", created, err)
				}
			}
			if s = r.settled(s.ID); !slices.Equal(s.Tags.Names(user), c.after) {
				t.Errorf("the tags are %v, want %v", s.Tags.Names(user), c.after)
			}
		})
	}
}

// TestAWishWhileTheControllerStopsMayBeAskedAgain: what is to be read anew for it cannot be any more, which is no error of
// the program.
func TestAWishWhileTheControllerStopsMayBeAskedAgain(t *testing.T) {
	r := newRig(t)
	s := r.create()
	r.store.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: writes("first")})
	if _, err := r.engine.Want(s.ID, user, []string{"first"}, r.asked()); err == nil {
		t.Fatal("it is acknowledged")
	}
	r.engine.Close()
	if _, err := r.engine.Want(s.ID, user, []string{"second"}, r.asked()); err != nil && !fault.Is(err, fault.Unavailable) { // the engine may have read it anew before
		t.Errorf("answered with %v", err)
	}
}

// TestAWishMayBeAskedAgainWhereTheControllerStopsAmidIt: the end of the controller comes between the two things that are read anew for it.
func TestAWishMayBeAskedAgainWhereTheControllerStopsAmidIt(t *testing.T) {
	r := newRig(t)
	s := r.create()
	stops := sync.OnceFunc(func() {
		go r.engine.Close()
		for r.engine.Attend(r.ctx, s.ID) == nil { //nolint:revive // until it is told that the engine stops
		}
	})
	defer r.store.FailReads(faultstore.ReadFault{Err: context.Canceled, When: func(kind store.Kind, _ string) bool {
		if kind != tagsync.KindLock {
			return false
		}
		stops()
		return true
	}})()
	r.store.Inject(faultstore.Fault{Do: faultstore.FailBefore, When: writes("first")})
	if _, err := r.engine.Want(s.ID, user, []string{"first"}, r.asked()); err == nil {
		t.Fatal("it is acknowledged")
	}
	// The engine may have written the server down between the two: then nothing is read anew.
	if _, err := r.engine.Want(s.ID, user, []string{"second"}, r.asked()); err != nil && !fault.Is(err, fault.Unavailable) {
		t.Errorf("answered with %v", err)
	}
}

// denying is a cluster that refuses what is handed in, for as long as it has refusals.
type denying struct {
	tagsync.Backend

	mu       sync.Mutex
	refusals []error
}

func (d *denying) Submit(ctx context.Context, key string, ops ...*opcode.Opcode) (job.ID, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.refusals) > 0 {
		err := d.refusals[0]
		d.refusals = d.refusals[1:]
		return 0, err
	}
	return d.Backend.Submit(ctx, key, ops...)
}

// TestWhatIsNotAboutTheJobIsTriedAgain: an account without a right, and a cluster that is not in the state for it, are nothing that
// a user's tag could be given up for.
func TestWhatIsNotAboutTheJobIsTriedAgain(t *testing.T) {
	d := &denying{}
	r := newRigAround(t, func(b tagsync.Backend) tagsync.Backend { d.Backend = b; return d })
	s := r.create()
	d.mu.Lock()
	d.refusals = []error{fault.New(fault.Denied, "the account may not write"), fault.New(fault.WrongState, "the cluster is being moved")}
	d.mu.Unlock()
	_, err := r.engine.Want(s.ID, user, []string{"a"}, r.asked())
	r.check(err)
	r.until(s.ID, "has its tag", func(s *server.Server) bool {
		tag := s.Tags.Find(user, "a")
		return tag != nil && tag.Status() == servertag.Active
	})
}

// TestClustersTellHowTheyAre: one that does not answer is away since it first did not, with the newest reason, until it answers.
func TestClustersTellHowTheyAre(t *testing.T) {
	far := newMute()
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	met := []tagsync.Met{{}}
	for i, err := range []error{nil, errors.New("no route"), errors.New("refused"), nil} {
		met = append(met, met[i].Then(at(int64(i)), err))
	}
	want := []tagsync.Met{{}, {Answered: at(0)}, {Answered: at(0), Away: at(1), Why: "no route"}, {Answered: at(0), Away: at(1), Why: "refused"}, {Answered: at(3)}}
	if !slices.Equal(met, want) {
		t.Errorf("it was met %+v", met)
	}
	far.met = want[3]
	r := rigBeside(t, far)
	r.create()
	all := r.engine.Clusters()
	if len(all) != 2 || all[0].Name != "" || all[0].Servers != 1 || all[0].Met != (tagsync.Met{}) || all[1].Name != "far" || all[1].Servers != 0 || all[1].Met != want[3] || all[1].AtOnce < 1 {
		t.Errorf("there are %+v", all)
	}
}
