package exec

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/diskimage"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/work"
)

// The verb that puts an image into the inventory, as the node found it that has fetched it.
const putImage = "put-image"

// putArgs are what the step that puts a new image into the inventory has from its plan.
type putArgs struct {
	Name string `json:"name"`
}

var imageVerbs = map[string]verb{
	putImage: changing(func(env *Env, snap *cluster.Snapshot, s *work.Step, a putArgs) ([]cluster.Change, any, error) {
		if env.found == nil { // the step before is carried out again by whoever takes over
			return nil, nil, fault.New(fault.Internal, "nobody has looked at the image %s", a.Name)
		}
		if err := freeImageName(a.Name, snap); err != nil {
			return nil, nil, err
		}
		f := env.found
		image := &cluster.Image{Meta: cluster.NewMeta(s.Of, env.nanos()), Name: a.Name, SHA256: f.SHA256, Format: f.Format, Source: f.Source, Size: f.Size, VirtualSize: f.VirtualSize}
		return []cluster.Change{cluster.Put(image)}, map[string]any{
			"name": image.Name, "sha256": image.SHA256, "format": image.Format, "size": image.Size, "virtual_size": image.VirtualSize,
		}, nil
	}),
}

// orderedImage is an image as nodes are ordered to have it.
func orderedImage(i *cluster.Image) agent.Image {
	return agent.Image{Name: i.Name, SHA256: i.SHA256, Format: i.Format, Source: i.Source, Size: i.Size, VirtualSize: i.VirtualSize}
}

// freeImageName refuses a name that an image has.
func freeImageName(name string, snap *cluster.Snapshot) error {
	if other := snap.ImageNamed(name); other != nil {
		return fault.New(fault.Exists, "Image '%s' is already in the cluster (UUID: %s)", name, other.UUID).At("image_name").
			WithHint("take another name, or remove that one first: drover image remove %s", name)
	}
	return nil
}

// imageAdd prepares OP_IMAGE_ADD: a node fetches the image and looks at it, and what it finds is put into the inventory.
func imageAdd(ctx context.Context, env *Env) (Plan, error) {
	op := env.Op
	name := op.Str("image_name")
	image := agent.Image{Name: name, Source: op.Str("source"), SHA256: op.Str("sha256"), Format: op.Str("format")}
	if err := checkNewImage(image, env.snapshot()); err != nil {
		return Plan{}, err
	}
	image, err := env.uploaded(image)
	if err != nil {
		return Plan{}, err
	}
	node, err := env.fetchingNode(ctx)
	if err != nil {
		return Plan{}, err
	}
	if strings.HasPrefix(image.Source, "http:") && image.SHA256 == "" {
		env.firstf("Nobody says which SHA-256 the image should have, and on its way by http anybody may change it; compare what is shown when it is there")
	}
	fetch := onNode(fetchImage, node.UUID, "", "have node "+node.Name+" fetch image "+name+" and look at it", fetchArgs{image})
	fetch.Fails = "Node " + node.Name + " could not fetch the image"
	if _, is := cluster.Upload(image.Source); is {
		fetch.Fails = "Node " + node.Name + " did not take the image"
	}
	put := inInventory(putImage, env.NewUUID(), "add image "+name+" to the inventory", putArgs{name})
	return Plan{Work: &work.Work{Steps: []work.Step{fetch, put}}}, nil
}

// checkNewImage refuses what can be told of an image before anybody has fetched it.
func checkNewImage(image agent.Image, snap *cluster.Snapshot) error {
	if err := cluster.CheckImageName(image.Name); err != nil {
		return err
	}
	if err := freeImageName(image.Name, snap); err != nil {
		return err
	}
	if err := cluster.CheckSource(image.Source); err != nil {
		return err
	}
	if image.SHA256 != "" {
		return cluster.CheckSHA256(image.SHA256)
	}
	return nil
}

// uploaded is a new image that a user brought, with all that its file says; any other is as it was. It has the id of what was brought as its name, so that
// nothing else is in the way of it, and what is removed with it is its file.
func (e *Env) uploaded(image agent.Image) (agent.Image, error) {
	id, is := cluster.Upload(image.Source)
	if !is {
		return image, nil
	}
	if image.Name != id {
		return image, fault.New(fault.Invalid, "what was uploaded as %s is the image %s, and no other", id, id).At("image_name")
	}
	if e.Uploads == nil {
		return image, fault.New(fault.NotFound, "nothing is uploaded to this controller").At("source")
	}
	has, err := e.Uploads.Image(id)
	if err != nil {
		return image, err
	}
	if image.SHA256 != "" && image.SHA256 != has.SHA256 || image.Format != "" && image.Format != has.Format {
		return image, fault.New(fault.Invalid, "what was uploaded as %s has the format %s and the SHA-256 %s", id, has.Format, has.SHA256).At("source")
	}
	return has, nil
}

// maxAsked is how many nodes are asked whether they are there before nobody fetches an image.
const maxAsked = 5

// fetchingNode is the node that fetches a new image: the one that was asked for, or the first that answers.
func (e *Env) fetchingNode(ctx context.Context) (*cluster.Node, error) {
	snap := e.snapshot()
	if e.Op.Has("node_name") || e.Op.Has("node_uuid") {
		node, err := findNode(e.Op, "node", snap)
		if err == nil {
			err = online(node)
		}
		return node, err
	}
	var why error
	asked := 0
	for node := range snap.Nodes() {
		if node.Offline || asked == maxAsked {
			continue
		}
		asked++
		a, err := e.agent(node)
		if err == nil {
			_, err = a.Info(ctx)
		}
		if err == nil {
			return node, nil
		}
		why = err
	}
	if why == nil {
		return nil, fault.New(fault.WrongState, "There is no node that could fetch the image: all are marked offline").WithHint("name one that is not: --node NAME")
	}
	return nil, fault.New(fault.Environment, "No node of %d that were asked could fetch the image: %w", asked, why).WithHint("name one: --node NAME")
}

