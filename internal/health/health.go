// Package health says how a cluster is: of what its controllers tell it makes lines, of which each says what is, why,
// and what to do about it.
//
// Invariants:
//   - The lines are a function of the facts alone: who was asked does not matter (TestLines).
//   - What is wrong comes first, and what is not as it should be says what to do (TestEachBadLineSaysWhatToDo).
//   - A cluster is well if no line is a problem: what somebody has arranged on purpose, such as a node out of service, is
//     a note (TestLines).
package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// State says how bad a line is.
type State string

// The states. A Problem keeps the cluster from its work, or will soon. A Note is something to know: arranged by somebody, or not yet a
// problem.
const (
	Problem State = "problem"
	Note    State = "note"
	OK      State = "ok"
)

var rank = map[State]int{Problem: 0, Note: 1, OK: 2}

// Line is one thing that is said of a cluster.
type Line struct {
	State State `json:"state"`
	// Part is what it is about: store, lead, member, clock, accounts, certificate, disk, backup, clients, queue, jobs, rule, nodes, instances, inventory, events or servers.
	Part string `json:"part"`
	// What is how it is, Why the reason as far as it is known, Do what helps. An OK line has What alone.
	What string `json:"what"`
	Why  string `json:"why,omitempty"`
	Do   string `json:"do,omitempty"`
	// Since is when it began, where that is known.
	Since time.Time `json:"since,omitzero"`
}

// Report is how a cluster is.
type Report struct {
	// Well: no line is a problem.
	Well  bool      `json:"well"`
	Time  time.Time `json:"time"`
	Lines []Line    `json:"lines"`
	// Asked is the controller that was asked, and Leads whether it is certain that it leads.
	Asked string `json:"asked"`
	Leads bool   `json:"leads"`
}

// Of says how a cluster is: problems first, then notes, each in the order in which they are worth a look.
func Of(f *Facts) Report {
	r := Report{Time: f.Now, Asked: f.Asked}
	for _, m := range f.Members {
		r.Leads = r.Leads || m.Name == f.Asked && m.Role == Leads && m.Doubt == ""
	}
	for _, part := range []func(*Facts) []Line{stores, lead, members, clocks, accounts, certificates, disks, backups, clients} {
		r.Lines = append(r.Lines, part(f)...)
	}
	if f.Cluster != nil {
		for _, part := range []func(*Cluster, time.Time) []Line{queue, jobs, rules, nodes, instances, inventory, events, servers} {
			r.Lines = append(r.Lines, part(f.Cluster, f.Now)...)
		}
	}
	slices.SortStableFunc(r.Lines, func(a, b Line) int { return cmp.Compare(rank[a.State], rank[b.State]) })
	r.Well = r.Lines[0].State != Problem // something is always said of the lead
	return r
}

// unless are the lines, or the one that says that all is well where there are none.
func unless(lines []Line, part, what string) []Line {
	if len(lines) == 0 {
		return []Line{{State: OK, Part: part, What: what}}
	}
	return lines
}

// answering are the members that told how they are.
func answering(f *Facts) []Member {
	return slices.DeleteFunc(slices.Clone(f.Members), func(m Member) bool { return m.Silent != "" })
}

// listed names the first few of many.
func listed(names []string) string {
	const few = 3
	if len(names) <= few+1 {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// counted is a number of things: "1 job", "2 jobs".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// lasting is a length of time, in the largest unit that it fills twice.
func lasting(d time.Duration) string {
	for _, u := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if d >= 2*u.length {
			return counted(int(d/u.length), u.name)
		}
	}
	return counted(int(d/time.Second), "second")
}

const day = 24 * time.Hour
