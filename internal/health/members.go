package health

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// stores tells of members whose store fails them: those that say the same of it together.
func stores(f *Facts) []Line {
	var lines []Line
	by := map[string][]string{}
	since := map[string]time.Time{}
	for _, m := range answering(f) {
		if m.Store == nil {
			continue
		}
		by[m.Store.Text] = append(by[m.Store.Text], m.Name)
		if at := since[m.Store.Text]; at.IsZero() || m.Store.Since.Before(at) {
			since[m.Store.Text] = m.Store.Since
		}
	}
	for _, text := range slices.Sorted(maps.Keys(by)) {
		lines = append(lines, Line{State: Problem, Part: "store", What: "the store fails " + listed(by[text]), Why: text, Since: since[text],
			Do: "see to the database, its disk and the way to it; controllers go on by themselves when it answers"})
	}
	if f.Remembered != "" && len(lines) == 0 {
		lines = append(lines, Line{State: Problem, Part: "store", What: "the store does not tell which controllers there are", Why: f.Remembered,
			Do: "see to the database and the way to it"})
	}
	format := ""
	if f.Cluster != nil {
		format = fmt.Sprintf(", with format %d", f.Cluster.Format)
	}
	return unless(lines, "store", "works"+format)
}

const (
	// youngTerm is how long a term that follows on another is told of.
	youngTerm = 10 * time.Minute
	// firstTerm is within which time of its start a controller takes the lead of a group that was started as a whole.
	firstTerm = 2 * time.Minute
)

// lead tells who leads.
func lead(f *Facts) []Line {
	var leaders, doubting []Member
	for _, m := range answering(f) {
		switch {
		case m.Role == Leads && m.Doubt == "":
			leaders = append(leaders, m)
		case m.Role == Leads:
			doubting = append(doubting, m)
		}
	}
	switch {
	case len(leaders) == 0 && len(doubting) > 0:
		return []Line{{State: Problem, Part: "lead", What: doubting[0].Name + " does not know whether it still leads: what is asked for is refused", Why: doubting[0].Doubt,
			Do: "see to the database and the way to it; whoever reaches it first goes on"}}
	case len(leaders) == 0:
		return []Line{{State: Problem, Part: "lead", What: "no controller leads: what is asked for is not done", Why: "none of those that answer says that it leads",
			Do: "if a line says that the store fails, that is why; else wait for 20 seconds, for which a leader that was lost keeps its lease, then look at the log of each controller (journalctl -u drover)"}}
	case len(leaders) > 1:
		names := make([]string, len(leaders))
		for i, m := range leaders {
			names[i] = m.Name
		}
		return []Line{{State: Problem, Part: "lead", What: listed(names) + " each say that they lead", Why: "the lead goes over at this moment, or they do not share one store",
			Do: "look again; if it stays so, compare store in their configurations"}}
	case f.Cluster == nil:
		return []Line{{State: OK, Part: "lead", What: leaders[0].Name + " leads"}}
	}
	l, c := leaders[0], f.Cluster
	what := fmt.Sprintf("%s leads for %s (epoch %d)", l.Name, lasting(f.Now.Sub(c.Since)), c.Epoch)
	if len(f.Members) > 1 && f.Now.Sub(c.Since) < youngTerm && c.Since.Sub(l.Started) > firstTerm {
		return []Line{{State: Note, Part: "lead", What: what, Why: "another led until then", Since: c.Since,
			Do: "if nobody arranged that: the log of the one before says why it lost the lead (journalctl -u drover)"}}
	}
	return []Line{{State: OK, Part: "lead", What: what}}
}

// members tells which controllers are there, and which could not take the lead.
func members(f *Facts) []Line {
	var lines []Line
	versions := map[string][]string{}
	for _, m := range f.Members {
		switch {
		case m.Silent != "":
			lines = append(lines, Line{State: Problem, Part: "member", What: "controller " + m.Name + " does not answer", Why: m.Silent,
				Do: "on its machine: systemctl status drover. If it is gone for good, start one of the same name elsewhere, or: drover cluster forget-controller " + m.Name})
			continue
		case m.Stopping:
			lines = append(lines, Line{State: Note, Part: "member", What: "controller " + m.Name + " is stopping", Why: "it was told to", Do: "start it again when its machine is ready"})
		case m.Unfit != "":
			lines = append(lines, Line{State: Problem, Part: "member", What: "controller " + m.Name + " cannot lead", Why: m.Unfit,
				Do: "install the newer program there; a way back is a backup of before (docs/operations.md, Upgrades)"})
		case m.Drained != "" && m.Role == Leads:
			lines = append(lines, Line{State: Problem, Part: "member", What: "controller " + m.Name + " leads although it is drained: no other could", Why: m.Drained,
				Do: "start another controller, or let it lead: drover cluster undrain-controller " + m.Name})
		case m.Drained != "":
			lines = append(lines, Line{State: Note, Part: "member", What: "controller " + m.Name + " is drained: it leads only if no other could", Why: m.Drained,
				Do: "drover cluster undrain-controller " + m.Name + ", when it may lead again"})
		case m.Behind > 0:
			lines = append(lines, Line{State: Problem, Part: "member", What: fmt.Sprintf("controller %s is %s behind the store", m.Name, counted(int(m.Behind), "revision")),
				Why: "it did not come up with it within a second; it hands on what it is asked meanwhile",
				Do:  "see whether its machine has processor time, and the way to the database"})
		}
		versions[version(m)] = append(versions[version(m)], m.Name)
	}
	if len(versions) > 1 {
		var each []string
		for _, v := range slices.Sorted(maps.Keys(versions)) {
			each = append(each, v+" on "+listed(versions[v]))
		}
		lines = append(lines, Line{State: Note, Part: "member", What: "programs of several versions run", Why: strings.Join(each, "; "),
			Do: "end the upgrade, or find out which controller it forgot"})
	}
	var names []string
	for _, m := range answering(f) {
		names = append(names, m.Name)
	}
	all := "controller " + listed(names)
	if len(names) > 1 {
		all = counted(len(names), "controller") + " (" + listed(names) + ")"
	}
	for v := range versions {
		all += ", version " + v // if there are several nobody reads it
	}
	return unless(lines, "member", all)
}

