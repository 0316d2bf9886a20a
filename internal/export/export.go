// Package export is what the export of an instance says of it: the file config.ini beside the dumps of its disks, as the reference writes and
// reads it, with what is ours added under names that it does not look at.
//
// Invariants:
//   - What was written is read again as it was (TestWhatIsWrittenIsRead), and by the parser that the reference uses (TestTheReferenceReadsIt).
//   - What cannot be written so that it is read again is refused when it is written (TestWhatCannotBeWritten).
//   - A file is bounded, and no dump in it can lead out of its directory (TestWhatIsRefused).
package export

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// File is the name of the file in the directory of an export.
const File = "config.ini"

// Version is that of the format; there is no other.
const Version = 0

// Form is what a dump is.
type Form string

// The forms of dumps.
const (
	// Script: what the export script of the operating system wrote, which its import script reads. Exports of the reference have no other.
	Script Form = "script"
	// Raw: the content of the disk, byte by byte, with holes where it has zeros.
	Raw Form = "raw"
	// Packed: the content of the disk as a file of the format qcow2, which stands on nothing. It is what images are made of, and is in no export.
	Packed Form = "packed"
	// Pretended: nothing, for the disk was only pretended.
	Pretended Form = "pretended"
)

// Export is what is known of an instance that was exported. Parameters are those that counted for it, all defaults filled in, as texts.
type Export struct {
	// ID says which export it is; empty for those of the reference.
	ID string `json:"id,omitempty"`
	// Time is when it was made, in seconds since 1970, and Source the UUID of the node that the instance was on.
	Time   int64  `json:"time"`
	Source string `json:"source"`
	// OS is empty where the reference exported an instance without one.
	OS         string            `json:"os"`
	Name       string            `json:"name"`
	Template   string            `json:"template"`
	Hypervisor string            `json:"hypervisor"`
	Tags       []string          `json:"tags,omitempty"`
	NICs       []NIC             `json:"nics,omitempty"`
	Disks      []Disk            `json:"disks,omitempty"`
	HVParams   map[string]string `json:"hvparams,omitempty"`
	BEParams   map[string]string `json:"beparams,omitempty"`
	OSParams   map[string]string `json:"osparams,omitempty"`
	// Private are the names of private parameters of the operating system whose values the file has. Only the reference writes them; they are
	// not taken from a file.
	Private []string `json:"private,omitempty"`
}

// NIC is a network card. What it has not is empty.
type NIC struct {
	MAC  string `json:"mac"`
	IP   string `json:"ip,omitempty"`
	Name string `json:"name,omitempty"`
	// Network is its name or UUID; Mode, Link and VLAN count where there is none.
	Network string `json:"network,omitempty"`
	Mode    string `json:"mode,omitempty"`
	Link    string `json:"link,omitempty"`
	VLAN    string `json:"vlan,omitempty"`
}

// Disk is a disk. Dump is the name of the file beside; empty for one of which there is none.
type Disk struct {
	Name string `json:"name,omitempty"`
	Size int64  `json:"size"` // MiB
	Dump string `json:"dump,omitempty"`
	Form Form   `json:"form,omitempty"`
}

// The sections of the file.
const (
	ofExport     = "export"
	ofInstance   = "instance"
	ofHypervisor = "hypervisor"
	ofBackend    = "backend"
	ofOS         = "os"
	ofPrivate    = "os_private"
)

// none is how the reference writes what is not there.
const none = "None"

// Encode writes the file. Invalid for a parameter or tag that could not be read again.
func (e *Export) Encode() ([]byte, error) {
	w := &writer{}
	w.section(ofExport)
	w.pair("version", strconv.Itoa(Version))
	w.pair("timestamp", strconv.FormatInt(e.Time, 10))
	w.pair("source", e.Source)
	w.pair("os", cmp.Or(e.OS, none))
	w.pair("compression", "none")
	if e.ID != "" {
		w.pair("id", e.ID)
	}
	w.section(ofInstance)
	w.pair("name", e.Name)
	for _, name := range []string{"maxmem", "minmem", "vcpus"} {
		w.pair(name, e.BEParams[name])
	}
	w.pair("memory", e.BEParams["maxmem"])
	w.pair("disk_template", e.Template)
	w.pair("hypervisor", e.Hypervisor)
	w.pair("tags", strings.Join(e.Tags, " "))
	for i := range e.NICs {
		w.nic("nic"+strconv.Itoa(i)+"_", &e.NICs[i])
	}
	w.pair("nic_count", strconv.Itoa(len(e.NICs)))
	for i := range e.Disks {
		w.disk(i, &e.Disks[i])
	}
	w.pair("disk_count", strconv.Itoa(len(e.Disks)))
	for _, part := range []struct {
		name   string
		params map[string]string
	}{{ofHypervisor, e.HVParams}, {ofBackend, e.BEParams}, {ofOS, e.OSParams}} {
		w.section(part.name)
		for _, name := range slices.Sorted(maps.Keys(part.params)) {
			w.pair(name, part.params[name])
		}
	}
	if w.err == nil && w.out.Len() > MaxSize {
		return nil, fault.New(fault.TooLarge, "what the export would say of the instance takes %d bytes, and may take %d", w.out.Len(), MaxSize)
	}
	return []byte(w.out.String()), w.err
}

