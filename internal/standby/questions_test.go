package standby_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/standby"
	"github.com/drover-project/drover/internal/store"
)

// moment is when plans are looked at that nobody stores.
var moment = time.Unix(1e9, 0)

// reader answers about deployments beside the controller that leads.
func (r rig) reader(f *standby.Follower) *rollout.Reader {
	r.Helper()
	b, err := rollout.NewReader(rollout.ReaderConfig{Store: r.leads.Store, Picture: f.Picture(), Now: func() time.Time { return moment }, Log: slog.New(slog.DiscardHandler),
		Leads: func(context.Context) ([]string, error) { return r.leads.Rollout.Functions(), nil }})
	r.check(err)
	return b
}

// question is one that is answered from a picture and the store.
type question func(ctx context.Context, b *rollout.Reader) (any, error)

// questions are all that can be asked of what there is, and of what there is not. Those of begun tell of jobs, too.
func questions(now *course.Table) (all, begun map[string]question) {
	begun = map[string]question{}
	all = map[string]question{
		"environments": func(_ context.Context, b *rollout.Reader) (any, error) { return b.Environments(), nil },
		"graphs":       func(ctx context.Context, b *rollout.Reader) (any, error) { return b.Graphs(ctx) },
		"deployments":  func(ctx context.Context, b *rollout.Reader) (any, error) { return b.Deployments(ctx) },
	}
	for _, name := range []string{"prod", "none"} {
		all["state of "+name] = func(ctx context.Context, b *rollout.Reader) (any, error) { return b.State(ctx, name) }
		all["latest of "+name] = func(ctx context.Context, b *rollout.Reader) (any, error) { return b.Latest(ctx, name) }
		all["plan of "+name] = func(ctx context.Context, b *rollout.Reader) (any, error) {
			compute, err := b.Preview(ctx, rollout.Wish{Environment: name}, rollout.By{})
			if err != nil {
				return nil, err
			}
			p, err := compute()
			if err == nil {
				p.Deployment.Created = 0 // when it was asked
			}
			return p, err
		}
		all["expression in "+name] = func(ctx context.Context, b *rollout.Reader) (any, error) {
			return b.Eval(ctx, rollout.Question{Expression: "$.uid", New: rollout.At{Environment: name}, Node: "1"})
		}
	}
	for _, name := range []string{"g", "none"} {
		all["graph "+name] = func(ctx context.Context, b *rollout.Reader) (any, error) { return b.Graph(ctx, name) }
	}
	for id := int64(1); id <= now.Newest()+1; id++ {
		all[fmt.Sprint("diff with ", id)] = func(ctx context.Context, b *rollout.Reader) (any, error) {
			return b.Diff(ctx, rollout.At{Deployment: id}, rollout.At{Environment: "prod"})
		}
		begun[fmt.Sprint("progress of ", id)] = func(ctx context.Context, b *rollout.Reader) (any, error) { return b.Progress(ctx, id) }
		begun[fmt.Sprint("tasks of ", id)] = func(ctx context.Context, b *rollout.Reader) (any, error) { return b.Tasks(ctx, id) }
		for _, task := range []string{"broken", "needs", "held", "fine", "none"} {
			begun[fmt.Sprint("why ", task, " of ", id)] = func(ctx context.Context, b *rollout.Reader) (any, error) { return b.Explain(ctx, id, task, "1") }
		}
	}
	return all, begun
}

// answerOf is an answer as clients read it.
func answerOf(t *testing.T, q question, b *rollout.Reader) (text string, err error) {
	t.Helper()
	got, err := q(t.Context(), b)
	if err != nil {
		return "refused: " + err.Error(), err
	}
	out, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), nil
}

// sameAnswers asks a reader all that the leader answers, and compares. Only what tells of a job that waits it may leave to that one.
func (r rig) sameAnswers(b *rollout.Reader, when string) {
	r.Helper()
	now := r.leads.Picture.Load().Deployments
	all, begun := questions(now)
	waits := false
	for d := range now.Deployments() {
		waits = waits || d.Status.Active() // then a job is held, see quiet
	}
	maps.Copy(all, begun)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		got, err := answerOf(r.T, all[name], b)
		if errors.Is(err, rollout.ErrLed) {
			if !waits || begun[name] == nil {
				r.Errorf("%s: %s is left to the leader: %v", when, name, err)
			}
			continue
		}
		if want, _ := answerOf(r.T, all[name], r.leads.Rollout.Reader); got != want {
			r.Errorf("%s: %s is\n%s\nand the leader says\n%s", when, name, got, want)
		}
	}
}

// locked is a store whose values of some kinds cannot be read here: they are sealed with a key that this controller lacks.
type locked struct{ store.Store }

func (locked) Get(context.Context, store.Key) (store.Object, error) { return store.Object{}, errLocked }

var errLocked = errors.New("sealed with another key")

// TestWhatCannotBeReadIsForTheLeader: nobody is told that something is not there, or broken, which the leader can read; and nothing is evaluated with
// other functions than its.
func TestWhatCannotBeReadIsForTheLeader(t *testing.T) {
	r, _ := deployedTo(t)
	d, _, err := r.leads.Rollout.Plan(t.Context(), rollout.Wish{Environment: "prod"}, rollout.By{})
	r.check(err)
	cfg := rollout.ReaderConfig{Store: locked{r.leads.Store}, Picture: r.leads.Picture, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Leads: func(context.Context) ([]string, error) { return nil, nil }}
	b, err := rollout.NewReader(cfg)
	r.check(err)
	for name, ask := range map[string]question{
		"state": func(ctx context.Context, b *rollout.Reader) (any, error) { return b.State(ctx, "prod") },
		"tasks": func(ctx context.Context, b *rollout.Reader) (any, error) { return b.Tasks(ctx, d.ID) },
		"graph": func(ctx context.Context, b *rollout.Reader) (any, error) { return b.Graph(ctx, "g") },
	} {
		if _, err := ask(t.Context(), b); !errors.Is(err, rollout.ErrLed) || !errors.Is(err, errLocked) {
			t.Errorf("%s: %v", name, err)
		}
	}
	cfg.Store, cfg.Leads = r.leads.Store, func(context.Context) ([]string, error) { return []string{"ours 1"}, nil }
	b, err = rollout.NewReader(cfg)
	r.check(err)
	for name, ask := range map[string]question{
		"progress": func(ctx context.Context, b *rollout.Reader) (any, error) { return b.Progress(ctx, d.ID) },
		"plan": func(ctx context.Context, b *rollout.Reader) (any, error) {
			return b.Preview(ctx, rollout.Wish{Environment: "prod"}, rollout.By{})
		},
		"expression": func(ctx context.Context, b *rollout.Reader) (any, error) {
			return b.Eval(ctx, rollout.Question{Expression: "1", New: rollout.At{Environment: "prod"}})
		},
	} {
		if _, err := ask(t.Context(), b); !errors.Is(err, rollout.ErrLed) {
			t.Errorf("%s, with other functions than the leader's: %v", name, err)
		}
	}
	if _, err := b.Tasks(t.Context(), d.ID); err != nil {
		t.Errorf("tasks, which need no functions: %v", err)
	}
}
