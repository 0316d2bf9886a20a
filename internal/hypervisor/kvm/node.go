package kvm

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// Node tells the figures of the machine. Memory is counted as if every guest used all of its own.
func (d *Driver) Node(ctx context.Context) (hypervisor.Node, error) {
	if err := ctx.Err(); err != nil {
		return hypervisor.Node{}, fault.New(fault.Canceled, "the figures of the node were not looked at: %w", err)
	}
	total, free, err := d.memory()
	if err != nil {
		return hypervisor.Node{}, err
	}
	out := hypervisor.Node{
		MemoryTotal: total, MemoryFree: free, MemoryNode: max(0, total-free-d.given()),
		CPUs: runtime.NumCPU(), CPUNodes: counted("/sys/devices/system/node/node[0-9]*"), CPUSockets: sockets(),
		Hypervisor: Kind, Hotplug: true, Version: "QEMU " + d.qemu.version + " (" + d.cfg.Accelerator + ")",
	}
	out.Takes, out.Templates = d.takes(), d.cfg.Volumes.Templates()
	out.Snapshots = out.Templates
	if out.DiskTotal, out.DiskFree, err = d.cfg.Volumes.Space(ctx); err != nil {
		return hypervisor.Node{}, err
	}
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return hypervisor.Node{}, fault.New(fault.Environment, "cannot tell since when the node runs: %w", err)
	}
	out.BootID = strings.TrimSpace(string(id))
	return out, nil
}

// takes are the values of parameters that depend on what the node has.
func (d *Driver) takes() map[string][]string {
	out := map[string][]string{"firmware": {bios}, "tpm": {"none"}}
	for _, p := range parameters {
		if strings.HasPrefix(p.name, "vnc_") { // who asks for a screen that is guarded is not to find out at the start that it is not
			out[p.name] = p.takes
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(firmwareFeatures)) {
		if len(findFirmware(d.cfg.firmware, kind, d.qemu.types[usualType])) > 0 {
			out["firmware"] = append(out["firmware"], kind)
		}
	}
	if _, err := findTPM(); err == nil {
		out["tpm"] = append(out["tpm"], "v2.0")
	}
	if len(d.qemu.models) > 0 {
		out["cpu_type"] = d.qemu.models
	}
	return out
}

// memory is all of the node's memory and what is free for guests, in MiB: what the system could give, less what guests may still take of
// their own.
func (d *Driver) memory() (total, free int, err error) {
	figures, err := fields("/proc/meminfo", "MemTotal:", "MemAvailable:")
	if err != nil {
		return 0, 0, fault.New(fault.Environment, "cannot tell the memory of the node: %w", err)
	}
	total, free = figures[0]>>10, figures[1]>>10
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.things {
		if i := m.info(); i.Active() {
			free -= max(0, i.Memory-resident(m.running()))
		}
	}
	return total, max(0, free), nil
}

// given is how much memory guests have, in MiB.
func (d *Driver) given() (sum int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.things {
		sum += m.info().Memory
	}
	return sum
}

// resident is how much memory a process uses, in MiB.
func resident(p *process) int {
	if p == nil {
		return 0
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.pid))
	if err != nil {
		return 0
	}
	var all, here int
	if _, err := fmt.Sscan(string(data), &all, &here); err != nil {
		return 0
	}
	return here * os.Getpagesize() >> 20
}

// fields reads numbers behind names from a file of lines.
func fields(path string, names ...string) ([]int, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	out, found := make([]int, len(names)), 0
	for in := bufio.NewScanner(f); in.Scan(); {
		words := strings.Fields(in.Text())
		for n, name := range names {
			if len(words) >= 2 && words[0] == name {
				if out[n], err = strconv.Atoi(words[1]); err != nil {
					return nil, err
				}
				found++
			}
		}
	}
	if found != len(names) {
		return nil, fmt.Errorf("%s lacks one of %v", path, names)
	}
	return out, nil
}

func counted(pattern string) int {
	found, _ := filepath.Glob(pattern) // the pattern is right
	return max(1, len(found))
}

// sockets is how many packages the processors sit in.
func sockets() int {
	files, _ := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*/topology/physical_package_id")
	different := map[string]bool{}
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil {
			different[string(data)] = true
		}
	}
	return max(1, len(different))
}
