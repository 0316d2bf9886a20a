package query

import (
	"iter"

	"github.com/drover-project/drover/internal/cluster"
)

type clusterRow = *cluster.Cluster

var clusterTable = table[clusterRow]{
	what:     "cluster",
	fields:   append(clusterFields(), clusterRuntimeFields()...),
	all:      func(v *view) iter.Seq[clusterRow] { return oneOrNone(v.cluster) },
	identity: func(c clusterRow) string { return c.UUID },
	affected: clusterChanges,
}.indexed()

func clusterFields() []field[clusterRow] {
	name := field[clusterRow]{Def: Def{"cluster_name", "Name", KindText, "Name of the cluster"}, mode: hostname,
		get: func(_ *view, c clusterRow) Cell { return text(c.Name) }}
	return []field[clusterRow]{
		name,
		renamed("name", name),
		{Def: Def{"master_node", "Master", KindText, "Name of the master node"}, mode: hostname,
			get: func(v *view, c clusterRow) Cell {
				if n := v.inv.Node(c.MasterNode); n != nil {
					return text(n.Name)
				}
				return Cell{Status: NoData}
			}},
		{Def: Def{"volume_group_name", "VgName", KindText, "Name of the LVM volume group for disks, null without one"},
			get: func(_ *view, c clusterRow) Cell { return known(OrNull(c.VolumeGroup)) }},
		{Def: Def{"tags", "Tags", KindOther, "Labels that were put on the cluster"},
			get: func(_ *view, c clusterRow) Cell { return known(c.Tags) }},
		{Def: Def{"ctime", "CTime", KindTimestamp, "When the cluster was made"},
			get: func(_ *view, c clusterRow) Cell { return timeOrUnavail(c.CTime) }},
		{Def: Def{"mtime", "MTime", KindTimestamp, "When the settings of the cluster were last changed"},
			get: func(_ *view, c clusterRow) Cell { return timeOrUnavail(c.MTime) }},
		{Def: Def{"watcher_pause", "WatcherPause", KindTimestamp, "Until when the watcher pauses"},
			from: InMemory, get: func(v *view, _ clusterRow) Cell {
				if v.Runtime.WatcherPause == 0 {
					return Cell{Status: Unavail}
				}
				return known(v.Runtime.WatcherPause)
			}},
	}
}

func timeOrUnavail(ns int64) Cell {
	if ns == 0 {
		return Cell{Status: Unavail}
	}
	return timestamp(ns)
}

// OrNull returns a text, or nil for an empty one.
func OrNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func clusterRuntimeFields() []field[clusterRow] {
	of := func(name, title string, kind Kind, doc string, get func(*Runtime) any) field[clusterRow] {
		return field[clusterRow]{Def: Def{name, title, kind, doc}, from: InMemory,
			get: func(v *view, _ clusterRow) Cell { return known(get(&v.Runtime)) }}
	}
	return []field[clusterRow]{
		of("software_version", "SoftwareVersion", KindText, "Version of the running program", func(r *Runtime) any { return r.SoftwareVersion }),
		of("vcs_version", "VCSVersion", KindText, "Revision that the running program was built from", func(r *Runtime) any { return r.VCSVersion }),
		of("protocol_version", "ProtocolVersion", KindNumber, "Version of the protocol between its parts", func(r *Runtime) any { return r.ProtocolVersion }),
		of("config_version", "ConfigVersion", KindNumber, "Version of the format of its configuration", func(r *Runtime) any { return r.ConfigVersion }),
		of("export_version", "ExportVersion", KindNumber, "Version of the format of exports", func(r *Runtime) any { return r.ExportVersion }),
		of("os_api_version", "OsApiVersion", KindNumber, "Highest version of the interface to operating system definitions", func(r *Runtime) any { return r.OSAPIVersion }),
		of("architecture", "ArchInfo", KindOther, "Word size and processor architecture", func(r *Runtime) any { return r.Architecture[:] }),
		of("drain_flag", "QueueDrained", KindBool, "Whether the queue takes no jobs", func(r *Runtime) any { return r.Drained }),
	}
}
