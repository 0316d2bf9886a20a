package kvm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestComplaintsAreBounded: a QEMU that complains without end does not fill the node's disk, and what it says next is read.
func TestComplaintsAreBounded(t *testing.T) {
	m := &machine{dir: t.TempDir()}
	f, err := m.openComplaints()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	size := func(want int) {
		t.Helper()
		info, err := os.Stat(filepath.Join(m.dir, complainFile))
		if err != nil || info.Size() != int64(want) {
			t.Errorf("it has %d bytes, want %d; %v", info.Size(), want, err)
		}
	}
	write := func(text string) {
		t.Helper()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := m.boundComplaints(); err != nil {
			t.Fatal(err)
		}
	}
	write(strings.Repeat("x", mostComplaints))
	size(mostComplaints)
	write("and no end")
	size(0)
	write("the last word")
	size(len("the last word"))
}
