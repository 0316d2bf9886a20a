package imagecache

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/agent/pieces"
	"github.com/drover-project/drover/internal/fault"
)

// inPieces are the pieces of a content.
func inPieces(content []byte, of int) (out []pieces.Piece) {
	for at := 0; at < len(content); at += of {
		end := min(at+of, len(content))
		out = append(out, pieces.Piece{From: int64(at), At: int64(at), Data: content[at:end], Next: int64(end), Size: int64(len(content))})
	}
	return out
}

// keep has the pieces be taken, and returns what came of the last one.
func (r *rig) keep(image Image, by string, all []pieces.Piece) (have bool, err error) {
	r.Helper()
	for _, p := range all {
		if have, err = r.Keep(r.Context(), image, by, p, r.log); err != nil || have {
			return have, err
		}
	}
	return have, err
}

func TestAnImageFromAnotherNode(t *testing.T) {
	r, there := newRig(t), newRig(t)
	content := append(bootable(2<<20, 'a'), make([]byte, 3<<20)...) // with a hole at its end
	image := of(content, there.file(content))
	there.have(image, content)
	image.Source = "/gone"
	if _, err := r.Piece(image.SHA256, -1); !fault.Is(err, fault.NotFound) {
		t.Errorf("what it has not: %v", err)
	}
	for at := int64(0); at < image.Size; {
		p, err := there.Piece(image.SHA256, at)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // one that comes again is passed over
			have, err := r.Keep(t.Context(), image, "job 1", p, r.log)
			if err != nil || have != p.Last() {
				t.Fatalf("%d: %v, %v", at, have, err)
			}
			if p.Last() {
				break
			}
		}
		at = p.Next
	}
	r.have(image, content)
	have, err := r.keep(image, "job 2", inPieces(content, 1<<20)[:1])
	if err != nil || !have {
		t.Errorf("what is there is brought again: %v, %v", have, err)
	}
	if names := r.there(); len(names) != 1 {
		t.Errorf("there is %v", names)
	}
}

// TestWhatAnotherNodeBrings: whatever a node sends, there is an image of that sum in the end, or nothing.
func TestWhatAnotherNodeBrings(t *testing.T) {
	r := newRig(t)
	content := bootable(1<<20, 'a')
	image := of(content, "/gone")
	wrong := bootable(1<<20, 'b')
	backed := qcow2Header(512)
	backed[15], backed[19] = 200, 5
	is := func(format string) Image { i := of(backed, "/gone"); i.Format = format; return i }
	all := inPieces(content, 1<<18)
	longer := all[0]
	longer.Size++
	back := all[1]
	back.At, back.From = 0, 1<<18
	for name, c := range map[string]struct {
		image Image
		all   []pieces.Piece
		code  fault.Code
		text  string
	}{
		"another content":         {image, inPieces(wrong, 1<<18), fault.Failed, "another SHA-256"},
		"another size":            {image, []pieces.Piece{longer}, fault.Invalid, "what comes has"},
		"not from the beginning":  {image, all[1:], fault.WrongState, "nothing of it has come"},
		"a piece is missing":      {image, []pieces.Piece{all[0], all[2]}, fault.WrongState, "is the next"},
		"what leads back":         {image, []pieces.Piece{all[0], back}, fault.Invalid, "is none of a file"},
		"what leads elsewhere":    {is("qcow2"), inPieces(backed, 512), fault.Invalid, "backing file"},
		"what is said to be raw":  {is("raw"), inPieces(backed, 512), fault.Invalid, "qcow2"},
		"what nobody has said of": {Image{Name: "one", SHA256: image.SHA256, Source: "/gone", Size: image.Size}, all, fault.Invalid, "of the format"},
	} {
		have, err := r.keep(c.image, name, c.all)
		if have || !fault.Is(err, c.code) || !strings.Contains(fmt.Sprint(err), c.text) {
			t.Errorf("%s: %v, %v", name, have, err)
		}
		if in := r.coming(c.image.SHA256, name); in != nil { // one that waits for more
			in.end()
		}
		if left := r.there(); len(left) > 0 {
			t.Fatalf("%s: there is %v", name, left)
		}
	}
	r.room = func() (int64, error) { return 1 << 19, nil }
	if _, err := r.keep(image, "full", all); !fault.Is(err, fault.Exhausted) || len(r.there()) > 0 {
		t.Errorf("no room: %v, %v", err, r.there())
	}
}

// qcow2Header is the beginning of an image of the format qcow2.
func qcow2Header(size int) []byte {
	head := make([]byte, size)
	copy(head, "QFI\xfb\x00\x00\x00\x03")
	head[29] = 0x10
	return head
}

// TestWhatNobodyGoesOnWith is given up, and is in nobody's way; who begins anew may.
func TestWhatNobodyGoesOnWith(t *testing.T) {
	r := newRig(t)
	content := bootable(1<<20, 'a')
	image, all := of(content, r.file(content)), inPieces(content, 1<<18)
	if _, err := r.keep(image, "job 1", all[:2]); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if _, _, err := r.Have(ctx, image, r.log); !fault.Is(err, fault.Canceled) {
		t.Errorf("who fetches it meanwhile waits: %v", err)
	}
	if _, err := r.keep(image, "job 1", all[:1]); err != nil { // anew
		t.Fatal(err)
	}
	if len(r.there()) != 1 {
		t.Errorf("there is %v", r.there())
	}
	in := r.coming(image.SHA256, "job 1")
	in.mu.Lock()
	in.idle.Reset(0)
	in.mu.Unlock()
	r.have(image, content) // from its source, as soon as the other one is given up
	if _, err := r.keep(image, "job 1", all[1:]); !fault.Is(err, fault.WrongState) {
		t.Errorf("it goes on with what was given up: %v", err)
	}
	if names := r.there(); len(names) != 1 {
		t.Errorf("there is %v", names)
	}
	if err := os.Remove(image.Source); err != nil {
		t.Fatal(err)
	}
}
