package kvm

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/hypervisor"
	"github.com/drover-project/drover/internal/wholefile"
)

// bios is the firmware that QEMU brings along, and that of a machine for which nobody says another.
const bios = "bios"

// firmwareFeatures says of the kinds of UEFI which features of QEMU's list each has, and has not.
var firmwareFeatures = map[string]struct{ with, without []string }{
	"uefi":        {without: []string{"requires-smm", "enrolled-keys"}},
	"uefi-secure": {with: []string{"secure-boot", "enrolled-keys", "requires-smm"}},
}

// firmware is a UEFI of the node: its code, which machines share, and what the variables of a new machine are.
type firmware struct {
	kind, code, template string
	// guarded has what keeps the variables from the guest's system: it may change them by the firmware alone.
	guarded bool
}

// descriptor is what a package says of a firmware, in the form of QEMU's docs/interop/firmware.json.
type descriptor struct {
	Mapping struct {
		Device     string    `json:"device"`
		Executable flashFile `json:"executable"`
		Template   flashFile `json:"nvram-template"`
	} `json:"mapping"`
	Targets []struct {
		Architecture string   `json:"architecture"`
		Machines     []string `json:"machines"`
	} `json:"targets"`
	Features []string `json:"features"`
}

type flashFile struct {
	Filename string `json:"filename"`
	Format   string `json:"format"`
}

// firmwareDirs are where descriptors are, the operator's before those of packages.
func firmwareDirs() []string { return []string{"/etc/qemu/firmware", "/usr/share/qemu/firmware"} }

