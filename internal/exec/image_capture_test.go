package exec

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/agent/exports"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// waiting are images that wait for a disk: by id the UUID of the instance, and what came of its disk.
type waiting struct {
	brought

	of     map[string]string
	came   map[string][]byte
	format string // of the newest
	took   int    // how many disks were read to the end
}

func (w *waiting) Awaits(id string) (string, error) {
	if of := w.of[id]; of != "" {
		return of, nil
	}
	return "", fault.New(fault.NotFound, "No image %s waits", id)
}

func (w *waiting) TakeDisk(_ context.Context, id, format string, disk io.Reader) error {
	if w.of[id] == "" {
		return fault.New(fault.NotFound, "the image %s was removed", id)
	}
	if w.came[id] != nil {
		return nil
	}
	var content []byte
	for part := make([]byte, 10_000); ; {
		for i := range part {
			part[i] = 'x' // what a reader had there before
		}
		n, err := disk.Read(part)
		if content = append(content, part[:n]...); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fault.New(fault.Canceled, "the disk did not come: %w", err)
		}
	}
	w.took++
	w.came[id], w.format = content, format
	return nil
}

// machines is a node whose machines are real ones, as far as it says, and whose disks have a content with holes before, in and behind it.
type machines struct {
	noting

	lies  string // what it does wrong
	packs bool
}

// onDisks is what they have.
var onDisks = slices.Concat(make([]byte, 3<<20), []byte("begins"), make([]byte, 300<<10), []byte("ends"), make([]byte, 2<<20+7))

func (n machines) Info(ctx context.Context) (hypervisor.Node, error) {
	info, err := n.anyNode.Info(ctx)
	info.StandsIn, info.Packs = false, n.packs
	return info, err
}

func (n machines) DumpDisk(ctx context.Context, order agent.Order, _ hypervisor.Spec, d agent.Dump, _ map[string]string, _ func(string)) error {
	n.note("dump "+string(d.Form), d.Snapshot, "-snapshot")
	const from = 3<<20 - 100
	piece := agent.Piece{At: from, Data: onDisks[from : from+400<<10], Next: int64(len(onDisks)), Size: int64(len(onDisks))}
	return n.KeepDump(ctx, order, d.Place, piece)
}

func (n machines) ReadDump(ctx context.Context, from exports.Place, at int64) (agent.Piece, error) {
	p, err := n.anyNode.ReadDump(ctx, from, at)
	switch {
	case n.lies == "size" && at > 0:
		p.Size++
	case n.lies == "place":
		p.From++
	case n.lies == "away":
		err = fault.New(fault.Unavailable, "node %s is away", n.Node())
	}
	return p, err
}

// captureRig is a cluster with the instances up and down, of whose disks images are to be made.
func captureRig(t *testing.T) (r *rig, images *waiting, orders *[]string) {
	t.Helper()
	r = newRig(t, "node1", "node2")
	for _, name := range []string{"up", "down"} {
		r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"instance_name": name, "disk_template": "plain", "pnode": "node1", "start": name == "up"}))
	}
	images = &waiting{of: map[string]string{"of-up": r.instance("up").UUID, "of-down": r.instance("down").UUID}, came: map[string][]byte{}}
	r.uploads = images
	orders = new([]string)
	r.wrap = func(n Node) Node { return machines{noting: noting{n, orders}} }
	return r, images, orders
}

// TestAnImageOfAnInstance is what its disk has, zeros included, while it goes on; nothing is left on the node.
func TestAnImageOfAnInstance(t *testing.T) {
	r, images, orders := captureRig(t)
	inventory, nodes := r.dump(), r.nodeStates()
	if _, err := r.run("OP_IMAGE_CAPTURE", params{"image_name": "of-up", "instance_name": "up", "dry_run": true}); err != nil || r.dump() != inventory || r.nodeStates() != nodes || len(*orders) > 0 {
		t.Fatalf("a dry run left traces, or failed: %v", err)
	}
	for _, c := range []struct {
		instance, orders, format string
	}{{"up", "snapshot dump raw-snapshot release", "raw"}, {"down", "dump packed", "qcow2"}} {
		*orders = nil
		r.wrap = func(n Node) Node { return machines{noting: noting{n, orders}, packs: c.format == "qcow2"} }
		before := r.state("node1", c.instance)
		r.must("null", "OP_IMAGE_CAPTURE", params{"image_name": "of-" + c.instance, "instance_name": c.instance})
		if got := strings.Join(*orders, " "); got != c.orders || r.state("node1", c.instance) != before {
			t.Errorf("%s: %s, and it is %s; want %s, %s", c.instance, got, r.state("node1", c.instance), c.orders, before)
		}
		if got := images.came["of-"+c.instance]; !bytes.Equal(got, onDisks) || images.format != c.format {
			t.Errorf("%s: %d bytes of %s came, want %d", c.instance, len(got), images.format, len(onDisks))
		}
		r.nothingStaged("node1")
	}
}

