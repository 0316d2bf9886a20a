package nodetest

import (
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// powercycle: a node answers before it is switched off and on, and nothing runs there behind that; for a leader of old it is not.
func powercycle(r *Rig) {
	ctx := r.Context()
	r.Made(One)
	before, err := r.Node.State(ctx, true)
	r.Must(err)
	said, err := r.Node.Powercycle(ctx, Order(2, 1))
	r.Must(err)
	if said != "Reboot scheduled in 0 seconds" {
		r.Errorf("it says %q", said)
	}
	for last := before; ; {
		last, err = r.Agent.Next(ctx, last.Number)
		r.Must(err)
		if last.Node.BootID != before.Node.BootID {
			break
		}
	}
	got, err := r.Node.Instance(ctx, One)
	r.Must(err)
	if got.State != hypervisor.Stopped || len(got.Disks) != 1 {
		r.Errorf("behind it there is %+v", got)
	}
	newer := Order(3, 1)
	newer.Epoch = 2
	r.Must(r.Node.Start(ctx, newer, Spec(One), nil))
	_, err = r.Node.Powercycle(ctx, Order(4, 1))
	r.Want(fault.Fenced, err)
}
