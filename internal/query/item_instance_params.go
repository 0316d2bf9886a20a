package query

import "github.com/drover-project/drover/internal/cluster"

// beParams lists the backend parameters that have a field of their own.
var beParams = []struct {
	name, title string
	kind        Kind
}{
	{"always_failover", "be/always_failover", KindBool},
	{"auto_balance", "Auto_balance", KindBool},
	{"maxmem", "ConfigMaxMem", KindUnit},
	{"minmem", "ConfigMinMem", KindUnit},
	{"spindle_use", "be/spindle_use", KindNumber},
	{"vcpus", "ConfigVCPUs", KindNumber},
}

func beFields() []field[instance] {
	var out []field[instance]
	for _, p := range beParams {
		get := func(v *view, i instance) Cell { return beParam(v, i, p.name) }
		out = append(out, field[instance]{get: get, Def: Def{"be/" + p.name, p.title, p.kind, "Backend parameter " + p.name + " that is in effect"}})
	}
	return append(out,
		field[instance]{Def: Def{"be/memory", "ConfigMaxMem", KindUnit, "Older name of be/maxmem"},
			get: func(v *view, i instance) Cell { return beParam(v, i, "maxmem") }},
		field[instance]{Def: Def{"vcpus", "ConfigVCPUs", KindNumber, "Older name of be/vcpus"},
			get: func(v *view, i instance) Cell { return beParam(v, i, "vcpus") }},
	)
}

// beParam is NoData when the cluster has no defaults to fall back on.
func beParam(v *view, i instance, name string) Cell {
	if v.cluster == nil {
		return Cell{Status: NoData}
	}
	if value, ok := layered(name, i.BEParams, v.cluster.BEParams[cluster.DefaultProfile]); ok {
		return known(value)
	}
	return Cell{Status: NoData}
}

// hvParams lists the hypervisor parameters that have a field of their own: all
// but those of the cluster alone. An empty title stands for the field's name.
var hvParams = []struct {
	name, title string
	kind        Kind
}{
	{"acpi", "ACPI", KindBool},
	{"blockdev_prefix", "", KindOther},
	{"boot_order", "Boot_order", KindOther},
	{"bootloader_args", "", KindOther},
	{"bootloader_path", "", KindOther},
	{"cdrom2_image_path", "", KindOther},
	{"cdrom_disk_type", "", KindOther},
	{"cdrom_image_path", "CDROM_image_path", KindOther},
	{"cpu_cap", "", KindNumber},
	{"cpu_cores", "", KindNumber},
	{"cpu_mask", "", KindOther},
	{"cpu_sockets", "", KindNumber},
	{"cpu_threads", "", KindNumber},
	{"cpu_type", "cpu_type", KindOther},
	{"cpu_weight", "", KindNumber},
	{"cpuid", "", KindOther},
	{"device_model", "", KindOther},
	{"devices", "", KindOther},
	{"disk_aio", "", KindOther},
	{"disk_cache", "", KindOther},
	{"disk_discard", "", KindOther},
	{"disk_type", "Disk_type", KindOther},
	{"drop_capabilities", "", KindOther},
	{"extra_cgroups", "", KindOther},
	{"extra_config", "", KindOther},
	{"floppy_image_path", "", KindOther},
	{"init_script", "", KindOther},
	{"initrd_path", "Initrd_path", KindOther},
	{"kernel_args", "", KindOther},
	{"kernel_path", "Kernel_path", KindOther},
	{"keymap", "", KindOther},
	{"kvm_extra", "", KindOther},
	{"kvm_flag", "", KindOther},
	{"kvm_path", "", KindOther},
	{"kvm_pci_reservations", "", KindNumber},
	{"machine_version", "", KindOther},
	{"mem_path", "", KindOther},
	{"migration_caps", "", KindOther},
	{"migration_downtime", "", KindNumber},
	{"nic_type", "NIC_type", KindOther},
	{"num_ttys", "", KindNumber},
	{"pae", "PAE", KindBool},
	{"pci_pass", "pci_pass", KindOther},
	{"reboot_behavior", "", KindOther},
	{"root_path", "", KindOther},
	{"scsi_controller_type", "", KindOther},
	{"security_domain", "", KindOther},
	{"security_model", "", KindOther},
	{"serial_console", "", KindBool},
	{"serial_speed", "", KindNumber},
	{"soundhw", "", KindOther},
	{"spice_bind", "", KindOther},
	{"spice_image_compression", "", KindOther},
	{"spice_ip_version", "", KindNumber},
	{"spice_jpeg_wan_compression", "", KindOther},
	{"spice_password_file", "", KindOther},
	{"spice_playback_compression", "", KindBool},
	{"spice_streaming_video", "", KindOther},
	{"spice_tls_ciphers", "", KindOther},
	{"spice_use_tls", "", KindBool},
	{"spice_use_vdagent", "", KindBool},
	{"spice_zlib_glz_wan_compression", "", KindOther},
	{"startup_timeout", "", KindNumber},
	{"usb_devices", "", KindOther},
	{"usb_mouse", "", KindOther},
	{"use_bootloader", "", KindBool},
	{"use_chroot", "", KindBool},
	{"use_guest_agent", "", KindBool},
	{"use_localtime", "", KindBool},
	{"user_shutdown", "", KindBool},
	{"vga", "", KindOther},
	{"vhost_net", "", KindBool},
	{"vif_script", "", KindOther},
	{"vif_type", "", KindOther},
	{"viridian", "", KindBool},
	{"virtio_net_queues", "", KindNumber},
	{"vnc_bind_address", "VNC_bind_address", KindOther},
	{"vnc_password_file", "", KindOther},
	{"vnc_tls", "", KindBool},
	{"vnc_x509_path", "", KindOther},
	{"vnc_x509_verify", "", KindBool},
	{"vnet_hdr", "", KindBool},
}

func hvFields() []field[instance] {
	out := make([]field[instance], len(hvParams))
	for i, p := range hvParams {
		name := "hv/" + p.name
		title := p.title
		if title == "" {
			title = name
		}
		out[i] = field[instance]{
			Def: Def{name, title, p.kind, "Hypervisor parameter " + p.name + " that is in effect"},
			get: func(v *view, i instance) Cell { return hvParam(v, i, p.name) },
		}
	}
	return out
}

// hvParam is Unavail when the instance's hypervisor has no such parameter.
func hvParam(v *view, i instance, name string) Cell {
	layers := v.cluster.HVLayers(i)
	if value, ok := layered(name, layers[:]...); ok {
		return known(value)
	}
	return Cell{Status: Unavail}
}
