package items

import (
	"iter"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/query"
)

type clusterRow = *cluster.Cluster

var clusterTable = query.Table[clusterRow]{
	What:     "cluster",
	Fields:   append(clusterFields(), clusterRuntimeFields()...),
	All:      func(v *query.View) iter.Seq[clusterRow] { return oneOrNone(v.Cluster) },
	Identity: func(c clusterRow) string { return c.UUID },
	Affected: clusterChanges,
}.Indexed()

func clusterFields() []query.Field[clusterRow] {
	name := query.Field[clusterRow]{Def: def("cluster_name", "Name", query.KindText, "Name of the cluster"), Mode: query.ModeHostname,
		Get: func(_ *query.View, c clusterRow) query.Cell { return text(c.Name) }}
	return []query.Field[clusterRow]{
		name,
		renamed("name", name),
		{Def: def("master_node", "Master", query.KindText, "Name of the master node"), Mode: query.ModeHostname,
			Get: func(v *query.View, c clusterRow) query.Cell {
				if n := v.Inventory.Node(c.MasterNode); n != nil {
					return text(n.Name)
				}
				return query.Cell{Status: query.NoData}
			}},
		{Def: def("volume_group_name", "VgName", query.KindText, "Name of the LVM volume group for disks, null without one"),
			Get: func(_ *query.View, c clusterRow) query.Cell { return known(OrNull(c.VolumeGroup)) }},
		{Def: def("tags", "Tags", query.KindOther, "Labels that were put on the cluster"),
			Get: func(_ *query.View, c clusterRow) query.Cell { return known(c.Tags) }},
		{Def: def("ctime", "CTime", query.KindTimestamp, "When the cluster was made"),
			Get: func(_ *query.View, c clusterRow) query.Cell { return timeOrUnavail(c.CTime) }},
		{Def: def("mtime", "MTime", query.KindTimestamp, "When the settings of the cluster were last changed"),
			Get: func(_ *query.View, c clusterRow) query.Cell { return timeOrUnavail(c.MTime) }},
		{Def: def("watcher_pause", "WatcherPause", query.KindTimestamp, "Until when the watcher pauses"),
			From: query.InMemory, Get: func(v *query.View, _ clusterRow) query.Cell {
				if v.Runtime.WatcherPause == 0 {
					return query.Cell{Status: query.Unavail}
				}
				return known(v.Runtime.WatcherPause)
			}},
	}
}

func timeOrUnavail(ns int64) query.Cell {
	if ns == 0 {
		return query.Cell{Status: query.Unavail}
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

func clusterRuntimeFields() []query.Field[clusterRow] {
	of := func(name, title string, kind query.Kind, doc string, get func(*query.Runtime) any) query.Field[clusterRow] {
		return query.Field[clusterRow]{Def: def(name, title, kind, doc), From: query.InMemory,
			Get: func(v *query.View, _ clusterRow) query.Cell { return known(get(&v.Runtime)) }}
	}
	return []query.Field[clusterRow]{
		of("software_version", "SoftwareVersion", query.KindText, "Version of the running program", func(r *query.Runtime) any { return r.SoftwareVersion }),
		of("vcs_version", "VCSVersion", query.KindText, "Revision that the running program was built from", func(r *query.Runtime) any { return r.VCSVersion }),
		of("protocol_version", "ProtocolVersion", query.KindNumber, "Version of the protocol between its parts", func(r *query.Runtime) any { return r.ProtocolVersion }),
		of("config_version", "ConfigVersion", query.KindNumber, "Version of the format of its configuration", func(r *query.Runtime) any { return r.ConfigVersion }),
		of("export_version", "ExportVersion", query.KindNumber, "Version of the format of exports", func(r *query.Runtime) any { return r.ExportVersion }),
		of("os_api_version", "OsApiVersion", query.KindNumber, "Highest version of the interface to operating system definitions", func(r *query.Runtime) any { return r.OSAPIVersion }),
		of("architecture", "ArchInfo", query.KindOther, "Word size and processor architecture", func(r *query.Runtime) any { return r.Architecture[:] }),
		of("drain_flag", "QueueDrained", query.KindBool, "Whether the queue takes no jobs", func(r *query.Runtime) any { return r.Drained }),
	}
}
