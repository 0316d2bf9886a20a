package exec

import (
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/opcode"
)

// bgl is the lock that nearly every opcode shares and that opcodes which
// change the shape of the cluster take alone.
var bgl = lock.Name{Level: lock.Cluster, Item: lock.BGL}

// shareCluster is the least that an opcode holds. It has no room behind its
// end, so that appending to it copies.
var shareCluster = lock.Request{{Name: bgl, Mode: lock.Shared}}

// want returns one lock in one mode.
func want(level lock.Level, item string, mode lock.Mode) lock.Want {
	return lock.Want{Name: lock.Name{Level: level, Item: item}, Mode: mode}
}

// exclusiveCluster is the lock need of opcodes that run alone.
func exclusiveCluster(*opcode.Opcode, *cluster.Snapshot) (lock.Request, error) {
	return lock.Request{{Name: bgl, Mode: lock.Exclusive}}, nil
}

// ownInstance locks the instance that the opcode names, and shares its nodes:
// whoever wants to change a node waits until nothing is done on it.
func ownInstance(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	inst, err := findInstance(op, snap)
	if err != nil {
		return nil, err
	}
	request := lock.Request{want(lock.Instance, inst.Name, lock.Exclusive)}
	return append(request, sharing(instanceNodes(inst)...)...), nil
}

// sharing shares nodes: whoever wants to change one waits.
func sharing(nodes ...string) (request lock.Request) {
	for _, node := range nodes {
		request = append(request, want(lock.Node, node, lock.Shared), want(lock.NodeRes, node, lock.Shared))
	}
	return request
}

// OnNode locks the node that a parameter of the opcode names.
func OnNode(field string) func(*opcode.Opcode, *cluster.Snapshot) (lock.Request, error) {
	return func(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
		node, err := findNode(op, field, snap)
		if err != nil {
			return nil, err
		}
		return lock.Request{want(lock.Node, node.UUID, lock.Exclusive), want(lock.NodeRes, node.UUID, lock.Exclusive)}, nil
	}
}

// ownGroup locks the group that the opcode names.
func ownGroup(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	group, err := findGroup(op.Str("group_name"), snap)
	if err != nil {
		return nil, err
	}
	return lock.Request{want(lock.NodeGroup, group.UUID, lock.Exclusive)}, nil
}

// ownNetwork locks the network that the opcode names.
func ownNetwork(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	network, err := findNetwork(op.Str("network_name"), snap)
	if err != nil {
		return nil, err
	}
	return lock.Request{want(lock.Network, network.UUID, lock.Exclusive)}, nil
}

// ownImage locks the image that the opcode names.
func ownImage(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	image, err := findImage(op.Str("image_name"), snap)
	if err != nil {
		return nil, err
	}
	return lock.Request{want(lock.Image, image.UUID, lock.Exclusive)}, nil
}

// newImage locks the name of an image that is to be added.
func newImage(op *opcode.Opcode, _ *cluster.Snapshot) (lock.Request, error) {
	return typed(lock.Image, op.Str("image_name"), lock.Exclusive), nil
}

// typed locks a name that somebody typed, of what there may be none: the word for all of a level is no name, and is refused, or names nothing, when
// the job's turn comes.
func typed(level lock.Level, name string, mode lock.Mode) lock.Request {
	if name == lock.All {
		return nil
	}
	return lock.Request{want(level, name, mode)}
}

// usedImage shares the image that an operating system is, if it is one: it is not removed while it is installed.
func usedImage(os string, snap *cluster.Snapshot) lock.Request {
	if base, variant := cluster.OSName(os); base == cluster.ImageOS {
		if image := snap.ImageNamed(variant); image != nil {
			return lock.Request{want(lock.Image, image.UUID, lock.Shared)}
		}
	}
	return nil
}

// reinstallLocks locks an instance, and shares the image that it is installed from.
func reinstallLocks(op *opcode.Opcode, snap *cluster.Snapshot) (lock.Request, error) {
	request, err := ownInstance(op, snap)
	if err != nil {
		return nil, err
	}
	inst, err := findInstance(op, snap)
	if err != nil {
		return nil, err
	}
	return append(request, usedImage(installed(op, inst).OS, snap)...), nil
}

// furtherNode shares a node that an opcode names beside those of its instance; all of them, where it names none and one is to be chosen.
func furtherNode(op *opcode.Opcode, field string, chosen bool, snap *cluster.Snapshot) (lock.Request, error) {
	switch {
	case named(op, field):
		node, err := findNode(op, field, snap)
		if err != nil {
			return nil, err
		}
		return sharing(node.UUID), nil
	case chosen:
		return sharing(lock.All), nil
	}
	return nil, nil
}

// instanceNodes returns the UUIDs of the nodes that hold anything of the
// instance, the primary first.
func instanceNodes(inst *cluster.Instance) []string {
	return append([]string{inst.PrimaryNode}, inst.SecondaryNodes()...)
}
