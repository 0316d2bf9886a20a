package cluster

import "slices"

// Node is one machine of the cluster.
type Node struct {
	Meta
	Name            string `json:"name"`
	PrimaryIP       string `json:"primary_ip"`
	SecondaryIP     string `json:"secondary_ip"`
	Group           string `json:"group"` // UUID
	MasterCandidate bool   `json:"master_candidate"`
	Offline         bool   `json:"offline"`
	Drained         bool   `json:"drained"`
	MasterCapable   bool   `json:"master_capable"`
	VMCapable       bool   `json:"vm_capable"`
	Powered         bool   `json:"powered"`
	// NDParams are the node parameters set on the node itself.
	NDParams Params `json:"ndparams"`
	// Last is the newest change, nil when none was made by a job.
	Last *LastChange `json:"last,omitempty"`
	// Agent is the agent of a node that is elsewhere; nil for one that lives in the controller's process.
	Agent *NodeAgent `json:"agent,omitempty"`
}

// NodeAgent is who may speak for a node that is elsewhere. Package joining decides by it.
type NodeAgent struct {
	// Token is the one with which an agent may join; nil if there is none.
	Token *JoinToken `json:"token,omitempty"`
	// Serial is that of the newest certificate, as hexadecimal digits, and Until when the last of all that were signed ends, in seconds since
	// 1970. Empty before an agent has joined.
	Serial string `json:"serial,omitempty"`
	Until  int64  `json:"until,omitempty"`
	// Former is the certificate with which the newest was asked for: its answer may have been lost.
	Former string `json:"former,omitempty"`
}

// JoinToken is what a node keeps of a token: not what would be needed to use it.
type JoinToken struct {
	// Hash is the SHA-256 of the token's secret, as hexadecimal digits, and Until when it ends, in seconds since 1970.
	Hash  string `json:"hash"`
	Until int64  `json:"until"`
	// Key is the SHA-256 of the public key that has used the token; that one may use it again. Empty before.
	Key string `json:"key,omitempty"`
}

// Kind is KindNode.
func (*Node) Kind() Kind { return KindNode }

// Label returns the node's name.
func (n *Node) Label() string { return n.Name }

// Clone returns a deep copy that may be altered.
func (n *Node) Clone() *Node {
	c := *n
	c.Tags = slices.Clone(n.Tags)
	c.NDParams = n.NDParams.Clone()
	if n.Agent != nil {
		a := *n.Agent
		if a.Token != nil {
			t := *a.Token
			a.Token = &t
		}
		c.Agent = &a
	}
	return &c
}

// NewNode returns a node as it is when just added: master capable, VM capable,
// powered, online; the caller decides about candidacy.
func NewNode(uuid, name, ip, group string, now int64) *Node {
	return &Node{
		Meta: NewMeta(uuid, now), Name: name, PrimaryIP: ip, SecondaryIP: ip, Group: group,
		MasterCapable: true, VMCapable: true, Powered: true, NDParams: Params{},
	}
}

// Roles of a node, as one letter.
const (
	RoleMaster    = "M"
	RoleCandidate = "C"
	RoleDrained   = "D"
	RoleOffline   = "O"
	RoleRegular   = "R"
)

// Role returns the first role that applies to the node, in the order master,
// candidate, drained, offline, regular.
func (c *Cluster) Role(n *Node) string {
	switch {
	case n.UUID == c.MasterNode:
		return RoleMaster
	case n.MasterCandidate:
		return RoleCandidate
	case n.Drained:
		return RoleDrained
	case n.Offline:
		return RoleOffline
	}
	return RoleRegular
}

// Allocation policies of a group.
const (
	AllocPreferred     = "preferred"
	AllocLastResort    = "last_resort"
	AllocUnallocatable = "unallocable"
)

// Group is a node group.
type Group struct {
	Meta
	Name        string `json:"name"`
	AllocPolicy string `json:"alloc_policy"`
	// The parameters set on the group itself.
	NDParams   Params            `json:"ndparams"`
	IPolicy    Params            `json:"ipolicy"`
	DiskParams map[string]Params `json:"diskparams"` // by disk template
	// Networks maps the UUID of each connected network to its nicparams in
	// this group: mode, link, vlan.
	Networks map[string]Params `json:"networks"`
}

// Kind is KindGroup.
func (*Group) Kind() Kind { return KindGroup }

// Label returns the group's name.
func (g *Group) Label() string { return g.Name }

// Clone returns a deep copy that may be altered.
func (g *Group) Clone() *Group {
	c := *g
	c.Tags = slices.Clone(g.Tags)
	c.NDParams = g.NDParams.Clone()
	c.IPolicy = g.IPolicy.Clone()
	c.DiskParams = cloneParamsMap(g.DiskParams)
	c.Networks = cloneParamsMap(g.Networks)
	return &c
}

// DefaultGroup is the name of the group that every new cluster has.
const DefaultGroup = "default"

// NewGroup returns an empty group that allocates by preference.
func NewGroup(uuid, name string, now int64) *Group {
	return &Group{
		Meta: NewMeta(uuid, now), Name: name, AllocPolicy: AllocPreferred,
		NDParams: Params{}, IPolicy: Params{}, DiskParams: map[string]Params{}, Networks: map[string]Params{},
	}
}
