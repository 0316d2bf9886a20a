package kvm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// parameter says what the driver makes of a hypervisor parameter.
type parameter struct {
	name string
	// takes are the values that are done; a single "*" is any.
	takes []string
	// why says why other values are refused, or why any value does nothing.
	why string
}

const (
	notYet     = "it is not built"
	migrations = "machines are not moved while they run"
	ofSPICE    = "it is about SPICE, which is not there (spice_bind)"
	ofPorts    = "a screen listens at no port that it could guard: who may see it is handed to it by the node's agent"
	ofTaps     = "QEMU itself moves what comes over a bridge, in one queue"
)

// parameters is the table of all that the reference has for kvm, and of those of our own (cluster.OwnHVParams). docs/compat/kvm.md tells it to people.
var parameters = []parameter{
	{"acpi", []string{"*"}, ""},
	{"boot_order", []string{"disk", "cdrom", "network"}, "there is no floppy drive"},
	{"cdrom2_image_path", []string{"*"}, ""},
	{"cdrom_disk_type", []string{"", "ide"}, "CD drives are IDE's"},
	{"cdrom_image_path", []string{"*"}, ""},
	{"cpu_cores", []string{"*"}, ""},
	{"cpu_mask", []string{"*"}, ""},
	{"cpu_sockets", []string{"*"}, ""},
	{"cpu_threads", []string{"*"}, ""},
	{"cpu_type", []string{"*"}, ""},
	{"disk_aio", []string{"threads", "native"}, "Ganeti knows no other"},
	{"disk_cache", []string{"default", "writeback", "writethrough", "none"}, "QEMU knows no other"},
	{"disk_discard", []string{"default", "ignore", "unmap"}, "QEMU knows no other"},
	{"disk_type", []string{"paravirtual"}, "disks are virtio's"},
	{"firmware", []string{"", bios, "uefi", "uefi-secure"}, "there is no other"},
	{"floppy_image_path", []string{""}, "there is no floppy drive"},
	{"initrd_path", []string{"*"}, ""},
	{"kernel_args", []string{"*"}, ""},
	{"kernel_path", []string{"*"}, ""},
	{"keymap", []string{"*"}, ""},
	{"kvm_extra", []string{""}, "options that are passed on unread could be anything"},
	{"kvm_flag", []string{"", "enabled", "disabled"}, "it is enabled or disabled"},
	{"kvm_path", []string{"/usr/bin/kvm"}, "the agent's own setting says which QEMU runs"},
	{"kvm_pci_reservations", []string{"*"}, "each device has a port of its own"},
	{"machine_version", []string{"*"}, ""},
	{"mem_path", []string{""}, notYet},
	{"migration_bandwidth", []string{"*"}, migrations},
	{"migration_caps", []string{"*"}, migrations},
	{"migration_downtime", []string{"*"}, migrations},
	{"migration_mode", []string{"*"}, migrations},
	{"migration_port", []string{"*"}, migrations},
	{"nic_type", []string{"paravirtual", "e1000", "rtl8139"}, "network cards are virtio's, e1000 or rtl8139"},
	{"reboot_behavior", []string{"reboot", "exit"}, "it is reboot or exit"},
	{"root_path", []string{"*"}, ""},
	{"scsi_controller_type", []string{"*"}, "there are no SCSI disks (disk_type)"},
	{"security_domain", []string{"*"}, "guests run as the agent's setting says, without any rights"},
	{"security_model", []string{"none"}, "guests run as the agent's setting says, without any rights"},
	{"serial_console", []string{"*"}, ""},
	{"serial_speed", []string{"*"}, ""},
	{"soundhw", []string{""}, notYet},
	{"spice_bind", []string{""}, notYet},
	{"spice_image_compression", []string{"*"}, ofSPICE},
	{"spice_ip_version", []string{"*"}, ofSPICE},
	{"spice_jpeg_wan_compression", []string{"*"}, ofSPICE},
	{"spice_password_file", []string{"*"}, ofSPICE},
	{"spice_playback_compression", []string{"*"}, ofSPICE},
	{"spice_streaming_video", []string{"*"}, ofSPICE},
	{"spice_tls_ciphers", []string{"*"}, ofSPICE},
	{"spice_use_tls", []string{"*"}, ofSPICE},
	{"spice_use_vdagent", []string{"*"}, ofSPICE},
	{"spice_zlib_glz_wan_compression", []string{"*"}, ofSPICE},
	{"tpm", []string{"", "none", "v2.0"}, "there is no other"},
	{"usb_devices", []string{""}, notYet},
	{"usb_mouse", []string{"", "tablet", "mouse"}, "a pointer is one or the other"},
	{"use_chroot", []string{"false"}, "guests run under a sandbox, and open no files"},
	{"use_guest_agent", []string{"false"}, notYet},
	{"use_localtime", []string{"*"}, ""},
	{"user_shutdown", []string{"*"}, ""},
	{"vga", []string{"", "std", "none"}, "a display is QEMU's standard one, or there is none"},
	{"vhost_net", []string{"*"}, ofTaps},
	{"virtio_net_queues", []string{"1"}, ofTaps},
	{"vnc_bind_address", []string{""}, "a screen listens nowhere: who may see it is handed to it by the node's agent"},
	{"vnc_password_file", []string{""}, ofPorts},
	{"vnc_tls", []string{"false"}, ofPorts},
	{"vnc_x509_path", []string{""}, ofPorts},
	{"vnc_x509_verify", []string{"false"}, ofPorts},
	{"vnet_hdr", []string{"*"}, ofTaps},
}

// params are the parameters of a start.
type params map[string]any

// check refuses what the driver does not do: Unsupported, with the parameter's name.
func (p params) check() error {
	known := map[string]bool{}
	for _, one := range parameters {
		known[one.name] = true
		value, given := p[one.name]
		if !given || slices.Contains(one.takes, "*") || slices.Contains(one.takes, text(value)) {
			continue
		}
		return fault.New(fault.Unsupported, "the hypervisor parameter %s=%.200s is not done: %s", one.name, text(value), one.why).
			At("hvparams").WithHint("it takes: %s", strings.Join(quoted(one.takes), ", "))
	}
	for name := range p {
		if !known[name] {
			return fault.New(fault.Unsupported, "the hypervisor parameter %.100q is not known", name).At("hvparams")
		}
	}
	return nil
}

func quoted(values []string) []string {
	out := slices.Clone(values)
	for i := range out {
		if out[i] == "" {
			out[i] = `""`
		}
	}
	return out
}

// text is a value as people write it.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case json.Number:
		return v.String()
	}
	return fmt.Sprint(value)
}

func (p params) text(name string) string {
	if value, given := p[name]; given {
		return text(value)
	}
	return ""
}

func (p params) number(name string) int {
	n, _ := strconv.Atoi(p.text(name))
	return n
}

// is reports whether a switch is on; one that is not given is as the default says.
func (p params) is(name string, fallback bool) bool {
	if value, given := p[name]; given {
		return text(value) == "true"
	}
	return fallback
}
