package world

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/sim/history"
)

// taggers is how many clients put tags, each some on an instance and some on the cluster.
const (
	taggers    = 2
	taggedOnes = 3
)

func (w *world) tag(parts *sync.WaitGroup) {
	made := make(chan struct{})
	for i := range taggers {
		c := w.beside("tagger", i)
		parts.Go(func() {
			if i == 0 {
				c.makeTagged()
				close(made)
			}
			<-made
			c.rounds(c.tagOne)
		})
	}
}

// taggedInstance is the instance that gets tags.
const taggedInstance = "tagged.example"

// makeTagged has the instance made, as often as that takes.
func (c *client) makeTagged() {
	op := func() *opcode.Opcode {
		return opcodeOf("OP_INSTANCE_CREATE", map[string]any{"instance_name": taggedInstance, "mode": "create", "disk_template": "diskless", "disks": []any{}, "nics": []any{},
			"os_type": system + "+default", "name_check": false, "ip_check": false, "start": false, "no_install": true, "pnode": c.w.nodes[0].full()})
	}
	for n := 0; ; n++ {
		made := false
		err := c.ask(func(ctx context.Context, t *term) error {
			j, err := t.ended(ctx, fmt.Sprintf("%s-make-%d", c.name, n), op())
			made = err == nil && (j.Status() == job.Success || t.keeper.Snapshot().InstanceNamed(taggedInstance) != nil)
			return err
		})
		if err == nil && made {
			return
		}
	}
}

// tagOne adds a tag or removes one, by a job that it waits for.
func (c *client) tagOne(n int) {
	tag := fmt.Sprintf("t%d", c.draw.IntN(taggedOnes))
	what, id := "add", "OP_TAGS_SET"
	if c.draw.IntN(3) == 0 {
		what, id = "remove", "OP_TAGS_DEL"
	}
	p := map[string]any{"kind": "cluster", "name": nil, "tags": []any{tag}}
	object := "tag cluster/" + tag
	if c.draw.IntN(2) == 0 {
		p["kind"], p["name"], object = "instance", taggedInstance, "tag instance/"+tag
	}
	c.once(history.Input{Object: object, Do: what}, func(ctx context.Context, t *term) (history.Output, error) {
		j, err := t.ended(ctx, fmt.Sprintf("%s-%d", c.name, n), opcodeOf(id, p))
		switch {
		case err != nil:
			return history.Output{}, err
		case j.Status() == job.Success && what == "remove":
			return history.Output{Is: history.There}, nil
		case j.Status() == job.Success:
			return history.Output{}, nil
		}
		_, text, _ := job.DecodeError(j.Ops[0].Result)
		if strings.HasPrefix(text, "Tag(s)") {
			return history.Output{Is: history.Absent}, nil
		}
		return history.Output{}, fault.New(fault.Unavailable, "the job ended with %s", text)
	})
}
