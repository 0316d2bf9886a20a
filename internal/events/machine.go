package events

import (
	"cmp"
	"strings"

	"github.com/drover-project/drover/internal/cluster"
)

// Machine is what messages tell of an instance that was made or started. Two fill it: machineOf, and Cluster.Machine of backend/ganeti; what one leaves out
// is not in its messages.
type Machine struct {
	NICs     []NIC
	Disks    []Disk
	HVParams map[string]any
}

// NIC is a network interface of an instance.
type NIC struct {
	// Name is its own name, or else its UUID. Network is the name of the one it is
	// in; empty for none.
	Name    string `json:"name"`
	MAC     string `json:"mac"`
	IP      string `json:"ip"`
	Network string `json:"network"`
	// Firewall is the profile that a tag of the instance gives the interface; empty
	// for none.
	Firewall string `json:"firewall,omitempty"`
}

// Disk is a disk of an instance; Size is in MiB.
type Disk struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// profiles are the profiles of firewalls, by how tags call them.
var profiles = map[string]string{"protected": "ENABLED", "unprotected": "DISABLED", "limited": "PROTECTED"}

// Firewall is the profile that one of an instance's tags gives to an interface:
// synnefo:network:NAME:PROFILE. Empty for none.
func Firewall(nic string, tags []string) string {
	for _, tag := range tags {
		if word, ok := strings.CutPrefix(tag, "synnefo:network:"+nic+":"); ok && profiles[word] != "" {
			return profiles[word]
		}
	}
	return ""
}

// machineOf is an instance as messages tell of it; nil if it is not there.
func machineOf(s *cluster.Snapshot, name string) *Machine {
	inst := s.InstanceNamed(name)
	if inst == nil {
		return nil
	}
	m := &Machine{NICs: []NIC{}, Disks: []Disk{}, HVParams: s.Cluster().FillHV(inst)}
	for i := range inst.NICs {
		n := &inst.NICs[i]
		nic := NIC{Name: cmp.Or(n.Name, n.UUID), MAC: n.MAC, IP: n.IP}
		nic.Firewall = Firewall(nic.Name, inst.Tags)
		if network := s.Network(n.Network); network != nil {
			nic.Network = network.Name
		}
		m.NICs = append(m.NICs, nic)
	}
	for i := range inst.Disks {
		d := &inst.Disks[i]
		m.Disks = append(m.Disks, Disk{Name: cmp.Or(d.Name, d.UUID), Size: d.Size})
	}
	return m
}
