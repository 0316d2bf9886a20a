package exec

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/agent"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit"
)

// lying is a node whose copies of images are others than it says, or are gone when they are read.
type lying struct {
	anyNode

	tells func(p agent.Piece) (agent.Piece, error)
}

func (n lying) ReadImage(ctx context.Context, sum string, at int64) (agent.Piece, error) {
	p, err := n.anyNode.ReadImage(ctx, sum, at)
	if err != nil || at < 0 {
		return p, err
	}
	return n.tells(p)
}

// TestTwoLyingNodes: neither of two that do as they like keeps the controller at it for ever.
func TestTwoLyingNodes(t *testing.T) {
	r, image, _ := copyRig(t)
	a, err := r.fleet.Agent("node1")
	if err != nil {
		t.Fatal(err)
	}
	from := lying{a, func(p agent.Piece) (agent.Piece, error) { p.Data, p.Next = nil, p.From; return p, nil }}
	if err := copyImage(t.Context(), agent.Order{}, image, copyOf(t.Context(), from, image), greedy{a}, func(string) {}); !fault.Is(err, fault.Failed) {
		t.Error(err)
	}
}

// greedy is a node that takes whatever comes, and wants more.
type greedy struct{ anyNode }

func (greedy) KeepImage(context.Context, agent.Order, agent.Image, agent.Piece, func(string)) (bool, error) {
	return false, nil
}

// copyRig is a cluster whose image is on node1, and where it came from there is nothing any more.
func copyRig(t *testing.T) (*rig, agent.Image, *[]imageInstalled) {
	t.Helper()
	r, installed := imageRig(t, "node1", "node2", "node3")
	content, err := os.ReadFile(startable)
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(testkit.OpenDir(t), "gone.img")
	if err := os.WriteFile(source, append(content, "more"...), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := r.run("OP_IMAGE_ADD", params{"image_name": "gone", "source": source, "node_name": "node1"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(source); err != nil {
		t.Fatal(err)
	}
	return r, orderedImage(r.keeper.Snapshot().ImageNamed("gone")), installed
}

// has tells how many bytes of an image a node has; -1 for none.
func (r *rig) hasImage(node string, image agent.Image) int64 {
	r.Helper()
	a, err := r.fleet.Agent(node)
	if err != nil {
		r.Fatal(err)
	}
	p, err := a.ReadImage(r.Context(), image.SHA256, -1)
	if fault.Is(err, fault.NotFound) {
		return -1
	}
	if err != nil {
		r.Fatal(err)
	}
	return p.Size
}

func TestAnImageComesFromAnotherNode(t *testing.T) {
	r, image, installed := copyRig(t)
	if r.hasImage("node1", image) != image.Size || r.hasImage("node2", image) != -1 {
		t.Fatal("it is not where it should be")
	}
	var told string
	for range 2 {
		name := "web" + string(rune('a'+len(*installed)))
		if _, err := r.run("OP_INSTANCE_CREATE", fromImage(params{"instance_name": name, "os_type": "image+gone", "pnode": "node2"})); err != nil {
			t.Fatal(err)
		}
		told += strings.Join(r.log, "\n")
	}
	if len(*installed) != 2 || r.hasImage("node2", image) != image.Size {
		t.Errorf("%d are installed, node2 has %d bytes", len(*installed), r.hasImage("node2", image))
	}
	if strings.Count(told, "copying image gone from node node1") != 1 {
		t.Errorf("the log is %s", told)
	}
}

// TestACopyThatDoesNotCome: what another node has is not needed where there is a source, and is not believed.
func TestACopyThatDoesNotCome(t *testing.T) {
	r, image, installed := copyRig(t)
	wrap := r.wrap
	for name, tells := range map[string]func(agent.Piece) (agent.Piece, error){
		"another file":    func(p agent.Piece) (agent.Piece, error) { p.Size++; p.Next++; return p, nil },
		"another content": func(p agent.Piece) (agent.Piece, error) { p.Data = append([]byte("x"), p.Data[1:]...); return p, nil },
		"no end":          func(p agent.Piece) (agent.Piece, error) { p.Data, p.Next = nil, p.From; return p, nil },
		"nothing": func(agent.Piece) (agent.Piece, error) {
			return agent.Piece{}, fault.New(fault.Unavailable, "it is away")
		},
	} {
		r.wrap = func(n Node) Node { return lying{wrap(n), tells} }
		before := len(*installed)
		inst := strings.ReplaceAll(name, " ", "-")
		if _, err := r.run("OP_INSTANCE_CREATE", fromImage(params{"instance_name": inst, "os_type": "image+gone", "pnode": "node2"})); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(r.log, "\n"); !strings.Contains(text, "image gone did not come from node node1, and is fetched from its source") || len(*installed) != before+1 {
			t.Errorf("%s: the log is %s", name, text)
		}
		if r.hasImage("node2", image) != -1 {
			t.Errorf("%s: it is kept", name)
		}
		r.log = nil
	}
}
