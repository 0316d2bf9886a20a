package cluster

import (
	"iter"
	"sync"

	"github.com/tidwall/btree"
)

// Snapshot is the inventory at one moment. It never changes and may be read
// from any number of goroutines; With makes the next one.
type Snapshot struct {
	cluster *Cluster
	state

	// copying: a copy of a tree marks the tree it was made from, so two copies
	// must not be made at once.
	copying sync.Mutex
}

// state is what a Snapshot shares, copy on write, with its successors.
type state struct {
	groups    table[*Group]
	nodes     table[*Node]
	instances table[*Instance]
	networks  table[*Network]
	images    table[*Image]
	disks     table[*DetachedDisk]

	nodesByGroup       refs // group -> nodes
	instancesByNode    refs // primary node -> instances
	secondariesByNode  refs // secondary node -> instances
	instancesByNetwork refs // network -> instances
	groupsByNetwork    refs // network -> groups
	tagged             refs // kind, NUL, tag -> objects

	promises *btree.Map[string, Promises] // by primary node
}

// Empty returns a snapshot with nothing in it; its Cluster is nil.
func Empty() *Snapshot {
	return &Snapshot{state: state{
		groups:             newTable[*Group]("NodeGroup"),
		nodes:              newTable[*Node]("Node"),
		instances:          newTable[*Instance]("Instance"),
		networks:           newTable[*Network]("Network"),
		images:             newTable[*Image]("Image"),
		disks:              newTable[*DetachedDisk]("Disk"),
		nodesByGroup:       newRefs(),
		instancesByNode:    newRefs(),
		secondariesByNode:  newRefs(),
		instancesByNetwork: newRefs(),
		groupsByNetwork:    newRefs(),
		tagged:             newRefs(),
		promises:           &btree.Map[string, Promises]{},
	}}
}

func (s state) copy() state {
	return state{
		groups: s.groups.copy(), nodes: s.nodes.copy(), instances: s.instances.copy(), networks: s.networks.copy(), images: s.images.copy(), disks: s.disks.copy(),
		nodesByGroup: s.nodesByGroup.copy(), instancesByNode: s.instancesByNode.copy(),
		secondariesByNode: s.secondariesByNode.copy(), instancesByNetwork: s.instancesByNetwork.copy(),
		groupsByNetwork: s.groupsByNetwork.copy(), tagged: s.tagged.copy(), promises: s.promises.Copy(),
	}
}

// Change is one step from a snapshot to the next: an object put in (new, or in
// place of the one with its UUID), or one taken out.
type Change struct {
	// Put is the object, nil to delete.
	Put Object
	// Kind and UUID say what to delete when Put is nil.
	Kind Kind
	UUID string
}

// Put returns the change that puts an object in.
func Put(o Object) Change { return Change{Put: o, Kind: o.Kind(), UUID: o.Identity()} }

// Delete returns the change that takes an object out; none with that UUID is
// no error.
func Delete(kind Kind, uuid string) Change { return Change{Kind: kind, UUID: uuid} }

// With returns the snapshot after the changes, made in order. The receiver
// stays as it is.
func (s *Snapshot) With(changes ...Change) *Snapshot {
	s.copying.Lock()
	next := &Snapshot{cluster: s.cluster, state: s.state.copy()}
	s.copying.Unlock()
	for _, c := range changes {
		next.apply(c)
	}
	return next
}

// apply makes one change in place; the snapshot is not yet shared.
func (s *Snapshot) apply(c Change) {
	if old := s.Object(c.Kind, c.UUID); old != nil {
		s.unindex(old)
	}
	if c.Put != nil {
		s.put(c.Put)
		s.index(c.Put)
		return
	}
	switch c.Kind {
	case KindCluster:
		s.cluster = nil
	case KindGroup:
		s.groups.delete(c.UUID, (*Group).Label)
	case KindNode:
		s.nodes.delete(c.UUID, (*Node).Label)
	case KindInstance:
		s.instances.delete(c.UUID, (*Instance).Label)
	case KindNetwork:
		s.networks.delete(c.UUID, (*Network).Label)
	case KindImage:
		s.images.delete(c.UUID, (*Image).Label)
	case KindDisk:
		s.disks.delete(c.UUID, (*DetachedDisk).Label)
	}
}

func (s *Snapshot) put(o Object) {
	switch o := o.(type) {
	case *Cluster:
		s.cluster = o
	case *Group:
		s.groups.put(o.Name, o.UUID, o, (*Group).Label)
	case *Node:
		s.nodes.put(o.Name, o.UUID, o, (*Node).Label)
	case *Instance:
		s.instances.put(o.Name, o.UUID, o, (*Instance).Label)
	case *Network:
		s.networks.put(o.Name, o.UUID, o, (*Network).Label)
	case *Image:
		s.images.put(o.Name, o.UUID, o, (*Image).Label)
	case *DetachedDisk:
		s.disks.put(o.Label(), o.UUID, o, (*DetachedDisk).Label)
	}
}

