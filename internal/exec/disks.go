package exec

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/store/format"
)

// none is what clients say to take a name, an address or a network away.
const none = "none"

// logicalIDs says how a disk of each supported template is called on its
// storage. In file names the dot keeps them apart from other files.
var logicalIDs = map[string]func(c *cluster.Cluster, place diskPlace) []any{
	cluster.DiskFile: func(c *cluster.Cluster, p diskPlace) []any {
		return []any{p.driver, p.file(c.FileDir)}
	},
	cluster.DiskSharedFile: func(c *cluster.Cluster, p diskPlace) []any {
		return []any{p.driver, p.file(c.SharedFileDir)}
	},
	cluster.DiskPlain: func(c *cluster.Cluster, p diskPlace) []any {
		return []any{c.VolumeGroup, p.uuid + ".disk" + strconv.Itoa(p.index)}
	},
	cluster.DiskDRBD: func(*cluster.Cluster, diskPlace) []any { return nil }, // allotted when the inventory gets it (allotDevices)
	cluster.DiskExt: func(_ *cluster.Cluster, p diskPlace) []any {
		return []any{p.provider, p.uuid + ".ext.disk" + strconv.Itoa(p.index)}
	},
}

// diskPlace is what the storage name of a disk is made from.
type diskPlace struct {
	instance, dir, driver, uuid, provider string
	index                                 int
}

func (p diskPlace) file(base string) string {
	dir := base
	if p.dir != "" {
		dir += "/" + p.dir
	}
	return dir + "/" + p.instance + "/" + p.uuid + ".file.disk" + strconv.Itoa(p.index)
}

// newDisks reads the disks of OP_INSTANCE_CREATE.
func newDisks(env *Env, c *cluster.Cluster, inst *cluster.Instance) ([]cluster.Disk, error) {
	list := env.Op.List("disks")
	template, err := chooseTemplate(c, env.Op.Str("disk_template"), len(list))
	if err != nil {
		return nil, err
	}
	if template == cluster.DiskDRBD && env.Format < format.Mirrors {
		return nil, fault.New(fault.WrongState, "mirrored disks need format %d of the store, which has %d", format.Mirrors, env.Format).At("disk_template").
			WithHint("drover cluster format info says who keeps the group from it")
	}
	maker := diskMaker{env: env, cluster: c, instance: inst.Name, template: template}
	disks := make([]cluster.Disk, len(list))
	names := map[string]bool{}
	for i, item := range list {
		m, _ := item.(map[string]any)
		if disks[i], err = maker.disk(i, m); err != nil {
			return nil, err
		}
		if err := freeName(names, "disk", disks[i].Name, "disks["+strconv.Itoa(i)+"]"); err != nil {
			return nil, err
		}
	}
	return disks, nil
}

// chooseTemplate returns the template asked for, or without one the first
// enabled that fits; it refuses what is not enabled or does not fit.
func chooseTemplate(c *cluster.Cluster, asked string, disks int) (string, error) {
	switch {
	case asked == "" && disks == 0:
		return cluster.DiskDiskless, nil
	case asked == "":
		for _, t := range c.EnabledDiskTemplates {
			if logicalIDs[t] != nil {
				return t, nil
			}
		}
	case !slices.Contains(c.EnabledDiskTemplates, asked):
		return "", fault.New(fault.Invalid, "Disk template '%s' is not enabled in cluster. Enabled disk templates are: %s",
			asked, strings.Join(c.EnabledDiskTemplates, ",")).At("disk_template")
	case asked == cluster.DiskDiskless && disks > 0:
		return "", fault.New(fault.Invalid, "A diskless instance can't have disks").At("disks")
	case asked == cluster.DiskDiskless || logicalIDs[asked] != nil:
		return asked, nil
	}
	if asked == "" {
		return "", fault.New(fault.Invalid, "None of the cluster's enabled disk templates (%s) can be made", strings.Join(c.EnabledDiskTemplates, ", ")).At("disk_template").
			WithHint("drover cluster modify --enabled-disk-templates diskless,file")
	}
	return "", fault.New(fault.Invalid, "Disks of template '%s' can't be made: %s", asked, notMade[asked]).At("disk_template").
		WithHint("use one of %s", strings.Join(slices.Sorted(maps.Keys(logicalIDs)), ", "))
}

