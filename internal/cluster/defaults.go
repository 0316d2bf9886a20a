package cluster

// The defaults of a fresh cluster. They are facts of the reference, read from
// a cluster that was just made.

func defaultCluster() *Cluster {
	return &Cluster{
		MasterNetdev: "br0", MasterNetmask: 32,
		MACPrefix: "aa:00:00", HighestPort: 10999,
		FileDir: "/srv/ganeti/file-storage", SharedFileDir: "/srv/ganeti/shared-file-storage",
		GlusterDir: "/var/run/ganeti/gluster",
		PoolSize:   10, MaxRunningJobs: 20, MaxTrackedJobs: 25,
		HVParams: defaultHVParams(), OSHVP: map[string]map[string]Params{},
		BEParams:  map[string]Params{DefaultProfile: defaultBEParams()},
		OSParams:  map[string]Params{},
		NICParams: map[string]Params{DefaultProfile: {"mode": NICBridged, "link": "br0", "vlan": ""}},
		NDParams:  defaultNDParams(), DiskParams: defaultDiskParams(), IPolicy: defaultIPolicy(),
		OSParamsPrivate: map[string]Params{},
		UIDPool:         [][2]int64{}, ReservedLVs: []string{}, HiddenOS: []string{}, BlacklistedOS: []string{},
		IAllocator: "hail", IAllocatorParams: Params{},
		CompressionTools: []string{"gzip", "gzip-fast", "gzip-slow"},
		ModifySSHSetup:   true, SSHKeyType: "rsa", SSHKeyBits: 2048,
		Collectors: defaultCollectors(),
	}
}

// collectorInterval is the pause between two runs of a data collector, in
// microseconds.
const collectorInterval = 5_000_000

func defaultCollectors() map[string]Collector {
	out := map[string]Collector{}
	for _, name := range []string{"cpu-avg-load", "diskstats", "drbd", "inst-status-xen", "lv", "xen-cpu-avg-load"} {
		out[name] = Collector{Active: true, Interval: collectorInterval}
	}
	return out
}

func defaultBEParams() Params {
	return Params{
		"always_failover": false,
		"auto_balance":    true,
		"maxmem":          int64(128),
		"minmem":          int64(128),
		"spindle_use":     int64(1),
		"vcpus":           int64(1),
	}
}

func defaultNDParams() Params {
	return Params{
		"cpu_speed":         int64(1),
		"exclusive_storage": false,
		"oob_program":       "",
		"ovs":               false,
		"ovs_link":          "",
		"ovs_name":          "switch1",
		"spindle_count":     int64(1),
		"ssh_port":          int64(22),
	}
}

func defaultIPolicy() Params {
	return Params{
		"minmax":        []any{map[string]any{"max": map[string]any{"cpu-count": int64(8), "disk-count": int64(16), "disk-size": int64(1048576), "memory-size": int64(32768), "nic-count": int64(8), "spindle-use": int64(12)}, "min": map[string]any{"cpu-count": int64(1), "disk-count": int64(0), "disk-size": int64(4), "memory-size": int64(16), "nic-count": int64(0), "spindle-use": int64(1)}}},
		"spindle-ratio": int64(100000),
		"std":           map[string]any{"cpu-count": int64(1), "disk-count": int64(1), "disk-size": int64(1024), "memory-size": int64(128), "nic-count": int64(1), "spindle-use": int64(1)},
		"vcpu-ratio":    int64(100000),
	}
}

func defaultDiskParams() map[string]Params {
	return map[string]Params{
		"blockdev":   {},
		"diskless":   {},
		"drbd":       {"c-delay-target": int64(1), "c-fill-target": int64(0), "c-max-rate": int64(61440), "c-min-rate": int64(4096), "c-plan-ahead": int64(20), "data-stripes": int64(1), "disk-barriers": "n", "disk-custom": "", "dynamic-resync": false, "meta-barriers": false, "meta-stripes": int64(1), "metavg": "xenvg", "net-custom": "", "protocol": "C", "resync-rate": int64(61440)},
		"ext":        {"access": "kernelspace"},
		"file":       {},
		"gluster":    {"access": "kernelspace", "host": "127.0.0.1", "port": int64(24007), "volume": "gv0"},
		"plain":      {"stripes": int64(1)},
		"rbd":        {"access": "kernelspace", "pool": "rbd"},
		"sharedfile": {},
	}
}

func defaultHVParams() map[string]Params {
	return map[string]Params{
		"chroot":  chrootDefaults(),
		"fake":    fakeDefaults(),
		"kvm":     kvmDefaults(),
		"lxc":     lxcDefaults(),
		"xen-hvm": xenHVMDefaults(),
		"xen-pvm": xenPVMDefaults(),
	}
}

func chrootDefaults() Params {
	return Params{
		"init_script": "/ganeti-chroot",
	}
}

func fakeDefaults() Params {
	return Params{
		"migration_mode": "live",
	}
}

