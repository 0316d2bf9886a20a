package history

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/testkit/traces"
)

// tenths is how long a script works on its instance, in tenths of a second.
const tenths = 12

// effects are what scripts do outside of all that is stored: as long as a group lives, an operating system is installed on each of
// some instances, again and again.
type effects struct {
	g    *group
	stop context.CancelFunc
	all  sync.WaitGroup

	mu   sync.Mutex
	jobs []int // that were acknowledged
}

func (g *group) beginEffects() *effects {
	g.Helper()
	ctx, stop := context.WithCancel(g.Context())
	e := &effects{g: g, stop: stop}
	for n := range 2 {
		node := fmt.Sprintf("node%d.drover.example", n+1)
		traces.InstallOS(g, g.path("nodes/"+node), "traced", g.path("marks"), tenths)
		instance := fmt.Sprintf("traced%d.example", n+1)
		if err := new(clients).run(g.Context(), &asker{member: g.members[0]}, map[string]any{
			"OP_ID": "OP_INSTANCE_CREATE", "instance_name": instance, "mode": "create", "disk_template": "file", "disks": []any{map[string]any{"size": 4}},
			"nics": []any{}, "name_check": false, "ip_check": false, "os_type": "counted", "pnode": node, "start": false, "reason": []any{},
		}); err != nil {
			g.Fatal(err)
		}
		e.all.Go(func() { e.install(ctx, instance) })
	}
	return e
}

// install installs one operating system after the other until ctx ends.
func (e *effects) install(ctx context.Context, instance string) {
	for n := 0; ctx.Err() == nil; n++ {
		op := map[string]any{"OP_ID": "OP_INSTANCE_REINSTALL", "instance_name": instance, "os_type": "traced", "reason": []any{}}
		key := fmt.Sprintf("%s %d", instance, n)
		var id int
		e.insist(n, func(ctx context.Context, a *asker) error { return a.ask(ctx, &id, "SubmitJob", []any{op}, key) })
		e.mu.Lock()
		e.jobs = append(e.jobs, id)
		e.mu.Unlock()
		e.insist(n, func(ctx context.Context, a *asker) error {
			_, err := a.ended(ctx, id)
			return err
		})
	}
}

// insist asks one controller after the other until one answers.
func (e *effects) insist(first int, ask func(context.Context, *asker) error) {
	for n := first; e.g.Context().Err() == nil; n++ {
		ctx, cancel := context.WithTimeout(e.g.Context(), askTime)
		err := ask(ctx, &asker{member: e.g.members[n%len(e.g.members)]})
		cancel()
		if err == nil {
			return
		}
		rest(e.g, 10*time.Millisecond)
	}
}

// end waits for what was begun, and looks at all that it left: no two scripts worked on one instance at once, each job that was
// acknowledged succeeded by a script that came to its end, and none began again without a note in the log of its job.
func (e *effects) end() {
	e.g.Helper()
	e.stop()
	e.all.Wait()
	runs, wrong := traces.Read(e.g, e.g.path("marks"))
	const enough = 5
	for _, w := range wrong[:min(enough, len(wrong))] {
		e.g.Errorf("%s (%d of this kind)", w, len(wrong))
	}
	whole, again := 0, 0
	for _, r := range runs {
		if r.Marks >= tenths {
			whole++
		}
	}
	for _, id := range e.jobs {
		var rows [][]json.RawMessage
		e.insist(0, func(ctx context.Context, a *asker) error {
			return a.ask(ctx, &rows, "QueryJobs", []int{id}, []string{"status", "oplog", "opresult"})
		})
		if status := string(rows[0][0]); status != `"success"` {
			e.g.Errorf("job %d was acknowledged, and ended with %s: %s, %s", id, status, rows[0][2], rows[0][1])
		}
		again += strings.Count(string(rows[0][1]), "it is run again") + strings.Count(string(rows[0][1]), "it goes on: ") + strings.Count(string(rows[0][1]), "it begins anew")
	}
	if len(e.jobs) == 0 || whole < len(e.jobs) || len(runs) > len(e.jobs)+again {
		e.g.Errorf("%d jobs that were run again %d times: %d scripts ran, %d of them to their end", len(e.jobs), again, len(runs), whole)
	}
	e.g.Logf("%d jobs that were run again %d times: %d scripts ran, %d of them to their end", len(e.jobs), again, len(runs), whole)
}
