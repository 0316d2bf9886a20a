package exec

import (
	"math"
	"testing"

	"github.com/drover-project/drover/internal/cluster"
)

// A disk is where the inventory says: what would be somewhere else, or be reached another way, is refused where it is made and where it is added.
func TestDisksAreInTheClustersVolumeGroup(t *testing.T) {
	r := newRig(t, "node1", "node2")
	const group = "xenvg"
	in := func(group string) {
		r.update(func(snap *cluster.Snapshot) []cluster.Change {
			c := snap.Cluster().Clone()
			c.VolumeGroup = group
			return []cluster.Change{cluster.Put(c)}
		})
	}
	in(group)
	made := func(template string, disk params) params {
		disk["size"] = 8
		p := params{"instance_name": "one", "mode": "create", "pnode": "node1", "disk_template": template, "disks": []any{disk}, "nics": []any{}, "os_type": "noop+default", "start": false}
		if template == cluster.DiskDRBD {
			p["snode"] = "node2"
		}
		return p
	}
	for text, disk := range map[string]params{
		"Nodes keep disks in the volume group '" + group + "', so none can be made in 'fast' (leave vg away)":     {"vg": "fast"},
		"Nodes keep disks in the volume group '" + group + "', so none can be made in 'fast' (leave metavg away)": {"metavg": "fast"},
		"Disks are reached by the kernel of their node ('kernelspace'), and not by 'userspace'":                   {"access": "userspace"},
	} {
		for _, template := range []string{cluster.DiskPlain, cluster.DiskDRBD, cluster.DiskFile} {
			r.refuses("OpPrereqError", text, "OP_INSTANCE_CREATE", made(template, disk))
		}
	}
	r.must(`["node1","node2"]`, "OP_INSTANCE_CREATE", made(cluster.DiskDRBD, params{"vg": group, "metavg": group, "access": "kernelspace"}))
	for _, v := range r.instance("one").Disks[0].Children {
		if v.LogicalID[0] != group {
			t.Errorf("%+v", v)
		}
	}
	r.refuses("OpPrereqError", "Nodes keep disks in the volume group '"+group+"', so none can be made in 'fast' (leave vg away)", "OP_INSTANCE_SET_PARAMS",
		one(params{"disks": []any{[]any{"add", -1, params{"size": 8, "vg": "fast"}}}}))
	in("")
	r.refuses("OpPrereqError", "The cluster has no volume group, so no disk can be made in 'fast' (drover cluster modify --vg-name names that of the nodes)", "OP_INSTANCE_CREATE",
		func() params { p := made(cluster.DiskFile, params{"vg": "fast"}); p["instance_name"] = "two"; return p }())
}

// A size that no disk can have is refused where it is read, whoever passes the policy of the group over.
func TestNoDiskIsLargerThanSizesGo(t *testing.T) {
	r := newRig(t)
	sized := func(mib int64) params {
		return creating(params{"disks": []any{params{"size": mib}}, "start": false, "ignore_ipolicy": true})
	}
	for text, mib := range map[string]int64{
		"Invalid disk size '9223372036854775807'": math.MaxInt64,
		"Invalid disk size '2199023254529'":       cluster.MostMiB + 1,
	} {
		r.refuses("OpPrereqError", text, "OP_INSTANCE_CREATE", sized(mib))
	}
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", sized(1024))
	for _, absolute := range []bool{false, true} {
		r.refuses("OpPrereqError", "Invalid amount 9223372036854775807: no disk is larger than 2199023254528 MiB", "OP_INSTANCE_GROW_DISK",
			one(params{"disk": 0, "amount": int64(math.MaxInt64), "absolute": absolute, "ignore_ipolicy": true}))
	}
	if size := r.instance("one").Disks[0].Size; size != 1024 {
		t.Errorf("the disk has %d MiB", size)
	}
}
