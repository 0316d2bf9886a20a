package world

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/luxiwire"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/sim/check"
	"github.com/drover-project/drover/internal/sim/history"
	"github.com/drover-project/drover/internal/sim/memory"
	"github.com/drover-project/drover/internal/sim/plan"
	"github.com/drover-project/drover/internal/store"
	"github.com/drover-project/drover/internal/store/format"
)

// readers is how many clients ask controllers that they happen upon, over LUXI, and how
// many objects of each kind they ask about. What is asked at a controller that stands by is
// answered there, or forwarded.
const (
	readers     = 3
	readObjects = 2
)

// spell is how long readers ask for all sorts of things, and then for nothing that changes
// something: while nobody writes those who stand by answer by themselves.
const spell = 2 * time.Second

// breath is how long a reader rests at the most between two questions.
const breath = 700 * time.Millisecond

func (w *world) read(parts *sync.WaitGroup) {
	if w.plan.Has(plan.Witness) {
		return // they would ask for changes everywhere
	}
	ready := make(chan struct{})
	for i := range readers {
		r := &reader{client: w.beside("reader", i)}
		parts.Go(func() {
			if i == 0 {
				r.hold()
				close(ready)
			}
			<-ready
			for n := 0; w.since() < time.Duration(w.plan.Size.Trouble); n++ {
				r.within(breath)
				r.something(n)
			}
		})
	}
}

// reader asks over LUXI.
type reader struct {
	*client

	told int64 // the newest revision that it knows of
}

// hold puts the rule that holds the jobs of readers.
func (r *reader) hold() {
	err := r.ask(func(ctx context.Context, t *term) error {
		_, _, err := t.queue.PutFilter(ctx, ruleUUID(2), ruleOf(readLabel, 0, "PAUSE", time.Time{}), queue.By{})
		return err
	})
	if err != nil {
		panic(err) // it is a good one
	}
}

const readLabel = "read"

// something asks for one thing about an object.
func (r *reader) something(n int) {
	kind := []string{"rule", "job", "tag"}[r.draw.IntN(3)]
	object := fmt.Sprintf("%s read%d", kind, r.draw.IntN(readObjects))
	do := "read"
	if r.w.since()/spell%2 == 0 {
		do = map[string][]string{"rule": {"put", "put", "delete", "read"}, "job": {"submit", "cancel", "read", "read"}, "tag": {"add", "remove", "read", "read"}}[kind][r.draw.IntN(4)]
	}
	if do == "read" && r.draw.IntN(3) == 0 {
		r.old(object)
		return
	}
	r.over(history.Input{Object: object, Do: do, Value: 1 + r.id*1000 + n})
}

// connect opens a connection to a controller that the reader happens upon; nil if that one
// is dead.
func (r *reader) connect() (p *process, c *luxiwire.Client, end func()) {
	return r.connectTo(r.w.procs[r.draw.IntN(len(r.w.procs))])
}

// connectTo opens a connection to a controller; nil if that one is dead.
func (r *reader) connectTo(p *process) (at *process, c *luxiwire.Client, end func()) {
	p.mu.Lock()
	l := p.now
	p.mu.Unlock()
	if l.isDead() {
		return p, nil, nil
	}
	l.mu.Lock()
	m := l.member
	l.mu.Unlock()
	if m == nil {
		return p, nil, nil
	}
	near, far := connect(nil, l)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		m.ServeLUXI(ctx, far, reason.Account{Surface: "luxi", Name: r.name})
		_ = far.Close()
	}()
	return p, luxiwire.On(near), func() {
		_ = near.Close()
		cancel()
	}
}

// over asks, and notes what was answered.
func (r *reader) over(in history.Input) { r.overAt(r.w.procs[r.draw.IntN(len(r.w.procs))], in) }

// overAt asks a controller.
func (r *reader) overAt(p *process, in history.Input) {
	at, c, end := r.connectTo(p)
	if c == nil {
		return
	}
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	call := r.w.since()
	out, err := asks[history.KindOf(in.Object)+" "+in.Do](ctx, c, in)
	out.Revision = c.Revision()
	if err != nil {
		out = history.Output{Unknown: true}
	}
	if took := r.w.since() - call; err == nil && took < 3*wireTime && at.leads() == nil {
		r.w.Reached.Add("who stands by answers by itself")
	}
	r.told = max(r.told, out.Revision)
	r.w.record.Told(r.id, in, call, r.w.since(), out)
	r.w.tellf(r.name, "%s %s %d: %s %d", in.Do, in.Object, in.Value, answer(out), out.Value)
}

