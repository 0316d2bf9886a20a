package events_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/events"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/sqlite"
)

// remote is a cluster in memory.
type remote struct {
	mu   sync.Mutex
	away bool
	jobs map[job.ID]*job.Job
	// silent is how often it does not answer about jobs although it lists them, and blind how often it does not about machines.
	silent, blind int
	// job, if it is set, is what it answers with about job 1, and machine about machines.
	job, machine error
}

// set sets how the opcodes of a job are; none archives it.
func (r *remote) set(id job.ID, statuses ...job.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := &job.Job{ID: id, Ended: 1e6}
	for _, s := range statuses {
		j.Ops = append(j.Ops, job.Op{Status: s, Input: &opcode.Opcode{ID: "OP_INSTANCE_STARTUP", Params: map[string]any{"instance_name": "snf-1"}}})
	}
	if r.jobs[id] = j; len(statuses) == 0 {
		delete(r.jobs, id)
	}
}

func (r *remote) answers() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away {
		return fault.New(fault.Unavailable, "no route")
	}
	return nil
}

func (r *remote) setAway(away bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = away
}

func (r *remote) Name(context.Context) (string, error) { return "far.example", r.answers() }

func (r *remote) Jobs(context.Context) ([]job.ID, error) {
	if err := r.answers(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []job.ID
	for id := range r.jobs {
		ids = append(ids, id)
	}
	return ids, nil
}

func (r *remote) Job(_ context.Context, id job.ID) (*job.Job, error) {
	if err := r.answers(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.silent > 0 {
		r.silent--
		return nil, fault.New(fault.Unavailable, "no route")
	}
	if r.job != nil && id == 1 {
		return nil, r.job
	}
	if r.jobs[id] == nil {
		return nil, fault.New(fault.NotFound, "there is no job %d", id)
	}
	return r.jobs[id], nil
}

func (r *remote) Machine(context.Context, string) (*events.Machine, error) {
	r.mu.Lock()
	blind := r.blind > 0
	r.blind--
	odd := r.machine
	r.mu.Unlock()
	if odd != nil {
		return nil, odd
	}
	if blind {
		return nil, fault.New(fault.Unavailable, "no route")
	}
	return &events.Machine{NICs: []events.NIC{{Name: "n", MAC: "aa:00:00:00:00:01", Firewall: events.Firewall("n", []string{"synnefo:network:n:limited"})}},
		Disks: []events.Disk{}, HVParams: map[string]any{"boot": "d"}}, r.answers()
}

// follow runs a follower until it is stopped.
func follow(t *testing.T, kept *sqlite.Store, r *remote, b *broker) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &events.Follower{Remote: r, Cluster: "far", Store: kept, Every: time.Millisecond, Publish: b.publish, Log: slog.New(slog.DiscardHandler)}
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// keep opens a store that ends with the test.
func keep(t *testing.T) *sqlite.Store {
	t.Helper()
	kept, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
	})
	return kept
}

// begins waits until a follower knows where it begins.
func begins(t *testing.T, kept *sqlite.Store) {
	t.Helper()
	for key, limit := (&events.Follower{Cluster: "far"}).Key(), time.Now().Add(patience); time.Now().Before(limit); {
		if _, err := kept.Get(t.Context(), key); err == nil {
			return
		}
	}
	t.Fatal("the follower never begins")
}

// stores waits until it is stored how far the events are published.
func stores(t *testing.T, kept *sqlite.Store, what string) {
	t.Helper()
	for key, limit := (&events.Follower{Cluster: "far"}).Key(), time.Now().Add(patience); ; {
		o, err := kept.Get(t.Context(), key)
		if err == nil && strings.Contains(string(o.Value), what) {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("stored is %s, %v, and never %s", o.Value, err, what)
		}
	}
}

// TestAJobOfASilentClusterIsAskedForAgain: that it does not answer about a job says
// nothing about that.
func TestAJobOfASilentClusterIsAskedForAgain(t *testing.T) {
	kept, r, b := keep(t), &remote{jobs: map[job.ID]*job.Job{}}, newBroker()
	stop := follow(t, kept, r, b)
	defer stop()
	begins(t, kept)
	r.mu.Lock()
	r.silent = 3
	r.mu.Unlock()
	r.set(1, job.Success)
	b.await(t, "far.example:1:0:success")
}

