package kvm

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/wholefile"
)

// record is what is kept of a machine, in machine.json of its directory. It is never changed once it is a machine's; changes put a new one in
// its place.
type record struct {
	Name   string          `json:"name"`
	UUID   string          `json:"uuid"`
	MadeBy hypervisor.Mark `json:"made_by,omitzero"`
	// Disks are written down before they are made, so one may be missing.
	Disks []hypervisor.Disk `json:"disks"`
	// Spec is what the machine was started with last.
	Spec *hypervisor.Spec `json:"spec,omitempty"`
	// Machine is the machine type of the first start, and asked for is what machine_version said then.
	Machine string `json:"machine,omitempty"`
	// User is the number of the user that it runs as, where each machine has one of its own.
	User uint32 `json:"user,omitempty"`
	// Slots are where the devices of Spec are, and Ports how many slots the machine was started with, 0 where that does not count. A machine that a
	// program of before started has none, and was given them in order.
	Slots    slots  `json:"slots,omitzero"`
	Ports    int    `json:"ports,omitempty"`
	AskedFor string `json:"asked_for,omitempty"`
	// Snapshot is the id of the snapshot of the machine's disks, empty if there is none; written down before it is made, so it may be there in part.
	Snapshot string `json:"snapshot,omitempty"`
	// Firmware is for which code the machine's variables were made, by the kind of firmware.
	Firmware map[string]string `json:"firmware,omitempty"`
}

// slots are where the devices are that the machine was started with last.
func (r *record) slots() slots {
	if r.Slots == nil && r.Spec != nil {
		return assign(nil, r.Spec, false)
	}
	return r.Slots
}

const recordFile = "machine.json"

func readRecord(dir string) (*record, error) {
	data, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return nil, err
	}
	r := new(record)
	return r, json.Unmarshal(data, r)
}

// save writes a record down and has it be the machine's.
func (m *machine) save(r *record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fault.New(fault.Internal, "cannot encode the state of %s: %w", r.Name, err)
	}
	if err = os.MkdirAll(m.dir, 0o700); err == nil {
		err = wholefile.Write(filepath.Join(m.dir, recordFile), append(data, '\n'))
	}
	if err != nil {
		return fault.New(fault.Environment, "cannot write the state of %s: %w", r.Name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rec, m.written = r, true
	return nil
}

// clear removes the machine's directory.
func (m *machine) clear() error {
	if err := os.RemoveAll(m.dir); err != nil {
		return fault.New(fault.Environment, "cannot remove the state of %s: %w", m.record().Name, err)
	}
	return nil
}