// old reads what may be older than what others are told.
func (r *reader) old(object string) {
	_, c, end := r.connect()
	if c == nil {
		return
	}
	defer end()
	c.Stale = true
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	out, err := asks[history.KindOf(object)+" read"](ctx, c, history.Input{Object: object})
	if err != nil {
		return
	}
	out.Revision = c.Revision()
	r.w.Reached.Add("an answer that may be old")
	r.w.record.ToldOld(object, r.w.since(), out)
	r.w.tellf(r.name, "reads %s, maybe old: %s %d as of %d", object, out.Is, out.Value, out.Revision)
}

// number is that of an object of a reader.
func number(object string) (n int) {
	_, _ = fmt.Sscanf(object[strings.IndexByte(object, ' '):], " read%d", &n)
	return n
}

// asks are how an object is asked for something over LUXI.
var asks = map[string]func(ctx context.Context, c *luxiwire.Client, in history.Input) (history.Output, error){
	"rule put": func(ctx context.Context, c *luxiwire.Client, in history.Input) (history.Output, error) {
		none := []any{[]any{"jobid", []any{"<", "id", 0}}}
		return history.Output{}, c.Call(ctx, "ReplaceFilter", []any{ruleUUID(500 + number(in.Object)), in.Value, none, "PAUSE", []any{}}, nil)
	},
	"rule delete": func(ctx context.Context, c *luxiwire.Client, in history.Input) (history.Output, error) {
		err := c.Call(ctx, "DeleteFilter", []any{ruleUUID(500 + number(in.Object))}, nil)
		if err != nil && strings.Contains(err.Error(), "does not exist") {
			return history.Output{Is: history.Absent}, nil
		}
		return history.Output{Is: history.There}, err
	},
	"rule read": func(ctx context.Context, c *luxiwire.Client, in history.Input) (history.Output, error) {
		var rows [][]any
		err := c.Call(ctx, "QueryFilters", []any{nil, []string{"uuid", "priority"}}, &rows)
		for _, row := range rows {
			if row[0] == ruleUUID(500+number(in.Object)) {
				return history.Output{Is: history.There, Value: int(row[1].(float64))}, err
			}
		}
		return history.Output{Is: history.Absent}, err
	},
	"job submit": func(ctx context.Context, c *luxiwire.Client, in history.Input) (history.Output, error) {
		var id int
		op := map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 1, "on_master": false, "reason": [][]any{{"user", readLabel, 1}, {"user", in.Object, 1}}}
		err := c.Call(ctx, "SubmitJob", []any{[]any{op}, in.Object}, &id)
		return history.Output{Value: id}, err
	},
	"job cancel": func(ctx context.Context, c *luxiwire.Client, in history.Input) (history.Output, error) {
		id, _, err := jobOf(ctx, c, in.Object)
		if err != nil || id == 0 { // nobody asked for it yet
			return history.Output{Unknown: true}, err
		}
		var answer []any
		err = c.Call(ctx, "CancelJob", []any{id}, &answer)
		if err != nil || answer[0] == true {
			return history.Output{Is: "done"}, err
		}
		return history.Output{Is: "too late"}, nil
	},
	"job read": func(ctx context.Context, c *luxiwire.Client, in history.Input) (history.Output, error) {
		_, status, err := jobOf(ctx, c, in.Object)
		return history.Output{Is: status}, err
	},
	"tag add": func(ctx context.Context, c *luxiwire.Client, in history.Input) (history.Output, error) {
		_, err := tagJob(ctx, c, "OP_TAGS_SET", in.Object)
		return history.Output{}, err
	},
	"tag remove": func(ctx context.Context, c *luxiwire.Client, in history.Input) (history.Output, error) {
		failed, err := tagJob(ctx, c, "OP_TAGS_DEL", in.Object)
		return history.Output{Is: map[bool]string{true: history.Absent, false: history.There}[failed]}, err
	},
	"tag read": func(ctx context.Context, c *luxiwire.Client, in history.Input) (history.Output, error) {
		var list []string
		err := c.Call(ctx, "QueryTags", []any{"cluster", ""}, &list)
		if slices.Contains(list, tagName(in.Object)) {
			return history.Output{Is: history.There}, err
		}
		return history.Output{Is: history.Absent}, err
	},
}

func tagName(object string) string { return strings.ReplaceAll(object, " ", ":") }

