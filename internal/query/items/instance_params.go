package items

import (
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/query"
)

// beParams lists the backend parameters that have a field of their own.
var beParams = []struct {
	name, title string
	kind        query.Kind
}{
	{"always_failover", "be/always_failover", query.KindBool},
	{"auto_balance", "Auto_balance", query.KindBool},
	{"maxmem", "ConfigMaxMem", query.KindUnit},
	{"minmem", "ConfigMinMem", query.KindUnit},
	{"spindle_use", "be/spindle_use", query.KindNumber},
	{"vcpus", "ConfigVCPUs", query.KindNumber},
}

func beFields() []query.Field[instance] {
	var out []query.Field[instance]
	for _, p := range beParams {
		get := func(v *query.View, i instance) query.Cell { return beParam(v, i, p.name) }
		out = append(out, query.Field[instance]{Get: get, Def: def("be/"+p.name, p.title, p.kind, "Backend parameter "+p.name+" that is in effect")})
	}
	return append(out,
		query.Field[instance]{Def: def("be/memory", "ConfigMaxMem", query.KindUnit, "Older name of be/maxmem"),
			Get: func(v *query.View, i instance) query.Cell { return beParam(v, i, "maxmem") }},
		query.Field[instance]{Def: def("vcpus", "ConfigVCPUs", query.KindNumber, "Older name of be/vcpus"),
			Get: func(v *query.View, i instance) query.Cell { return beParam(v, i, "vcpus") }},
	)
}

// beParam is NoData when the cluster has no defaults to fall back on.
func beParam(v *query.View, i instance, name string) query.Cell {
	if v.Cluster == nil {
		return query.Cell{Status: query.NoData}
	}
	if value, ok := layered(name, i.BEParams, v.Cluster.BEParams[cluster.DefaultProfile]); ok {
		return known(value)
	}
	return query.Cell{Status: query.NoData}
}

// hvParams lists the hypervisor parameters that have a field of their own: all
// but those of the cluster alone. An empty title stands for the field's name.
var hvParams = []struct {
	name, title string
	kind        query.Kind
}{
	{"acpi", "ACPI", query.KindBool},
	{"blockdev_prefix", "", query.KindOther},
	{"boot_order", "Boot_order", query.KindOther},
	{"bootloader_args", "", query.KindOther},
	{"bootloader_path", "", query.KindOther},
	{"cdrom2_image_path", "", query.KindOther},
	{"cdrom_disk_type", "", query.KindOther},
	{"cdrom_image_path", "CDROM_image_path", query.KindOther},
	{"cpu_cap", "", query.KindNumber},
	{"cpu_cores", "", query.KindNumber},
	{"cpu_mask", "", query.KindOther},
	{"cpu_sockets", "", query.KindNumber},
	{"cpu_threads", "", query.KindNumber},
	{"cpu_type", "cpu_type", query.KindOther},
	{"cpu_weight", "", query.KindNumber},
	{"cpuid", "", query.KindOther},
	{"device_model", "", query.KindOther},
	{"devices", "", query.KindOther},
	{"disk_aio", "", query.KindOther},
	{"disk_cache", "", query.KindOther},
	{"disk_discard", "", query.KindOther},
	{"disk_type", "Disk_type", query.KindOther},
	{"drop_capabilities", "", query.KindOther},
	{"extra_cgroups", "", query.KindOther},
	{"extra_config", "", query.KindOther},
	{"floppy_image_path", "", query.KindOther},
	{"init_script", "", query.KindOther},
	{"initrd_path", "Initrd_path", query.KindOther},
	{"kernel_args", "", query.KindOther},
	{"kernel_path", "Kernel_path", query.KindOther},
	{"keymap", "", query.KindOther},
	{"kvm_extra", "", query.KindOther},
	{"kvm_flag", "", query.KindOther},
	{"kvm_path", "", query.KindOther},
	{"kvm_pci_reservations", "", query.KindNumber},
	{"machine_version", "", query.KindOther},
	{"mem_path", "", query.KindOther},
	{"migration_caps", "", query.KindOther},
	{"migration_downtime", "", query.KindNumber},
	{"nic_type", "NIC_type", query.KindOther},
	{"num_ttys", "", query.KindNumber},
	{"pae", "PAE", query.KindBool},
	{"pci_pass", "pci_pass", query.KindOther},
	{"reboot_behavior", "", query.KindOther},
	{"root_path", "", query.KindOther},
	{"scsi_controller_type", "", query.KindOther},
	{"security_domain", "", query.KindOther},
	{"security_model", "", query.KindOther},
	{"serial_console", "", query.KindBool},
	{"serial_speed", "", query.KindNumber},
	{"soundhw", "", query.KindOther},
	{"spice_bind", "", query.KindOther},
	{"spice_image_compression", "", query.KindOther},
	{"spice_ip_version", "", query.KindNumber},
	{"spice_jpeg_wan_compression", "", query.KindOther},
	{"spice_password_file", "", query.KindOther},
	{"spice_playback_compression", "", query.KindBool},
	{"spice_streaming_video", "", query.KindOther},
	{"spice_tls_ciphers", "", query.KindOther},
	{"spice_use_tls", "", query.KindBool},
	{"spice_use_vdagent", "", query.KindBool},
	{"spice_zlib_glz_wan_compression", "", query.KindOther},
	{"startup_timeout", "", query.KindNumber},
	{"usb_devices", "", query.KindOther},
	{"usb_mouse", "", query.KindOther},
	{"use_bootloader", "", query.KindBool},
	{"use_chroot", "", query.KindBool},
	{"use_guest_agent", "", query.KindBool},
	{"use_localtime", "", query.KindBool},
	{"user_shutdown", "", query.KindBool},
	{"vga", "", query.KindOther},
	{"vhost_net", "", query.KindBool},
	{"vif_script", "", query.KindOther},
	{"vif_type", "", query.KindOther},
	{"viridian", "", query.KindBool},
	{"virtio_net_queues", "", query.KindNumber},
	{"vnc_bind_address", "VNC_bind_address", query.KindOther},
	{"vnc_password_file", "", query.KindOther},
	{"vnc_tls", "", query.KindBool},
	{"vnc_x509_path", "", query.KindOther},
	{"vnc_x509_verify", "", query.KindBool},
	{"vnet_hdr", "", query.KindBool},
}

func hvFields() []query.Field[instance] {
	out := make([]query.Field[instance], len(hvParams))
	for i, p := range hvParams {
		name := "hv/" + p.name
		title := p.title
		if title == "" {
			title = name
		}
		out[i] = query.Field[instance]{
			Def: def(name, title, p.kind, "Hypervisor parameter "+p.name+" that is in effect"),
			Get: func(v *query.View, i instance) query.Cell { return hvParam(v, i, p.name) },
		}
	}
	return out
}

// hvParam is Unavail when the instance's hypervisor has no such parameter.
func hvParam(v *query.View, i instance, name string) query.Cell {
	layers := v.Cluster.HVLayers(i)
	if value, ok := layered(name, layers[:]...); ok {
		return known(value)
	}
	return query.Cell{Status: query.Unavail}
}
