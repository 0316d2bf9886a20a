package lvm

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/storage"
)

// Kinds are those of a volume group, and of the devices that it lies on.
func (d *Driver) Kinds() []storage.Kind {
	return []storage.Kind{storage.VolumeGroups, storage.PhysicalDisks}
}

// Units tells of the volume group, or of its devices.
func (d *Driver) Units(ctx context.Context, kind storage.Kind) ([]storage.Unit, error) {
	if err := storage.Begin(ctx, "any"); err != nil {
		return nil, err
	}
	if kind == storage.PhysicalDisks {
		return d.devices(ctx)
	}
	s, err := d.Space(ctx)
	if err != nil {
		return nil, err
	}
	return []storage.Unit{{Name: d.group, Size: s.Total, Used: s.Total - s.Free, Free: s.Free, Allocatable: true}}, nil
}

// devices are those of the group, by name.
func (d *Driver) devices(ctx context.Context) (units []storage.Unit, err error) {
	var found []struct {
		Name  string `json:"pv_name"`
		Size  string `json:"pv_size"`
		Used  string `json:"pv_used"`
		Free  string `json:"pv_free"`
		Attrs string `json:"pv_attr"`
	}
	// Those of other groups are not the node's. The name of a group has no quote.
	if err := d.reportOf(ctx, "pvs", "pv", "pv_name,pv_size,pv_used,pv_free,pv_attr", &found, "--select", `vg_name="`+d.group+`"`); err != nil {
		return nil, err
	}
	for _, f := range found {
		u := storage.Unit{Name: f.Name, Allocatable: strings.HasPrefix(f.Attrs, "a") && !strings.HasSuffix(f.Attrs, "m")} // which is gone
		for text, into := range map[string]*int{f.Size: &u.Size, f.Used: &u.Used, f.Free: &u.Free} {
			if *into, err = inMiB(text); err != nil {
				return nil, fault.New(fault.Environment, "cannot read the sizes of physical volume %s: %w", f.Name, err)
			}
		}
		units = append(units, u)
	}
	slices.SortFunc(units, func(a, b storage.Unit) int { return cmp.Compare(a.Name, b.Name) })
	return units, nil
}

func inMiB(bytes string) (int, error) {
	n, err := strconv.ParseInt(bytes, 10, 64)
	return int(n / mib), err
}

// LogicalVolumes lists what there is in the group, whoever made it.
func (d *Driver) LogicalVolumes(ctx context.Context) (all []storage.LogicalVolume, err error) {
	if err := storage.Begin(ctx, "any"); err != nil {
		return nil, err
	}
	var found []struct {
		volume

		Devices string `json:"devices"`
	}
	if err := d.report(ctx, "lvs", "lv", "lv_name,lv_size,lv_tags,devices", &found); err != nil {
		return nil, err
	}
	for i := range found {
		f := &found[i]
		size, err := f.whole()
		if err != nil {
			return nil, err
		}
		v := storage.LogicalVolume{Group: d.group, Name: f.Name, Size: size}
		if f.isMine() {
			v.Disk = f.Name
		}
		for device := range strings.SplitSeq(f.Devices, ",") { // each with where on it the volume begins
			v.Device, _, _ = strings.Cut(device, "(")
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b storage.LogicalVolume) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// SetAllocatable has room on a device of the group be given out, or not.
func (d *Driver) SetAllocatable(ctx context.Context, device string, may bool) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	units, err := d.devices(ctx)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(units, func(u storage.Unit) bool { return u.Name == device })
	switch {
	case i < 0:
		return false, fault.New(fault.NotFound, "%.200s is no physical volume of the volume group %s", device, d.group).At("name").WithHint("it has: %s", names(units))
	case units[i].Allocatable == may:
		return false, nil
	}
	_, err = d.tool(ctx, "pvchange", "--allocatable", map[bool]string{true: "y", false: "n"}[may], device)
	return err == nil, err
}

func names(units []storage.Unit) string {
	out := make([]string, len(units))
	for i, u := range units {
		out[i] = u.Name
	}
	return strings.Join(out, ", ")
}

// Repair has the group do without the devices that are gone. Where what is left of a volume lies on those, the volume goes, too.
func (d *Driver) Repair(ctx context.Context, group string) (bool, error) {
	if group != d.group {
		return false, fault.New(fault.NotFound, "this node keeps disks in the volume group %s, and not in %.200s", d.group, group).At("name")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	gone, err := d.missing(ctx)
	if err != nil || gone == 0 {
		return false, err
	}
	var tried error
	for _, how := range [][]string{{"--removemissing", group}, {"--removemissing", "--force", group}} {
		_, tried = d.tool(ctx, "vgreduce", how...)
		if left, err := d.missing(ctx); err != nil || left == 0 {
			return err == nil, err
		}
	}
	err = fault.New(fault.Environment, "Volume group '%s' still not consistent", group)
	if tried != nil {
		err = fault.New(fault.Environment, "Volume group '%s' still not consistent: %w", group, tried)
	}
	return false, err
}

// missing is how many devices of the group are gone.
func (d *Driver) missing(ctx context.Context) (int, error) {
	var groups []struct {
		Missing string `json:"vg_missing_pv_count"`
	}
	if err := d.report(ctx, "vgs", "vg", "vg_missing_pv_count", &groups); err != nil {
		return 0, err
	}
	if len(groups) != 1 {
		return 0, fault.New(fault.NotFound, "there is no volume group %s on this node", d.group)
	}
	n, err := strconv.Atoi(groups[0].Missing)
	if err != nil {
		return 0, fault.New(fault.Environment, "cannot read how many devices of volume group %s are gone: %w", d.group, err)
	}
	return n, nil
}
