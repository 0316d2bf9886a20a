package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/cli/listing"
	"github.com/drover-project/drover/internal/cli/screen"
	"github.com/drover-project/drover/internal/cli/shell"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/queue/machine"
	"github.com/drover-project/drover/internal/schedule"
)

// Lines are the screen at a size: what is counted, the rows of the view, what is to be
// said of the chosen one, and the keys.
func (s *State) Lines(size screen.Size) []string {
	if s.help {
		return s.fit(slices.Clone(helpLines), size)
	}
	out := append(s.head(size.Width), "")
	heading, rows := s.rows(size.Width)
	detail := s.detail(size, size.Height-len(out)-max(len(rows), 1)-2)
	room := max(size.Height-len(out)-len(detail)-2, 1) // heading and foot
	first := s.cursor[s.view] / room * room
	out = append(out, s.paint(shell.Bold, "  "+heading))
	for i := first; i < first+room; i++ {
		switch {
		case i >= len(rows):
			out = append(out, "")
		case i == s.cursor[s.view]:
			out = append(out, s.paint(reversed, "> "+rows[i].text))
		default:
			out = append(out, "  "+s.paint(rows[i].colour, rows[i].text))
		}
	}
	if len(rows) == 0 && room > 0 {
		out[len(out)-room] = "  " + s.nothing()
	}
	return s.fit(append(append(out, detail...), s.foot(len(rows))), size)
}

// fit cuts lines to a size. Colours take no room.
func (s *State) fit(lines []string, size screen.Size) []string {
	lines = lines[:min(len(lines), size.Height)]
	for i, line := range lines {
		if !strings.Contains(line, "\x1b") {
			lines[i] = listing.Cut(line, size.Width)
		}
	}
	return lines
}

// reversed is the colour of what is chosen.
const reversed = "7"

// line is a row of a view.
type line struct{ text, colour string }

// head counts what there is.
func (s *State) head(width int) []string {
	p := s.picture
	if p == nil {
		return []string{"drover top", s.trouble(), "", "", ""}
	}
	note, colour := "", ""
	switch {
	case s.failed != nil:
		note, colour = s.trouble(), shell.Red
	case s.still:
		note, colour = "held still; space goes on", shell.Yellow
	case p.Queue.Drained:
		note, colour = "the queue "+p.Queue.Text(), shell.Yellow
	}
	runs := p.Jobs[string(job.Running)]
	title := listing.Cut(fmt.Sprintf("drover top  %s  %s  %s", p.Cluster, p.At.Format(time.DateTime), note), width)
	return []string{
		s.paint(colour, strings.TrimRight(title, " ")),
		fmt.Sprintf("Jobs       %d run, %d wait; last minute: %d came, %d ended, %d failed",
			runs, sum(p.Jobs)-runs, p.Rates.Came, p.Rates.Ended, p.Rates.Failed),
		"Waits      " + mostly(p.Held),
		"Instances  " + told(p.Instances, instanceWords),
		fmt.Sprintf("Nodes      %s of %s in use; ", size(p.Memory-p.Free), size(p.Memory)) + told(p.Roles, roleWords),
	}
}

// mostly tells what holds most jobs.
func mostly(holds []Hold) string {
	if len(holds) == 0 {
		return "none"
	}
	const most = 4
	var parts []string
	for _, h := range holds[:min(len(holds), most)] {
		parts = append(parts, fmt.Sprintf("%d for %s", h.Jobs, h.name()))
	}
	if len(holds) > most {
		parts = append(parts, fmt.Sprintf("and %d more", len(holds)-most))
	}
	return listing.Printable(strings.Join(parts, ", "))
}

// trouble says what went wrong with the last question.
func (s *State) trouble() string {
	if s.failed == nil {
		return "asking the controller"
	}
	return listing.Printable(s.failed.Error())
}

// words are the words for values, in the order in which they are told.
type words []struct{ value, word string }