// findFirmware lists the node's firmware of a kind for a machine type, the best first. As QEMU's page has it, descriptors count in the order of
// their names, and one of an operator takes the place of a package's of the same name. What cannot be read is none.
func findFirmware(dirs []string, kind, machine string) (found []firmware) {
	named := map[string]string{}
	for _, dir := range dirs {
		files, _ := filepath.Glob(filepath.Join(escapedPattern(dir), "*.json")) // the pattern is right
		for _, file := range files {
			named[filepath.Base(file)] = cmp.Or(named[filepath.Base(file)], file)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		var d descriptor
		if data, err := os.ReadFile(named[name]); err != nil || json.Unmarshal(data, &d) != nil || !d.fits(kind, machine) {
			continue
		}
		found = append(found, firmware{kind: kind, code: d.Mapping.Executable.Filename, template: d.Mapping.Template.Filename, guarded: slices.Contains(d.Features, "requires-smm")})
	}
	return found
}

func (d *descriptor) fits(kind, machine string) bool {
	wants := firmwareFeatures[kind]
	lacks := func(feature string) bool { return !slices.Contains(d.Features, feature) }
	has := func(feature string) bool { return slices.Contains(d.Features, feature) }
	if d.Mapping.Device != "flash" || slices.ContainsFunc(wants.with, lacks) || slices.ContainsFunc(wants.without, has) {
		return false
	}
	for _, file := range []flashFile{d.Mapping.Executable, d.Mapping.Template} {
		if info, err := os.Stat(file.Filename); file.Format != "raw" || !filepath.IsAbs(file.Filename) || err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	for _, target := range d.Targets {
		suits := func(pattern string) bool { is, _ := path.Match(pattern, machine); return is }
		if target.Architecture == "x86_64" && slices.ContainsFunc(target.Machines, suits) {
			return true
		}
	}
	return false
}

// chooseFirmware settles the firmware of a start, nil for QEMU's own. A machine that has variables goes on with the code that they were made
// for. Those of another kind stay where they are, and are found when that kind is asked for again: a kind's variables are no other's, for those
// of secure boot have the keys.
func (m *machine) chooseFirmware(next *record) (*firmware, error) {
	kind := cmp.Or(params(next.Spec.Params).text("firmware"), bios)
	if kind == bios {
		return nil, nil
	}
	found := findFirmware(m.driver.cfg.firmware, kind, next.Machine)
	if code := next.Firmware[kind]; code != "" && m.hasVariables(kind) {
		i := slices.IndexFunc(found, func(f firmware) bool { return f.code == code })
		if i < 0 {
			return nil, fault.New(fault.Environment, "instance %s was started with the firmware %s, which the node does not have for the machine type %s", next.Name, code, next.Machine).At("hvparams").
				WithHint("put it back (Debian: apt-get install ovmf); or move %s away, and the machine begins with new variables", m.variablesPath(kind))
		}
		return &found[i], nil
	}
	if len(found) == 0 {
		return nil, fault.New(fault.Environment, "the node has no firmware for firmware=%s and the machine type %s", kind, next.Machine).At("hvparams").
			WithHint("install it there (Debian: apt-get install ovmf); the descriptors in %s say which there is, and that for secure boot is for q35 alone", strings.Join(m.driver.cfg.firmware, ", "))
	}
	next.Firmware = maps.Clone(next.Firmware)
	if next.Firmware == nil {
		next.Firmware = map[string]string{}
	}
	next.Firmware[kind] = found[0].code
	return &found[0], nil
}

// variablesPath is where the variables are that a machine's firmware of a kind keeps: what it starts from, and the keys of secure boot.
func (m *machine) variablesPath(kind string) string {
	return filepath.Join(m.dir, kind+".variables")
}

// hasVariables reports whether they are there. What cannot be looked at is there: who opens it tells why not.
func (m *machine) hasVariables(kind string) bool {
	_, err := os.Lstat(m.variablesPath(kind))
	return !errors.Is(err, fs.ErrNotExist)
}

// openFirmware opens the code and the variables, which are made if the machine has none.
func (m *machine) openFirmware(f *firmware) (files []*os.File, err error) {
	cannot := func(err error) error {
		closeAll(files)
		return fault.New(fault.Environment, "cannot open the firmware of %s: %w", m.record().Name, err)
	}
	if !m.hasVariables(f.kind) {
		content, err := os.ReadFile(f.template)
		if err == nil {
			err = wholefile.Write(m.variablesPath(f.kind), content)
		}
		if err != nil {
			return nil, cannot(err)
		}
	}
	for _, one := range []struct {
		path  string
		flags int
	}{{f.code, os.O_RDONLY}, {m.variablesPath(f.kind), os.O_RDWR}} {
		file, err := os.OpenFile(one.path, one.flags, 0)
		if err != nil {
			return nil, cannot(err)
		}
		files = append(files, file)
	}
	return files, nil
}

// firstFlashSet is the number of the set of open files that the firmware's code is in; its variables are in the next.
const firstFlashSet = 2000

// firmwareArguments are those of the files that a machine's firmware is in, behind its discs.
func firmwareArguments(spec *hypervisor.Spec, p params, with setup) ([]string, error) {
	if with.firmware == nil {
		return nil, nil
	}
	var args []string
	for n, name := range []string{flashCode, flashVariables} {
		fd, set, readOnly := behindDiscs(spec, p, with)+n, firstFlashSet+n, name == flashCode
		args = append(args,
			"-add-fd", "fd="+strconv.Itoa(fd)+",set="+strconv.Itoa(set),
			"-blockdev", object(map[string]any{"driver": "file", "node-name": name + "-file", "filename": "/dev/fdset/" + strconv.Itoa(set), "read-only": readOnly}),
			"-blockdev", object(map[string]any{"driver": "raw", "node-name": name, "file": name + "-file", "read-only": readOnly}))
	}
	if with.firmware.guarded { // who is in the guest's kernel cannot write to the flash, and sleeping does not get around that
		args = append(args, "-global", "driver=cfi.pflash01,property=secure,value=on", "-global", "ICH9-LPC.disable_s3=1")
	}
	return args, nil
}

// The nodes that the firmware's flash is in.
const (
	flashCode      = "firmware-code"
	flashVariables = "firmware-variables"
)

// options are those of the machine itself.
func (f *firmware) options() string {
	switch {
	case f == nil:
		return ""
	case f.guarded:
		return ",pflash0=" + flashCode + ",pflash1=" + flashVariables + ",smm=on"
	}
	return ",pflash0=" + flashCode + ",pflash1=" + flashVariables
}
