package world

import (
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/sim/check"
)

// shorten has somebody name instances without their domains, as people do, and make others that are called the same but for
// their domains. What a short name means can be told when a job begins, and not any more while it goes on.
func (w *world) shorten(parts *sync.WaitGroup) {
	c := w.beside("namer", 0)
	parts.Go(func() { c.rounds(c.short) })
}

// short has something done to an instance by its short name, makes that mean two instances, and asks for something of the first by its
// whole name. Now and then the other one is removed, so that the short name is good again.
func (c *client) short(n int) {
	full := instanceName(c.draw.IntN(c.w.plan.Size.Instances))
	label, _, _ := strings.Cut(full, ".")
	other := label + ".elsewhere"
	step := func(i int, id string, p map[string]any) {
		c.submit(fmt.Sprintf("%s-%d-%d", c.name, n, i), id+" "+p["instance_name"].(string), opcodeOf(id, p))
	}
	if c.draw.IntN(3) == 0 {
		step(0, "OP_INSTANCE_REMOVE", map[string]any{"instance_name": other})
		return
	}
	c.w.asked(full)
	step(0, "OP_INSTANCE_REINSTALL", map[string]any{"instance_name": label})
	step(1, "OP_INSTANCE_CREATE", map[string]any{"instance_name": other, "mode": "create", "disk_template": "file", "disks": []any{map[string]any{"size": diskSize}}, "nics": []any{},
		"os_type": system + "+default", "name_check": false, "ip_check": false, "start": false, "no_install": true, "pnode": c.w.nodes[c.draw.IntN(len(c.w.nodes))].full()})
	step(2, []string{"OP_INSTANCE_REINSTALL", "OP_INSTANCE_STARTUP"}[c.draw.IntN(2)], map[string]any{"instance_name": full})
}

// interrupted counts the jobs that ran when a term began.
func interrupted(jobs iter.Seq[*job.Job], snap *cluster.Snapshot, reached *check.Reached) (n int) {
	for j := range jobs {
		if j.Final() || j.Started == 0 {
			continue
		}
		n++
		if name := j.Ops[0].Input.Str("instance_name"); name != "" && !strings.Contains(name, ".") && snap != nil {
			if _, err := snap.FindInstance(name); err != nil {
				reached.Add("what goes on was called by a name that means nothing any more")
			}
		}
	}
	return n
}