func (w *writer) nic(prefix string, n *NIC) {
	for _, pair := range [][2]string{{"mac", n.MAC}, {"ip", n.IP}, {"network", n.Network}, {"name", n.Name}, {"mode", n.Mode}, {"link", n.Link}, {"vlan", n.VLAN}} {
		w.pair(prefix+pair[0], cmp.Or(pair[1], none))
	}
}

func (w *writer) disk(i int, d *Disk) {
	prefix := "disk" + strconv.Itoa(i) + "_"
	w.pair(prefix+"ivname", "disk/"+strconv.Itoa(i))
	w.pair(prefix+"dump", d.Dump)
	w.pair(prefix+"size", strconv.FormatInt(d.Size, 10))
	w.pair(prefix+"name", cmp.Or(d.Name, none))
	w.pair(prefix+"form", string(d.Form))
}

// Decode reads the file. Invalid if it is none, or of another version.
func Decode(text []byte) (*Export, error) {
	f, err := parse(text)
	if err != nil {
		return nil, err
	}
	if f[ofExport] == nil || f[ofInstance] == nil {
		return nil, fault.New(fault.Invalid, "it has not the sections [%s] and [%s]", ofExport, ofInstance)
	}
	if version := f[ofExport]["version"]; version != strconv.Itoa(Version) {
		return nil, fault.New(fault.Invalid, "Wrong export version %.50s (wanted %d)", version, Version)
	}
	about := f[ofInstance]
	e := &Export{
		ID: f[ofExport]["id"], Source: f.get(ofExport, "source"), OS: f.get(ofExport, "os"),
		Name: f.get(ofInstance, "name"), Template: f.get(ofInstance, "disk_template"), Hypervisor: f.get(ofInstance, "hypervisor"),
		Tags: strings.Fields(f.get(ofInstance, "tags")), HVParams: f[ofHypervisor], BEParams: f.backend(), OSParams: f[ofOS],
		Private: slices.Sorted(maps.Keys(f[ofPrivate])),
	}
	if e.Time, err = number(f[ofExport], "timestamp"); err != nil {
		return nil, err
	}
	for i := 0; ; i++ {
		prefix := "nic" + strconv.Itoa(i) + "_"
		if _, there := about[prefix+"mac"]; !there {
			break
		}
		get := func(name string) string { return f.get(ofInstance, prefix+name) }
		e.NICs = append(e.NICs, NIC{MAC: get("mac"), IP: get("ip"), Name: get("name"), Network: get("network"), Mode: get("mode"), Link: get("link"), VLAN: get("vlan")})
	}
	for i := 0; ; i++ {
		prefix := "disk" + strconv.Itoa(i) + "_"
		if _, there := about[prefix+"size"]; !there {
			break
		}
		d, err := f.disk(prefix, e.OS)
		if err != nil {
			return nil, err
		}
		e.Disks = append(e.Disks, d)
	}
	return e, nil
}

func (f file) disk(prefix, os string) (d Disk, err error) {
	d = Disk{Name: f.get(ofInstance, prefix+"name"), Dump: f.get(ofInstance, prefix+"dump"), Form: Form(f.get(ofInstance, prefix+"form"))}
	if d.Size, err = number(f[ofInstance], prefix+"size"); err != nil {
		return d, err
	}
	if d.Form == "" { // the reference dumps by the scripts of the operating system, if there is one
		d.Form = Raw
		if os != "" {
			d.Form = Script
		}
	}
	switch {
	case d.Form != Script && d.Form != Raw && d.Form != Pretended:
		return d, fault.New(fault.Invalid, "the dump %s has the form %.50q, which this program does not know", prefix+"dump", d.Form)
	case d.Dump != "" && CheckDump(d.Dump) != nil:
		return d, CheckDump(d.Dump)
	}
	return d, nil
}

// CheckDump refuses what cannot be the name of a dump's file.
func CheckDump(name string) error {
	if name == "" || len(name) > 200 || name[0] == '.' || name == File || strings.ContainsFunc(name, func(r rune) bool { return r == '/' || r < ' ' || r == 0x7f }) {
		return fault.New(fault.Invalid, "%.200q cannot be the name of a dump", name)
	}
	return nil
}

// backend are the backend parameters; an export of old has them beside the name.
func (f file) backend() map[string]string {
	out := f[ofBackend]
	if out == nil {
		out = map[string]string{}
		for _, name := range []string{"maxmem", "minmem", "vcpus", "memory"} {
			if v, there := f[ofInstance][name]; there {
				out[name] = v
			}
		}
	}
	out = maps.Clone(out)
	if memory, there := out["memory"]; there {
		delete(out, "memory")
		for _, name := range []string{"maxmem", "minmem"} {
			if _, given := out[name]; !given {
				out[name] = memory
			}
		}
	}
	return out
}

func number(section map[string]string, name string) (int64, error) {
	n, err := strconv.ParseInt(section[name], 10, 64)
	if err != nil || n < 0 {
		return 0, fault.New(fault.Invalid, "%s is %.50q, and no number", name, section[name])
	}
	return n, nil
}
