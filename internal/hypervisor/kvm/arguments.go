package kvm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/qemuimg"
)

// The descriptors that a QEMU finds open, from the first behind the usual three; disks follow, then the images that they stand on, then the kernel and its first disk, then taps, a seed,
// the discs of CD drives, the firmware's code and variables, and the line to the TPM.
const (
	monitorFD = 3 + iota
	serialFD
	heldFD
	firstDiskFD
)

// setup is what a command line is made of, beside the specification.
type setup struct {
	// machine is the machine type, by its own name and no alias, so that the guest finds the same at each start.
	machine string
	// accelerator is "kvm" or "tcg".
	accelerator string
	// oneThread has all processors of the guest, and what it does with its devices, in one thread.
	oneThread bool
	// slots are where disks and network cards are plugged in, of ports many.
	slots slots
	ports int
	// bridges: network cards are joined to the node's bridges, by taps that are open; else each has a network of its own.
	bridges bool
	// seed: behind taps a file is open that is a CD, for the guest to read alone.
	seed bool
	// firmware is what the machine starts by, nil for QEMU's own.
	firmware *firmware
	// layers say by UUID how disks are kept that are not as they are.
	layers map[string]*qemuimg.File
}

// sandbox denies QEMU whatever it does not need once it runs: other programs, other users, old system calls.
const sandbox = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