func kvmDefaults() Params {
	return Params{
		"acpi":                           true,
		"boot_order":                     "disk",
		"cdrom2_image_path":              "",
		"cdrom_disk_type":                "",
		"cdrom_image_path":               "",
		"cpu_cores":                      int64(0),
		"cpu_mask":                       "all",
		"cpu_sockets":                    int64(0),
		"cpu_threads":                    int64(0),
		"cpu_type":                       "",
		"disk_aio":                       "threads",
		"disk_cache":                     "default",
		"disk_discard":                   "default",
		"disk_type":                      "paravirtual",
		"floppy_image_path":              "",
		"initrd_path":                    "",
		"kernel_args":                    "ro",
		"kernel_path":                    "/boot/vmlinuz-3-kvmU",
		"keymap":                         "",
		"kvm_extra":                      "",
		"kvm_flag":                       "",
		"kvm_path":                       "/usr/bin/kvm",
		"kvm_pci_reservations":           int64(12),
		"machine_version":                "",
		"mem_path":                       "",
		"migration_bandwidth":            int64(32),
		"migration_caps":                 "",
		"migration_downtime":             int64(30),
		"migration_mode":                 "live",
		"migration_port":                 int64(8102),
		"nic_type":                       "paravirtual",
		"reboot_behavior":                "reboot",
		"root_path":                      "/dev/vda1",
		"scsi_controller_type":           "lsi",
		"security_domain":                "",
		"security_model":                 "none",
		"serial_console":                 true,
		"serial_speed":                   int64(38400),
		"soundhw":                        "",
		"spice_bind":                     "",
		"spice_image_compression":        "",
		"spice_ip_version":               int64(0),
		"spice_jpeg_wan_compression":     "",
		"spice_password_file":            "",
		"spice_playback_compression":     true,
		"spice_streaming_video":          "",
		"spice_tls_ciphers":              "HIGH:-DES:-3DES:-EXPORT:-DH",
		"spice_use_tls":                  false,
		"spice_use_vdagent":              true,
		"spice_zlib_glz_wan_compression": "",
		"usb_devices":                    "",
		"usb_mouse":                      "",
		"use_chroot":                     false,
		"use_guest_agent":                false,
		"use_localtime":                  false,
		"user_shutdown":                  false,
		"vga":                            "",
		"vhost_net":                      false,
		"virtio_net_queues":              int64(1),
		"vnc_bind_address":               "",
		"vnc_password_file":              "",
		"vnc_tls":                        false,
		"vnc_x509_path":                  "",
		"vnc_x509_verify":                false,
		"vnet_hdr":                       true,
	}
}

// OwnHVParams are the types of parameters that the reference does not have, by hypervisor. They have no defaults: where nobody says one it is not
// there, so that whoever knows the reference's parameters alone finds those.
func OwnHVParams() map[string]map[string]ParamType {
	return map[string]map[string]ParamType{
		"kvm": {"firmware": TypeText, "tpm": TypeText},
	}
}

func lxcDefaults() Params {
	return Params{
		"cpu_mask":          "",
		"devices":           "c 1:3 rw,c 1:5 rw,c 1:7 rw,c 1:8 rw,c 1:9 rw,c 1:10 rw,c 5:0 rw,c 5:1 rw,c 5:2 rw,c 136:* rw",
		"drop_capabilities": "mac_override,sys_boot,sys_module,sys_time,sys_admin",
		"extra_cgroups":     "",
		"extra_config":      "",
		"num_ttys":          int64(6),
		"startup_timeout":   int64(30),
	}
}

func xenHVMDefaults() Params {
	return Params{
		"acpi":              true,
		"blockdev_prefix":   "hd",
		"boot_order":        "cd",
		"cdrom_image_path":  "",
		"cpu_cap":           int64(0),
		"cpu_mask":          "all",
		"cpu_weight":        int64(256),
		"cpuid":             "",
		"device_model":      "/usr/lib/xen/bin/qemu-dm",
		"disk_type":         "paravirtual",
		"kernel_path":       "/usr/lib/xen/boot/hvmloader",
		"migration_mode":    "non-live",
		"migration_port":    int64(8002),
		"nic_type":          "rtl8139",
		"pae":               true,
		"pci_pass":          "",
		"reboot_behavior":   "reboot",
		"soundhw":           "",
		"use_localtime":     false,
		"vif_script":        "",
		"vif_type":          "ioemu",
		"viridian":          false,
		"vnc_bind_address":  "0.0.0.0",
		"vnc_password_file": "/etc/ganeti/vnc-cluster-password",
		"xen_cmd":           "xm",
	}
}

func xenPVMDefaults() Params {
	return Params{
		"blockdev_prefix": "sd",
		"bootloader_args": "",
		"bootloader_path": "",
		"cpu_cap":         int64(0),
		"cpu_mask":        "all",
		"cpu_weight":      int64(256),
		"cpuid":           "",
		"initrd_path":     "",
		"kernel_args":     "ro",
		"kernel_path":     "/boot/vmlinuz-3-xenU",
		"migration_mode":  "live",
		"migration_port":  int64(8002),
		"reboot_behavior": "reboot",
		"root_path":       "/dev/xvda1",
		"soundhw":         "",
		"use_bootloader":  false,
		"vif_script":      "",
		"xen_cmd":         "xm",
	}
}
