package app

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// giveBackStart unmaps the pages of the program's file that it has touched so far. Much of a
// program is needed to start it and never again, and counts as its memory for as long as it
// runs: 20 of 28 MiB here. What is needed later is mapped again when it is touched, from
// the system's cache of the file.
func giveBackStart() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		return err
	}
	areas, err := unchangedAreas(file, program)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	for _, a := range areas {
		// By its address, since it is nothing that Go has allocated.
		if _, _, failed := unix.Syscall(unix.SYS_MADVISE, a.from, a.to-a.from, unix.MADV_DONTNEED); failed != 0 {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// area is a part of the address space.
type area struct{ from, to uintptr }

// unchangedAreas finds, in the form of /proc/PID/smaps (proc_pid_smaps(5)), the areas that
// show a file as it is: it may not be written to there, and no page of it was changed while that
// was allowed, as the loader does in programs that run at any address. Nothing is
// lost with such pages.
func unchangedAreas(smaps io.Reader, file string) (areas []area, err error) {
	var now area
	lines := bufio.NewScanner(smaps)
	for lines.Scan() {
		first, rest, _ := strings.Cut(lines.Text(), " ")
		if first == "Anonymous:" && now != (area{}) && strings.TrimSpace(rest) == "0 kB" {
			areas = append(areas, now)
		}
		if strings.HasSuffix(first, ":") {
			continue
		}
		now = area{}
		if fields := strings.Fields(rest); len(fields) > 4 && strings.HasSuffix(lines.Text(), " "+file) && fields[0][1] == '-' {
			if now, err = parseArea(first); err != nil {
				return nil, err
			}
		}
	}
	return areas, lines.Err()
}

// parseArea reads FROM-TO.
func parseArea(text string) (area, error) {
	from, to, _ := strings.Cut(text, "-")
	a, errFrom := strconv.ParseUint(from, 16, 64)
	b, errTo := strconv.ParseUint(to, 16, 64)
	return area{uintptr(a), uintptr(b)}, errors.Join(errFrom, errTo)
}