// index adds an object to the indexes, unindex takes it out.
func (s *Snapshot) index(o Object) {
	s.eachRef(o, refs.add)
	if inst, is := o.(*Instance); is {
		s.promise(inst, 1)
	}
}

func (s *Snapshot) unindex(o Object) {
	s.eachRef(o, refs.remove)
	if inst, is := o.(*Instance); is {
		s.promise(inst, -1)
	}
}

// eachRef calls do for each index entry that the object has.
func (s *Snapshot) eachRef(o Object, do func(r refs, key, name, uuid string)) {
	name, uuid := o.Label(), o.Identity()
	for _, tag := range o.Labels() {
		do(s.tagged, tagKey(o.Kind(), tag), name, uuid)
	}
	switch o := o.(type) {
	case *Group:
		for network := range o.Networks {
			do(s.groupsByNetwork, network, name, uuid)
		}
	case *Node:
		do(s.nodesByGroup, o.Group, name, uuid)
	case *Instance:
		do(s.instancesByNode, o.PrimaryNode, name, uuid)
		for _, node := range o.SecondaryNodes() {
			do(s.secondariesByNode, node, name, uuid)
		}
		for n := range o.NICs {
			if network := o.NICs[n].Network; network != "" {
				do(s.instancesByNetwork, network, name, uuid)
			}
		}
	}
}

func tagKey(kind Kind, tag string) string { return string(kind) + "\x00" + tag }

// Cluster returns the cluster's settings, nil before there are any.
func (s *Snapshot) Cluster() *Cluster { return s.cluster }

// Object returns the object of a kind with a UUID, nil if there is none.
func (s *Snapshot) Object(kind Kind, uuid string) Object {
	switch kind {
	case KindCluster:
		if s.cluster != nil && s.cluster.UUID == uuid {
			return s.cluster
		}
	case KindGroup:
		return orNil(s.groups.byUUID.Get(uuid))
	case KindNode:
		return orNil(s.nodes.byUUID.Get(uuid))
	case KindInstance:
		return orNil(s.instances.byUUID.Get(uuid))
	case KindNetwork:
		return orNil(s.networks.byUUID.Get(uuid))
	case KindImage:
		return orNil(s.images.byUUID.Get(uuid))
	case KindDisk:
		return orNil(s.disks.byUUID.Get(uuid))
	}
	return nil
}

func orNil[T Object](o T, found bool) Object {
	if !found {
		return nil
	}
	return o
}

// Group returns the group with a UUID, nil if there is none.
func (s *Snapshot) Group(uuid string) *Group { g, _ := s.groups.byUUID.Get(uuid); return g }

// Node returns the node with a UUID, nil if there is none.
func (s *Snapshot) Node(uuid string) *Node { n, _ := s.nodes.byUUID.Get(uuid); return n }

// Instance returns the instance with a UUID, nil if there is none.
func (s *Snapshot) Instance(uuid string) *Instance { i, _ := s.instances.byUUID.Get(uuid); return i }

// Network returns the network with a UUID, nil if there is none.
func (s *Snapshot) Network(uuid string) *Network { n, _ := s.networks.byUUID.Get(uuid); return n }

// Image returns the image with a UUID, nil if there is none.
func (s *Snapshot) Image(uuid string) *Image { i, _ := s.images.byUUID.Get(uuid); return i }

// Disk returns the detached disk with a UUID, nil if there is none.
func (s *Snapshot) Disk(uuid string) *DetachedDisk { d, _ := s.disks.byUUID.Get(uuid); return d }

// FindGroup looks a group up by UUID, name, or unique beginning of its name
// before a dot. Errors: NotFound, Ambiguous, in the reference's words; so do
// the other Find functions.
func (s *Snapshot) FindGroup(key string) (*Group, error) { return s.groups.find(key) }

// FindNode looks a node up as FindGroup does.
func (s *Snapshot) FindNode(key string) (*Node, error) { return s.nodes.find(key) }

// FindInstance looks an instance up as FindGroup does.
func (s *Snapshot) FindInstance(key string) (*Instance, error) { return s.instances.find(key) }

// FindNetwork looks a network up as FindGroup does.
func (s *Snapshot) FindNetwork(key string) (*Network, error) { return s.networks.find(key) }

// FindImage looks an image up as FindGroup does.
func (s *Snapshot) FindImage(key string) (*Image, error) { return s.images.find(key) }

// InstanceNamed returns the instance with exactly this name, nil if there is
// none.
func (s *Snapshot) InstanceNamed(name string) *Instance { i, _ := s.instances.exact(name); return i }

// NodeNamed returns the node with exactly this name, nil if there is none.
func (s *Snapshot) NodeNamed(name string) *Node { n, _ := s.nodes.exact(name); return n }

// GroupNamed returns the group with exactly this name, nil if there is none.
func (s *Snapshot) GroupNamed(name string) *Group { g, _ := s.groups.exact(name); return g }

