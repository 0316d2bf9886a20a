package tinyguest

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// wanted are the modules that the guest wants: devices of virtio, the power button, CDs.
var wanted = []string{
	"virtio_pci", "virtio_blk", "virtio_net", "virtio_console", "virtio_balloon", "virtio_rng",
	"button", "evdev", "nls_utf8", "isofs", "sr_mod", "virtio_scsi",
}

// parameters are those of modules. /init looks for CDs itself, for the module would take seconds, or have them appear some time later.
var parameters = map[string]string{"scsi_mod": "scan=manual"}

// module is a module of the kernel.
type module struct {
	name string
	data []byte
}

// modules are those of one kernel, in a directory that Debian's package laid out.
type modules struct {
	// paths are those of the files, by the names of modules.
	paths map[string]string
	// builtin are the names of those that are part of the kernel itself.
	builtin map[string]bool
	// read returns the content of a file.
	read func(path string) ([]byte, error)
}

// modulesIn looks at the directory of one kernel's modules.
func modulesIn(dir string, read func(path string) ([]byte, error)) (*modules, error) {
	m := &modules{paths: map[string]string{}, builtin: map[string]bool{}, read: read}
	list, err := os.ReadFile(filepath.Join(dir, "modules.builtin"))
	if err != nil {
		return nil, unexpected("it does not say which modules are built in", err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(list)); lines.Scan(); {
		m.builtin[moduleName(lines.Text())] = true
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(d.Name(), ".ko") {
			m.paths[moduleName(path)] = path
		}
		return err
	})
	if err != nil {
		return nil, unexpected("its modules cannot be listed", err)
	}
	return m, nil
}

// moduleName is the name of a module in a file: files are written with - where names have _, and may be compressed.
func moduleName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// order returns modules and those that they need, each behind those that it needs itself.
func (m *modules) order(wanted []string) ([]module, error) {
	var out []module
	seen := map[string]bool{}
	var visit func(name, needs string) error
	visit = func(name, needs string) error {
		if seen[name] || m.builtin[name] {
			return nil
		}
		seen[name] = true
		path, ok := m.paths[name]
		if !ok {
			return unexpected("it has no module "+name+", which "+needs+" needs", nil)
		}
		data, err := m.read(path)
		if err != nil {
			return err
		}
		depends, err := dependsOf(data)
		if err != nil {
			return unexpected("its module "+name+" is none", err)
		}
		for _, d := range depends {
			if err := visit(d, name); err != nil {
				return err
			}
		}
		out = append(out, module{name, data})
		return nil
	}
	for _, name := range wanted {
		if err := visit(name, "the guest"); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// dependsOf reads in a module's section .modinfo, which is texts KEY=VALUE that end with a byte zero, which modules it needs. (There is
// no modules.dep before a kernel is installed.)
func dependsOf(data []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, errors.New("it has no section .modinfo")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	for text := range strings.SplitSeq(string(info), "\x00") {
		if list, ok := strings.CutPrefix(text, "depends="); ok && list != "" {
			return strings.Split(strings.ReplaceAll(list, "-", "_"), ","), nil
		}
	}
	return nil, nil
}

// unexpected is the error that a package of Debian is not as this version knows them.
func unexpected(what string, err error) error {
	f := fault.New(fault.Unsupported, "the tiny guest cannot be made of Debian's kernel: %s", what)
	if err != nil {
		f = fault.New(fault.Unsupported, "the tiny guest cannot be made of Debian's kernel: %s: %w", what, err)
	}
	return f.WithHint("this version knows Debian 12 and 13; a newer Drover may know more")
}
