package standby_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/query/items"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/standby"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/sqlite"
	"github.com/drover-project/drover/internal/testkit"
	"github.com/drover-project/drover/internal/testkit/controller"
)

// patience is how long something may take that is to come.
var patience = testkit.Patience()

// ofItems are the items that a standby knows.
var ofItems = []string{"job", "filter", "instance", "node", "group", "network", "image", "environment", "deployment", "task"}

// stored are the fields of an item that a standby knows.
func stored(t *testing.T, what string) (names []string) {
	t.Helper()
	all, err := items.All.Fields(what, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		known, err := items.All.Stored(query.Request{What: what, Fields: []string{f.Name}}, time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		if known {
			names = append(names, f.Name)
		}
	}
	if len(names) == 0 {
		t.Fatalf("nothing of a %s is stored", what)
	}
	return names
}

// told is what a controller answers when it is asked for everything about an item that
// is stored.
func told(t *testing.T, q *live.Querier, what string) string {
	t.Helper()
	r, err := q.Query(t.Context(), query.Request{What: what, Fields: stored(t, what)})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return string(bytes.Join(slices.Collect(r.Chunks()), nil))
}

// rig is a controller that leads, and those that follow its store.
type rig struct {
	*testing.T
	leads *controller.Controller
}

func (r rig) check(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// feed is that of the store beneath.
func (r rig) feed() standby.Feed { return r.leads.Store.(*sqlite.Store).Follow }

// follow opens a follower, which runs until the test ends.
func (r rig) follow() *standby.Follower {
	r.Helper()
	f, err := standby.Open(r.Context(), r.leads.Store, r.feed())
	r.check(err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	r.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !fault.Is(err, fault.Canceled) && ctx.Err() == nil {
			r.Errorf("following ended: %v", err)
		}
	})
	return f
}

// agree waits until a follower has come to where the leader is, and compares them.
func (r rig) agree(f *standby.Follower, when string) {
	r.Helper()
	revision, err := r.leads.Store.Revision(r.Context())
	r.check(err)
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	s, err := f.Picture().Wait(ctx, int64(revision))
	r.check(err)
	if lead := r.leads.Picture.Load(); s.Flags.Drained != lead.Flags.Drained || (s.Flags.WatcherPause == nil) != (lead.Flags.WatcherPause == nil) {
		r.Errorf("%s: the switches are %+v, the leader's %+v", when, s.Flags, lead.Flags)
	}
	deployments := r.reader(f)
	r.sameAnswers(deployments, when)
	follows := &live.Querier{Stored: f.Stored(), Picture: f.Picture(), Deployments: deployments, Store: r.leads.Store, Runtime: r.leads.Querier.Runtime}
	for _, what := range ofItems {
		if got, want := told(r.T, follows, what), told(r.T, r.leads.Querier, what); got != want {
			r.Errorf("%s: of %ss it tells\n%s\nand the leader\n%s", when, what, got, want)
		}
	}
}

func (r rig) submit(text string) job.ID {
	r.Helper()
	op, err := opcode.Parse([]byte(text), opcode.Options{})
	r.check(err)
	id, err := r.leads.Queue.Submit(r.Context(), queue.Submission{Ops: []*opcode.Opcode{op}})
	r.check(err)
	return id
}

// ends waits for the end of a job.
func (r rig) ends(id job.ID) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	_, err := r.leads.Queue.Wait(ctx, id, func(j *job.Job) bool { return j.Status().Final() })
	r.check(err)
}

const delay = `{"OP_ID":"OP_TEST_DELAY","duration":0}`

func instance(name string) string {
	return fmt.Sprintf(`{"OP_ID":"OP_INSTANCE_CREATE","instance_name":%q,"mode":"create","disk_template":"diskless","disks":[],"nics":[],`+
		`"name_check":false,"ip_check":false,"os_type":"noop","pnode":"node1.example","start":false}`, name)
}