func version(m Member) string {
	if m.Commit == "" {
		return m.Version
	}
	return m.Version + " (" + m.Commit + ")"
}

// ClockLimit is how far clocks may be apart: leases last for seconds.
const ClockLimit = 2 * time.Second

// clocks tells of members whose clocks are not those of the others.
func clocks(f *Facts) []Line {
	var lines []Line
	for _, m := range answering(f) {
		d, with := m.Ahead, "the controller that was asked"
		if m.ClockAhead != nil {
			d, with = *m.ClockAhead, "the database, by whose clock leases end"
		}
		if d.Abs() > ClockLimit {
			word := "ahead"
			if d < 0 {
				word = "behind"
			}
			lines = append(lines, Line{State: Problem, Part: "clock", What: fmt.Sprintf("the clock of %s is %v %s", m.Name, d.Abs().Round(100*time.Millisecond), word),
				Why: "compared with " + with, Do: "have both machines keep time (timedatectl): leases and certificates depend on it"})
		}
	}
	return lines
}

// accounts tells of members over whose RAPI nobody can log in.
func accounts(f *Facts) []Line {
	var lines []Line
	for _, m := range answering(f) {
		if m.Accounts != nil {
			lines = append(lines, Line{State: Problem, Part: "accounts", What: "nobody has an account of RAPI at " + m.Name, Why: m.Accounts.Text, Since: m.Accounts.Since,
				Do: "put the users file back (rapi-users); it is read anew by itself"})
		}
	}
	return lines
}

const (
	certificateNote    = 30 * day
	certificateProblem = 7 * day
)

// certificates tells of those that clients refuse, or will.
func certificates(f *Facts) []Line {
	var lines []Line
	first := time.Time{}
	for _, m := range answering(f) {
		for _, c := range m.Certificates {
			if first.IsZero() || c.End.Before(first) {
				first = c.End
			}
			if l, bad := certificate(m.Name, c, f.Now); bad {
				lines = append(lines, l)
			}
		}
	}
	if first.IsZero() {
		return lines
	}
	return unless(lines, "certificate", "good until "+first.UTC().Format(time.DateOnly)+" at least")
}

func certificate(member string, c Certificate, now time.Time) (Line, bool) {
	const form = "2 January 2006, 15:04 MST"
	l := Line{State: Problem, Part: "certificate", Why: c.File, Do: "put a new one into that file, then: systemctl reload drover"}
	if c.Own {
		l.Do = "start that controller anew, which renews it; clients with a copy need the new one"
	}
	of := fmt.Sprintf("the certificate for %s of %s ", c.Of, member)
	switch {
	case now.Before(c.Begin):
		l.What = of + "begins only on " + c.Begin.UTC().Format(form)
	case now.After(c.End):
		l.What, l.Since = of+"has ended on "+c.End.UTC().Format(form), c.End
	case now.Add(certificateProblem).After(c.End):
		l.What = of + "ends on " + c.End.UTC().Format(form)
	case now.Add(certificateNote).After(c.End):
		l.State, l.What = Note, of+"ends on "+c.End.UTC().Format(form)
	default:
		return l, false
	}
	return l, true
}

// fullDisk is below which rest a disk is about to be full: a twentieth of it, but no more than a gibibyte.
func fullDisk(d *Disk) uint64 {
	const gibibyte, part = 1 << 30, 20
	return min(d.Size/part, gibibyte)
}

// disks tells of those that fill up.
func disks(f *Facts) []Line {
	var lines, well []Line
	for _, m := range answering(f) {
		if m.Disk == nil {
			continue
		}
		limit := fullDisk(m.Disk)
		l := Line{State: Problem, Part: "disk", What: fmt.Sprintf("%s of %s are free at %s of %s", Size(m.Disk.Free), Size(m.Disk.Size), m.Disk.Path, m.Name),
			Why: "the disk of the data directory fills up",
			Do:  "make room; df and du say what takes it"}
		if m.Disk.Store > 0 {
			l.Why = fmt.Sprintf("the store takes %s of it", Size(m.Disk.Store))
			l.Do = "make room: when the disk is full, changes are refused; drover job autoarchive makes the store no smaller"
		}
		switch {
		case m.Disk.Free < limit:
			lines = append(lines, l)
		case m.Disk.Free < 2*limit:
			l.State = Note
			lines = append(lines, l)
		default:
			if m.Disk.Store > 0 {
				l.What += fmt.Sprintf("; the store takes %s", Size(m.Disk.Store))
			}
			well = append(well, Line{State: OK, Part: "disk", What: l.What})
		}
	}
	return append(lines, well...)
}

// Size is a number of bytes for people.
func Size(n uint64) string {
	const step = 1024
	unit, value := 0, float64(n)
	for value >= step && unit < 4 {
		value, unit = value/step, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %ciB", value, " KMGT"[unit])
}
