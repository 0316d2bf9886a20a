package kvm

import (
	"strconv"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// firstCDSet is the number of the set of open files that the first CD drive reads from; those of disks are below it.
const firstCDSet = 1000

// cdFiles are the discs in a machine's drives, by the parameters that name their files on the node.
func cdFiles(p params) (names []string) {
	for _, name := range []string{"cdrom_image_path", "cdrom2_image_path"} {
		if p.text(name) != "" {
			names = append(names, name)
		}
	}
	return names
}

// behindDiscs is the first descriptor behind those of discs.
func behindDiscs(spec *hypervisor.Spec, p params, with setup) int {
	fd := behindTaps(spec, p, with) + len(cdFiles(p))
	if with.seed {
		fd++
	}
	return fd
}

// cdArguments are those of the drives, whose discs are open files behind the seed. They are IDE's, as every system's installer knows them.
func cdArguments(spec *hypervisor.Spec, p params, with setup) ([]string, error) {
	discs := cdFiles(p)
	fd := behindDiscs(spec, p, with) - len(discs)
	var args []string
	for n := range discs {
		device := map[string]any{"driver": "ide-cd", "bus": "ide." + strconv.Itoa(n)}
		if n == 0 && p.text("boot_order") == "cdrom" && p.text("kernel_path") == "" {
			device["bootindex"] = 1
		}
		args = append(args, medium("cd"+strconv.Itoa(n), fd+n, firstCDSet+n, device)...)
	}
	return args, nil
}

// checkBoot refuses what a machine without a kernel of its own cannot start from. Behind a disc, or the network, comes the first disk.
func checkBoot(spec *hypervisor.Spec, p params) error {
	if p.text("kernel_path") != "" {
		return nil // that is started, whatever else there is
	}
	switch from := p.text("boot_order"); {
	case from == "cdrom" && p.text("cdrom_image_path") == "":
		return fault.New(fault.Invalid, "the hypervisor parameter boot_order=cdrom has nothing to start from").At("hvparams").
			WithHint("cdrom_image_path=FILE names a disc on the node")
	case from == "network" && len(spec.NICs) == 0:
		return fault.New(fault.Invalid, "the hypervisor parameter boot_order=network has nothing to start from: the machine has no network card").At("hvparams")
	}
	return nil
}

// diskBoots is the place of the first disk among what the machine tries to start from.
func diskBoots(p params) int {
	if from := p.text("boot_order"); from == "cdrom" || from == "network" {
		return 2
	}
	return 1
}