// imageRemove prepares OP_IMAGE_REMOVE. Copies on nodes stay until they are not used for long, or their room is needed.
func imageRemove(ctx context.Context, env *Env) (Plan, error) {
	image, err := findImage(env.Op.Str("image_name"), env.snapshot())
	if err != nil {
		return Plan{}, err
	}
	if err := env.notStoodOn(ctx, image); err != nil {
		return Plan{}, err
	}
	env.Infof("Copies of image %s stay on nodes until nobody has used them for 30 days, or their room is needed: another image may have the same content, and instances are being installed. "+
		"They may be removed by hand: images/%s in the directory of a node's agent", image.Name, image.SHA256)
	return updatePlan(env, nil, func(*cluster.Snapshot) ([]cluster.Change, error) {
		return []cluster.Change{cluster.Delete(cluster.KindImage, image.UUID)}, nil
	})
}

// maxNamed is how many instances an error names.
const maxNamed = 5

// notStoodOn refuses to remove an image that disks of instances stand on, as far as nodes tell of them; where one does not, its copy stays all the same for
// as long as a disk there needs it.
func (e *Env) notStoodOn(ctx context.Context, image *cluster.Image) error {
	var users []string
	for node := range e.snapshot().Nodes() {
		a, err := e.Nodes(node.Name)
		var state agent.State
		if err == nil {
			state, err = a.State(ctx, false)
		}
		if err != nil {
			e.Warnf("Node %s does not tell whether disks there stand on image %s (continuing): %v", node.Name, image.Name, err)
			continue
		}
		for i := range state.Instances {
			if inst := &state.Instances[i]; slices.ContainsFunc(inst.Disks, func(d hypervisor.Disk) bool { return d.Image == image.SHA256 }) {
				users = append(users, inst.Name+" on "+node.Name)
			}
		}
	}
	if len(users) == 0 {
		return nil
	}
	slices.Sort(users)
	named := strings.Join(users[:min(len(users), maxNamed)], ", ")
	if more := len(users) - maxNamed; more > 0 {
		named += fmt.Sprintf(", and %d more", more)
	}
	return fault.New(fault.WrongState, "Image %s cannot be removed: disks of instances stand on it: %s", image.Name, named).At("image_name").
		WithHint("remove these instances, or install them anew from another image (drover instance reinstall NAME --image OTHER)")
}

// findOS returns the definition of an operating system that NAME or NAME+VARIANT asks for on a node: the node's own, or the one whose variants are the
// images of the cluster. A name that could be both is refused: scripts of the operator's may have it for long.
func (e *Env) findOS(ctx context.Context, node Node, name string, force bool) (agent.OS, *cluster.Image, error) {
	own, err := node.FindOS(ctx, name, force)
	base, variant := cluster.OSName(name)
	if base != cluster.ImageOS {
		return own, nil, err
	}
	image := e.snapshot().ImageNamed(variant)
	switch {
	case !fault.Is(err, fault.NotFound) && image != nil && interrupted(err) == nil:
		return own, nil, fault.New(fault.WrongState, "Node %s has an operating system definition of its own that is called '%s', and the cluster has an image %s: it cannot be told which is meant",
			node.Node(), base, variant).At("os_type").WithHint("give the definition, which is a directory os/%s of the node's agent, another name; or add the image under another name", base)
	case !fault.Is(err, fault.NotFound):
		return own, nil, err
	case variant == "":
		return own, nil, fault.New(fault.Invalid, "OS name must include a variant: which image").At("os_type").WithHint("%s+NAME; drover image list shows which there are", base)
	case image == nil:
		return own, nil, fault.New(fault.NotFound, "Image '%s' not found", variant).At("os_type").WithHint("drover image list shows which there are; drover image add %s SOURCE adds it", variant)
	}
	return agent.ImageOS(nil), image, nil
}

// interrupted is an error after which nothing is known.
func interrupted(err error) error {
	if fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Canceled) {
		return err
	}
	return nil
}

// checkImage refuses an image that cannot be installed on an instance, and what cannot be told to it at its first start.
func (e *Env) checkImage(inst *cluster.Instance, image *cluster.Image, secret cluster.Params) error {
	if inst.Hypervisor == cluster.Pretended {
		return fault.New(fault.Unsupported, "Image %s cannot be installed on %s: instances of the hypervisor %s have no disks with content", image.Name, inst.Name, cluster.Pretended).
			At("os_type").WithHint("instances of the hypervisor kvm have; an instance that is only pretended has the OS noop")
	}
	if len(inst.Disks) == 0 || inst.Disks[0].Size < image.VirtualSize {
		has := "and there is none"
		if len(inst.Disks) > 0 {
			has = "and the first has " + sizeText(inst.Disks[0].Size)
		}
		return fault.New(fault.Invalid, "Image %s needs a disk of %s, %s", image.Name, sizeText(image.VirtualSize), has).At("disks").
			WithHint("give the first disk at least %dM", image.VirtualSize)
	}
	if !slices.Contains(diskimage.Formats(), image.Format) {
		return fault.New(fault.Unsupported, "Image %s has the format %q, which this program does not know", image.Name, image.Format)
	}
	_, err := agent.FirstStart(hypervisor.Thing{UUID: inst.UUID, Name: inst.Name}, scriptParams(e.snapshot().Cluster().FillOS(inst), inst.OSParamsPrivate, secret))
	return err
}
