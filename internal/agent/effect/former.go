package effect

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// AllWritten is the path of the file that is there when all output of a task is in its log, which may be later than its exit
// status is.
func AllWritten(files string) string { return files + restEnd }

// Adopt takes over a command that is not noted: agents of former versions kept its number alone, in a file. It is known by the log that it
// has open. It returns nil if there is none that runs.
func (h *Hold) Adopt(c Command) (Process, error) {
	text, err := os.ReadFile(c.Files + pidEnd)
	if err != nil {
		return nil, nil //nolint:nilerr // none was begun
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || !slices.Contains(holdersOf(c.Log), pid) {
		return nil, nil //nolint:nilerr // it died before it wrote it all
	}
	stat, err := readStat(pid)
	if err != nil || stat.group != pid || stat.dead {
		return nil, nil //nolint:nilerr // it has just ended
	}
	e := Effect{Name: h.claim.Name, Of: h.claim.Of, Kind: h.claim.Kind, Epoch: h.claim.Order.Epoch, Files: c.Files,
		Group: Group{PID: pid, Start: stat.start, Boot: bootID()}}
	if err := h.fence.cfg.Host.Note(e); err != nil {
		return nil, err
	}
	return h.fence.cfg.Host.Find(e), nil
}
