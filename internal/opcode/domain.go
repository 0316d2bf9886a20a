package opcode

import (
	"math"
	"slices"
	"strconv"

	"github.com/drover-project/drover/internal/reason"
)

// ReportedStorage are the kinds of storage of which nodes tell, if they have any.
var ReportedStorage = []string{"file", "gluster", "lvm-pv", "lvm-vg", "sharedfile"}

// Enumerations that several opcodes share.
var (
	hypervisorKind = Enum("Hypervisor", "kvm", "xen-pvm", "chroot", "xen-hvm", "lxc", "fake")
	diskTemplate   = Enum("DiskTemplate", "diskless", "file", "sharedfile", "plain", "blockdev", "drbd", "rbd", "ext", "gluster")
	fileDriver     = Enum("FileDriver", "loop", "blktap", "blktap2")
	storageKind    = Enum("StorageType", "file", "sharedfile", "gluster", "lvm-pv", "lvm-vg", "diskless", "blockdev", "rados", "ext")
	migrationMode  = Enum("MigrationMode", "live", "non-live")
	evacuationMode = Enum("EvacMode", "primary-only", "secondary-only", "all")
	allocPolicy    = Enum("AllocPolicy", "preferred", "last_resort", "unallocable")
	exportMode     = Enum("ExportMode", "local", "remote")
	tagKind        = Enum("TagKind", "instance", "node", "nodegroup", "cluster", "network")
	queryKind      = Enum("QueryTypeOp", "cluster", "instance", "node", "group", "os", "export", "network")
	nicMode        = Enum("NICMode", "bridged", "routed", "openvswitch", "pool", "ext")
	listChange     = Enum("DdmSimple", "add", "attach", "remove", "detach")
	optionalChecks = Enum("VerifyOptionalChecks", "nplusone_mem", "hvparam_assessment")
	verifyError    = Enum("CVErrorCode",
		"ECLUSTERCFG", "ECLUSTERCERT", "ECLUSTERCLIENTCERT", "ECLUSTERFILECHECK", "ECLUSTERDANGLINGNODES",
		"ECLUSTERDANGLINGINST", "EINSTANCEBADNODE", "EINSTANCEDOWN", "EINSTANCELAYOUT", "EINSTANCEMISSINGDISK",
		"EINSTANCEFAULTYDISK", "EINSTANCEWRONGNODE", "EINSTANCESPLITGROUPS", "EINSTANCEPOLICY",
		"EINSTANCEUNSUITABLENODE", "EINSTANCEMISSINGCFGPARAMETER", "ENODEDRBD", "ENODEDRBDVERSION",
		"ENODEDRBDHELPER", "ENODEFILECHECK", "ENODEHOOKS", "ENODEHV", "ENODELVM", "ENODEN1", "ENODENET", "ENODEOS",
		"ENODEORPHANINSTANCE", "ENODEORPHANLV", "ENODERPC", "ENODESSH", "ENODEVERSION", "ENODESETUP", "ENODETIME",
		"ENODEOOBPATH", "ENODEUSERSCRIPTS", "ENODEFILESTORAGEPATHS", "ENODEFILESTORAGEPATHUNUSABLE",
		"ENODESHAREDFILESTORAGEPATHUNUSABLE", "ENODEGLUSTERSTORAGEPATHUNUSABLE", "EGROUPDIFFERENTPVSIZE", "EEXTAGS")
)

// Addresses are text that is checked where it is used.
var (
	ipv4Address = Named("string(IPv4Address, not validated on load)", String)
	ipv4Network = Named("string(IPv4Network, not validated on load)", String)
	ipv6Address = Named("string(IPv6Address, not validated on load)", String)
	ipv6Network = Named("string(IPv6Network, not validated on load)", String)
)

