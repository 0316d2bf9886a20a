// Package lvm keeps disks as logical volumes of a volume group (disk template "plain"), by LVM's own tools.
//
// A volume is named by the UUID of its disk, and has the tag "drover". What was written on the group before is not shown to a guest: a new volume,
// and what is new of one that grew, is overwritten with zeros.
//
// Invariants:
//   - From where a volume is not overwritten yet is written down on it, as a tag, before it is made or grows: behind a kill the next call goes on
//     there, and no guest sees it before (TestWhatAKillLeaves).
//   - A volume without the tag is somebody else's, and stays as it is (TestStrangers).
package lvm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/storage"
)

const (
	// mine is the tag of volumes that were made here.
	mine = "drover"
	// unwritten begins the tag that says from which MiB on a volume is not overwritten yet.
	unwritten = "drover.unwritten="
	// patience is how long one of LVM's tools may take.
	patience = 2 * time.Minute
)

// Driver keeps volumes in a volume group. It implements storage.Driver.
type Driver struct {
	group string
	// tools is the directory of LVM's tools; empty has them looked for.
	tools string
	mu    sync.Mutex // sizes change, and room is given out, by one at a time
}

var isGroup = regexp.MustCompile(`^[A-Za-z0-9_+][A-Za-z0-9_+.-]{0,126}$`)

// CheckGroup refuses what cannot be the name of a volume group.
func CheckGroup(name string) error {
	if !isGroup.MatchString(name) || name == "." || name == ".." {
		return fault.New(fault.Invalid, "%.200q cannot be the name of a volume group", name)
	}
	return nil
}

// Open looks whether the volume group is there, with the tools of the search path.
func Open(ctx context.Context, group string) (*Driver, error) { return open(ctx, group, "") }

func open(ctx context.Context, group, tools string) (*Driver, error) {
	if err := CheckGroup(group); err != nil {
		return nil, err
	}
	d := &Driver{group: group, tools: tools}
	_, err := d.Space(ctx)
	return d, err
}

// Template returns "plain".
func (d *Driver) Template() string { return "plain" }

// tool runs one of LVM's tools and returns what it printed.
func (d *Driver) tool(ctx context.Context, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if d.tools != "" {
		name = d.tools + "/" + name
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "LVM_SUPPRESS_FD_WARNINGS=1"}
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, fault.New(fault.Canceled, "%s was ended: %w", name, context.Cause(ctx))
		}
		said := strings.Join(strings.Fields(fault.Clip(complaint.String(), 500)), " ")
		return nil, fault.New(fault.Environment, "%s failed: %s", name, cmp.Or(said, err.Error())).WithHint("it takes root, and lvm2; vgs and lvs show what there is")
	}
	return out.Bytes(), nil
}

// report has a tool report of the group in JSON; out is what is under the report's name.
func (d *Driver) report(ctx context.Context, name, under, columns string, out any) error {
	return d.reportOf(ctx, name, under, columns, out, d.group)
}

// reportOf has a tool report in JSON of what its last arguments say.
func (d *Driver) reportOf(ctx context.Context, name, under, columns string, out any, of ...string) error {
	text, err := d.tool(ctx, name, append([]string{"--reportformat", "json", "--units", "b", "--nosuffix", "--options", columns}, of...)...)
	if err != nil {
		return err
	}
	var all struct {
		Report []map[string]json.RawMessage `json:"report"`
	}
	if err := json.Unmarshal(text, &all); err != nil || len(all.Report) == 0 {
		return fault.New(fault.Environment, "cannot read what %s reports: %.200q", name, text)
	}
	if err := json.Unmarshal(all.Report[0][under], out); err != nil {
		return fault.New(fault.Environment, "cannot read what %s reports: %w", name, err)
	}
	return nil
}

const mib = 1 << 20

