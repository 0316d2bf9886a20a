package kvm

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/fault"
)

// mostCPUs is how many processors a mask can name.
const mostCPUs = 1024

// parseMask reads cpu_mask, in the reference's form: processors of the node ("0-2,5", "all") for the whole machine, or, with colons, for each of
// its processors. A nil set is all.
func parseMask(text string, vcpus int) (sets []*unix.CPUSet, err error) {
	parts := strings.Split(text, ":")
	if len(parts) > 1 && len(parts) != vcpus {
		return nil, fault.New(fault.Invalid, "the hypervisor parameter cpu_mask=%.200q is for %d processors, and the machine has %d", text, len(parts), vcpus).At("hvparams")
	}
	for _, part := range parts {
		set, err := parseCPUs(part)
		if err != nil {
			return nil, refused("cpu_mask", text, "a list of processors (0-2,5), or one for each of the machine's, with colons between")
		}
		sets = append(sets, set)
	}
	return sets, nil
}

func parseCPUs(text string) (*unix.CPUSet, error) {
	if text == "all" {
		return nil, nil
	}
	set := &unix.CPUSet{}
	for part := range strings.SplitSeq(text, ",") {
		low, high, many := strings.Cut(part, "-")
		first, err := strconv.ParseUint(low, 10, 16)
		last := first
		if err == nil && many {
			last, err = strconv.ParseUint(high, 10, 16)
		}
		if err == nil && (last < first || last >= mostCPUs) {
			err = fmt.Errorf("%q is no range", part)
		}
		if err != nil {
			return nil, err
		}
		for cpu := first; cpu <= last; cpu++ {
			set.Set(int(cpu))
		}
	}
	return set, nil
}

// pin keeps the machine to processors of the node. It is done before the guest runs, and stays so for as long as the process is there.
func (p *process) pin(ctx context.Context, mask string, vcpus int) error {
	sets, err := parseMask(mask, vcpus)
	if err != nil {
		return err
	}
	if len(sets) == 1 {
		return p.pinAll(sets[0])
	}
	var cpus []struct {
		Index  int `json:"cpu-index"`
		Thread int `json:"thread-id"`
	}
	if err := p.do(ctx, "query-cpus-fast", nil, &cpus); err != nil {
		return err
	}
	for _, cpu := range cpus {
		if cpu.Index >= len(sets) || sets[cpu.Index] == nil {
			continue
		}
		if err := pinThread(cpu.Thread, sets[cpu.Index]); err != nil {
			return err
		}
	}
	return nil
}

// pinAll pins all threads of the process; those that come later are as who begins them.
func (p *process) pinAll(set *unix.CPUSet) error {
	if set == nil {
		return nil
	}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.pid))
	if err != nil {
		return fault.New(fault.Environment, "cannot see the threads of QEMU: %w", err)
	}
	for _, task := range tasks {
		thread, err := strconv.Atoi(task.Name())
		if err != nil {
			return fault.New(fault.Internal, "%q is no thread", task.Name())
		}
		if err := pinThread(thread, set); err != nil {
			return err
		}
	}
	return nil
}

func pinThread(thread int, set *unix.CPUSet) error {
	var is unix.CPUSet
	err := unix.SchedSetaffinity(thread, set)
	if err == nil {
		err = unix.SchedGetaffinity(thread, &is)
	}
	if err == nil && is == *set {
		return nil
	}
	if err == nil || err == unix.EINVAL {
		return fault.New(fault.Environment, "the hypervisor parameter cpu_mask names processors that this node does not have, or does not let the agent use").At("hvparams")
	}
	return fault.New(fault.Environment, "cannot keep QEMU to the processors of the hypervisor parameter cpu_mask: %w", err).At("hvparams")
}
