package pieces

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/drover-project/drover/internal/fault"
)

const mib = 1 << 20

// TestPiecesAreTheFile takes a file with holes apart and puts it together.
func TestPiecesAreTheFile(t *testing.T) {
	content := make([]byte, 8*mib+7)
	copy(content[3*mib-5:], "here")
	copy(content[7*mib:], "there")
	from, to := sparse(t, content), sparse(t, nil)
	for at := int64(0); ; {
		p, err := Read(from, at)
		if err != nil || p.Check() != nil || p.From != at || p.Size != int64(len(content)) {
			t.Fatalf("%+v, %v, %v", p, err, p.Check())
		}
		if _, err := to.WriteAt(p.Data, p.At); err != nil {
			t.Fatal(err)
		}
		if at = p.Next; p.Last() {
			break
		}
	}
	if err := to.Truncate(int64(len(content))); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(to.Name())
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	var s syscall.Stat_t
	if err := syscall.Stat(to.Name(), &s); err != nil || s.Blocks*512 > 2*mib {
		t.Errorf("it takes %d bytes, %v", s.Blocks*512, err)
	}
	if p, err := Read(from, -1); err != nil || p.Size != int64(len(content)) || len(p.Data) > 0 {
		t.Errorf("its size alone: %+v, %v", p, err)
	}
}

func sparse(t *testing.T, content []byte) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	for at := 0; at < len(content); at += mib {
		if part := content[at:min(at+mib, len(content))]; !bytes.Equal(part, make([]byte, len(part))) {
			if _, err := f.WriteAt(part, int64(at)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := f.Truncate(int64(len(content))); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestWhatIsNoPiece(t *testing.T) {
	for _, p := range []Piece{
		{Next: 2, Size: 1}, {From: -1, Next: 1, Size: 1}, {From: 5, At: 4, Next: 6, Size: 6}, {At: 1 << 62, Data: []byte("x"), Next: 1, Size: 1},
		{At: 1<<63 - 1, Data: []byte("x"), Next: 2, Size: 2}, {From: 3, At: 3, Next: 3, Size: 9}, {Data: []byte("four"), Next: 3, Size: 9},
		{Data: make([]byte, most+1), Next: most + 1, Size: most + 1},
	} {
		if err := p.Check(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%d bytes at %d from %d to %d of %d: %v", len(p.Data), p.At, p.From, p.Next, p.Size, err)
		}
	}
	if err := (&Piece{}).Check(); err != nil {
		t.Errorf("all of an empty file: %v", err)
	}
}
