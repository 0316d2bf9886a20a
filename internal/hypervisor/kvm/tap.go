package kvm

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// tunDevice is where taps are made.
const tunDevice = "/dev/net/tun"

// openTap makes the node's end of a network card and joins it to the bridge that the card's link names. It is there as long as somebody has
// it open.
func openTap(ctx context.Context, n int, nic *hypervisor.NIC) (*os.File, error) {
	switch {
	case nic.Mode != "bridged":
		return nil, fault.New(fault.Unsupported, "network card %d is %.50q, and this node joins cards to bridges only", n, nic.Mode).At("nics").WithHint("its mode is to be bridged")
	case nic.VLAN != "":
		return nil, fault.New(fault.Unsupported, "network card %d is to be in the VLAN %.50q, which is not built", n, nic.VLAN).At("nics")
	case !isName.MatchString(nic.Link):
		return nil, fault.New(fault.Invalid, "network card %d has the link %.50q, which is no bridge's name", n, nic.Link).At("nics")
	}
	name := tapName(nic.UUID)
	fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, noTap(n, err)
	}
	f := os.NewFile(uintptr(fd), name)
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		_ = f.Close()
		return nil, noTap(n, err)
	}
	args := []string{"link", "set", "dev", name, "master", nic.Link, "up"}
	if isMAC.MatchString(nic.MAC) { // a bridge has the least address of its ports, which is to stay the node's own
		args = append(args, "address", "fe"+nic.MAC[2:])
	}
	if said, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
		_ = f.Close()
		return nil, fault.New(fault.Environment, "network card %d cannot be joined to the bridge %s: %w: %s", n, nic.Link, err, bytes.TrimSpace(said)).At("nics").
			WithHint("ip link show type bridge lists the node's bridges")
	}
	return f, nil
}

func noTap(n int, err error) error {
	return fault.New(fault.Environment, "network card %d gets no end on the node: %w", n, err).At("nics").
		WithHint("taps take root; network = user gives each card a network of its own")
}

// tapName is the name of a card's end: names of devices have 15 letters at most.
func tapName(uuid string) string {
	letters := strings.ReplaceAll(uuid, "-", "")
	return "dr" + letters[:min(12, len(letters))]
}