// TestFollowersTellWhatTheLeaderStores changes all that is stored, and compares a follower
// that saw each change in the feed, and one that reads it all, with the leader.
func TestFollowersTellWhatTheLeaderStores(t *testing.T) {
	r := rig{t, controller.New(t, controller.Options{})}
	f := r.follow()
	var held job.ID
	var rule string
	until := 4e9
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"in the beginning", func() error { return nil }},
		{"jobs ended", func() error {
			for range 3 {
				r.ends(r.submit(delay))
			}
			return nil
		}},
		{"a rule is new", func() (err error) {
			var c jobfilter.Rule
			c.Action, err = jobfilter.ParseAction([]byte(`"PAUSE"`))
			r.check(err)
			c.Predicates, err = jobfilter.ParsePredicates([]byte(`[["opcode",["=","OP_ID","OP_TEST_DELAY"]]]`))
			r.check(err)
			rule, _, err = r.leads.Queue.PutFilter(t.Context(), "", c, queue.By{})
			return err
		}},
		{"an instance is new", func() error {
			r.ends(r.submit(instance("web1.example")))
			return nil
		}},
		{"tags are set", func() error {
			r.ends(r.submit(`{"OP_ID":"OP_TAGS_SET","kind":"instance","name":"web1.example","tags":["a"]}`))
			r.ends(r.submit(`{"OP_ID":"OP_TAGS_SET","kind":"cluster","name":null,"tags":["b"]}`))
			return nil
		}},
		{"a job was cancelled that was held", func() error {
			held = r.submit(delay)
			_, err := r.leads.Queue.Cancel(t.Context(), held, false, queue.By{})
			r.ends(held)
			return err
		}},
		{"the rule is gone", func() error { return r.leads.Queue.DeleteFilter(t.Context(), rule, queue.By{}) }},
		{"a job is in the archive", func() error {
			_, err := r.leads.Queue.Archive(t.Context(), held, queue.By{})
			return err
		}},
		{"the queue is drained", func() error { return r.leads.Queue.SetDrained(t.Context(), true, queue.By{}) }},
		{"watchers pause", func() error { return r.leads.Queue.SetWatcherPause(t.Context(), &until, queue.By{}) }},
		{"neither any more", func() error {
			r.check(r.leads.Queue.SetWatcherPause(t.Context(), nil, queue.By{}))
			return r.leads.Queue.SetDrained(t.Context(), false, queue.By{})
		}},
		{"the instance is gone", func() error {
			r.ends(r.submit(`{"OP_ID":"OP_INSTANCE_REMOVE","instance_name":"web1.example"}`))
			return nil
		}},
	} {
		r.check(step.do())
		r.agree(f, step.name)
		r.agree(r.follow(), step.name+", read anew")
	}
	if n := f.Picture().Load().Jobs.Len(); n != 7 {
		t.Errorf("%d jobs are not in the archive, not 7", n)
	}
}

// busy is a store that changes while its jobs are listed.
type busy struct {
	store.Store
	happens func()
}

func (b *busy) List(ctx context.Context, kind store.Kind, opts store.Options) iter.Seq2[store.Object, error] {
	if kind == queue.KindJob {
		b.happens()
	}
	return b.Store.List(ctx, kind, opts)
}

// TestPicturesAreNotOlderThanTheySay changes what is read while it is read: what the
// picture has may be newer than its revision, and comes to be of one revision by the feed.
func TestPicturesAreNotOlderThanTheySay(t *testing.T) {
	r := rig{t, controller.New(t, controller.Options{})}
	before, err := r.leads.Store.Revision(t.Context())
	r.check(err)
	var id job.ID
	f, err := standby.Open(t.Context(), &busy{r.leads.Store, func() { id = r.submit(delay); r.ends(id) }}, r.feed())
	r.check(err)
	s := f.Picture().Load()
	if s.Revision != int64(before) || s.Jobs.Get(id) == nil {
		t.Errorf("the picture is of revision %d, not of %d; the job is %v", s.Revision, before, s.Jobs.Get(id))
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	r.agree(f, "when it has followed")
	stop()
	if err := <-ended; err != nil && !fault.Is(err, fault.Canceled) && ctx.Err() == nil {
		t.Error(err)
	}
}

// TestGapsAreTold: where the feed no longer has what follows, the picture moves no more,
// and one that is read anew goes on.
func TestGapsAreTold(t *testing.T) {
	r := rig{t, controller.New(t, controller.Options{Keep: 8})}
	// What others committed is read from the store, and not from this process's memory.
	feed := func(ctx context.Context, after store.Revision) iter.Seq2[store.Progress, error] {
		return func(yield func(store.Progress, error) bool) {
			changes, err := r.leads.Store.Changes(ctx, after, 1000)
			yield(store.Progress{Revision: after, Changes: changes}, err)
		}
	}
	f, err := standby.Open(t.Context(), r.leads.Store, feed)
	r.check(err)
	was := f.Picture().Load().Revision
	r.gone(store.Revision(was))
	if err := f.Run(t.Context()); !fault.Is(err, fault.Compacted) {
		t.Errorf("following ended with %v", err)
	}
	if now := f.Picture().Load().Revision; now != was {
		t.Errorf("the picture went from %d to %d", was, now)
	}
	r.agree(r.follow(), "behind the gap")
}

// gone waits until the feed no longer reaches back to a revision.
func (r rig) gone(revision store.Revision) {
	r.Helper()
	for {
		_, err := r.leads.Store.Changes(r.Context(), revision, 1)
		if fault.Is(err, fault.Compacted) {
			return
		}
		r.check(err)
		r.ends(r.submit(delay))
	}
}