// notMade says of the reference's other templates why they are not made, and what there is instead.
var notMade = map[string]string{
	cluster.DiskBlock:   "devices that are there already are not taken over; plain makes logical volumes",
	cluster.DiskRBD:     "there is no client of Ceph; sharedfile keeps disks in a directory that several nodes reach, which may be CephFS",
	cluster.DiskGluster: "there is no client of Gluster; sharedfile keeps disks in a directory that several nodes reach, which may be a mounted volume",
}

// diskMaker makes the disks of one instance.
type diskMaker struct {
	env                *Env
	cluster            *cluster.Cluster
	instance, template string
}

func (m diskMaker) disk(index int, given map[string]any) (cluster.Disk, error) {
	place := "disks[" + strconv.Itoa(index) + "]"
	if err := checkDiskKeys(given, place, m.template); err != nil {
		return cluster.Disk{}, err
	}
	size, err := diskSize(given["size"])
	if err != nil {
		return cluster.Disk{}, err.At(place + ".size")
	}
	dir, err := storageDir(m.env.Op.Str("file_storage_dir"))
	if err != nil {
		return cluster.Disk{}, err
	}
	now := m.env.nanos()
	d := cluster.Disk{
		UUID: m.env.NewUUID(), CTime: now, MTime: now, Type: m.template, Size: size, Mode: "rw",
		IVName: "disk/" + strconv.Itoa(index), Params: cluster.Params{}, Name: nameParam(given),
	}
	if mode, _ := given["mode"].(string); mode != "" {
		d.Mode = mode
	}
	if given["spindles"] != nil {
		return d, fault.New(fault.Invalid, "Spindles in instance disks cannot be specified when exclusive storage is not active").At(place + ".spindles")
	}
	provider, _ := given["provider"].(string)
	switch {
	case m.template == cluster.DiskExt && provider == "":
		return d, fault.New(fault.Invalid, "Missing provider for template '%s'", m.template).At(place + ".provider")
	case m.template != cluster.DiskExt && given["provider"] != nil:
		return d, fault.New(fault.Invalid, "The 'provider' option is only valid for the ext disk template, not %s", m.template).At(place + ".provider")
	}
	if m.template == cluster.DiskExt {
		if err := providerParams(d.Params, given, place); err != nil {
			return d, err
		}
	}
	if m.template != cluster.DiskExt {
		if err := formatOf(&d, given, place); err != nil {
			return d, err
		}
	}
	if given["adopt"] != nil {
		return d, fault.New(fault.Invalid, "Disks can't be adopted yet").At(place + ".adopt")
	}
	driver := m.env.Op.Str("file_driver")
	if driver == "" {
		driver = "loop"
	}
	if err := m.whereItIs(given, place); err != nil {
		return d, err
	}
	d.LogicalID = logicalIDs[m.template](m.cluster, diskPlace{instance: m.instance, index: index, uuid: d.UUID,
		dir: dir, driver: driver, provider: provider})
	if m.template == cluster.DiskDRBD {
		d.Children = m.volumesOf(&d)
	}
	return d, nil
}

// whereItIs refuses another volume group than the cluster's, which is the one that nodes keep disks in, and another way to reach a disk than by the node's
// kernel, which is the one that there is.
func (m diskMaker) whereItIs(given map[string]any, place string) error {
	for _, key := range []string{"vg", "metavg"} {
		switch vg, _ := given[key].(string); {
		case vg == "" || vg == m.cluster.VolumeGroup:
		case m.cluster.VolumeGroup == "":
			return fault.New(fault.Invalid, "The cluster has no volume group, so no disk can be made in '%s'", vg).At(place + "." + key).
				WithHint("drover cluster modify --vg-name names that of the nodes")
		default:
			return fault.New(fault.Invalid, "Nodes keep disks in the volume group '%s', so none can be made in '%s'", m.cluster.VolumeGroup, vg).At(place+"."+key).
				WithHint("leave %s away", key)
		}
	}
	if access, _ := given["access"].(string); access != "" && access != kernelspace {
		return fault.New(fault.Invalid, "Disks are reached by the kernel of their node ('%s'), and not by '%s'", kernelspace, access).At(place + ".access")
	}
	return nil
}

