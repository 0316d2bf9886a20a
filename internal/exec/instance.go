package exec

import (
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/work"
)

// The verbs that change an instance in the inventory.
const (
	forgetInstance = "forget"
	nameInstance   = "name"
	markInstance   = "mark"
	setSystem      = "set-os"
	setDiskSize    = "set-disk-size"
	modifyInstance = "modify"
)

type markArgs struct {
	// State is the wanted power state, Source who wants it.
	State  string `json:"state"`
	Source string `json:"source"`
	// Forget: the wanted state stays as it is, whatever was done.
	Forget bool `json:"forget,omitempty"`
	// Did: something was done to the instance.
	Did bool `json:"did,omitempty"`
}

type diskSizeArgs struct {
	Disk  string `json:"disk"` // UUID
	MTime int64  `json:"mtime"`
	Size  int64  `json:"size"`
}

var instanceVerbs = map[string]verb{
	forgetInstance: changing(func(env *Env, snap *cluster.Snapshot, s *work.Step, _ struct{}) ([]cluster.Change, any, error) {
		return env.forgetting(snap, s.Of), nil, nil
	}),
	nameInstance: altering(func(_ *Env, _ *cluster.Snapshot, inst *cluster.Instance, a renameArgs) ([]cluster.Change, any, error) {
		inst.Name = a.To
		return nil, nil, nil
	}),
	markInstance: changing(func(env *Env, snap *cluster.Snapshot, s *work.Step, a markArgs) ([]cluster.Change, any, error) {
		changes, err := env.marking(snap, s.Of, a)
		return changes, nil, err
	}),
	setSystem: altering(func(env *Env, _ *cluster.Snapshot, inst *cluster.Instance, _ struct{}) ([]cluster.Change, any, error) {
		next := installed(env.Op, inst)
		inst.OS, inst.OSParams, inst.OSParamsPrivate = next.OS, next.OSParams, next.OSParamsPrivate
		return nil, nil, nil
	}),
	setDiskSize: altering(func(_ *Env, _ *cluster.Snapshot, inst *cluster.Instance, a diskSizeArgs) ([]cluster.Change, any, error) {
		for i := range inst.Disks {
			if inst.Disks[i].UUID == a.Disk {
				inst.Disks[i].Size, inst.Disks[i].MTime = a.Size, a.MTime
				if len(inst.Disks[i].Children) > 0 {
					inst.Disks[i].Children[0].Size = a.Size // the data
				}
			}
		}
		return nil, nil, nil
	}),
	modifyInstance: altering(modified),
	setActive:      changing(activated),
	noteRecreated:  altering(recreated),
	movePrimary: altering(func(_ *Env, snap *cluster.Snapshot, inst *cluster.Instance, a movePrimaryArgs) ([]cluster.Change, any, error) {
		if snap.Node(a.To) == nil {
			return nil, nil, fault.New(fault.NotFound, "the node with UUID %s is not in the cluster any more", a.To)
		}
		inst.MoveTo(a.To, a.Away)
		return nil, nil, nil
	}),
}

// altering is a verb that alters the instance of its step, a copy of which it gets; serial number and time are taken care of.
// Changes of other objects that belong to it, such as networks, it returns.
func altering[A any](alter func(env *Env, snap *cluster.Snapshot, inst *cluster.Instance, args A) ([]cluster.Change, any, error)) verb {
	return changing(func(env *Env, snap *cluster.Snapshot, s *work.Step, args A) ([]cluster.Change, any, error) {
		old := snap.Instance(s.Of)
		if old == nil {
			return nil, nil, removedMeanwhile(s.Of)
		}
		inst := old.Clone()
		others, result, err := alter(env, snap, inst, args)
		if err != nil {
			return nil, nil, err
		}
		inst.Touch(env.nanos())
		return append(others, cluster.Put(inst)), result, nil
	})
}

// marking records the wanted power state of an instance; one that has it
// already is left alone, but for a note that the opcode did something to it.
func (e *Env) marking(snap *cluster.Snapshot, uuid string, a markArgs) ([]cluster.Change, error) {
	old := snap.Instance(uuid)
	switch {
	case old == nil && a.Forget:
		return nil, nil
	case old == nil:
		return nil, removedMeanwhile(uuid)
	}
	inst := old.Clone()
	if a.Forget || old.AdminState == a.State && old.AdminStateSource == a.Source {
		if !a.Did {
			return nil, nil
		}
		inst.Last = e.lastChange()
		return []cluster.Change{cluster.Put(inst)}, nil
	}
	inst.AdminState, inst.AdminStateSource = a.State, a.Source
	inst.DisksActive = a.State == cluster.AdminUp
	inst.Touch(e.nanos())
	return []cluster.Change{cluster.Put(inst)}, nil
}

// marked is the step that records what was done to an instance.
func (e *Env) marked(inst *cluster.Instance, state, source string, did bool) work.Step {
	forget := e.Op.Bool("no_remember")
	text := "mark instance " + inst.Name + " as " + state
	if forget {
		text = "note what was done to instance " + inst.Name
	}
	return inInventory(markInstance, inst.UUID, text, markArgs{State: state, Source: source, Forget: forget, Did: did})
}

// connecting returns what wiring needs to know from the opcode.
func (e *Env) connecting() connecting {
	return connecting{now: e.nanos(), newUUID: e.NewUUID, check: e.Op.Bool("conflicts_check")}
}