// Network interfaces and disks as opcodes describe them. An interface has
// these keys only; a disk may have more, for storage providers.
var (
	nicObject = Record("NIC object", map[string]Type{
		"mac": NonEmptyString, "ip": String, "mode": nicMode, "link": NonEmptyString, "name": NonEmptyString,
		"vlan": String, "bridge": NonEmptyString, "network": NonEmptyString,
	}, nil)
	diskObject = Record("disk object", map[string]Type{
		"size": Either("size in MiB, or text with a unit", NonNegative, NonEmptyString),
		"mode": Enum("DiskMode", "ro", "rw"), "adopt": NonEmptyString, "vg": NonEmptyString, "metavg": NonEmptyString,
		"name": NonEmptyString, "provider": NonEmptyString, "access": NonEmptyString, "spindles": NonNegative,
	}, &Any)
	diskModifications = modificationsOf(diskObject)
	nicModifications  = modificationsOf(nicObject)
	diskSelection     = Either("list of disk index, or list of array[disk index, disk object]",
		List(DiskIndex), List(Tuple(DiskIndex, diskObject)))
	exportTarget = Either("non-empty string (local) or list (remote)", NonEmptyString, List(Any))
	uidRanges    = List(Tuple(Int, Int))
	listChanges  = List(Tuple(listChange, NonEmptyString))
)

// plannedInstance is an OP_INSTANCE_CREATE inside another opcode; whoever makes
// it checks the rest.
var plannedInstance = Named("any", Record("object", map[string]Type{
	"osparams_private": MapOf(String, PrivateAny), "osparams_secret": MapOf(String, SecretAny),
}, &Any))

// nestedJobs are jobs inside an opcode; whoever submits them checks them.
var nestedJobs = func() Type {
	t := Any
	t.nested = true
	return t
}()

// modificationsOf is the list with which instances change disks or interfaces:
// [what, object], where what is an action or the index to modify, or
// [action, index or name, object].
func modificationsOf(item Type) Type {
	action := Enum("action", "add", "attach", "modify", "remove", "detach")
	index := Int
	byName := Either("index or name", Int, NonEmptyString)
	short := Tuple(Either("action or index", action, index), item)
	long := Tuple(action, byName, item)
	t := Either("modification", long, short)
	list := List(t)
	list.name = "list of modifications of " + item.name + " ([action|index, obj] or [action, index|name, obj])"
	return list
}

// The types of the common parameters.
var (
	submitPriority = simple("priority: -10, 0 or 10", func(v any) (any, bool) {
		out, ok := toInt(v)
		return out, ok && (out == int64(PriorityHigh) || out == int64(PriorityNormal) || out == int64(PriorityLow))
	})
	dependency  = simple("array[job id, list of final statuses]", toDependency)
	reasonEntry = simple("array[source, reason, nanoseconds]", toReasonEntry)
)

// finalStatuses are the statuses that a dependency may name.
var finalStatuses = []string{"canceled", "success", "error"}

func toDependency(v any) (any, bool) {
	pair, ok := v.([]any)
	if !ok || len(pair) != 2 {
		return nil, false
	}
	id, ok := jobID(pair[0])
	if !ok { // 0 is a job that there never is
		return nil, false
	}
	list, ok := pair[1].([]any)
	if !ok {
		return nil, false
	}
	statuses := make([]string, len(list))
	for i, item := range list {
		s, ok := item.(string)
		if !ok || !slices.Contains(finalStatuses, s) {
			return nil, false
		}
		statuses[i] = s
	}
	return Dependency{Job: id, Statuses: statuses}, true
}

// jobID reads a job id, which clients send as a number or as decimal text.
func jobID(v any) (int64, bool) {
	if s, ok := v.(string); ok {
		id, err := strconv.ParseInt(s, 10, 64)
		return id, err == nil
	}
	out, ok := toInt(v)
	if !ok {
		return 0, false
	}
	id, ok := out.(int64)
	return id, ok
}

func toReasonEntry(v any) (any, bool) {
	triple, ok := v.([]any)
	if !ok || len(triple) != 3 {
		return nil, false
	}
	source, ok1 := triple[0].(string)
	text, ok2 := triple[1].(string)
	ns, ok3 := nanoseconds(triple[2])
	return reason.Entry{Source: source, Reason: text, Time: ns}, ok1 && ok2 && ok3
}

// nanoseconds reads the time of a reason entry; a fraction is rounded.
func nanoseconds(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		r := math.Round(n)
		return int64(r), math.Abs(r) < 1<<63
	}
	return 0, false
}
