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

	"github.com/anishathalye/porcupine"

	"github.com/drover-project/drover/internal/fault"
)

// askTime is how long a client waits for an answer before it counts it as lost
// and goes to another controller.
const askTime = 3 * time.Second

// spell is how long clients ask for all sorts of things, and then for nothing that
// changes something: controllers that stand by answer by themselves while nobody writes.
const spell = 60 * time.Millisecond

// Objects of each kind in a history.
const (
	rules = 3
	jobs  = 3
	tags  = 2
)

// taggedInstance has the tags with odd numbers, which are asked for over RAPI; those
// with even ones are of the cluster, and asked for over LUXI.
const taggedInstance = "tagged.example"

// history is what clients did with a few objects, and what they were told.
type history struct {
	g     *group
	name  string
	begun time.Time

	mu  sync.Mutex
	ops []porcupine.Operation
	// stale are answers of controllers that may have stood by.
	stale []staleRead
	// ids are those of jobs that were acknowledged, by the names of the objects.
	ids map[string]int
	// made are instances whose creation was acknowledged as done.
	made map[string]bool
}

func kindOf(object string) string {
	kind, _, _ := strings.Cut(object, " ")
	return kind
}

// objects are the names of all objects of a history.
func (h *history) objects() (all []string) {
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
func (h *history) client(ctx context.Context, id int) {
	random := rand.New(rand.NewPCG(uint64(id), uint64(time.Now().UnixNano())))
	all := h.objects()
	var told int64 // the newest revision that this client knows of
	for n := 0; ctx.Err() == nil; n++ {
		m := h.g.members[random.IntN(len(h.g.members))]
		object := all[random.IntN(len(all))]
		do := "read"
		choice := random.IntN(3)
		if time.Since(h.begun)/spell%2 == 1 {
			choice = 2 // nobody changes anything
		}
		switch kindOf(object) + strconv.Itoa(choice) {
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
		told = max(told, h.ask(m, id, input{object, do, 1 + id*100_000 + n}))
	}
}

func (h *history) idOf(object string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ids[object]
}

// asks are how an object is asked for something.
var asks = map[string]func(ctx context.Context, h *history, a *asker, in input) (output, error){
	"rule put": func(ctx context.Context, h *history, a *asker, in input) (output, error) {
		none := []any{[]any{"jobid", []any{"<", "id", 0}}}
		return output{}, a.ask(ctx, new(any), "ReplaceFilter", h.uuid(in.object), in.value, none, "PAUSE", []any{})
	},
	"rule delete": func(ctx context.Context, h *history, a *asker, in input) (output, error) {
		err := a.ask(ctx, new(any), "DeleteFilter", h.uuid(in.object))
		if err != nil && strings.Contains(err.Error(), "does not exist") {
			return output{is: absent}, nil
		}
		return output{is: "there"}, err
	},
	"rule read": func(ctx context.Context, h *history, a *asker, in input) (output, error) {
		var rows [][]any
		err := a.ask(ctx, &rows, "QueryFilters", nil, []string{"uuid", "priority"})
		for _, row := range rows {
			if row[0] == h.uuid(in.object) {
				return output{is: "there", value: int(row[1].(float64))}, err
			}
		}
		return output{is: absent}, err
	},
	"job submit": func(ctx context.Context, h *history, a *asker, in input) (output, error) {
		var id int
		op := map[string]any{"OP_ID": "OP_TEST_DELAY", "duration": 3600, "comment": "held", "reason": [][]any{{"user", in.object, 1}}}
		err := a.ask(ctx, &id, "SubmitJob", []any{op}, in.object)
		if err == nil {
			h.mu.Lock()
			h.ids[in.object] = id
			h.mu.Unlock()
		}
		return output{value: id}, err
	},
	"job cancel": func(ctx context.Context, h *history, a *asker, in input) (output, error) {
		var answer []any
		err := a.ask(ctx, &answer, "CancelJob", h.idOf(in.object))
		if err != nil || answer[0] == true {
			return output{is: "done"}, err
		}
		return output{is: "too late"}, nil
	},
	"job read": func(ctx context.Context, _ *history, a *asker, in input) (output, error) {
		var rows [][]json.RawMessage
		err := a.ask(ctx, &rows, "QueryJobs", nil, []string{"status", "ops"})
		for _, row := range rows {
			if strings.Contains(string(row[1]), `"`+in.object+`"`) {
				return output{is: strings.Trim(string(row[0]), `"`)}, err
			}
		}
		return output{is: absent}, err
	},
	"tag add": func(ctx context.Context, h *history, a *asker, in input) (output, error) {
		if !ofInstance(in.object) {
			op := map[string]any{"OP_ID": "OP_TAGS_SET", "kind": "cluster", "name": nil, "tags": []string{tagOf(in.object)}, "reason": []any{}}
			return output{}, h.run(ctx, a, op)
		}
		var id int
		if err := a.put(ctx, "/2/instances/"+taggedInstance+"/tags?tag="+tagOf(in.object), &id); err != nil {
			return output{}, err
		}
		return output{}, h.wait(ctx, a, id)
	},
	"tag remove": func(ctx context.Context, h *history, a *asker, in input) (output, error) {
		kind, name := tagged(in.object)
		op := map[string]any{"OP_ID": "OP_TAGS_DEL", "kind": kind, "name": name, "tags": []string{tagOf(in.object)}, "reason": []any{}}
		err := h.run(ctx, a, op)
		if err != nil && strings.Contains(err.Error(), tagOf(in.object)+"' not found") {
			return output{is: absent}, nil
		}
		return output{is: "there"}, err
	},
	"tag read": func(ctx context.Context, _ *history, a *asker, in input) (output, error) {
		var list []string
		kind, name := tagged(in.object)
		err := a.ask(ctx, &list, "QueryTags", kind, name)
		if slices.Contains(list, tagOf(in.object)) {
			return output{is: "there"}, err
		}
		return output{is: absent}, err
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
func (h *history) uuid(object string) string {
	var run, number int
	_, _ = fmt.Sscanf(object, "rule h%d-%d", &run, &number)
	return fmt.Sprintf("00000000-0000-4000-8000-%06x%06x", run, number)
}

// run has a job done that has no key, and waits for its end.
func (h *history) run(ctx context.Context, a *asker, op map[string]any) error {
	var id int
	if err := a.ask(ctx, &id, "SubmitJob", []any{op}); err != nil {
		return err
	}
	return h.wait(ctx, a, id)
}

// wait waits for the end of a job.
func (h *history) wait(ctx context.Context, a *asker, id int) error {
	for status := ""; ; {
		var answer json.RawMessage
		if err := a.ask(ctx, &answer, "WaitForJobChange", id, []string{"status"}, []string{status}, 0, 10); err != nil {
			return err
		}
		var change []json.RawMessage
		var values []string
		if json.Unmarshal(answer, &change) == nil && json.Unmarshal(change[0], &values) == nil {
			status = values[0]
		}
		switch status {
		case "success":
			return nil
		case "error", "canceled":
			var rows [][]json.RawMessage
			err := a.ask(ctx, &rows, "QueryJobs", []int{id}, []string{"opresult"})
			return fault.New(fault.Unavailable, "the job %d ended with %s: %s, %w", id, status, rows, err)
		}
	}
}

// ask asks one thing and notes what was answered, and returns the revision that shows it.
func (h *history) ask(m *member, client int, in input) (revision int64) {
	ctx, cancel := context.WithTimeout(h.g.Context(), askTime)
	defer cancel()
	call := time.Since(h.begun)
	a := &asker{member: m}
	how := asks[kindOf(in.object)+" "+in.do]
	if in.do == "read" && in.value%2 == 0 {
		how = func(ctx context.Context, h *history, a *asker, in input) (output, error) {
			return reads[kindOf(in.object)](ctx, h, a, in.object)
		}
	}
	out, err := how(ctx, h, a, in)
	out.revision = a.revision
	back := int64(time.Since(h.begun))
	if err != nil {
		if !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.Fenced) && !fault.Is(err, fault.Canceled) && h.g.Context().Err() == nil {
			h.g.Errorf("%s %s: %v", in.do, in.object, err)
		}
		if in.do == "read" {
			return 0 // nobody was told anything
		}
		out, back = output{unknown: true}, never
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: int64(call), Output: out, Return: back})
	return out.revision
}

// create makes instances one after the other until ctx ends.
func (h *history) create(ctx context.Context) {
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
