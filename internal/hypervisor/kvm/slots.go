package kvm

import (
	"maps"
	"slices"
	"strconv"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// slots says in which slot of a machine each of its disks and network cards is, by UUID. A device keeps its slot for as long as the machine has
// it, whatever goes and comes beside it: guests name network cards by where they are.
type slots map[string]int

const (
	// spareSlots are those of a machine with ports that nothing is in when it starts: so much can be plugged in while it runs.
	spareSlots = 8
	// mostSlots is how many a machine with ports can have: its bus has 32 places, and some are its own.
	mostSlots = 27
)

// nicKey is by what a network card is known: its UUID, or its place where it has none.
func nicKey(n int, nic *hypervisor.NIC) string {
	if nic.UUID == "" {
		return "nic " + strconv.Itoa(n)
	}
	return nic.UUID
}

// seedKey is what the CD goes by that a machine was given; nothing else is called so, for a dot is in no UUID.
const seedKey = "seed.iso"

// assign gives each device of a specification, and the CD if there is one, a slot: the one that it has, or else the first that is free.
func assign(have slots, spec *hypervisor.Spec, seeded bool) slots {
	keys := make([]string, 0, len(spec.Disks)+len(spec.NICs))
	for i := range spec.Disks {
		keys = append(keys, spec.Disks[i].UUID)
	}
	for i := range spec.NICs {
		keys = append(keys, nicKey(i, &spec.NICs[i]))
	}
	if seeded {
		keys = append(keys, seedKey)
	}
	out, taken := slots{}, map[int]bool{}
	for _, key := range keys {
		if slot, has := have[key]; has {
			out[key], taken[slot] = slot, true
		}
	}
	free := 0
	for _, key := range keys {
		if _, has := out[key]; has {
			continue
		}
		for taken[free] {
			free++
		}
		out[key], taken[free] = free, true
	}
	return out
}

// end is the number behind the last slot that is taken.
func (s slots) end() int {
	if len(s) == 0 {
		return 0
	}
	return slices.Max(slices.Collect(maps.Values(s))) + 1
}

// portsFor is how many ports a machine of a type gets for its devices, with some to spare; none where there are no ports, and devices are
// plugged into the bus itself.
func portsFor(machine string, s slots) int {
	if !hasPorts(machine) {
		return 0
	}
	return max(s.end(), min(s.end()+spareSlots, mostSlots))
}

// fits refuses more devices than the machine has ports for.
func (s *setup) fits() error {
	if !hasPorts(s.machine) {
		return nil
	}
	if end := s.slots.end(); end > min(s.ports, mostSlots) {
		return fault.New(fault.Exhausted, "the machine has %d slots for disks and network cards, and number %d would be needed", min(s.ports, mostSlots), end).
			WithHint("one that is stopped and started has up to %d", mostSlots)
	}
	return nil
}

// names are what QEMU calls the parts of a device in a slot.
type names struct {
	disk, file, content string
	set                 int
	// base, in baseFile, is what the content stands on.
	base, baseFile string
	baseSet        int
	nic, net       string
}

// behindSets is beyond all sets of open files but those of bases.
const behindSets = 3000

func named(slot int) names {
	n := strconv.Itoa(slot)
	return names{disk: "disk" + n, file: "file" + n, content: "content" + n, set: slot + 1, base: "base" + n, baseFile: "basefile" + n, baseSet: behindSets + slot, nic: "nic" + n, net: "net" + n}
}
