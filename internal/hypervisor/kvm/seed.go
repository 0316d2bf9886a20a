package kvm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/wholefile"
)

// seedPath is where the CD is that a machine was given. It is the agent's alone: passwords may be in it.
func (m *machine) seedPath() string { return filepath.Join(m.dir, seedFile) }

// hasSeed reports whether the machine was given a CD. What cannot be looked at is there: who opens it tells why not.
func (m *machine) hasSeed() bool {
	_, err := os.Lstat(m.seedPath())
	return !errors.Is(err, fs.ErrNotExist)
}

// seed keeps a CD for the machine, in place of the one before; an empty one takes that away.
func (m *machine) seed(cd []byte) error {
	if len(cd) == 0 && !m.hasSeed() {
		return nil
	}
	if err := m.stopped("given another seed"); err != nil {
		return err
	}
	var err error
	if len(cd) == 0 {
		if err = os.Remove(m.seedPath()); err == nil {
			err = wholefile.Flush(m.dir)
		}
	} else {
		err = wholefile.Write(m.seedPath(), cd)
	}
	if err != nil {
		return fault.New(fault.Environment, "cannot keep the seed of %s: %w", m.record().Name, err)
	}
	return nil
}