// Space tells how much room the volume group has.
func (d *Driver) Space(ctx context.Context) (storage.Space, error) {
	var groups []struct {
		Size string `json:"vg_size"`
		Free string `json:"vg_free"`
	}
	if err := d.report(ctx, "vgs", "vg", "vg_size,vg_free", &groups); err != nil {
		return storage.Space{}, err
	}
	if len(groups) != 1 {
		return storage.Space{}, fault.New(fault.NotFound, "there is no volume group %s on this node", d.group)
	}
	size, err := strconv.ParseInt(groups[0].Size, 10, 64)
	free, err2 := strconv.ParseInt(groups[0].Free, 10, 64)
	if err = cmp.Or(err, err2); err != nil {
		return storage.Space{}, fault.New(fault.Environment, "cannot read the size of volume group %s: %w", d.group, err)
	}
	return storage.Space{Total: int(size / mib), Free: int(free / mib)}, nil
}

// volume is a logical volume as LVM reports it.
type volume struct {
	Name   string `json:"lv_name"`
	Size   string `json:"lv_size"`
	Path   string `json:"lv_path"`
	Tags   string `json:"lv_tags"`
	Active string `json:"lv_active"`
}

func (v *volume) tags() []string { return strings.Split(v.Tags, ",") }

func (v *volume) isMine() bool { return slices.Contains(v.tags(), mine) }

// unwritten is from which MiB on it is not overwritten yet; false when all is.
func (v *volume) unwritten() (from int, left bool) {
	for _, tag := range v.tags() {
		if text, is := strings.CutPrefix(tag, unwritten); is {
			from, err := strconv.Atoi(text)
			return from, err == nil
		}
	}
	return 0, false
}

// whole is its size on the group, in MiB.
func (v *volume) whole() (size int, err error) {
	bytes, err := strconv.ParseInt(v.Size, 10, 64)
	if err != nil {
		return 0, fault.New(fault.Environment, "cannot read the size of logical volume %s: %w", v.Name, err)
	}
	return int(bytes / mib), nil
}

func (d *Driver) list(ctx context.Context) (all []volume, err error) {
	err = d.report(ctx, "lvs", "lv", "lv_name,lv_size,lv_path,lv_tags,lv_active", &all)
	return all, err
}

// find returns a volume that was made here, nil if there is none; one that is somebody else's is refused.
func (d *Driver) find(ctx context.Context, id string) (*volume, error) {
	if err := storage.CheckID(id); err != nil {
		return nil, err
	}
	if !isGroup.MatchString(id) {
		return nil, fault.New(fault.Invalid, "%.200q cannot be the name of a logical volume", id).At("disks")
	}
	all, err := d.list(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(v volume) bool { return v.Name == id })
	switch {
	case i < 0:
		return nil, nil
	case !all[i].isMine():
		return nil, fault.New(fault.Conflict, "logical volume %s/%s was not made by Drover", d.group, id).
			WithHint("lvrename %s %s NAME makes room, or lvchange --addtag %s %s/%s gives it over", d.group, id, mine, d.group, id)
	}
	return &all[i], nil
}