var (
	instanceWords = words{
		{"running", "run"}, {"ADMIN_down", "stopped"}, {"USER_down", "shut down from within"}, {"ADMIN_offline", "offline"},
		{"ERROR_down", "down though to run"}, {"ERROR_up", "run though to be stopped"}, {"ERROR_wrongnode", "on a wrong node"},
		{"ERROR_nodedown", "on a silent node"}, {"ERROR_nodeoffline", "on an offline node"},
	}
	roleWords = words{{"M", "master"}, {"C", "candidates"}, {"R", "regular"}, {"D", "drained"}, {"O", "offline"}}
)

// told tells counts in words, without those of nothing.
func told(counts map[string]int64, names words) string {
	var parts []string
	all := sum(counts)
	for _, n := range names {
		if c := counts[n.value]; c > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c, n.word))
			all -= c
		}
	}
	if all > 0 {
		parts = append(parts, fmt.Sprintf("%d in other states", all))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// rows are the rows of the view, under their heading.
func (s *State) rows(width int) (string, []line) {
	var t sheet
	p := s.picture
	if p == nil {
		p = &Picture{}
	}
	switch s.view {
	case Jobs:
		t = jobSheet(p)
	case Holds:
		t = holdSheet(p)
	case Nodes:
		t = nodeSheet(p)
	}
	return t.lines(width - 2)
}

func jobSheet(p *Picture) sheet {
	t := sheet{columns: []column{
		{"ID", 8, false, true}, {"STATUS", 9, false, false}, {"SINCE", 5, false, true}, {"WHAT", 12, true, false}, {"WHY IT WAITS", 14, true, false},
	}}
	for _, part := range [][]Job{p.Running, p.Waiting} {
		for _, j := range part {
			why := j.Why
			if j.Place > 0 {
				why += fmt.Sprintf(", number %d in line", j.Place)
			}
			t.add(statusColours[j.Status], strconv.FormatInt(j.ID, 10), j.Status, age(p.At, j.Since), j.Summary, why)
		}
	}
	return t
}

// statusColours show at a glance how a job stands.
var statusColours = map[string]string{string(job.Running): shell.Green, string(job.Canceling): shell.Red}

func holdSheet(p *Picture) sheet {
	t := sheet{columns: []column{{"JOBS", 8, false, true}, {"FIRST", 8, false, true}, {"WAIT FOR", 12, true, false}}}
	for _, h := range p.Holds {
		t.add("", strconv.FormatInt(h.Jobs, 10), strconv.FormatInt(int64(h.First), 10), h.name())
	}
	return t
}

// name is what keeps jobs, in words.
func (h Hold) name() string {
	if h.What == "" {
		return "their turn"
	}
	return h.What
}

func nodeSheet(p *Picture) sheet {
	t := sheet{columns: []column{
		{"NODE", 12, true, false}, {"STATE", 8, false, false}, {"INSTANCES", 9, false, true}, {"MEMORY", 10, false, true}, {"FREE", 10, false, true},
		{"LAST CHANGE", 30, true, false},
	}}
	for _, n := range p.Nodes {
		t.add(stateColours[n.State], n.Name, n.State, strconv.FormatInt(n.Instances, 10), size(n.Memory), size(n.Free), n.Changed)
	}
	return t
}

// stateColours show at a glance which nodes do not take part.
var stateColours = map[string]string{"offline": shell.Dim, "drained": shell.Yellow, "silent": shell.Red}

// nothing says that a view has no rows, and why.
func (s *State) nothing() string {
	switch {
	case s.picture == nil:
		return ""
	case s.picture.wish.View != s.view:
		return "asking the controller"
	case s.filters[s.view].text != "":
		return "nothing matches the filter; esc takes it away"
	default:
		return map[View]string{Jobs: "no job runs or waits", Holds: "no job waits", Nodes: "there are no nodes"}[s.view]
	}
}

// detail says of the chosen row what does not fit into it: why it waits, what would
// have to be different, and why it was asked for. It has a quarter of the screen, and what
// rows leave free.
func (s *State) detail(at screen.Size, spare int) []string {
	room := at.Height / 4
	if room < 4 {
		return nil
	}
	out := []string{""}
	rest := ""
	switch p := s.picture; {
	case p == nil:
	case s.view == Nodes && s.count() > 0:
		out = append(out, folded(p.Nodes[s.cursor[Nodes]].told(), at.Width)...)
	case p.Chosen != nil:
		out = append(out, folded(explained(p.Chosen), at.Width)...)
		rest = fmt.Sprintf("  and more: drover job explain %d", p.Chosen.Job)
	}
	room = max(room, min(spare, len(out)))
	if len(out) > room {
		out = out[:room]
		out[room-1] = rest
	}
	for len(out) < room {
		out = append(out, "")
	}
	return out
}

// told says how a node is, and why.
func (n Node) told() []string {
	out := []string{n.Name + " " + stateWords[n.State]}
	if n.Changed != "" {
		out = append(out, "  changed last because of: "+n.Changed)
	}
	return append(out, fmt.Sprintf("  drover why %s tells more", n.Name))
}

// stateWords say what the states of nodes mean.
var stateWords = map[string]string{
	"online": "takes part", "master": "takes part, and is the master", "drained": "takes no new instances; those on it go on",
	"offline": "is marked offline: it is asked and told nothing", "silent": "is to answer and does not",
}

// explained are the lines of an explanation: the remedy right after the reason.
func explained(x *machine.Explanation) []string {
	out := []string{fmt.Sprintf("Job %d %s: %s", x.Job, x.Status, x.Why)}
	if x.Step == schedule.Ended { // says how
		out[0] = fmt.Sprintf("Job %d: %s", x.Job, x.Why)
	}
	for _, r := range x.Change {
		out = append(out, "  to go on: "+r.Text)
	}
	if x.Expected != nil {
		out = append(out, "  likely: "+x.Expected.Text)
	}
	if x.Reason != "" {
		out = append(out, "  wanted for: "+x.Reason)
	}
	return out
}

// folded breaks lines that do not fit a width. What was written by others has one.
func folded(lines []string, width int) []string {
	for i, line := range lines {
		lines[i] = listing.Printable(line)
	}
	return strings.Split(listing.Fold(strings.Join(lines, "\n"), width), "\n")
}

// foot is the last line: what is typed, or which keys there are.
func (s *State) foot(rows int) string {
	switch {
	case s.typing:
		return "filter: " + listing.Printable(s.typed) + "_"
	case s.wrong != nil:
		return s.paint(shell.Red, listing.Printable(s.wrong.Error()))
	}
	at := "0 of 0"
	if rows > 0 {
		at = fmt.Sprintf("%d of %d", s.cursor[s.view]+1, rows)
	}
	if s.picture != nil && s.picture.More > 0 {
		at += fmt.Sprintf(" (and %d more)", s.picture.More)
	}
	out := fmt.Sprintf("%s %s by %s", s.view, at, s.sortName())
	if f := s.filters[s.view].text; f != "" {
		out += ", filter " + listing.Printable(f)
	}
	return out + "   q leave  tab view  / filter  s sort  ? help"
}

// age is how long ago something was, in few letters.
func age(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	d := max(now.Sub(then), 0)
	for _, u := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d >= u.length {
			return strconv.Itoa(int(d/u.length)) + u.name
		}
	}
	return strconv.Itoa(int(d/time.Second)) + "s"
}

// size is an amount of memory in MiB, in words.
func size(mib int64) string {
	const gib, tib = 1 << 10, 1 << 20
	switch {
	case mib < 0:
		return "?"
	case mib < gib:
		return fmt.Sprintf("%d MiB", mib)
	case mib < 10*tib:
		return fmt.Sprintf("%.1f GiB", float64(mib)/gib)
	default:
		return fmt.Sprintf("%.1f TiB", float64(mib)/tib)
	}
}

var helpLines = []string{
	"drover top shows what a cluster does, as it is at the moment.",
	"",
	"  tab, 1 2 3        the views: jobs, what holds them, nodes",
	"  up down, k j      choose a row; pgup, pgdown, home and end go further",
	"  enter             of what holds jobs: those jobs",
	"  /                 a filter, as --filter takes it, or a name; esc takes it away",
	"  s, r              sort by the next column; the other way round",
	"  space             hold still, and go on",
	"  q, ctrl-c         leave",
	"",
	"Of the chosen job, or the first of those that wait for a thing, it is told below",
	"the rows why it waits and what would have to be different for it to go on;",
	"drover job explain ID tells all of it. drover job list has those that ended.",
	"",
	"Any key goes back.",
}
