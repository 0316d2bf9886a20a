package effect

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// bootID says which start of the machine this is. Where it cannot be read (a service may be kept from it) it is empty, and number and
// start of a process have to do.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

// stat is what is known of a process.
type stat struct {
	group int
	start uint64 // in ticks since the machine started
	dead  bool   // it has ended, and its parent has not asked for it yet
}

// ticks of a second are in the times of /proc, on all machines that Go runs on.
const ticks = 100

// readStat reads /proc/PID/stat, see proc_pid_stat(5).
func readStat(pid int) (stat, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	// The name may have blanks and parentheses in it.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	const state, group, start = 0, 2, 19 // fields 3, 5 and 22
	if len(fields) <= start {
		return stat{}, fmt.Errorf("/proc/%d/stat has %d fields behind the name", pid, len(fields))
	}
	s := stat{dead: strings.ContainsAny(fields[state], "ZXx")}
	if s.group, err = strconv.Atoi(fields[group]); err == nil {
		s.start, err = strconv.ParseUint(fields[start], 10, 64)
	}
	return s, err
}

// age is how long ago something started.
func age(start uint64) time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0
	}
	return max(0, time.Duration(now.Nano())-time.Duration(start)*(time.Second/ticks))
}

// holdersOf finds the processes that have a file open. A lock belongs to all who inherited it; /proc/locks tells only who
// took it, who may have died.
func holdersOf(path string) (pids []int) {
	wanted, err := os.Stat(path)
	if err != nil {
		return nil
	}
	all, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return nil
	}
	for _, fd := range all {
		if info, err := os.Stat(fd); err == nil && os.SameFile(info, wanted) {
			pid, _ := strconv.Atoi(strings.Split(fd, "/")[2])
			if len(pids) == 0 || pids[len(pids)-1] != pid {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// holders names the processes that have a file open, for people.
func holders(path string) string {
	var names []string
	for _, pid := range holdersOf(path) {
		name := "process " + strconv.Itoa(pid)
		if comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil {
			name += " (" + strings.TrimSpace(string(comm)) + ")"
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "a process that cannot be found from here"
	}
	return strings.Join(names, ", ")
}
