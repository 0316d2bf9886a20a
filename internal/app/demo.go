package app

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-project/drover/internal/hypervisor/kvm"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/opcode"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/tinyguest"
)

// seed fills a new cluster with things to look at: a few instances with tags,
// and a rule that holds one job, so that there is something to explain. All of
// it is made by jobs and requests like any client's.
func (c *controller) seed(ctx context.Context) error {
	trail := reason.Trail{{Source: "drover dev", Reason: "demo data", Time: time.Now().UnixNano()}}
	if c.keeper.Snapshot().Cluster().EnabledHypervisors[0] == kvm.Kind {
		return c.seedMachine(ctx, trail)
	}
	var subs []queue.Submission
	for i, name := range []string{"web1", "web2", "db1"} {
		op, err := opcode.FromMap("OP_INSTANCE_CREATE", map[string]any{
			"instance_name": name + ".drover.example", "mode": "create", "disk_template": "file", "os_type": "noop",
			"disks": []any{map[string]any{"size": 1024}}, "nics": []any{map[string]any{}},
			"beparams":   map[string]any{"maxmem": 512 << i, "minmem": 512, "vcpus": 1 + i},
			"name_check": false, "ip_check": false,
			"tags": []any{"demo", "tier:" + name[:len(name)-1]}, "reason": trail,
		})
		if err != nil {
			return err
		}
		subs = append(subs, queue.Submission{Ops: []*opcode.Opcode{op}, Key: "demo-" + name})
	}
	outcomes, err := c.queue.SubmitMany(ctx, subs)
	if err != nil {
		return err
	}
	for _, o := range outcomes {
		if o.Err != nil {
			return o.Err
		}
	}
	return c.seedHeldJob(ctx, trail)
}

// seedMachine makes one virtual machine, if there is something that it can start from.
func (c *controller) seedMachine(ctx context.Context, trail reason.Trail) error {
	if c.keeper.Snapshot().Cluster().HVParams[kvm.Kind]["kernel_path"] == "" {
		return nil
	}
	op, err := opcode.FromMap("OP_INSTANCE_CREATE", map[string]any{
		"instance_name": "guest1.drover.example", "mode": "create", "disk_template": "file", "os_type": "noop",
		"disks": []any{map[string]any{"size": 256}}, "nics": []any{map[string]any{}},
		"beparams":   map[string]any{"maxmem": tinyguest.MinMemory, "minmem": tinyguest.MinMemory, "vcpus": 1},
		"name_check": false, "ip_check": false, "tags": []any{"demo"}, "reason": trail,
	})
	if err != nil {
		return err
	}
	_, err = c.queue.Submit(ctx, queue.Submission{Ops: []*opcode.Opcode{op}, Key: "demo-guest1"})
	return err
}

// seedHeldJob adds a rule that pauses reboots of the database, and a reboot.
func (c *controller) seedHeldJob(ctx context.Context, trail reason.Trail) error {
	predicates, err := jobfilter.ParsePredicates([]byte(`[["opcode", ["&", ["=", "OP_ID", "OP_INSTANCE_REBOOT"], ["=~", "instance_name", "^db"]]]]`))
	if err != nil {
		return err
	}
	why := reason.Trail{{Source: "drover dev", Reason: "demo: the database is being backed up", Time: time.Now().UnixNano()}}
	rule := jobfilter.Rule{Priority: 10, Predicates: predicates, Action: jobfilter.Action{Kind: jobfilter.Pause}, Reason: why}
	if _, _, err := c.queue.PutFilter(ctx, "", rule, queue.By{Account: reason.Account{Surface: "controller", Name: "demo"}}); err != nil {
		return fmt.Errorf("demo data: %w", err)
	}
	op, err := opcode.FromMap("OP_INSTANCE_REBOOT", map[string]any{
		"instance_name": "db1.drover.example", "reboot_type": "hard", "reason": trail,
	})
	if err != nil {
		return err
	}
	_, err = c.queue.Submit(ctx, queue.Submission{Ops: []*opcode.Opcode{op}, Key: "demo-reboot"})
	return err
}