// kernelspace is how disks are reached.
const kernelspace = "kernelspace"

// diskKeys are the properties of a disk that clients may give. Storage
// providers may have more.
var diskKeys = map[string]bool{"size": true, "mode": true, "name": true, "vg": true, "metavg": true, "adopt": true, "spindles": true,
	"access": true, "provider": true}

// formatKey is a key of disks that are files, of our own: what their content is kept in. To storage providers it may mean what they like.
const formatKey = "format"

// formatOf has a disk keep the format that it is to have; that of a file is raw if nobody says.
func formatOf(d *cluster.Disk, given map[string]any, place string) error {
	if given[formatKey] == nil {
		return nil
	}
	format, _ := given[formatKey].(string)
	switch {
	case !slices.Contains(diskimage.Formats(), format):
		return fault.New(fault.Invalid, "There is no format of disks '%v'", given[formatKey]).At(place+"."+formatKey).WithHint("one of: %s", strings.Join(diskimage.Formats(), ", "))
	case d.Type != cluster.DiskFile && d.Type != cluster.DiskSharedFile:
		return fault.New(fault.Invalid, "The 'format' option is only valid for disks that are files, not for the template '%s'", d.Type).At(place + "." + formatKey).
			WithHint("templates file and sharedfile have formats")
	case format != diskimage.Raw:
		d.Params[formatKey] = format
	}
	return nil
}

// providerParams keeps what a storage provider is told of a disk: all that means nothing to others, as text.
func providerParams(params cluster.Params, given map[string]any, place string) error {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if diskKeys[key] {
			continue
		}
		switch v := given[key].(type) {
		case string:
			params[key] = v
		case int64, float64, bool:
			params[key] = fmt.Sprint(v)
		default:
			return fault.New(fault.Mistyped, "The parameter '%s' of a storage provider must be a text", key).At(place + "." + key)
		}
	}
	return nil
}

func checkDiskKeys(given map[string]any, place, template string) error {
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if !diskKeys[key] && key != formatKey && template != cluster.DiskExt { // whose providers know what they may be
			return fault.New(fault.Mistyped, "Unknown parameter '%s'", key).At(place + "." + key)
		}
	}
	return nil
}

// storageDir checks the directory below the cluster's that disks in files go
// to.
func storageDir(dir string) (string, *fault.Error) {
	if dir == "" {
		return "", nil
	}
	if !filepath.IsLocal(dir) {
		return "", fault.New(fault.Invalid, "file_storage_dir '%s' is no directory within the cluster's", dir).At("file_storage_dir").
			WithHint("give it relative to the cluster's file storage directory, without ..")
	}
	return filepath.Clean(dir), nil
}

// diskSize reads a size in MiB, or as text with a unit, of cluster.MostMiB at most.
func diskSize(v any) (int64, *fault.Error) {
	switch v := v.(type) {
	case nil:
		return 0, fault.New(fault.Invalid, "Missing disk size")
	case int64:
		if v > 0 && v <= cluster.MostMiB {
			return roundedSize(v), nil
		}
	case string:
		if n, ok := cluster.ParseSize(v); ok && n > 0 {
			return n, nil
		}
	}
	return 0, fault.New(fault.Invalid, "Invalid disk size '%v'", v)
}

// roundedSize returns a size as it is made: a multiple of 4 MiB.
func roundedSize(mib int64) int64 { return (mib + 3) / 4 * 4 }

// nameParam returns the name that a disk or interface is given; "none" is none.
func nameParam(given map[string]any) string {
	name, _ := given["name"].(string)
	if strings.EqualFold(name, none) {
		return ""
	}
	return name
}

// sizeText writes a size as the reference's messages do: in M, G or T with one
// decimal where it is not whole.
func sizeText(mib int64) string {
	units := []struct {
		suffix string
		size   int64
	}{{"T", 1 << 20}, {"G", 1 << 10}}
	for _, u := range units {
		if mib >= u.size {
			return strconv.FormatFloat(float64(mib)/float64(u.size), 'f', 1, 64) + u.suffix
		}
	}
	return strconv.FormatInt(mib, 10) + "M"
}
