package history

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/sim/history"
)

// askTime is how long a client waits for an answer before it counts it as lost
// and goes to another controller.
const askTime = 3 * time.Second

// spell is how long clients ask for all sorts of things, and then for nothing that
// changes something: controllers that stand by answer by themselves while nobody writes.
const spell = 60 * time.Millisecond

// breath is how long a client rests at most between two questions: many at once show no more than some do.
const breath = 40 * time.Millisecond

// Objects of each kind in a history.
const (
	rules = 3
	jobs  = 3
	tags  = 2
)

// taggedInstance has the tags with odd numbers, which are asked for over RAPI; those
// with even ones are of the cluster, and asked for over LUXI.
const taggedInstance = "tagged.example"

// clients do all sorts of things with a few objects, and remember what they were told.
type clients struct {
	history.Record

	g     *group
	name  string
	begun time.Time

	mu sync.Mutex
	// ids are those of jobs that were acknowledged, by the names of the objects.
	ids map[string]int
	// made are instances whose creation was acknowledged as done.
	made map[string]bool
}

// objects are the names of all objects of a history.
func (h *clients) objects() (all []string) {
	for kind, n := range map[string]int{"rule": rules, "job": jobs, "tag": tags} {
		for i := range n {
			all = append(all, fmt.Sprintf("%s %s-%d", kind, h.name, i))
		}
	}
	slices.Sort(all)
	return all
}

// client asks one thing after the other until ctx ends, each time of a controller
// that it happens upon.
func (h *clients) client(ctx context.Context, id int) {
	random := rand.New(rand.NewPCG(uint64(id), uint64(time.Now().UnixNano())))
	all := h.objects()
	told := h.g.prepared // the newest revision that this client knows of
	for n := 0; ctx.Err() == nil; n++ {
		rest(h.g, time.Duration(random.Int64N(int64(breath))))
		m := h.g.members[random.IntN(len(h.g.members))]
		object := all[random.IntN(len(all))]
		do := "read"
		choice := random.IntN(3)
		if time.Since(h.begun)/spell%2 == 1 {
			choice = 2 // nobody changes anything
		}
		switch history.KindOf(object) + strconv.Itoa(choice) {
		case "rule0", "rule1":
			do = [...]string{"put", "put", "delete"}[random.IntN(3)]
		case "job0":
			do = "submit"
		case "job1":
			do = "cancel"
		case "tag0":
			do = [...]string{"add", "add", "remove"}[random.IntN(3)]
		}
		if do == "cancel" && (h.idOf(object) == 0 || random.IntN(4) > 0) {
			do = "read" // few cancellations: a job has only one
		}
		if do == "read" && random.IntN(3) == 0 {
			told = h.askStale(m, object, told)
			continue
		}
		told = max(told, h.ask(m, id, history.Input{Object: object, Do: do, Value: 1 + id*100_000 + n}))
	}
}

func (h *clients) idOf(object string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ids[object]
}

// asks are how an object is asked for something.
var asks = map[string]func(ctx context.Context, h *clients, a *asker, in history.Input) (history.Output, error){
	"rule put": func(ctx context.Context, h *clients, a *asker, in history.Input) (history.Output, error) {
		none := []any{[]any{"jobid", []any{"<", "id", 0}}}
		return history.Output{}, a.ask(ctx, new(any), "ReplaceFilter", h.uuid(in.Object), in.Value, none, "PAUSE", []any{})
	},
	"rule delete": func(ctx context.Context, h *clients, a *asker, in history.Input) (history.Output, error) {
		err := a.ask(ctx, new(any), "DeleteFilter", h.uuid(in.Object))
		if err != nil && strings.Contains(err.Error(), "does not exist") {
			return history.Output{Is: history.Absent}, nil
		}
		return history.Output{Is: history.There}, err
	},
	"rule read": func(ctx context.Context, h *clients, a *asker, in history.Input) (history.Output, error) {
		var rows [][]any
		err := a.ask(ctx, &rows, "QueryFilters", nil, []string{"uuid", "priority"})
		for _, row := range rows {
			if row[0] == h.uuid(in.Object) {
				return history.Output{Is: history.There, Value: int(row[1].(float64))}, err
			}
		}
		return history.Output{Is: history.Absent}, err
	},
	"job submit": func(ctx context.Context, h *clients, a *asker, in history.Input) (history.Output, error) {
		var id int
		op := map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 3600, "comment": "held", "reason": [][]any{{"user", in.Object, 1}}}
		err := a.ask(ctx, &id, "SubmitJob", []any{op}, in.Object)
		if err == nil {
			h.mu.Lock()
			h.ids[in.Object] = id
			h.mu.Unlock()
		}
		return history.Output{Value: id}, err
	},
	"job cancel": func(ctx context.Context, h *clients, a *asker, in history.Input) (history.Output, error) {
		var answer []any
		err := a.ask(ctx, &answer, "CancelJob", h.idOf(in.Object))
		if err != nil || answer[0] == true {
			return history.Output{Is: "done"}, err
		}
		return history.Output{Is: "too late"}, nil
	},
	"job read": func(ctx context.Context, _ *clients, a *asker, in history.Input) (history.Output, error) {
		var rows [][]json.RawMessage
		err := a.ask(ctx, &rows, "QueryJobs", nil, []string{"status", "ops"})
		for _, row := range rows {
			if strings.Contains(string(row[1]), `"`+in.Object+`"`) {
				return history.Output{Is: strings.Trim(string(row[0]), `"`)}, err
			}
		}
		return history.Output{Is: history.Absent}, err
	},
	"tag add": func(ctx context.Context, h *clients, a *asker, in history.Input) (history.Output, error) {
		if !ofInstance(in.Object) {
			op := map[string]any{"OP_ID": "OP_TAGS_SET", "kind": "cluster", "name": nil, "tags": []string{tagOf(in.Object)}, "reason": []any{}}
			return history.Output{}, h.run(ctx, a, op)
		}
		var id int
		if err := a.put(ctx, "/2/instances/"+taggedInstance+"/tags?tag="+tagOf(in.Object), &id); err != nil {
			return history.Output{}, err
		}
		return history.Output{}, h.wait(ctx, a, id)
	},
	"tag remove": func(ctx context.Context, h *clients, a *asker, in history.Input) (history.Output, error) {
		kind, name := tagged(in.Object)
		op := map[string]any{"OP_ID": "OP_TAGS_DEL", "kind": kind, "name": name, "tags": []string{tagOf(in.Object)}, "reason": []any{}}
		err := h.run(ctx, a, op)
		if err != nil && strings.Contains(err.Error(), tagOf(in.Object)+"' not found") {
			return history.Output{Is: history.Absent}, nil
		}
		return history.Output{Is: history.There}, err
	},
	"tag read": func(ctx context.Context, _ *clients, a *asker, in history.Input) (history.Output, error) {
		var list []string
		kind, name := tagged(in.Object)
		err := a.ask(ctx, &list, "QueryTags", kind, name)
		if slices.Contains(list, tagOf(in.Object)) {
			return history.Output{Is: history.There}, err
		}
		return history.Output{Is: history.Absent}, err
	},
}

