package kvm

import (
	"os"
	"os/user"
	"regexp"
	"strconv"
	"syscall"

	"github.com/drover-project/drover/internal/fault"
)

// credential is the user that QEMU runs as; nil is the agent's own.
type credential struct{ uid, gid uint32 }

func (c *credential) asCredential() *syscall.Credential {
	if c == nil {
		return nil
	}
	return &syscall.Credential{Uid: c.uid, Gid: c.gid, Groups: groupOf(kvmDevice)}
}

// groupOf is the group of a device, which who uses it needs to have.
func groupOf(path string) []uint32 {
	var is syscall.Stat_t
	if err := syscall.Stat(path, &is); err != nil || is.Mode&0o060 != 0o060 || is.Gid == 0 {
		return []uint32{}
	}
	return []uint32{is.Gid}
}

// credentialOf looks the user up that guests are to run as.
func credentialOf(name string) (*credential, error) {
	root := os.Geteuid() == 0
	if r, is, err := rangeOf(name); is || err != nil {
		if err == nil && !root {
			err = fault.New(fault.Environment, "guests cannot run as the users %s: only root may give its rights up", name)
		}
		return &credential{uid: r.first, gid: r.first}, err
	}
	if name == "" && !root {
		return nil, nil
	}
	if name == "" {
		name = "nobody"
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, fault.New(fault.Environment, "there is no user %q for guests to run as: %w", name, err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	switch {
	case err1 != nil || err2 != nil:
		return nil, fault.New(fault.Environment, "user %q has no number", name)
	case uid == uint64(os.Geteuid()):
		return nil, nil
	case !root:
		return nil, fault.New(fault.Environment, "guests cannot run as %q: only root may give its rights up", name)
	}
	return &credential{uid: uint32(uid), gid: uint32(gid)}, nil
}

// numbers are those of users of whom each machine has one of its own; the zero value is none.
type numbers struct{ first, last uint32 }

// firstOfGuests is the least number that guests may have: below it are the system's own users.
const firstOfGuests = 1000

// CheckUser refuses what can be no setting of who guests run as: a range that is none. Whether there is a user of a name is seen on the node.
func CheckUser(setting string) error {
	_, _, err := rangeOf(setting)
	return err
}

var isRange = regexp.MustCompile(`^([0-9]+)-([0-9]+)$`)

// rangeOf reads a range of users' numbers, FIRST-LAST; a text of another form is none.
func rangeOf(text string) (r numbers, is bool, err error) {
	parts := isRange.FindStringSubmatch(text)
	if parts == nil {
		return numbers{}, false, nil
	}
	first, err1 := strconv.ParseUint(parts[1], 10, 32)
	last, err2 := strconv.ParseUint(parts[2], 10, 32)
	const most = 1<<32 - 2 // the number behind it means none
	if err1 != nil || err2 != nil || first < firstOfGuests || last < first || last > most {
		return numbers{}, true, fault.New(fault.Invalid, "%s is no range of users for guests", text).At("guest-user").
			WithHint("FIRST-LAST, as 200000-265535: numbers from %d on that no user has", firstOfGuests)
	}
	return numbers{uint32(first), uint32(last)}, true, nil
}

// userFor is the number of the user that a machine runs as: the one that it had, or else the first that no other machine of the node has; 0 where
// they have none of their own.
func (d *Driver) userFor(m *machine, had uint32) (uint32, error) {
	if d.guests.last == 0 {
		return 0, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := map[uint32]bool{}
	for uuid, n := range d.runsAs {
		if uuid != m.uuid {
			taken[n] = true
		}
	}
	if had >= d.guests.first && had <= d.guests.last && !taken[had] {
		d.runsAs[m.uuid] = had
		return had, nil
	}
	for n := d.guests.first; n <= d.guests.last; n++ {
		if !taken[n] {
			d.runsAs[m.uuid] = n
			return n, nil
		}
	}
	return 0, fault.New(fault.Exhausted, "no user is left for instance %s to run as: all from %d to %d have one", m.record().Name, d.guests.first, d.guests.last).
		WithHint("the node's setting guest-user says which there are")
}

// credential is the user that a machine runs as, by what is written down of it.
func (d *Driver) credential(r *record) *syscall.Credential {
	if d.guests.last == 0 {
		return d.user.asCredential()
	}
	return (&credential{uid: r.User, gid: r.User}).asCredential()
}
