package kvm

import (
	"context"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// balloonPlace is where the balloon is on the bus, behind all places that are given out in order, so that it moves nothing.
const balloonPlace = "0x1c"

// balloonArguments are those of the device that asks the guest for memory, and gives it back.
func balloonArguments(*hypervisor.Spec, params, setup) ([]string, error) {
	return []string{"-device", object(map[string]any{"driver": "virtio-balloon-pci", "id": "balloon", "addr": balloonPlace})}, nil
}

// balloon asks the guest of a machine that runs to have so much memory in MiB.
func (m *machine) balloon(ctx context.Context, memory int) (bool, error) {
	i, p, r := m.info(), m.running(), m.record()
	if p == nil || !i.Active() {
		return false, fault.New(fault.WrongState, "instance %s is not running", r.Name)
	}
	if err := r.Spec.CheckBalloon(memory); err != nil {
		return false, err
	}
	if more := memory - i.Memory; more > 0 {
		_, free, err := m.driver.memory()
		if err != nil {
			return false, err
		}
		if more > free {
			return false, fault.New(fault.Exhausted, "not enough memory: %d MiB needed, %d MiB free", more, free)
		}
	}
	return memory != i.Memory, p.balloon(ctx, memory)
}

// balloon tells QEMU how much memory the guest is to have in MiB.
func (p *process) balloon(ctx context.Context, memory int) error {
	err := p.do(ctx, "balloon", map[string]any{"value": int64(memory) << 20}, nil)
	if fault.Is(err, fault.Failed) {
		return fault.New(fault.WrongState, "the memory of instance %s cannot be changed while it runs: %w", p.machine.record().Name, err).
			WithHint("one that was started before agents could do so can when it is stopped and started")
	}
	return err
}

// askMemory asks how much memory the guest has by now. A machine without a balloon has all of it.
func (p *process) askMemory(ctx context.Context) error {
	var balloon struct {
		Actual int64 `json:"actual"`
	}
	if err := p.do(ctx, "query-balloon", nil, &balloon); err != nil && !fault.Is(err, fault.Failed) {
		return err
	}
	p.memory.Store(balloon.Actual >> 20)
	return nil
}
