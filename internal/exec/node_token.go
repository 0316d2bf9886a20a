package exec

import (
	"context"
	"encoding/hex"
	"slices"
	"time"

	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/joining"
)

// JoinAccess is what an agent needs beside the secret of its token to find the controllers, and to know them.
type JoinAccess struct {
	// Addresses are those at which controllers take agents in, as HOST:PORT.
	Addresses []string `json:"addresses"`
	// Authority is the SHA-256 of the certificate of who signs those of controllers and agents, as hexadecimal digits.
	Authority string `json:"authority"`
}

// NodeToken returns the executor of OP_NODE_TOKEN. Access tells where agents are taken in; its error refuses the opcode.
//
// Whoever asks draws the secret and keeps it: the opcode, and with it the store, has its hash alone.
func NodeToken(access func(ctx context.Context) (JoinAccess, error)) Executor {
	return Executor{Locks: exclusiveCluster, Resumable: true, Why: setsAState, Prepare: func(ctx context.Context, env *Env) (Plan, error) {
		found, err := access(ctx)
		if err != nil {
			return Plan{}, err
		}
		node, err := env.tokened(env.snapshot())
		if err != nil {
			return Plan{}, err
		}
		result := map[string]any{
			"node": node.Name, "addresses": slices.Clone(found.Addresses), "authority": found.Authority, "until": node.Agent.Token.Until,
		}
		return Plan{Dry: result, Change: func(snap *cluster.Snapshot) ([]cluster.Change, any, error) {
			node, err := env.tokened(snap)
			if err != nil {
				return nil, nil, err
			}
			return []cluster.Change{cluster.Put(node)}, result, nil
		}}, nil
	}}
}

// tokened returns the node with the token of the opcode, as a new one if there is none of its name.
func (e *Env) tokened(snap *cluster.Snapshot) (*cluster.Node, error) {
	hash := e.Op.Str("token_hash")
	if raw, err := hex.DecodeString(hash); err != nil || len(raw) != 32 {
		return nil, fault.New(fault.Invalid, "The hash of the token is not that of a SHA-256, in hexadecimal digits").At("token_hash")
	}
	node, err := e.toJoin(snap)
	if err != nil {
		return nil, err
	}
	if node.Agent == nil {
		node.Agent = &cluster.NodeAgent{}
	}
	if t := node.Agent.Token; t == nil || t.Hash != hash { // the same again keeps what is known of it
		node.Agent.Token = &cluster.JoinToken{Hash: hash, Until: time.Unix(0, e.nanos()).Add(joining.TokenTime).Unix()}
	}
	return node, nil
}

// toJoin returns the node that an agent is to join as.
func (e *Env) toJoin(snap *cluster.Snapshot) (*cluster.Node, error) {
	name, err := cluster.NormalName(e.Op.Str("node_name"))
	if err != nil {
		return nil, err
	}
	old, err := sameNode(snap, name)
	if err != nil {
		return nil, err
	}
	if old == nil {
		return e.addedNode(snap, name)
	}
	for _, field := range []string{"group", "primary_ip"} {
		if e.Op.Has(field) {
			return nil, fault.New(fault.Invalid, "Node %s is in the cluster already, and keeps its settings", old.Name).At(field)
		}
	}
	if old.Agent == nil && hostsAny(snap, old.UUID) {
		return nil, fault.New(fault.WrongState, "Node %s lives in the controller's process, and has instances there, of which an agent elsewhere knows nothing", old.Name).
			At("node_name").WithHint("remove them first, or name a node that is not there yet: it is added")
	}
	node := old.Clone()
	node.Touch(e.nanos())
	return node, nil
}

// addedNode is a new node.
func (e *Env) addedNode(snap *cluster.Snapshot, name string) (*cluster.Node, error) {
	group, err := groupForNode(snap, e.Op.Str("group"))
	if err != nil {
		return nil, err
	}
	ip, err := nodeAddress(snap, e.Op.Str("primary_ip"))
	if err != nil {
		return nil, err
	}
	node := cluster.NewNode(e.NewUUID(), name, ip, group.UUID, e.nanos())
	node.MasterCandidate = node.MasterCapable && candidates(snap) < snap.Cluster().PoolSize
	return node, nil
}
