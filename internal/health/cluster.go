package health

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// queue tells whether jobs are taken and go on.
func queue(c *Cluster, now time.Time) []Line {
	var lines []Line
	q := &c.Queue
	if q.Trouble != "" {
		lines = append(lines, Line{State: Problem, Part: "queue", What: "the queue does not go on", Why: q.Trouble,
			Do: "if the store fails, see to that; else start the controller that leads anew (nothing that was acknowledged is lost)"})
	}
	if q.Drained {
		lines = append(lines, Line{State: Problem, Part: "queue", What: "the queue takes no new jobs", Why: cmp.Or(q.Drain, "it was drained; nobody knows by whom"),
			Do: "drover job undrain"})
	}
	for _, text := range q.Unreadable {
		lines = append(lines, Line{State: Problem, Part: "queue", What: "a part of the queue is set aside", Why: text, Do: "restore it from a backup (docs/operations.md, Backups)"})
	}
	if q.PausedUntil.After(now) {
		lines = append(lines, Line{State: Note, Part: "queue", What: "watchers do nothing until " + q.PausedUntil.UTC().Format(time.RFC3339), Why: "somebody paused them",
			Do: "drover cluster watcher continue"})
	}
	waiting := 0
	for _, j := range q.Waiting {
		waiting += j.Count
	}
	return unless(lines, "queue", fmt.Sprintf("takes jobs; %d of %d slots in use, %s waiting", q.Running.Count, q.Slots, counted(waiting, "job")))
}

// waits are what jobs wait for, from when on that is worth a word, and what that is. What a rule holds is told by the rule, and what waits
// for a node by the node.
var waits = []struct {
	what  string
	after time.Duration
	state State
	word  string
	help  string
}{
	{"slot", 10 * time.Minute, Problem, "a slot is", "drover job list --running says what takes them; drover cluster modify --max-running-jobs N makes more"},
	{"lock", time.Hour, Problem, "locks are", "drover job explain JOB says who holds them; drover lock list shows all"},
	{"bucket", time.Hour, Note, "a place under a limit is", "drover job explain JOB says which rule sets it"},
	{"depend", day, Note, "other jobs are", "drover job explain JOB says which"},
}

const (
	longRun = day // from when on a job that runs is worth a word
	// fewEnded is how few jobs say nothing about how jobs end.
	fewEnded = 10
)

// jobs tells of what waits or runs for long, and whether many fail.
func jobs(c *Cluster, now time.Time) []Line {
	var lines []Line
	q := &c.Queue
	if q.Ended >= fewEnded && 2*q.Failed > q.Ended {
		lines = append(lines, Line{State: Problem, Part: "jobs", What: fmt.Sprintf("%d of the %d jobs that ended within the last hour failed", q.Failed, q.Ended),
			Why: "each of them says why", Do: "drover job list --error --sort -end_ts --limit 20, then drover job info"})
	}
	for _, w := range LongWaits(q, now) {
		lines = append(lines, w.Line)
	}
	if r := q.Running; r.Count > 0 && now.Sub(r.Since) >= longRun {
		lines = append(lines, Line{State: Note, Part: "jobs", What: fmt.Sprintf("job %d runs for %s", r.Oldest, lasting(now.Sub(r.Since))), Since: r.Since,
			Why: "an opcode of it has not ended", Do: fmt.Sprintf("drover job watch %d", r.Oldest)})
	}
	if l := q.Left; l.Count > 0 && now.Sub(l.Since) < day {
		lines = append(lines, Line{State: Note, Part: "jobs", What: fmt.Sprintf("something that %s did could not be taken back, job %d", counted(l.Count, "job"), l.Oldest), Since: l.Since,
			Why: "what was to take it back failed, too", Do: help("drover job info JOB says what is left where, and the next command", l.Oldest)})
	}
	if len(lines) > 0 || q.Ended == 0 {
		return lines
	}
	return []Line{{State: OK, Part: "jobs", What: fmt.Sprintf("%d ended within the last hour, %d of them failed", q.Ended, q.Failed)}}
}

// LongWait is something that jobs wait for, for so long that it is worth a word.
type LongWait struct {
	// For is what they wait for, by its word in figures.
	For string
	Line
}

// LongWaits are those of a queue.
func LongWaits(q *Queue, now time.Time) []LongWait {
	var long []LongWait
	for _, w := range waits {
		j := q.Waiting[w.what]
		if j.Count == 0 || now.Sub(j.Since) < w.after {
			continue
		}
		long = append(long, LongWait{w.what, Line{State: w.state, Part: "jobs", What: fmt.Sprintf("%s waited for by %s, by job %d for %s", w.word, counted(j.Count, "job"), j.Oldest, lasting(now.Sub(j.Since))),
			Why: "they go on when they have it", Do: help(w.help, j.Oldest), Since: j.Since}})
	}
	return long
}

// help fills the id of a job in, where it belongs.
func help(text string, id int64) string {
	return strings.ReplaceAll(text, "JOB", strconv.FormatInt(id, 10))
}

// longHold is from when on a rule that holds jobs may have been forgotten.
const longHold = day

// rules tells of those that may have been forgotten.
func rules(c *Cluster, now time.Time) []Line {
	var lines []Line
	for _, r := range c.Rules {
		if now.Sub(r.Since) < longHold {
			continue
		}
		name := cmp.Or(r.Name, r.UUID)
		lines = append(lines, Line{State: Note, Part: "rule", What: fmt.Sprintf("the rule %s holds %s, job %d for %s", name, counted(r.Count, "job"), r.Oldest, lasting(now.Sub(r.Since))),
			Why: "it may have been forgotten", Do: "drover filter info " + name + " says who added it, when and why", Since: r.Since})
	}
	return lines
}

