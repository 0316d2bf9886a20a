package exec

import (
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/opcode"
)

// Settings of the cluster whose values are checked one by one.

func setNetmask(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
	bits, longest := op.Int(name), int64(32)
	if c.PrimaryIPv6 {
		longest = 128
	}
	if bits < 1 || bits > longest {
		return fault.New(fault.Invalid, "CIDR netmask (%d) not valid", bits).At(name).WithHint("1 to %d bits", longest)
	}
	c.MasterNetmask = bits
	return nil
}

// builtinAllocator is the name that clients know the choice of nodes by.
const builtinAllocator = "hail"

// checkAllocator refuses an allocator that is not there. The controller
// chooses nodes itself, whatever it is called.
func checkAllocator(name string) bool { return name == "" || name == builtinAllocator }

func setAllocator(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
	c.IAllocator = op.Str(name) // which is there (Names.modifyCluster)
	return nil
}

// image sets where an image is: empty for none.
func image(what string, field func(*cluster.Cluster) *string) setting {
	return func(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
		place := op.Str(name)
		if u, err := url.Parse(place); place != "" && !filepath.IsAbs(place) && (err != nil || u.Scheme == "" || u.Host == "") {
			return fault.New(fault.Invalid, "%s image must be an absolute path or a URL", what).At(name)
		}
		*field(c) = place
		return nil
	}
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func setCompression(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
	tools := op.Strings(name)
	if bad := slices.DeleteFunc(slices.Clone(tools), toolName.MatchString); len(bad) > 0 {
		return fault.New(fault.Invalid, "The tools '%s' contain illegal characters: only alphanumeric values, dashes, and underscores are allowed",
			strings.Join(bad, "', '")).At(name)
	}
	c.CompressionTools = tools
	return nil
}

func setDiskParams(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
	return changeDiskParams(c.DiskParams, op.Map(name))
}

// changeDiskParams sets parameters of disk templates in own, which is altered.
func changeDiskParams(own map[string]cluster.Params, given map[string]any) error {
	for _, template := range slices.Sorted(maps.Keys(given)) {
		values, _ := given[template].(map[string]any)
		checked, err := cluster.CheckDiskParams(template, values)
		if err != nil {
			return err
		}
		own[template] = cluster.Fill(own[template], checked)
	}
	return nil
}

// setOSHVP sets hypervisor parameters that hold for one operating system.
func setOSHVP(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
	given := op.Map(name)
	for _, os := range slices.Sorted(maps.Keys(given)) {
		byHypervisor, _ := given[os].(map[string]any)
		for _, hv := range slices.Sorted(maps.Keys(byHypervisor)) {
			values, _ := byHypervisor[hv].(map[string]any)
			if c.HVParams[hv] == nil {
				return fault.New(fault.Invalid, "Unknown hypervisor '%s'", hv).At(name + "." + os + "." + hv)
			}
			checked, err := cluster.CheckParams(values, cluster.HVTypes(hv), true)
			if err != nil {
				return err
			}
			if c.OSHVP[os] == nil {
				c.OSHVP[os] = map[string]cluster.Params{}
			}
			c.OSHVP[os][hv] = cluster.SetParams(c.OSHVP[os][hv], checked)
		}
	}
	return nil
}

// uidRanges reads ranges [first, last] of user ids.
func uidRanges(op *opcode.Opcode, name string) ([][2]int64, error) {
	list := op.List(name)
	out := make([][2]int64, len(list))
	for i, item := range list {
		pair, _ := item.([]any)
		if len(pair) == 2 {
			out[i][0], _ = pair[0].(int64)
			out[i][1], _ = pair[1].(int64)
		}
		if out[i][0] < 0 || out[i][0] > out[i][1] {
			return nil, fault.New(fault.Invalid, "Lower user-ID boundary %d is higher than the higher boundary %d", out[i][0], out[i][1]).At(name)
		}
	}
	return out, nil
}

func setUIDs(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
	ranges, err := uidRanges(op, name)
	if err == nil {
		c.UIDPool = ranges
	}
	return err
}

func addUIDs(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
	ranges, err := uidRanges(op, name)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		if !slices.Contains(c.UIDPool, r) {
			c.UIDPool = append(c.UIDPool, r)
		}
	}
	slices.SortFunc(c.UIDPool, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
	return nil
}

// removeUIDs takes ranges out of the pool; each must be there as it is.
func removeUIDs(c *cluster.Cluster, op *opcode.Opcode, name string, _ *cluster.Snapshot) error {
	ranges, err := uidRanges(op, name)
	if err != nil {
		return err
	}
	for _, r := range ranges {
		i := slices.Index(c.UIDPool, r)
		if i < 0 {
			return fault.New(fault.Invalid, "User-ID range to be removed is not found in the current user-ID pool: (%d, %d)", r[0], r[1]).At(name)
		}
		c.UIDPool = slices.Delete(c.UIDPool, i, i+1)
	}
	return nil
}
