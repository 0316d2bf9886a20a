package tinyguest

import (
	"bytes"
	"path"
	"strconv"
	"strings"
	"testing"
)

// entry is one of an archive that was read back.
type entry struct {
	name   string
	inode  int
	mode   int
	device [2]int
	data   string
}

// entries reads an archive, as the kernel does.
func entries(t *testing.T, data []byte) []entry {
	t.Helper()
	const header, unit = 110, 4
	up := func(n int) int { return (n + unit - 1) / unit * unit }
	var out []entry
	for at := 0; ; {
		if len(data) < at+header || string(data[at:at+6]) != "070701" {
			t.Fatalf("there is no header at %d of %d", at, len(data))
		}
		var fields [13]int
		for i := range fields {
			n, err := strconv.ParseUint(string(data[at+6+8*i:at+14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			fields[i] = int(n)
		}
		if fields[2]+fields[3]+fields[5]+fields[7]+fields[8]+fields[12] != 0 {
			t.Errorf("it tells of whom and when it was made: %v", fields)
		}
		name := at + header
		content := up(name + fields[11])
		e := entry{string(data[name : name+fields[11]-1]), fields[0], fields[1], [2]int{fields[9], fields[10]}, string(data[content : content+fields[6]])}
		if at = up(content + fields[6]); e.name == "TRAILER!!!" {
			if at != len(data) {
				t.Errorf("%d bytes follow the end", len(data)-at)
			}
			return out
		}
		out = append(out, e)
	}
}

func TestArchivesAreReadBack(t *testing.T) {
	var a archive
	a.dir("empty")
	a.device("dev/console", 0o600, [2]int{5, 1})
	for n := range 9 { // each length of what pads
		a.file("d/"+strings.Repeat("n", n+1), 0o755, []byte(strings.Repeat("x", n)))
	}
	got := entries(t, a.bytes())
	want := []entry{{name: "empty", mode: 0o40755}, {name: "dev", mode: 0o40755}, {name: "dev/console", mode: 0o20600, device: [2]int{5, 1}}, {name: "d", mode: 0o40755}}
	for n := range 9 {
		want = append(want, entry{name: "d/" + strings.Repeat("n", n+1), mode: 0o100755, data: strings.Repeat("x", n)})
	}
	if len(got) != len(want) {
		t.Fatalf("%d entries: %+v", len(got), got)
	}
	for i, e := range want {
		if e.inode = i + 1; got[i] != e {
			t.Errorf("%+v, want %+v", got[i], e)
		}
	}
}

func TestDirectoriesStandBeforeFiles(t *testing.T) {
	there := map[string]bool{".": true}
	all := map[string]int{}
	for _, e := range entries(t, initrd([]byte("busybox"), []module{{"virtio", []byte("v")}, {"scsi_mod", []byte("s")}})) {
		if !there[path.Dir(e.name)] {
			t.Errorf("%s stands before its directory", e.name)
		}
		if there[e.name] {
			t.Errorf("%s is there twice", e.name)
		}
		there[e.name] = e.mode&kindDir != 0
		all[e.name] = e.mode
		if e.name == "lib/modules/order" && e.data != "virtio.ko\nscsi_mod.ko scan=manual\n" {
			t.Errorf("the order is %q", e.data)
		}
	}
	for name, mode := range map[string]int{"init": 0o100755, "etc/passwd": 0o100644, "etc/acpi/PWRF/00000080": 0o100755, "bin/busybox": 0o100755, "proc": 0o40755, "lib/modules/virtio.ko": 0o100644} {
		if all[name] != mode {
			t.Errorf("%s has mode %o, want %o", name, all[name], mode)
		}
	}
}

func TestCompressedAlike(t *testing.T) {
	data := bytes.Repeat([]byte("text"), 9999)
	if first := compressed(data); len(first) == 0 || len(first) > len(data)/10 || !bytes.Equal(first, compressed(data)) {
		t.Errorf("%d bytes become %d, or other ones the second time", len(data), len(first))
	}
}
