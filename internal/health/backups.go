package health

import (
	"fmt"
	"strings"
)

// oldBackup is how old the newest backup may be: one that is made each day has failed twice.
const oldBackup = 2 * day

// backups tells how old the newest backup of all machines is, where somebody said where they are.
func backups(f *Facts) []Line {
	var newest *Backups
	var holder, dir string
	var without []string
	there := false // a directory is, so somebody means to have backups
	for _, m := range answering(f) {
		b := m.Backups
		switch {
		case b == nil:
			continue
		case b.Missing:
			without = append(without, fmt.Sprintf("%s has no directory %s", m.Name, b.Dir))
		case b.Trouble != "":
			without = append(without, m.Name+": "+b.Trouble)
		case b.Newest.IsZero():
			without = append(without, fmt.Sprintf("%s has none in %s", m.Name, b.Dir))
		case newest == nil || b.Newest.After(newest.Newest):
			newest, holder = b, m.Name
		}
		there = there || !b.Missing
		dir = b.Dir
	}
	l := Line{State: Problem, Part: "backup", What: "there is no backup of the store", Why: strings.Join(without, "; "),
		Do: "on the machine that leads: drover backup create " + dir + "; why the timer did not: systemctl status drover-backup"}
	switch {
	case dir == "":
		return nil
	case newest == nil && !there:
		l.State, l.What = Note, "no backup of the store is known"
		l.Do = "systemctl enable --now drover-backup.timer on each controller's machine; if they are elsewhere: backups in the configuration"
	case newest == nil:
	case f.Now.Sub(newest.Newest) > oldBackup:
		l.What, l.Since = "the newest backup of the store is "+lasting(f.Now.Sub(newest.Newest))+" old", newest.Newest
		l.Why = fmt.Sprintf("%s has it in %s, and nobody has a newer one", holder, newest.Dir)
	default:
		l = Line{State: OK, Part: "backup", What: fmt.Sprintf("the newest of %d in %s of %s is %s old and has %s", newest.Count, newest.Dir, holder, lasting(max(0, f.Now.Sub(newest.Newest))), Size(newest.Bytes))}
	}
	return []Line{l}
}