// nodes tells of those that are not in service.
func nodes(c *Cluster, _ time.Time) []Line {
	var lines []Line
	n := &c.Nodes
	if len(n.Ahead) > 0 {
		lines = append(lines, Line{State: Problem, Part: "nodes", What: fmt.Sprintf("orders of this cluster are refused by %s: %s", counted(len(n.Ahead), "node"), listed(n.Ahead)),
			Why: fmt.Sprintf("they follow a controller of epoch %d, and this one has %d: the database was put back by its own means", n.AheadEpoch, c.Epoch),
			Do:  "stop all controllers, run drover store advance URL, start them again"})
	}
	if len(n.Away) > 0 {
		names, since := make([]string, len(n.Away)), time.Time{}
		for i, a := range n.Away {
			names[i] = a.Name
			if since.IsZero() || !a.Since.IsZero() && a.Since.Before(since) {
				since = a.Since
			}
		}
		lines = append(lines, Line{State: Problem, Part: "nodes", What: fmt.Sprintf("the agents of %s are away: %s", counted(len(n.Away), "node"), listed(names)), Since: since,
			Why: "they are not connected to the controller that leads; jobs on them wait",
			Do:  "on those machines: systemctl status drover-agent. One that stays away: drover node offline NODE"})
	}
	if len(n.Offline) > 0 {
		lines = append(lines, Line{State: Note, Part: "nodes", What: fmt.Sprintf("%s offline: %s", counted(len(n.Offline), "node"), listed(n.Offline)), Why: "somebody took them out of service",
			Do: "drover node online NODE when they are well"})
	}
	if len(n.Drained) > 0 {
		lines = append(lines, Line{State: Note, Part: "nodes", What: fmt.Sprintf("%s drained: %s", counted(len(n.Drained), "node"), listed(n.Drained)), Why: "somebody keeps new instances off them",
			Do: "drover node undrain NODE when they are to take instances again"})
	}
	return unless(lines, "nodes", counted(n.All, "node")+", all in service")
}

// instances tells of those that are to run and do not.
func instances(c *Cluster, _ time.Time) []Line {
	var lines []Line
	if gone := c.Watch.GaveUp; len(gone) > 0 {
		lines = append(lines, Line{State: Problem, Part: "instances", What: fmt.Sprintf("%s to run and did not stay up: %s", plural(len(gone), "instance is", "instances are"), listed(gone)),
			Why: "they were started again several times, and are left alone now", Do: "drover instance info NAME, and the jobs of it, say what happens; then drover instance start NAME"})
	}
	if trying := c.Watch.Trying; len(trying) > 0 {
		lines = append(lines, Line{State: Note, Part: "instances", What: fmt.Sprintf("%s to run and did not; they are started again: %s", plural(len(trying), "instance was", "instances were"), listed(trying)),
			Why: "they stopped by themselves, or with their node", Do: "drover job info, with the number of the job, says how it went"})
	}
	return lines
}

// plural is a number of things with what they do.
func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// inventory tells of what is set aside.
func inventory(c *Cluster, _ time.Time) []Line {
	if len(c.Unreadable) == 0 {
		return nil
	}
	return []Line{{State: Problem, Part: "inventory", What: counted(len(c.Unreadable), "object") + " of the inventory cannot be read: " + listed(c.Unreadable), Why: "what is stored of it is damaged",
		Do: "drover store check says what else is; restore a backup (docs/operations.md, Backups)"}}
}

// lateEvents is how many revisions events may be behind without a word.
const lateEvents = 10000

// events tells whether the broker is told.
func events(c *Cluster, _ time.Time) []Line {
	switch e := c.Events; {
	case e == nil:
		return nil
	case e.Trouble != nil:
		return []Line{{State: Problem, Part: "events", What: fmt.Sprintf("the broker is not told of events, by now %s of the store", counted(int(e.Behind), "revision")), Why: e.Trouble.Text, Since: e.Trouble.Since,
			Do: "see to the broker and the way to it (events in the configuration); what was not told is told when it answers"}}
	case e.Behind > lateEvents:
		return []Line{{State: Note, Part: "events", What: fmt.Sprintf("events are %s of the store late", counted(int(e.Behind), "revision")), Why: "the broker takes them more slowly than they come",
			Do: "see how busy the broker is"}}
	default:
		return []Line{{State: OK, Part: "events", What: "the broker is told of events"}}
	}
}

// longTags is from when on a tag that waits is worth a word: jobs about tags take seconds.
const longTags = 30 * time.Minute

// servers tells of clusters that servers are on.
func servers(c *Cluster, now time.Time) []Line {
	var lines []Line
	for _, s := range c.Servers {
		if s.Away.IsZero() {
			continue
		}
		name := "the cluster " + s.Name
		if s.Name == "" {
			name = "Drover's own cluster"
		}
		lines = append(lines, Line{State: Problem, Part: "servers", What: name + " does not answer: its servers wait", Why: s.Why, Since: s.Away,
			Do: "see to it and the way to it (server-clusters in the configuration); drover server cluster list"})
	}
	if t := c.Tags; t.Servers > 0 && now.Sub(t.Since) >= longTags {
		lines = append(lines, Line{State: Problem, Part: "servers", What: fmt.Sprintf("tags of %s do not come, of %s for %s", counted(t.Servers, "server"), t.Oldest, lasting(now.Sub(t.Since))), Since: t.Since,
			Why: "their cluster does not show what was asked for", Do: "drover query server-tag --filter 'server == \"" + t.Oldest + "\"' -o tag,status,job,held_by says what each waits for"})
	}
	if len(c.Servers) == 0 {
		return lines
	}
	return unless(lines, "servers", counted(len(c.Servers), "cluster")+" of servers, all answer")
}
