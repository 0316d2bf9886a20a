package shell

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// EndWithReader ends a command that follows something when nobody reads its output any more,
// as in `drover job list --watch | head`: it would notice that with the next line that it
// writes, which may never come. It ends like any program that writes into a pipe without
// a reader.
func (sh *Shell) EndWithReader() {
	out, ok := sh.rawOut.(*os.File)
	if !ok {
		return
	}
	go func() {
		const forEver = -1
		watched := []unix.PollFd{{Fd: int32(out.Fd())}}
		_, err := unix.Poll(watched, forEver)
		for errors.Is(err, unix.EINTR) {
			_, err = unix.Poll(watched, forEver)
		}
		if err == nil && watched[0].Revents&unix.POLLERR != 0 {
			_, _ = out.WriteString("\n") // the end of the process
		}
	}()
}
