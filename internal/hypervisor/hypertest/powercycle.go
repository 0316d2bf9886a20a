package hypertest

import (
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// powercycle: behind it nothing runs that did, and all is there. Where nobody has said how, it is refused.
func (s *suite) powercycle() {
	ctx := s.Context()
	i := spec("one.example", hypervisor.Disk{UUID: "d1", Size: 8, Template: "file"})
	s.do("Prepare", true)(s.d.Prepare(ctx, i.Thing(), mark, i.Disks))
	s.do("Start", true)(s.d.Start(ctx, i))
	before := s.node()
	reset, err := s.d.Powercycle()
	if fault.Is(err, fault.Unsupported) {
		s.state(i.Name, hypervisor.Running)
		return
	}
	if err != nil {
		s.Fatal(err)
	}
	s.state(i.Name, hypervisor.Running) // nothing is done by asking
	if err := reset(ctx); err != nil {
		s.Fatal(err)
	}
	if got := s.state(i.Name, hypervisor.Stopped); len(got.Disks) != 1 || got.EndedItself {
		s.Errorf("behind it there is %+v", got)
	}
	if after := s.node(); after.BootID == before.BootID || after.MemoryFree <= before.MemoryFree {
		s.Errorf("the node is %+v, and was %+v", after, before)
	}
	s.do("Start", true)(s.d.Start(ctx, i))
}