// NetworkNamed returns the network with exactly this name, nil if there is
// none.
func (s *Snapshot) NetworkNamed(name string) *Network { n, _ := s.networks.exact(name); return n }

// ImageNamed returns the image with exactly this name, nil if there is none.
func (s *Snapshot) ImageNamed(name string) *Image { i, _ := s.images.exact(name); return i }

// Groups yields all groups in nice order of names.
func (s *Snapshot) Groups() iter.Seq[*Group] { return s.groups.all() }

// Nodes yields all nodes in nice order of names.
func (s *Snapshot) Nodes() iter.Seq[*Node] { return s.nodes.all() }

// Instances yields all instances in nice order of names.
func (s *Snapshot) Instances() iter.Seq[*Instance] { return s.instances.all() }

// Networks yields all networks in nice order of names.
func (s *Snapshot) Networks() iter.Seq[*Network] { return s.networks.all() }

// Images yields all images in nice order of names.
func (s *Snapshot) Images() iter.Seq[*Image] { return s.images.all() }

// Disks yields all detached disks in nice order of names.
func (s *Snapshot) Disks() iter.Seq[*DetachedDisk] { return s.disks.all() }

// GroupCount returns the number of groups.
func (s *Snapshot) GroupCount() int { return s.groups.byUUID.Len() }

// NodeCount returns the number of nodes.
func (s *Snapshot) NodeCount() int { return s.nodes.byUUID.Len() }

// InstanceCount returns the number of instances.
func (s *Snapshot) InstanceCount() int { return s.instances.byUUID.Len() }

// InstancesCalled yields the instances with a name, or with a name that begins
// with it and a dot.
func (s *Snapshot) InstancesCalled(name string) iter.Seq[*Instance] { return s.instances.called(name) }

// NodesIn yields the nodes of a group, by UUID of the group.
func (s *Snapshot) NodesIn(group string) iter.Seq[*Node] {
	return resolve(s.nodesByGroup.of(group), s.Node)
}

// CountNodesIn is the number of nodes of a group. Like the other counts it
// looks at few of them.
func (s *Snapshot) CountNodesIn(group string) int { return s.nodesByGroup.count(group) }

// NodeGroups yields the UUIDs that nodes name as their group, whether there is
// such a group or not.
func (s *Snapshot) NodeGroups() iter.Seq[string] { return s.nodesByGroup.keys() }

// PrimariesOn yields the instances whose primary node has the UUID.
func (s *Snapshot) PrimariesOn(node string) iter.Seq[*Instance] {
	return resolve(s.instancesByNode.of(node), s.Instance)
}

// CountPrimariesOn is the number of instances that PrimariesOn yields.
func (s *Snapshot) CountPrimariesOn(node string) int { return s.instancesByNode.count(node) }

// PrimaryNodes yields the UUIDs that instances name as their primary node,
// whether there is such a node or not.
func (s *Snapshot) PrimaryNodes() iter.Seq[string] { return s.instancesByNode.keys() }

// SecondariesOn yields the instances that have the node as a secondary.
func (s *Snapshot) SecondariesOn(node string) iter.Seq[*Instance] {
	return resolve(s.secondariesByNode.of(node), s.Instance)
}

// CountSecondariesOn is the number of instances that SecondariesOn yields.
func (s *Snapshot) CountSecondariesOn(node string) int { return s.secondariesByNode.count(node) }

// SecondaryNodes yields the UUIDs that instances name as a secondary node,
// whether there is such a node or not.
func (s *Snapshot) SecondaryNodes() iter.Seq[string] { return s.secondariesByNode.keys() }

// InstancesIn yields the instances that have a NIC in a network.
func (s *Snapshot) InstancesIn(network string) iter.Seq[*Instance] {
	return resolve(s.instancesByNetwork.of(network), s.Instance)
}

// CountInstancesIn is the number of instances that InstancesIn yields.
func (s *Snapshot) CountInstancesIn(network string) int { return s.instancesByNetwork.count(network) }

// GroupsOn yields the groups that a network is connected to.
func (s *Snapshot) GroupsOn(network string) iter.Seq[*Group] {
	return resolve(s.groupsByNetwork.of(network), s.Group)
}

// Tagged yields the UUIDs of the objects of a kind that carry a tag.
func (s *Snapshot) Tagged(kind Kind, tag string) iter.Seq[string] {
	return s.tagged.of(tagKey(kind, tag))
}

// CountTagged is the number of objects that Tagged yields.
func (s *Snapshot) CountTagged(kind Kind, tag string) int { return s.tagged.count(tagKey(kind, tag)) }

func resolve[T any](uuids iter.Seq[string], get func(string) T) iter.Seq[T] {
	return func(yield func(T) bool) {
		for uuid := range uuids {
			if !yield(get(uuid)) {
				return
			}
		}
	}
}