// Ensure makes or grows a volume, and overwrites what is new of it.
func (d *Driver) Ensure(ctx context.Context, disk storage.Disk) (made, grown bool, err error) {
	id, size := disk.ID, disk.Size
	if err := storage.Begin(ctx, id); err != nil {
		return false, false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	v, err := d.find(ctx, id)
	if err != nil {
		return false, false, err
	}
	if v == nil {
		if err := d.room(ctx, size); err != nil {
			return false, false, err
		}
		if _, err := d.tool(ctx, "lvcreate", "--yes", "--quiet", "--zero", "n", "--wipesignatures", "n", "--addtag", mine, "--addtag", unwritten+"0",
			"--name", id, "--size", strconv.Itoa(size)+"m", d.group); err != nil {
			return false, false, err
		}
		return true, false, d.overwrite(ctx, id, 0)
	}
	from, left := v.unwritten()
	have, err := v.whole()
	if err != nil || have >= size && !left {
		return false, false, err
	}
	if have < size {
		if err := d.room(ctx, size-have); err != nil {
			return false, false, err
		}
		if !left {
			from = have
			if _, err := d.tool(ctx, "lvchange", "--addtag", unwritten+strconv.Itoa(from), d.name(id)); err != nil {
				return false, false, err
			}
		}
		if _, err := d.tool(ctx, "lvextend", "--size", strconv.Itoa(size)+"m", d.name(id)); err != nil {
			return false, false, err
		}
	}
	return from == 0, from > 0, d.overwrite(ctx, id, from)
}

func (d *Driver) name(id string) string { return d.group + "/" + id }

// room refuses what does not fit any more.
func (d *Driver) room(ctx context.Context, size int) error {
	s, err := d.Space(ctx)
	if err == nil && size > s.Free {
		err = fault.New(fault.Exhausted, "not enough disk space: %d MiB needed, %d MiB free in volume group %s", size, s.Free, d.group)
	}
	return err
}

// overwrite makes zeros of a volume from a MiB on, and writes down that all is.
func (d *Driver) overwrite(ctx context.Context, id string, from int) error {
	v, err := d.find(ctx, id)
	if err == nil && v == nil {
		err = fault.New(fault.Conflict, "logical volume %s was removed while it was made", d.name(id))
	}
	if err != nil {
		return err
	}
	if err := d.activate(ctx, v); err != nil {
		return err
	}
	to, err := v.whole()
	if err == nil {
		err = zero(ctx, v.Path, from, to)
	}
	if err != nil {
		return fault.New(fault.Environment, "cannot overwrite logical volume %s: %w", d.name(id), err)
	}
	_, err = d.tool(ctx, "lvchange", "--deltag", unwritten+strconv.Itoa(from), d.name(id))
	return err
}

// activate has the kernel know a volume, which it forgets when the node starts anew.
func (d *Driver) activate(ctx context.Context, v *volume) error {
	if v.Active == "active" {
		return nil
	}
	_, err := d.tool(ctx, "lvchange", "--activate", "y", d.name(v.Name))
	return err
}

// Remove removes a volume.
func (d *Driver) Remove(ctx context.Context, id string) (bool, error) {
	if err := storage.Begin(ctx, id); err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	v, err := d.find(ctx, id)
	if err != nil || v == nil {
		return false, err
	}
	_, err = d.tool(ctx, "lvremove", "--yes", "--quiet", d.name(id))
	return err == nil, err
}

// Volume looks at a volume, and has the kernel know it.
func (d *Driver) Volume(ctx context.Context, id string) (storage.Volume, error) {
	if err := storage.Begin(ctx, id); err != nil {
		return storage.Volume{}, err
	}
	v, err := d.find(ctx, id)
	if err != nil {
		return storage.Volume{}, err
	}
	if v == nil {
		return storage.Volume{}, fault.New(fault.NotFound, "disk %s is not on this node", id)
	}
	out, ready, err := v.shown()
	if err == nil && !ready {
		err = fault.New(fault.NotFound, "disk %s is not whole on this node", id)
	}
	if err == nil {
		err = d.activate(ctx, v)
	}
	if err != nil {
		return storage.Volume{}, err
	}
	return out, nil
}

// shown is a volume as it may be used: as far as it is overwritten.
func (v *volume) shown() (out storage.Volume, ready bool, err error) {
	size, err := v.whole()
	if from, left := v.unwritten(); left {
		size = min(size, from)
	}
	return storage.Volume{ID: v.Name, Size: size, Path: v.Path, Format: diskimage.Raw}, size > 0, err
}

// Volumes lists those that were made here.
func (d *Driver) Volumes(ctx context.Context) ([]storage.Volume, error) {
	if err := storage.Begin(ctx, "any"); err != nil {
		return nil, err
	}
	all, err := d.list(ctx)
	if err != nil {
		return nil, err
	}
	out := []storage.Volume{}
	for i := range all {
		if !all[i].isMine() {
			continue
		}
		v, ready, err := all[i].shown()
		if err != nil {
			return nil, err
		}
		if ready {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b storage.Volume) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}
