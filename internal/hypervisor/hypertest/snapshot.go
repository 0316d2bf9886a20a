package hypertest

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
)

// snapshot keeps what the disks of an active instance have, where the driver can, and tells who copies of a snapshot that is no more.
func (s *suite) snapshot() {
	ctx := s.Context()
	disk := hypervisor.Disk{UUID: "d1", Size: 1, Template: "file"}
	if can := s.node().Snapshots; len(can) == 0 {
		return
	} else if !slices.Contains(can, disk.Template) {
		disk.Template = can[0]
	}
	i := spec("one.example", disk)
	copyOf := func(id, disk string) error {
		f, err := os.Create(filepath.Join(s.TempDir(), "copy"))
		if err != nil {
			s.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		return s.d.CopySnapshot(ctx, i.Thing(), id, disk, f, func(int64, int64) {})
	}
	_, err := s.d.Snapshot(ctx, i.Thing(), "first")
	s.refused("a snapshot of what is not there", fault.WrongState, err)
	s.refused("a copy of what is not there", fault.WrongState, copyOf("first", "d1"))
	s.do("Prepare", true)(s.d.Prepare(ctx, i.Thing(), mark, i.Disks))
	_, err = s.d.Snapshot(ctx, i.Thing(), "first")
	s.refused("a snapshot of what does not run", fault.WrongState, err)
	s.do("Release of no snapshot", false)(s.d.Release(ctx, i.Thing(), "first"))
	i.Snapshot = "first"
	s.do("Start with a snapshot", true)(s.d.Start(ctx, i))
	s.do("Snapshot once more", false)(s.d.Snapshot(ctx, i.Thing(), "first"))
	for range 2 {
		if err := copyOf("first", "d1"); err != nil {
			s.Fatalf("CopySnapshot: %v", err)
		}
	}
	s.refused("a copy of a disk that is not there", fault.WrongState, copyOf("first", "d2"))
	s.d = s.open(s.T, s.dir)
	if err := copyOf("first", "d1"); err != nil {
		s.Fatalf("CopySnapshot by another driver: %v", err)
	}
	s.do("another Snapshot", true)(s.d.Snapshot(ctx, i.Thing(), "second"))
	s.refused("a copy of the snapshot before", fault.WrongState, copyOf("first", "d1"))
	s.do("Release of the one before", false)(s.d.Release(ctx, i.Thing(), "first"))
	if err := copyOf("second", "d1"); err != nil {
		s.Fatalf("CopySnapshot: %v", err)
	}
	s.do("Release", true)(s.d.Release(ctx, i.Thing(), "second"))
	s.do("Release once more", false)(s.d.Release(ctx, i.Thing(), "second"))
	s.refused("a copy of what was let go", fault.WrongState, copyOf("second", "d1"))
	s.do("a third Snapshot", true)(s.d.Snapshot(ctx, i.Thing(), "third"))
	s.do("Stop", true)(s.d.Stop(ctx, i.Thing(), hypervisor.Stop{}))
	s.refused("a copy behind a stop", fault.WrongState, copyOf("third", "d1"))
	i.Snapshot = ""
	s.do("Start", true)(s.d.Start(ctx, i))
	s.refused("a copy behind the next start", fault.WrongState, copyOf("third", "d1"))
}