// TestNoMessageLacksItsMachine: a machine that was started is told with its interfaces, though its cluster did not tell of them when it was asked first.
func TestNoMessageLacksItsMachine(t *testing.T) {
	kept, r, b := keep(t), &remote{jobs: map[job.ID]*job.Job{}, blind: 3}, newBroker()
	stop := follow(t, kept, r, b)
	defer stop()
	begins(t, kept)
	r.set(1, job.Success)
	if m := b.await(t, "far.example:1:0:success")["far.example:1:0:success"]; !strings.Contains(string(m.Body), `"mac":"aa:00:00:00:00:01"`) {
		t.Errorf("told is %s", m.Body)
	}
}

// TestWhatCannotBeTakenHoldsNothingUp: a job or a machine of which a cluster tells what is never taken, however often it is asked.
func TestWhatCannotBeTakenHoldsNothingUp(t *testing.T) {
	for _, err := range []error{fault.New(fault.TooLarge, "a job of more than it may have"), fault.New(fault.Invalid, "a job of another shape")} {
		kept, r, b := keep(t), &remote{jobs: map[job.ID]*job.Job{}, job: err, machine: err}, newBroker()
		stop := follow(t, kept, r, b)
		begins(t, kept)
		r.set(1, job.Success)
		r.set(2, job.Success)
		b.await(t, "far.example:2:0:success")
		stores(t, kept, `"newest":2,"open":{}`)
		stop()
	}
}

// TestWhoDoesNotLeadFollowsNoCluster: a controller whose lead was taken over ends, and
// leaves what is published to the one that leads.
func TestWhoDoesNotLeadFollowsNoCluster(t *testing.T) {
	kept, r, b := keep(t), &remote{jobs: map[job.ID]*job.Job{}}, newBroker()
	f := &events.Follower{Remote: r, Cluster: "far", Store: kept, Epoch: takenOver(t, kept), Every: time.Millisecond, Publish: b.publish, Log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := f.Run(ctx); !fault.Is(err, fault.Fenced) {
		t.Errorf("it ended with %v", err)
	}
	if o, err := kept.Get(t.Context(), f.Key()); !fault.Is(err, fault.NotFound) {
		t.Errorf("it wrote %s, %v", o.Value, err)
	}
}

// TestJobsOfARemoteClusterArePublished: each opcode once it has ended, also those
// that ended while nobody asked, or while the cluster did not answer.
func TestJobsOfARemoteClusterArePublished(t *testing.T) {
	kept, r, b := keep(t), &remote{jobs: map[job.ID]*job.Job{}}, newBroker()
	r.set(4, job.Success)
	stop := follow(t, kept, r, b)
	begins(t, kept)
	r.set(5, job.Success, job.Running)
	m := b.await(t, "far.example:5:0:success")["far.example:5:0:success"]
	var body struct {
		NICs []map[string]string `json:"instance_nics"`
		HV   map[string]string   `json:"instance_hvparams"`
		When []int64             `json:"event_time"`
	}
	if err := json.Unmarshal(m.Body, &body); err != nil || m.Key != "ganeti.snf.event.op" || len(body.NICs) != 1 || body.NICs[0]["firewall"] != "PROTECTED" ||
		body.HV["boot"] != "d" || body.When[0] != 1 {
		t.Errorf("%s %s: %v", m.Key, m.Body, err)
	}
	r.setAway(true)
	r.set(5, job.Success, job.Error)
	r.set(6, job.Canceled)
	r.setAway(false)
	b.await(t, "far.example:5:1:error", "far.example:6:0:canceled")
	r.set(7, job.Running)
	r.set(8, job.Success)
	b.await(t, "far.example:8:0:success")
	stop()
	r.set(7, job.Success)
	r.set(9, job.Success)
	stop = follow(t, kept, r, b)
	defer stop()
	found := b.await(t, "far.example:7:0:success", "far.example:9:0:success")
	if _, told := found["far.example:4:0:success"]; told {
		t.Error("a job is told that ended before anybody asked")
	}
}

// TestAnOpcodeOfARemoteJobIsToldOnce: while its job goes on, and also by the next controller, which knows from the store what was told.
func TestAnOpcodeOfARemoteJobIsToldOnce(t *testing.T) {
	kept, r, b := keep(t), &remote{jobs: map[job.ID]*job.Job{}}, newBroker()
	stop := follow(t, kept, r, b)
	begins(t, kept)
	r.set(1, job.Running, job.Running)
	stores(t, kept, `"newest":1,"open":{"1":0}`)
	r.set(1, job.Success, job.Running)
	stores(t, kept, `"newest":1,"open":{"1":1}`)
	r.set(2, job.Success) // asked for behind the first one, again
	stores(t, kept, `"newest":2,"open":{"1":1}`)
	stop()
	stop = follow(t, kept, r, b)
	defer stop()
	r.set(1, job.Success, job.Success)
	b.await(t, "far.example:1:1:success")
	b.toldOnce(t)
}

// TestAStoreThatFailsIsWaitedForByWhoFollows a cluster, too.
func TestAStoreThatFailsIsWaitedForByWhoFollows(t *testing.T) {
	for _, why := range passing {
		kept, r, b := keep(t), &remote{jobs: map[job.ID]*job.Job{}}, newBroker()
		s, done := &refusing{Store: kept}, make(chan error, 1)
		met := s.fails(t, why, done)
		f := &events.Follower{Remote: r, Cluster: "far", Store: s, Every: time.Millisecond, Publish: b.publish, Log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- f.Run(ctx) }()
		met()
		begins(t, kept)
		met = s.fails(t, why, done)
		r.set(1, job.Success)
		b.await(t, "far.example:1:0:success")
		met()
		stores(t, kept, `"newest":1,"open":{}`)
		b.toldOnce(t)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%v: it ended with %v", why, err)
		}
	}
}