func tagOf(object string) string { return strings.ReplaceAll(object, " ", ":") }

// ofInstance tells whether a tag is one of the instance.
func ofInstance(object string) bool { return strings.HasSuffix(object, "1") }

// tagged is what has a tag, as tags are asked for.
func tagged(object string) (kind, name string) {
	if ofInstance(object) {
		return "instance", taggedInstance
	}
	return "cluster", ""
}

// uuid is that of a rule; the names of objects end with numbers.
func (h *clients) uuid(object string) string {
	var run, number int
	_, _ = fmt.Sscanf(object, "rule h%d-%d", &run, &number)
	return fmt.Sprintf("00000000-0000-4000-8000-%06x%06x", run, number)
}

// run has a job done that has no key, and waits for its end.
func (h *clients) run(ctx context.Context, a *asker, op map[string]any) error {
	var id int
	if err := a.ask(ctx, &id, "SubmitJob", []any{op}); err != nil {
		return err
	}
	return h.wait(ctx, a, id)
}

// wait waits for the success of a job.
func (h *clients) wait(ctx context.Context, a *asker, id int) error {
	status, err := a.ended(ctx, id)
	if err != nil || status == "success" {
		return err
	}
	var rows [][]json.RawMessage
	err = a.ask(ctx, &rows, "QueryJobs", []int{id}, []string{"opresult"})
	return fault.New(fault.Unavailable, "the job %d ended with %s: %s, %w", id, status, rows, err)
}

// ended waits for the end of a job, and returns what it ended with.
func (a *asker) ended(ctx context.Context, id int) (status string, err error) {
	for {
		var answer json.RawMessage
		if err := a.ask(ctx, &answer, "WaitForJobChange", id, []string{"status"}, []string{status}, 0, 10); err != nil {
			return "", err
		}
		var change []json.RawMessage
		var values []string
		if json.Unmarshal(answer, &change) == nil && json.Unmarshal(change[0], &values) == nil {
			status = values[0]
		}
		switch status {
		case "success", "error", "canceled":
			return status, nil
		}
	}
}

// ask asks one thing and notes what was answered, and returns the revision that shows it.
func (h *clients) ask(m *member, client int, in history.Input) (revision int64) {
	ctx, cancel := context.WithTimeout(h.g.Context(), askTime)
	defer cancel()
	call := time.Since(h.begun)
	a := &asker{member: m}
	how := asks[history.KindOf(in.Object)+" "+in.Do]
	if in.Do == "read" && in.Value%2 == 0 {
		how = func(ctx context.Context, h *clients, a *asker, in history.Input) (history.Output, error) {
			return reads[history.KindOf(in.Object)](ctx, h, a, in.Object)
		}
	}
	out, err := how(ctx, h, a, in)
	out.Revision = a.revision
	if err != nil {
		if !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.Fenced) && !fault.Is(err, fault.Canceled) && h.g.Context().Err() == nil {
			h.g.Errorf("%s %s: %v", in.Do, in.Object, err)
		}
		out = history.Output{Unknown: true}
	}
	h.Told(client, in, call, time.Since(h.begun), out)
	return out.Revision
}

// create makes instances one after the other until ctx ends.
func (h *clients) create(ctx context.Context) {
	const most = 4
	for n := 0; n < most && ctx.Err() == nil; n++ {
		name := fmt.Sprintf("%s-%d.example", h.name, n)
		limit, cancel := context.WithTimeout(h.g.Context(), askTime)
		err := h.run(limit, &asker{member: h.g.members[n%len(h.g.members)]}, map[string]any{
			"OP_ID": "OP_INSTANCE_CREATE", "instance_name": name, "mode": "create", "disk_template": "file", "disks": []any{map[string]any{"size": 4}},
			"nics": []any{}, "name_check": false, "ip_check": false, "os_type": "counted", "pnode": "node1.drover.example", "start": false,
			"reason": [][]any{{"user", name, 1}},
		})
		cancel()
		if err == nil {
			h.mu.Lock()
			h.made[name] = true
			h.mu.Unlock()
		}
	}
}
