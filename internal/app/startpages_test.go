package app

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAreasThatMayBeGivenBack(t *testing.T) {
	const smaps = `00400000-00401000 r-xp 00000000 fe:00 12    /usr/bin/drover
Size:                  4 kB
Rss:                   4 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me sd
00401000-00403000 r--p 00001000 fe:00 12    /usr/bin/drover
Rss:                   8 kB
Anonymous:             4 kB
00403000-00404000 rw-p 00003000 fe:00 12    /usr/bin/drover
Anonymous:             0 kB
00404000-00405000 r--p 00003000 fe:00 12    /usr/bin/drover (deleted)
Anonymous:             0 kB
c000000000-c000400000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7f0000000000-7f0000001000 r--p 00000000 fe:00 13    /usr/lib/libc.so.6
Anonymous:             0 kB
7f0000001000-7f0000002000 r--p 00005000 fe:00 12    /usr/bin/drover
Anonymous:             0 kB
`
	got, err := unchangedAreas(strings.NewReader(smaps), "/usr/bin/drover")
	want := []area{{0x400000, 0x401000}, {0x7f0000001000, 0x7f0000002000}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %x, %v, want %x", got, err, want)
	}
}

// TestWhatOnlyTheStartTouchedIsGivenBack asks the system how much of a program's file is in
// memory, before and after.
func TestWhatOnlyTheStartTouchedIsGivenBack(t *testing.T) {
	before := 0
	for tries := 0; before < touched; tries++ {
		if tries == 100 {
			t.Fatalf("%d kB of files in memory", before)
		}
		touchProgram(t) // what a controller of a test before this one may give back at this moment
		before = resident(t, "RssFile")
	}
	if err := giveBackStart(); err != nil {
		t.Fatal(err)
	}
	if after := resident(t, "RssFile"); after > before/2 {
		t.Errorf("%d kB of files in memory, of %d before", after, before)
	}
}

// touched is how much of the program is in memory at least when all of it was touched, in kB.
const touched = 1 << 10

// resident returns how much memory of a kind this process has (proc_pid_status(5)).
func resident(t *testing.T, kind string) (kB int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), kind+":")
	if _, err := fmt.Sscan(rest, &kB); err != nil {
		t.Fatal(err)
	}
	return kB
}

// touchProgram has all of the program in memory, which other tests may have given back.
func touchProgram(t *testing.T) {
	t.Helper()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	areas, err := unchangedAreas(bytes.NewReader(smaps), program)
	if err != nil || len(areas) == 0 {
		t.Fatalf("%d areas, %v", len(areas), err)
	}
	for _, a := range areas {
		if _, _, failed := unix.Syscall(unix.SYS_MADVISE, a.from, a.to-a.from, unix.MADV_POPULATE_READ); failed != 0 {
			t.Logf("not all of the program is in memory: %v", failed)
		}
	}
}
