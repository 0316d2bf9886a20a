package exec

import (
	"context"
	"maps"
	"slices"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/work"
)

// verbs are what steps can be: the orders that nodes are given, and the changes of the inventory that go with them. Their names
// and arguments are stored: a later program has to know those of today.
var verbs = func() map[string]verb {
	all := map[string]verb{}
	for _, part := range []map[string]verb{nodeVerbs, detachedVerbs, creationVerbs, instanceVerbs, mirrorVerbs, imageVerbs, exportVerbs, hookVerbs, commandVerbs, powerVerbs, machineVerbs, renewalVerbs, storageVerbs, addressVerbs, destroyVerbs} {
		maps.Copy(all, part)
	}
	return all
}()

// The verbs that are orders for a node.
const (
	prepareDisks    = "prepare-disks"    // make the disks that are not there, and let those grow that are too small
	dropDisks       = "drop-disks"       // remove disks
	balloonInstance = "balloon-instance" // ask the guest of what runs to have another memory
	adjustDevices   = "adjust-devices"   // have what runs have the devices that the inventory tells of
	removeFromNode  = "remove-from-node" // remove what the node has of the instance
	renameOnNode    = "rename-on-node"
	receiveInstance = "receive" // have it wait for what another node sends
	sendInstance    = "send"    // hand it over to the node that waits for it
	installSystem   = "install"
	fetchImage      = "fetch-image" // have the node keep a copy of an image, and look at it
	startInstance   = "start"
	stopInstance    = "stop"
	restartInstance = "restart" // within its machine, or with a new one
)

// meant are the arguments of orders that need no more than what is meant. The name is for people, and for files that others read.
type meant struct {
	Name string `json:"name"`
}

type prepareArgs struct {
	Name  string            `json:"name"`
	Disks []hypervisor.Disk `json:"disks"`
}

type dropArgs struct {
	Name  string   `json:"name"`
	Disks []string `json:"disks"` // UUIDs
}

type adjustArgs struct {
	// Without are disks by UUID that are to be pulled out although the inventory has them yet.
	Without []string `json:"without,omitempty"`
}

type balloonArgs struct {
	Name   string `json:"name"`
	Memory int    `json:"memory"` // MiB
}

type renameArgs struct {
	Name string `json:"name"`
	To   string `json:"to"`
}

type stopArgs struct {
	Name    string `json:"name"`
	Timeout int64  `json:"timeout"` // seconds; 0 for at once
}

type installArgs struct {
	// Given: the opcode says what is installed, and with which parameters; else the instance does.
	Given bool `json:"given,omitempty"`
	// Image is the UUID of the image that is installed; empty for an operating system of the node's.
	Image string `json:"image,omitempty"`
}

type fetchArgs struct {
	Image agent.Image `json:"image"`
}

type startArgs struct {
	// Given: the opcode has parameters that count for this start only.
	Given  bool `json:"given,omitempty"`
	Paused bool `json:"paused,omitempty"`
	// Snapshot is the id under which what the disks have before it runs is kept; empty for none.
	Snapshot string `json:"snapshot,omitempty"`
}

type restartArgs struct {
	Name    string `json:"name"`
	Hard    bool   `json:"hard,omitempty"`
	Timeout int64  `json:"timeout"`
}