// jobOf finds the job of an object, which its reason names.
func jobOf(ctx context.Context, c *luxiwire.Client, object string) (id int, status string, err error) {
	var rows [][]json.RawMessage
	err = c.Call(ctx, "QueryJobs", []any{nil, []string{"id", "status", "ops"}}, &rows)
	for _, row := range rows {
		if strings.Contains(string(row[2]), `"`+object+`"`) {
			return id, strings.Trim(string(row[1]), `"`), errorOf(err, json.Unmarshal(row[0], &id))
		}
	}
	return 0, history.Absent, err
}

func errorOf(all ...error) error {
	i := slices.IndexFunc(all, func(err error) bool { return err != nil })
	if i < 0 {
		return nil
	}
	return all[i]
}

// tagJob has a tag of the cluster changed, and waits for that; failed says that it is not
// there to be removed. Any other failure leaves open what happened.
func tagJob(ctx context.Context, c *luxiwire.Client, id, object string) (failed bool, err error) {
	op := map[string]any{"OP_ID": id, "kind": "cluster", "name": nil, "tags": []string{tagName(object)}, "reason": []any{}}
	var number int
	if err := c.Call(ctx, "SubmitJob", []any{[]any{op}}, &number); err != nil {
		return false, err
	}
	for status := ""; ; {
		var rows [][]json.RawMessage
		if err := c.Call(ctx, "QueryJobs", []any{[]int{number}, []string{"status", "opresult"}}, &rows); err != nil {
			return false, err
		}
		if len(rows) == 1 {
			status = strings.Trim(string(rows[0][0]), `"`)
		}
		switch {
		case status == "success":
			return false, nil
		case status == "error" && strings.Contains(string(rows[0][1]), "not found"):
			return true, nil
		case status == "error", status == "canceled":
			return false, context.DeadlineExceeded
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// groupAgrees holds what a whole group comes to when all is well.
func (t *term) groupAgrees() {
	t.formatIsRaised()
	t.standbysAgree()
}

// formatIsRaised: all in the group run one program, so nothing keeps it from the newest format. Without that half of what is
// lived through would not be what groups do.
func (t *term) formatIsRaised() {
	w := t.life.w
	s := w.db.Open(memory.Handle{Name: "end"})
	defer func() { _ = s.Close() }() // it never fails
	present, _, err := store.PresentFormat(context.Background(), s)
	if newest := format.Own().Newest(); err != nil || present != newest {
		w.verdict.Breakf(check.FormatRaised, "the store has format %d, and all know %d: %v", present, newest, err)
	}
}

// standbysAgree holds what those who stand by show against what is stored, when nothing
// has happened for a while.
func (t *term) standbysAgree() {
	w := t.life.w
	want := map[int]string{}
	for j := range t.shown.Load().Jobs.All() { // which is what is stored, as was looked at
		want[int(j.ID)] = string(j.Status())
	}
	for _, p := range w.procs {
		if p == t.life.process {
			continue
		}
		r := &reader{client: &client{w: &world{procs: []*process{p}}, name: "end", draw: w.streams.Of("end")}}
		_, c, end := r.connect()
		if c == nil {
			w.verdict.Breakf(check.Standbys, "%s is not there", p.name)
			continue
		}
		c.Stale = true
		ctx, cancel := context.WithTimeout(context.Background(), askTime)
		var rows [][]json.RawMessage
		err := c.Call(ctx, "QueryJobs", []any{nil, []string{"id", "status"}}, &rows)
		cancel()
		end()
		if err != nil {
			w.verdict.Breakf(check.Standbys, "%s: %v", p.name, err)
			continue
		}
		got := map[int]string{}
		for _, row := range rows {
			var id int
			_ = json.Unmarshal(row[0], &id) // it is a number
			got[id] = strings.Trim(string(row[1]), `"`)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			w.verdict.Breakf(check.Standbys, "%s shows %v, and stored is %v", p.name, got, want)
		}
	}
}

// witness changes something at whoever leads by then, and at once reads it where nobody leads, as often as it can. It asks nothing of a leader that is
// cut off.
func (w *world) witness(parts *sync.WaitGroup) {
	const rest = 100 * time.Millisecond
	r := &reader{client: w.beside("witness", 0)}
	parts.Go(func() {
		for n := 0; w.since() < time.Duration(w.plan.Size.Trouble); n++ {
			r.within(rest)
			t := w.leads()
			if t == nil || w.outdated(t) || t.life.isCut() {
				continue
			}
			object := fmt.Sprintf("rule read%d", readObjects)
			r.overAt(t.life.process, history.Input{Object: object, Do: "put", Value: 1 + r.id*1000 + n})
			for _, p := range w.procs {
				if p.leads() == nil {
					r.overAt(p, history.Input{Object: object, Do: "read"})
				}
			}
		}
	})
}