// A place in the events of a cluster that cannot be read keeps nobody from going on with the present.
func TestADamagedPlaceOfAClusterCostsItselfOnly(t *testing.T) {
	for _, damage := range []string{"{", `{"begun":true,"newest":7,"open":null}`, `{"begun":true,"newest":7,"open":{"7":"x"}}`} {
		kept, r, b := keep(t), &remote{jobs: map[job.ID]*job.Job{}}, newBroker()
		if _, err := store.Commit(t.Context(), kept, store.Tx{Put: []store.Put{{Key: (&events.Follower{Cluster: "far"}).Key(), Value: []byte(damage)}}}); err != nil {
			t.Fatal(err)
		}
		r.set(1, job.Success)
		stop := follow(t, kept, r, b)
		stores(t, kept, `"newest":1,"open":{}`)
		r.set(2, job.Success)
		b.await(t, "far.example:2:0:success")
		stop()
	}
}

// TestAClusterThatIsSetUpAnewIsFollowed: its jobs begin with small ids again. Those that it knew no more were open for nobody.
func TestAClusterThatIsSetUpAnewIsFollowed(t *testing.T) {
	kept, r, b := keep(t), &remote{jobs: map[job.ID]*job.Job{}}, newBroker()
	r.set(900, job.Success)
	stop := follow(t, kept, r, b)
	defer stop()
	stores(t, kept, `"newest":900,"open":{}`)
	r.set(901, job.Running)
	stores(t, kept, `"newest":901,"open":{"901":0}`)
	r.mu.Lock()
	r.jobs = map[job.ID]*job.Job{1: {ID: 1}}
	r.mu.Unlock()
	stores(t, kept, `"newest":1,"open":{}`)
	r.set(2, job.Success)
	b.await(t, "far.example:2:0:success")
	r.set(2) // archived
	r.set(3, job.Success)
	b.await(t, "far.example:3:0:success")
	b.toldOnce(t)
}

// TestArchivedJobsLetNothingBeToldAgain: where the newest jobs are archived, and older ones are not, the next ones are told of, and nothing twice.
func TestArchivedJobsLetNothingBeToldAgain(t *testing.T) {
	kept, r, b := keep(t), &remote{jobs: map[job.ID]*job.Job{}}, newBroker()
	stop := follow(t, kept, r, b)
	defer stop()
	begins(t, kept)
	r.set(1, job.Success)
	r.set(2, job.Success)
	b.await(t, "far.example:1:0:success", "far.example:2:0:success")
	r.set(2)
	stores(t, kept, `"newest":1,"open":{}`)
	r.set(1)
	r.set(3, job.Success)
	b.await(t, "far.example:3:0:success")
	stores(t, kept, `"newest":3,"open":{}`)
	b.toldOnce(t)
}