var nodeVerbs = map[string]verb{
	prepareDisks: ordering(func(ctx context.Context, _ *Env, node Node, order agent.Order, s *work.Step, a prepareArgs) error {
		err := node.Prepare(ctx, order, thing(s, a.Name), a.Disks)
		if fault.Is(err, fault.Exhausted) {
			return takenError{err, s.Node}
		}
		return err
	}),
	dropDisks: ordering(func(ctx context.Context, _ *Env, node Node, order agent.Order, s *work.Step, a dropArgs) error {
		return node.Drop(ctx, order, thing(s, a.Name), a.Disks)
	}),
	adjustDevices: ordering(func(ctx context.Context, env *Env, node Node, order agent.Order, s *work.Step, a adjustArgs) error {
		inst, err := env.present(s)
		if err != nil {
			return err
		}
		spec := specOf(env.snapshot().Cluster(), inst, nil, nil)
		spec.Disks = slices.DeleteFunc(spec.Disks, func(d hypervisor.Disk) bool { return slices.Contains(a.Without, d.UUID) })
		return node.Adjust(ctx, order, spec)
	}),
	balloonInstance: ordering(func(ctx context.Context, _ *Env, node Node, order agent.Order, s *work.Step, a balloonArgs) error {
		return node.Balloon(ctx, order, thing(s, a.Name), a.Memory)
	}),
	removeFromNode: ordering(func(ctx context.Context, env *Env, node Node, order agent.Order, s *work.Step, a meant) error {
		return env.unlessGone(node.Remove(ctx, order, thing(s, a.Name)))
	}),
	renameOnNode: ordering(func(ctx context.Context, _ *Env, node Node, order agent.Order, s *work.Step, a renameArgs) error {
		return node.Rename(ctx, order, thing(s, a.Name), a.To)
	}),
	installSystem: ordering(func(ctx context.Context, env *Env, node Node, order agent.Order, s *work.Step, a installArgs) (err error) {
		if err := lostSecret(env.Op); err != nil {
			return err
		}
		inst, err := env.present(s)
		if err != nil {
			return err
		}
		c, next := env.snapshot().Cluster(), inst
		if a.Given {
			next = installed(env.Op, inst)
		}
		params := scriptParams(c.FillOS(next), next.OSParamsPrivate, env.Op.Map("osparams_secret"))
		hide := hiddenParams(next.OSParamsPrivate, env.Op.Map("osparams_secret"))
		defer func() { err = hide.Error(err) }()
		spec, log := specOf(c, next, nil, nil), func(line string) { env.Logf("%s", hide.Text(line)) }
		if a.Image == "" {
			return node.Install(ctx, order, spec, next.OS, params, log)
		}
		image := env.snapshot().Image(a.Image)
		if image == nil {
			return fault.New(fault.Conflict, "the image %s was removed meanwhile", next.OS)
		}
		if err := env.bringImage(ctx, order, node, orderedImage(image)); err != nil {
			return err
		}
		return node.InstallImage(ctx, order, spec, orderedImage(image), params, log)
	}),
	fetchImage: ordering(func(ctx context.Context, env *Env, node Node, order agent.Order, _ *work.Step, a fetchArgs) error {
		found, err := env.fetch(ctx, order, node, a.Image)
		if err != nil {
			return err
		}
		env.found = &found
		env.Logf("image %s is %s, for a disk of %s, and has the SHA-256 %s", found.Name, found.Format, sizeText(found.VirtualSize), found.SHA256)
		return nil
	}),
	startInstance: ordering(func(ctx context.Context, env *Env, node Node, order agent.Order, s *work.Step, a startArgs) error {
		inst, err := env.present(s)
		if err != nil {
			return err
		}
		var hv, be cluster.Params
		if a.Given {
			if hv, be, err = startParams(env, inst); err != nil {
				return err
			}
		}
		spec := specOf(env.snapshot().Cluster(), inst, hv, be)
		spec.StartPaused, spec.Snapshot = a.Paused, a.Snapshot
		return node.Start(ctx, order, spec, env.Op.Reason)
	}),
	receiveInstance: ordering(func(ctx context.Context, env *Env, node Node, order agent.Order, s *work.Step, _ struct{}) error {
		inst, err := env.present(s)
		if err != nil {
			return err
		}
		return node.Receive(ctx, order, specOf(env.snapshot().Cluster(), inst, nil, nil))
	}),
	sendInstance: ordering(func(ctx context.Context, env *Env, node Node, order agent.Order, s *work.Step, a meant) error {
		return node.Send(ctx, order, thing(s, a.Name), env.Op.Reason)
	}),
	awaitSync: ordering(func(ctx context.Context, env *Env, node Node, _ agent.Order, s *work.Step, a awaitArgs) error {
		return env.awaitCopies(ctx, node, thing(s, a.Name), a.Disks)
	}),
	stopInstance: ordering(func(ctx context.Context, env *Env, node Node, order agent.Order, s *work.Step, a stopArgs) error {
		return env.unlessGone(node.Stop(ctx, order, thing(s, a.Name), stopWithin(a.Timeout), env.Op.Reason))
	}),
	restartInstance: ordering(func(ctx context.Context, env *Env, node Node, order agent.Order, s *work.Step, a restartArgs) error {
		if !a.Hard {
			return node.RebootSoft(ctx, order, thing(s, a.Name), env.Op.Reason)
		}
		inst, err := env.present(s)
		if err != nil {
			return err
		}
		return node.RebootHard(ctx, order, specOf(env.snapshot().Cluster(), inst, nil, nil), stopWithin(a.Timeout), env.Op.Reason)
	}),
}

// unlessGone is the error of an order that takes something away, and nil if it took it away before the controller was started anew:
// then something else that has its name is what the node answers with.
func (e *Env) unlessGone(err error) error {
	if e.Kept != nil && fault.Is(err, fault.Exists) {
		return nil
	}
	return err
}

// thing is what an order of a step means.
func thing(s *work.Step, name string) hypervisor.Thing {
	return hypervisor.Thing{UUID: s.Of, Name: name}
}

// present returns the instance of a step as the inventory has it by now.
func (e *Env) present(s *work.Step) (*cluster.Instance, error) {
	inst := e.snapshot().Instance(s.Of)
	if inst == nil {
		return nil, removedMeanwhile(s.Of)
	}
	return inst, nil
}

func removedMeanwhile(uuid string) error {
	return fault.New(fault.Conflict, "the instance with UUID %s was removed meanwhile", uuid)
}

// onNode is a step that orders something of a node.
func onNode(verb, node, of, text string, args any) work.Step {
	s := inInventory(verb, of, text, args)
	s.Node = node
	return s
}

// inInventory is a step that changes the inventory.
func inInventory(verb, of, text string, args any) work.Step {
	s := work.Step{Verb: verb, Of: of, Text: text}
	if args != nil {
		s.Args = encodeArgs(args)
	}
	return s
}