// TestWhatNoImageIsMadeOf is refused before anything is done.
func TestWhatNoImageIsMadeOf(t *testing.T) {
	r, images, orders := captureRig(t)
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"instance_name": "bare", "disk_template": "diskless", "disks": []any{}, "pnode": "node1"}))
	r.must(`["node1"]`, "OP_INSTANCE_CREATE", creating(params{"instance_name": "filed", "disk_template": "file", "pnode": "node1"}))
	*orders = nil
	images.of["of-bare"], images.of["of-filed"] = r.instance("bare").UUID, r.instance("filed").UUID
	for _, c := range []struct{ text, image, instance string }{
		{"No image none waits", "none", "up"},
		{"to be made of another instance than down", "of-up", "down"},
		{"has no disk", "of-bare", "bare"},
		{"makes no snapshots of disks of the template file", "of-filed", "filed"},
	} {
		r.refusesLike("OpPrereqError", c.text, "OP_IMAGE_CAPTURE", params{"image_name": c.image, "instance_name": c.instance})
	}
	r.wrap = nil
	r.refusesLike("OpPrereqError", "is only pretended", "OP_IMAGE_CAPTURE", params{"image_name": "of-up", "instance_name": "up"})
	r.uploads = nil
	r.refusesLike("OpPrereqError", "nothing is uploaded", "OP_IMAGE_CAPTURE", params{"image_name": "of-up", "instance_name": "up"})
	if len(*orders) > 0 {
		t.Errorf("it gave the orders %v", *orders)
	}
}

// TestADiskThatDoesNotCome leaves nothing on the node, and no snapshot: whether the node is not there, tells of something else, or nobody wants the disk any more.
func TestADiskThatDoesNotCome(t *testing.T) {
	for _, lies := range []string{"size", "place", "away", "gone"} {
		r, images, orders := captureRig(t)
		r.wrap = func(n Node) Node { return machines{noting: noting{goes{n, images, lies}, orders}, lies: lies} }
		_, err := r.run("OP_IMAGE_CAPTURE", params{"image_name": "of-up", "instance_name": "up"})
		want := map[string]string{"size": "tells of another dump", "place": "tells of another dump", "away": "is away", "gone": "was removed"}[lies]
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", lies, err)
		}
		if images.came["of-up"] != nil || r.state("node1", "up") != hypervisor.Running || !slices.Contains(*orders, "release") {
			t.Errorf("%s: it is %s, and was ordered %v", lies, r.state("node1", "up"), *orders)
		}
		r.nothingStaged("node1")
	}
}

// goes is a node during whose work an image goes.
type goes struct {
	anyNode

	images *waiting
	lies   string
}

func (n goes) ReleaseSnapshot(ctx context.Context, order agent.Order, of hypervisor.Thing, id string) error {
	if n.lies == "gone" {
		delete(n.images.of, "of-up")
	}
	return n.anyNode.ReleaseSnapshot(ctx, order, of, id)
}

// TestAnImageOfAnInstanceKilledAnywhere comes to what it comes to undisturbed, and a disk that came is not read again.
func TestAnImageOfAnInstanceKilledAnywhere(t *testing.T) {
	for _, name := range []string{"up", "down"} {
		begin := func(t *testing.T) *rig {
			r, images, _ := captureRig(t)
			r.keeper.OnChange(func(*cluster.Snapshot) { _ = r.called() })
			t.Cleanup(func() {
				if images.took > 1 {
					t.Errorf("the disk was read %d times", images.took)
				}
			})
			return r
		}
		killedAnywhere(t, begin, "OP_IMAGE_CAPTURE", params{"image_name": "of-" + name, "instance_name": name}, false)
	}
}