var (
	isUUID     = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	isMAC      = regexp.MustCompile(`^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$`)
	isName     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	isCPU      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._,=+-]*$`)
	nicDevices = map[string]string{"": "virtio-net-pci", "paravirtual": "virtio-net-pci", "e1000": "e1000", "rtl8139": "rtl8139"}
)

// arguments is the command line of a machine, without the program's name. Whatever comes from elsewhere is a value in JSON, or has its commas
// doubled, or is checked: nothing becomes an option of its own.
func arguments(spec *hypervisor.Spec, with setup) ([]string, error) {
	p := params(spec.Params)
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := with.fits(); err != nil {
		return nil, err
	}
	if err := checkBoot(spec, p); err != nil {
		return nil, err
	}
	if p.text("disk_aio") == "native" && p.text("disk_cache") != "none" {
		return nil, fault.New(fault.Invalid, "the hypervisor parameter disk_aio=native goes around the node's memory, and needs disk_cache=none").At("hvparams")
	}
	if _, err := parseMask(cmp.Or(p.text("cpu_mask"), "all"), max(1, spec.VCPUs)); err != nil {
		return nil, err
	}
	args := []string{"-name", "guest=" + escaped(spec.Name) + ",debug-threads=on", "-nodefaults", "-no-user-config", "-S", "-display", "none", "-vga", "none"}
	if isUUID.MatchString(spec.UUID) {
		args = append(args, "-uuid", spec.UUID)
	}
	for _, part := range []func(*hypervisor.Spec, params, setup) ([]string, error){
		machineArguments, processorArguments, bootArguments, lineArguments, screenArguments, diskArguments, nicArguments, seedArguments, cdArguments, balloonArguments, firmwareArguments, tpmArguments,
	} {
		more, err := part(spec, p, with)
		if err != nil {
			return nil, err
		}
		args = append(args, more...)
	}
	return append(args, "-sandbox", sandbox), nil
}

// escaped is a text as a value of an option: a comma would begin the next.
func escaped(text string) string { return strings.ReplaceAll(text, ",", ",,") }

// object is a value of an option that takes JSON.
func object(of map[string]any) string {
	data, err := json.Marshal(of)
	if err != nil { // texts, numbers and truths only
		panic(err)
	}
	return string(data)
}

func refused(name, value, what string) error {
	return fault.New(fault.Invalid, "the hypervisor parameter %s=%.200q is not %s", name, value, what).At("hvparams")
}

func machineArguments(spec *hypervisor.Spec, p params, with setup) ([]string, error) {
	if !isName.MatchString(with.machine) {
		return nil, refused("machine_version", with.machine, "a machine type")
	}
	machine := with.machine + ",dump-guest-core=off"
	if !p.is("acpi", true) {
		machine += ",acpi=off"
	}
	machine += with.firmware.options()
	accelerator := with.accelerator
	if accelerator == "tcg" && with.oneThread {
		accelerator += ",thread=single"
	}
	clock := "base=utc"
	if p.is("use_localtime", false) {
		clock = "base=localtime"
	}
	reboot := "reset"
	if p.text("reboot_behavior") == "exit" {
		reboot = "shutdown"
	}
	return []string{
		"-machine", machine, "-accel", accelerator, "-m", "size=" + strconv.Itoa(spec.Memory) + "M", "-rtc", clock,
		"-action", "shutdown=pause,panic=pause,reboot=" + reboot, // what a guest did is to be seen also by an agent that was away
	}, nil
}

func processorArguments(spec *hypervisor.Spec, p params, _ setup) ([]string, error) {
	smp := []string{"cpus=" + strconv.Itoa(max(1, spec.VCPUs))}
	for _, of := range [][2]string{{"cpu_sockets", "sockets"}, {"cpu_cores", "cores"}, {"cpu_threads", "threads"}} {
		if n := p.number(of[0]); n > 0 {
			smp = append(smp, of[1]+"="+strconv.Itoa(n))
		}
	}
	args := []string{"-smp", strings.Join(smp, ",")}
	if model := p.text("cpu_type"); model != "" {
		if !isCPU.MatchString(model) {
			return nil, refused("cpu_type", model, "a processor model")
		}
		args = append(args, "-cpu", model)
	}
	return args, nil
}

// bootArguments are those of a kernel that the machine starts from; without one it starts from its first disk.
func bootArguments(spec *hypervisor.Spec, p params, with setup) ([]string, error) {
	if p.text("kernel_path") == "" {
		return nil, nil
	}
	line := p.text("kernel_args")
	if root := p.text("root_path"); root != "" {
		line = "root=" + root + " " + line
	}
	if p.is("serial_console", true) {
		line += " console=ttyS0," + strconv.Itoa(speed(p))
	}
	kernel := with.behindDisks(spec)
	args := []string{"-kernel", opened(kernel), "-append", strings.TrimSpace(line)}
	if p.text("initrd_path") != "" {
		args = append(args, "-initrd", opened(kernel+1))
	}
	return args, nil
}

// bootFiles are the files that a machine starts from, by the parameters that name them.
func bootFiles(p params) (names []string) {
	for _, name := range []string{"kernel_path", "initrd_path"} {
		if p.text(name) == "" {
			break // a first disk is nothing without a kernel
		}
		names = append(names, name)
	}
	return names
}

// opened is the path of a file that is open already.
func opened(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func speed(p params) int {
	if n := p.number("serial_speed"); n > 0 {
		return n
	}
	return 38400
}

// lineArguments are the lines between the machine and its agent, which has opened their ends.
func lineArguments(_ *hypervisor.Spec, p params, _ setup) ([]string, error) {
	args := []string{
		"-chardev", fmt.Sprintf("socket,id=monitor,fd=%d,server=on,wait=off", monitorFD), "-mon", "chardev=monitor,mode=control",
		"-chardev", fmt.Sprintf("socket,id=serial,fd=%d,server=on,wait=off", serialFD),
	}
	if p.is("serial_console", true) {
		args = append(args, "-device", object(map[string]any{"driver": "isa-serial", "chardev": "serial"}))
	}
	return args, nil
}

// port is a port that a device of a q35 machine is plugged into, and can be pulled from.
func port(n int) []string {
	return []string{"-device", object(map[string]any{"driver": "pcie-root-port", "id": portName(n), "chassis": n + 1, "bus": "pcie.0"})}
}

func portName(n int) string { return "port" + strconv.Itoa(n) }

// hasPorts reports whether a machine type has PCI Express.
func hasPorts(machine string) bool {
	return strings.HasPrefix(machine, "q35") || strings.HasPrefix(machine, "pc-q35")
}

// plugged says where the device with a number of its own is.
func plugged(with setup, n int, device map[string]any) map[string]any {
	if hasPorts(with.machine) {
		device["bus"] = portName(n)
	}
	return device
}

func diskArguments(spec *hypervisor.Spec, p params, with setup) ([]string, error) {
	var args []string
	for n := range with.ports {
		args = append(args, port(n)...)
	}
	baseFD := firstDiskFD + len(spec.Disks)
	for n := range spec.Disks {
		disk := diskParts(&spec.Disks[n], p, with)
		if n == 0 && p.text("kernel_path") == "" {
			disk.device["bootindex"] = diskBoots(p)
		}
		args = append(args, "-add-fd", fmt.Sprintf("fd=%d,set=%d", firstDiskFD+n, disk.set))
		if disk.baseSet > 0 {
			args = append(args, "-add-fd", fmt.Sprintf("fd=%d,set=%d", baseFD, disk.baseSet))
			baseFD++
		}
		for _, node := range disk.nodes {
			args = append(args, "-blockdev", object(node))
		}
		args = append(args, "-device", object(disk.device))
	}
	return args, nil
}

// parts are a disk as QEMU knows it: the sets of its open file and of that which it stands on, if there is one; the files and what is in them, each behind
// what it needs; and the device that the guest sees.
type parts struct {
	set, baseSet int
	nodes        []map[string]any
	device       map[string]any
}

// protocol is how QEMU gets at what a disk is kept in.
func protocol(disk *hypervisor.Disk) string {
	switch disk.Template {
	case "plain", "ext":
		return "host_device" // a block device
	}
	return "file"
}

func diskParts(disk *hypervisor.Disk, p params, with setup) parts {
	slot := with.slots[disk.UUID]
	of := named(slot)
	cache := map[string]any{"direct": p.text("disk_cache") == "none"}
	discard := "unmap" // what a guest gives back is given back
	if p.text("disk_discard") == "ignore" {
		discard = "ignore"
	}
	device := map[string]any{"driver": "virtio-blk-pci", "id": of.disk, "drive": of.content, "serial": serial(disk.UUID)}
	if p.text("disk_cache") == "writethrough" {
		device["write-cache"] = "off"
	}
	file := map[string]any{"driver": protocol(disk), "node-name": of.file, "filename": "/dev/fdset/" + strconv.Itoa(of.set), "read-only": disk.ReadOnly, "cache": cache, "discard": discard}
	if p.text("disk_aio") == "native" {
		file["aio"] = "native"
	}
	content := map[string]any{"driver": diskimage.Raw, "node-name": of.content, "file": of.file, "read-only": disk.ReadOnly, "cache": cache, "discard": discard}
	out := parts{set: of.set, nodes: []map[string]any{file}, device: plugged(with, slot, device)}
	if layer := with.layers[disk.UUID]; layer != nil {
		content["driver"], content["backing"] = layer.Format, nil // what the file says that it stands on does not count
		if layer.Base != nil {
			out.baseSet, content["backing"] = of.baseSet, of.base
			out.nodes = append(out.nodes,
				map[string]any{"driver": "file", "node-name": of.baseFile, "filename": "/dev/fdset/" + strconv.Itoa(of.baseSet), "read-only": true},
				map[string]any{"driver": layer.Base.Format, "node-name": of.base, "file": of.baseFile, "read-only": true})
			if layer.Base.Format != diskimage.Raw {
				out.nodes[len(out.nodes)-1]["backing"] = nil
			}
		}
	}
	out.nodes = append(out.nodes, content)
	return out
}

// serial is what the guest sees of a disk's UUID; virtio has room for 20 letters.
func serial(uuid string) string { return uuid[:min(20, len(uuid))] }

func nicArguments(spec *hypervisor.Spec, p params, with setup) ([]string, error) {
	var args []string
	for n := range spec.NICs {
		fd := strconv.Itoa(with.behindDisks(spec) + len(bootFiles(p)) + n)
		end, device, err := nicParts(n, &spec.NICs[n], p, with, fd)
		if err != nil {
			return nil, err
		}
		if n == 0 && p.text("boot_order") == "network" && p.text("kernel_path") == "" {
			device["bootindex"] = 1
		}
		args = append(args, "-netdev", object(end), "-device", object(device))
	}
	return args, nil
}

// nicParts are a network card as QEMU knows it: the node's end, whose tap is an open file with a number or name, and the device that the guest sees.
func nicParts(n int, nic *hypervisor.NIC, p params, with setup, fd string) (end, device map[string]any, err error) {
	slot := with.slots[nicKey(n, nic)]
	of := named(slot)
	device = map[string]any{"driver": nicDevices[p.text("nic_type")], "id": of.nic, "netdev": of.net}
	if nic.MAC != "" {
		if !isMAC.MatchString(nic.MAC) {
			return nil, nil, fault.New(fault.Invalid, "%.100q is no MAC address", nic.MAC).At("nics")
		}
		device["mac"] = nic.MAC
	}
	end = map[string]any{"type": "user", "id": of.net}
	if with.bridges {
		end["type"], end["fd"] = "tap", fd
	}
	return end, plugged(with, slot, device), nil
}

// seedArguments are those of the CD that a machine was given. It has a slot like the others, and takes none from them.
func seedArguments(spec *hypervisor.Spec, p params, with setup) ([]string, error) {
	if !with.seed {
		return nil, nil
	}
	slot := with.slots[seedKey]
	device := plugged(with, slot, map[string]any{"driver": "virtio-blk-pci", "serial": "seed"})
	return medium("seed", behindTaps(spec, p, with), named(slot).set, device), nil
}

// behindTaps is the first descriptor behind those of taps.
func behindTaps(spec *hypervisor.Spec, p params, with setup) int {
	fd := with.behindDisks(spec) + len(bootFiles(p))
	if with.bridges {
		fd += len(spec.NICs)
	}
	return fd
}

// medium are the arguments of an open file that the guest may read, by a device, and never write.
func medium(name string, fd, set int, device map[string]any) []string {
	device["id"], device["drive"] = name, name+"-content"
	return []string{
		"-add-fd", fmt.Sprintf("fd=%d,set=%d", fd, set),
		"-blockdev", object(map[string]any{"driver": "file", "node-name": name + "-file", "filename": "/dev/fdset/" + strconv.Itoa(set), "read-only": true}),
		"-blockdev", object(map[string]any{"driver": "raw", "node-name": name + "-content", "file": name + "-file", "read-only": true}),
		"-device", object(device),
	}
}
