package exec

import (
	"context"
	"io"
	"sync"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/fault"
)

// maxLookers is how many nodes are asked at a time for a copy of an image.
const maxLookers = 16

// Uploads are the files of images that users brought, which the controller keeps.
type Uploads interface {
	// Image tells what the file of one is, by its id. NotFound where there is none.
	Image(id string) (agent.Image, error)
	// Read reads a part of it from a place on.
	Read(id string, at int64) (agent.Piece, error)
	// Awaits tells which instance an image is to be made of, by its UUID. NotFound for an image that waits for none.
	Awaits(id string) (instance string, err error)
	// TakeDisk takes the disk of that instance, in a format of images, for the file of the image; nothing where the image has its file. NotFound when there is no such image any more.
	TakeDisk(ctx context.Context, id, format string, disk io.Reader) error
}

// fetch has a node have an image and look at it.
func (e *Env) fetch(ctx context.Context, order agent.Order, node Node, image agent.Image) (agent.Image, error) {
	if id, is := cluster.Upload(image.Source); is {
		return image, e.bringUpload(ctx, order, node, id, image)
	}
	return node.FetchImage(ctx, order, image, e.logLine)
}

// bringUpload has a node have an image that a user brought, and that the controller has.
func (e *Env) bringUpload(ctx context.Context, order agent.Order, node Node, id string, image agent.Image) error {
	if e.Uploads == nil {
		return fault.New(fault.NotFound, "nothing is uploaded to this controller")
	}
	e.Logf("bringing image %s to node %s", image.Name, node.Node())
	return copyImage(ctx, order, image, source{"the controller", func(at int64) (agent.Piece, error) { return e.Uploads.Read(id, at) }}, node, e.logLine)
}

// bringImage has a node have an image that the controller has, or that another one has a copy of. If that fails the job tells so, and the node fetches the image
// from its source. Only what ends the order as a whole is an error.
func (e *Env) bringImage(ctx context.Context, order agent.Order, node Node, image agent.Image) error {
	if _, err := node.ReadImage(ctx, image.SHA256, -1); !fault.Is(err, fault.NotFound) {
		return nil // it has a copy; or it says why not where it is told to install it
	}
	if id, is := cluster.Upload(image.Source); is {
		err := e.bringUpload(ctx, order, node, id, image)
		if err == nil || endsOrder(ctx, err) {
			return err
		}
		e.Logf("image %s did not come from the controller, and another node is looked for that has a copy: %v", image.Name, err)
	}
	from := e.nodeWithImage(ctx, image, node)
	if from == nil {
		return nil
	}
	e.Logf("copying image %s from node %s", image.Name, from.Node())
	err := copyImage(ctx, order, image, copyOf(ctx, from, image), node, e.logLine)
	if err == nil || endsOrder(ctx, err) {
		return err
	}
	e.Logf("image %s did not come from node %s, and is fetched from its source: %v", image.Name, from.Node(), err)
	return nil
}

// nodeWithImage is a node that has a copy of an image, the first that says so of all that are there; nil if none does.
func (e *Env) nodeWithImage(ctx context.Context, image agent.Image, but Node) Node {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var (
		asked   = make(chan *cluster.Node)
		found   = make(chan Node, maxLookers) // each tells of one at most
		lookers sync.WaitGroup
	)
	for range maxLookers {
		lookers.Go(func() {
			for node := range asked {
				if a := e.withCopy(ctx, node, image); a != nil && node.Name != but.Node() {
					found <- a
					stop()
					return
				}
			}
		})
	}
	for node := range e.snapshot().Nodes() {
		select {
		case asked <- node:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(asked)
	lookers.Wait()
	select {
	case first := <-found:
		return first
	default:
		return nil
	}
}

// withCopy is a node if it has a copy of an image; nil if it has none, or is not there. The job is not about that node, and does not wait for it.
func (e *Env) withCopy(ctx context.Context, node *cluster.Node, image agent.Image) Node {
	if online(node) != nil {
		return nil
	}
	a, err := e.Nodes(node.Name)
	if err != nil || a.Away() > 0 {
		return nil
	}
	if p, err := a.ReadImage(ctx, image.SHA256, -1); err != nil || p.Size != image.Size {
		return nil
	}
	return a
}

// endsOrder tells that it is of no use to try another way.
func endsOrder(ctx context.Context, err error) bool {
	return ctx.Err() != nil || fault.Is(err, fault.Fenced) || fault.Is(err, fault.Exhausted)
}

// source is where the file of an image is read, piece by piece.
type source struct {
	what string
	read func(at int64) (agent.Piece, error)
}

// copyOf is a node's copy of an image.
func copyOf(ctx context.Context, node Node, image agent.Image) source {
	return source{"node " + node.Node(), func(at int64) (agent.Piece, error) { return node.ReadImage(ctx, image.SHA256, at) }}
}

// copyImage has a node have what is elsewhere, piece by piece.
func copyImage(ctx context.Context, order agent.Order, image agent.Image, from source, to Node, log func(string)) error {
	for next := int64(0); ; {
		if ctx.Err() != nil {
			return fault.New(fault.Canceled, "the copying of image %s was ended: %w", image.Name, context.Cause(ctx))
		}
		p, err := from.read(next)
		if err != nil {
			return err
		}
		if p.From != next || p.Check() != nil || p.Size != image.Size {
			return fault.New(fault.Failed, "%s tells of another file than it was asked for", from.what)
		}
		if have, err := to.KeepImage(ctx, order, image, p, log); have || err != nil {
			return err
		}
		if next = p.Next; p.Last() {
			return fault.New(fault.Internal, "node %s has all of the image %s, and says that it has not", to.Node(), image.Name)
		}
	}
}
