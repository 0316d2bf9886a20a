package tinyguest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/testkit"
)

// elfModule is a file of a module, as far as it tells what it needs.
func elfModule(t testing.TB, modinfo string) []byte {
	t.Helper()
	const header, section = 64, 64
	names := "\x00.modinfo\x00.shstrtab\x00"
	sections := []elf.Section64{
		{},
		{Name: 1, Type: uint32(elf.SHT_PROGBITS), Off: header, Size: uint64(len(modinfo)), Addralign: 1},
		{Name: 10, Type: uint32(elf.SHT_STRTAB), Off: uint64(header + len(modinfo)), Size: uint64(len(names)), Addralign: 1},
	}
	var out bytes.Buffer
	for _, part := range []any{
		elf.Header64{
			Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
			Type:  uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Ehsize: header,
			Shoff: uint64(header + len(modinfo) + len(names)), Shentsize: section, Shnum: uint16(len(sections)), Shstrndx: 2,
		},
		[]byte(modinfo), []byte(names), sections,
	} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// write puts a file below a directory.
func write(t testing.TB, dir, name string, data []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestModulesAreInOrder(t *testing.T) {
	for _, tc := range []struct {
		name, files, builtin, wanted, want string
	}{
		{"one alone", "a", "", "a", "a"},
		{"what it needs goes before", "a:b,c b:c c", "", "a", "c b a"},
		{"each once", "a:c b:c c", "", "a b a", "c a b"},
		{"as they were wanted", "a b c", "", "c a b", "c a b"},
		{"a bar is a stroke in the name of a file", "virtio-rng:virtio_ring virtio_ring", "", "virtio_rng", "virtio_ring virtio_rng"},
		{"and in what is needed", "a:b-c b_c", "", "a", "b_c a"},
		{"what is built in is not loaded", "a:b", "b", "a b", "a"},
		{"what is built in, by the name of its file", "", "rng-core", "rng_core", ""},
		{"what is absent", "a", "", "b", "it has no module b, which the guest needs"},
		{"what another needs and is absent", "a:b b:c", "", "a", "it has no module c, which b needs"},
		{"in a circle", "a:b b:a", "", "a", "b a"},
	} {
		dir := t.TempDir()
		for text := range strings.FieldsSeq(tc.files) {
			name, depends, _ := strings.Cut(text, ":")
			write(t, dir, "kernel/"+name+"/"+name+".ko", elfModule(t, "license=GPL\x00depends="+depends+"\x00name="+name+"\x00"))
		}
		var list strings.Builder
		for name := range strings.FieldsSeq(tc.builtin) {
			list.WriteString("kernel/drivers/" + name + ".ko\n")
		}
		write(t, dir, "modules.builtin", []byte(list.String()))
		all, err := modulesIn(dir, os.ReadFile)
		if err != nil {
			t.Fatal(err)
		}
		loaded, err := all.order(strings.Fields(tc.wanted))
		var names []string
		for _, m := range loaded {
			names = append(names, m.name)
		}
		got := strings.Join(names, " ")
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.Unsupported {
			_, got, _ = strings.Cut(f.Message, "kernel: ")
		}
		if got != tc.want {
			t.Errorf("%s: %q, %v, want %q", tc.name, got, err, tc.want)
		}
	}
}

func TestWhatIsNoKernelIsRefused(t *testing.T) {
	dir := t.TempDir()
	if _, err := modulesIn(dir, os.ReadFile); !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "built in") {
		t.Errorf("without a list: %v", err)
	}
	write(t, dir, "modules.builtin", nil)
	for text, want := range map[string]string{strings.Repeat("text", 99): "magic number", string(elfModule(t, "")): ""} {
		write(t, dir, "a.ko", []byte(text))
		all, err := modulesIn(dir, os.ReadFile)
		if err != nil {
			t.Fatal(err)
		}
		_, err = all.order([]string{"a"})
		if (err == nil) != (want == "") || err != nil && !(fault.Is(err, fault.Unsupported) && strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, _, err := kernelIn(dir); !fault.Is(err, fault.Unsupported) {
		t.Errorf("no directory of modules: %v", err)
	}
}

func TestCompressedModulesAreRead(t *testing.T) {
	dir := t.TempDir()
	text := elfModule(t, "depends=b\x00")
	write(t, dir, "a.ko", text)
	write(t, dir, "z.ko.zst", text)
	if got, err := readModule(t.Context(), filepath.Join(dir, "a.ko")); err != nil || !bytes.Equal(got, text) {
		t.Errorf("as it is: %v", err)
	}
	if _, err := readModule(t.Context(), filepath.Join(dir, "z.ko.zst")); !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "z.ko.zst") {
		t.Errorf("by another program: %v", err)
	}
	t.Run("without xz", func(t *testing.T) {
		t.Setenv("PATH", dir)
		if _, err := readModule(t.Context(), filepath.Join(dir, "a.ko.xz")); !fault.Is(err, fault.Environment) || !strings.Contains(err.Error(), "apt-get install xz-utils") {
			t.Errorf("%v", err)
		}
	})
	if out, err := exec.CommandContext(t.Context(), "xz", filepath.Join(dir, "a.ko")).CombinedOutput(); err != nil {
		testkit.Missingf(t, "xz (Debian's package xz-utils): %v: %s", err, out)
	}
	if got, err := readModule(t.Context(), filepath.Join(dir, "a.ko.xz")); err != nil || !bytes.Equal(got, text) {
		t.Errorf("by xz: %v", err)
	}
	write(t, dir, "a.ko.xz", []byte("no such thing"))
	if _, err := readModule(t.Context(), filepath.Join(dir, "a.ko.xz")); !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "format") {
		t.Errorf("damaged: %v", err)
	}
}

func FuzzDependsOf(f *testing.F) {
	f.Add(elfModule(f, "depends=a,b\x00"))
	f.Add(elfModule(f, "depends=\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		names, err := dependsOf(data)
		if err != nil && names != nil {
			t.Errorf("%q, %v", names, err)
		}
	})
}
