package health_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-project/drover/internal/health"
)

var now = time.Date(2026, 3, 4, 3, 0, 0, 0, time.UTC)

// three is a cluster of three controllers, of which c1 leads, and all is well.
func three() *health.Facts {
	f := &health.Facts{Now: now}
	for _, name := range []string{"c1", "c2", "c3"} {
		f.Members = append(f.Members, health.Member{
			Name: name, Role: health.StandsBy, Version: "0.1.0", Started: now.Add(-time.Hour), Revision: 7,
			Certificates: []health.Certificate{{Of: "RAPI", File: "/etc/drover/rapi.pem", Begin: now.Add(-time.Hour), End: now.AddDate(1, 0, 0)}},
			Disk:         &health.Disk{Path: "/var/lib/drover", Free: 20 << 30, Size: 40 << 30},
		})
	}
	f.Members[0].Role = health.Leads
	f.Members[1].Backups = &health.Backups{Dir: "/b", Count: 14, Newest: now.Add(-5 * time.Hour), Bytes: 3 << 20}
	f.Members[2].Backups = &health.Backups{Dir: "/b", Count: 2, Newest: now.Add(-500 * time.Hour)}
	f.Cluster = &health.Cluster{
		Name: "c.example", Epoch: 4, Since: now.Add(-59 * time.Minute), Format: 4,
		Queue: health.Queue{Slots: 20, Running: health.Jobs{Count: 2, Oldest: 9, Since: now.Add(-time.Minute)}, Ended: 40, Failed: 3},
		Nodes: health.Nodes{All: 200}, Events: &health.Events{}, Servers: []health.ServerCluster{{}},
	}
	return f
}

// nobodyLeads is what the others tell when nobody leads.
func nobodyLeads(f *health.Facts) {
	f.Members[0].Role, f.Cluster = health.StandsBy, nil
}

// incidents are what may have happened, and what the first three lines have to say of it.
var incidents = []struct {
	name string
	make func(*health.Facts)
	well bool
	want []string // of each there is a line among the first three that begins so
}{
	{"all is well", func(*health.Facts) {}, true, []string{"ok store: works, with format 4", "ok lead: c1 leads for 59 minutes (epoch 4)", "ok member: 3 controllers (c1, c2, c3), version 0.1.0"}},
	{"the database is away", func(f *health.Facts) {
		nobodyLeads(f)
		for i := range f.Members {
			f.Members[i].Store = &health.Trouble{Text: "PostgreSQL cannot be reached: connection refused", Since: now.Add(time.Duration(i-60) * time.Second)}
		}
	}, false, []string{"problem store: the store fails c1, c2, c3 (PostgreSQL cannot be reached: connection refused; 60s)", "problem lead: no controller leads"}},
	{"the database went away a moment ago", func(f *health.Facts) { f.Members[0].Doubt = "the store does not tell" }, false,
		[]string{"problem lead: c1 does not know whether it still leads: what is asked for is refused (the store does not tell"}},
	{"a leader that was paused has not noticed", func(f *health.Facts) { f.Members[0].Doubt, f.Members[1].Role = "the store does not tell", health.Leads }, true,
		[]string{"ok lead: c2 leads"}},
	{"instances do not stay up", func(f *health.Facts) { f.Cluster.Watch.GaveUp = []string{"web1"} }, false, []string{"problem instances: 1 instance is to run and did not stay up: web1"}},
	{"instances stopped", func(f *health.Facts) { f.Cluster.Watch.Trying = []string{"web1 (job 5)", "web2 (job 6)"} }, true,
		[]string{"note instances: 2 instances were to run and did not; they are started again: web1 (job 5), web2 (job 6)"}},
	{"the disk is full", func(f *health.Facts) {
		f.Members[0].Store = &health.Trouble{Text: "the disk of the store is full", Since: now}
		f.Members[0].Disk = &health.Disk{Path: "/var/lib/drover", Free: 0, Size: 40 << 30, Store: 39 << 30}
	}, false, []string{"problem store: the store fails c1 (the disk of the store is full", "problem disk: 0 bytes of 40.0 GiB are free at /var/lib/drover of c1 (the store takes 39.0 GiB of it"}},
	{"a disk fills up", func(f *health.Facts) { f.Members[1].Disk.Free = 3 << 29 }, true, []string{"note disk: 1.5 GiB of 40.0 GiB are free at /var/lib/drover of c2"}},
	{"the leader hangs, and another has the lead", func(f *health.Facts) {
		f.Members[0].Role, f.Members[0].Silent = health.IsUnknown, "context deadline exceeded"
		f.Members[1].Role, f.Cluster.Since, f.Cluster.Epoch = health.Leads, now.Add(-30*time.Second), 5
	}, false, []string{"problem member: controller c1 does not answer (context deadline exceeded", "note lead: c2 leads for 30 seconds (epoch 5) (another led until then"}},
	{"two say that they lead", func(f *health.Facts) { f.Members[2].Role = health.Leads }, false, []string{"problem lead: c1, c3 each say that they lead"}},
	{"the lead was taken a moment ago", func(f *health.Facts) { f.Cluster.Since = now.Add(-3 * time.Minute) }, true, []string{"note lead: c1 leads for 3 minutes (epoch 4)"}},
	{"a group was just started", func(f *health.Facts) {
		f.Cluster.Since = now.Add(-time.Minute)
		for i := range f.Members {
			f.Members[i].Started = now.Add(-time.Minute)
		}
	}, true, []string{"ok lead: c1 leads for 60 seconds (epoch 4)"}},
	{"the queue is drained", func(f *health.Facts) {
		f.Cluster.Queue.Drained, f.Cluster.Queue.Drain = true, "drained by alice over rapi on 2026-03-04T02:00:00Z: new disks"
	}, false, []string{"problem queue: the queue takes no new jobs (drained by alice over rapi on 2026-03-04T02:00:00Z: new disks"}},
	{"the queue does not go on", func(f *health.Facts) { f.Cluster.Queue.Trouble = "the job queue has stopped" }, false, []string{"problem queue: the queue does not go on (the job queue has stopped"}},
	{"a job waits for a slot", func(f *health.Facts) {
		f.Cluster.Queue.Waiting = map[string]health.Jobs{"slot": {Count: 31, Oldest: 12, Since: now.Add(-20 * time.Minute)}, "filter": {Count: 1, Oldest: 3, Since: now.Add(-time.Minute)}}
	}, false, []string{"problem jobs: a slot is waited for by 31 jobs, by job 12 for 20 minutes"}},
	{"a job waits for a lock", func(f *health.Facts) {
		f.Cluster.Queue.Waiting = map[string]health.Jobs{"lock": {Count: 1, Oldest: 12, Since: now.Add(-2 * time.Hour)}}
	}, false, []string{"problem jobs: locks are waited for by 1 job, by job 12 for 2 hours"}},
	{"a job waits for others", func(f *health.Facts) {
		f.Cluster.Queue.Waiting = map[string]health.Jobs{"depend": {Count: 1, Oldest: 12, Since: now.Add(-48 * time.Hour)}, "bucket": {Count: 2, Oldest: 14, Since: now.Add(-time.Hour)}}
	}, true, []string{"note jobs: other jobs are waited for by 1 job, by job 12 for 2 days", "note jobs: a place under a limit is waited for by 2 jobs, by job 14 for 60 minutes"}},
	{"a job runs and runs", func(f *health.Facts) { f.Cluster.Queue.Running.Since = now.Add(-100 * time.Hour) }, true, []string{"note jobs: job 9 runs for 4 days"}},
	{"many jobs fail", func(f *health.Facts) { f.Cluster.Queue.Failed = 31 }, false, []string{"problem jobs: 31 of the 40 jobs that ended within the last hour failed"}},
	{"a few jobs fail", func(f *health.Facts) { f.Cluster.Queue.Ended, f.Cluster.Queue.Failed = 9, 9 }, true, nil},
	{"a rule was forgotten", func(f *health.Facts) {
		f.Cluster.Rules = []health.Rule{{UUID: "u-1", Name: "freeze", Jobs: health.Jobs{Count: 2, Oldest: 5, Since: now.Add(-30 * time.Hour)}},
			{UUID: "u-2", Jobs: health.Jobs{Count: 1, Oldest: 8, Since: now.Add(-time.Hour)}}}
	}, true, []string{"note rule: the rule freeze holds 2 jobs, job 5 for 30 hours"}},
	{"a certificate has ended", func(f *health.Facts) { f.Members[1].Certificates[0].End = now.Add(-time.Hour) }, false,
		[]string{"problem certificate: the certificate for RAPI of c2 has ended on 4 March 2026, 02:00 UTC (/etc/drover/rapi.pem; 3600s)"}},
	{"a certificate is not good yet", func(f *health.Facts) { f.Members[1].Certificates[0].Begin = now.Add(time.Hour) }, false,
		[]string{"problem certificate: the certificate for RAPI of c2 begins only on 4 March 2026, 04:00 UTC"}},
	{"a certificate ends this week", func(f *health.Facts) { f.Members[1].Certificates[0].End = now.AddDate(0, 0, 6) }, false, []string{"problem certificate: the certificate for RAPI of c2 ends on 10 March"}},
	{"a certificate ends this month", func(f *health.Facts) { f.Members[1].Certificates[0].End = now.AddDate(0, 0, 29) }, true, []string{"note certificate: the certificate for RAPI of c2 ends on 2 April"}},
	{"a controller has no backups, and another has", func(f *health.Facts) {
		f.Members[0].Backups, f.Members[2].Backups = &health.Backups{Dir: "/b", Missing: true}, &health.Backups{Dir: "/b", Trouble: "permission denied"}
	}, true, nil},
	{"nobody looks at backups", func(f *health.Facts) { f.Members[1].Backups, f.Members[2].Backups = nil, nil }, true, nil},
	{"the newest backup is old", func(f *health.Facts) { f.Members[1].Backups.Newest = now.Add(-49 * time.Hour) }, false,
		[]string{"problem backup: the newest backup of the store is 2 days old (c2 has it in /b, and nobody has a newer one; 176400s)"}},
	{"there is no backup", func(f *health.Facts) {
		f.Members[1].Backups, f.Members[2].Backups = &health.Backups{Dir: "/b"}, &health.Backups{Dir: "/b", Missing: true}
	}, false, []string{"problem backup: there is no backup of the store (c2 has none in /b; c3 has no directory /b"}},
	{"backups cannot be looked at", func(f *health.Facts) {
		f.Members[1].Backups, f.Members[2].Backups = &health.Backups{Dir: "/b", Trouble: "permission denied"}, nil
	}, false,
		[]string{"problem backup: there is no backup of the store (c2: permission denied"}},
	{"nobody has arranged for backups", func(f *health.Facts) {
		f.Members[1].Backups, f.Members[2].Backups = &health.Backups{Dir: "/b", Missing: true}, nil
	}, true,
		[]string{"note backup: no backup of the store is known (c2 has no directory /b"}},
	{"the accounts are gone", func(f *health.Facts) { f.Members[2].Accounts = &health.Trouble{Text: "/etc/drover/users is empty"} }, false,
		[]string{"problem accounts: nobody has an account of RAPI at c3 (/etc/drover/users is empty"}},
	{"events do not arrive", func(f *health.Facts) {
		f.Cluster.Events = &health.Events{Behind: 12, Trouble: &health.Trouble{Text: "connection refused", Since: now.Add(-time.Minute)}}
	}, false, []string{"problem events: the broker is not told of events, by now 12 revisions of the store (connection refused; 60s)"}},
	{"events are late", func(f *health.Facts) { f.Cluster.Events.Behind = 20000 }, true, []string{"note events: events are 20000 revisions of the store late"}},
	{"the database was put back", func(f *health.Facts) { f.Cluster.Nodes.Ahead, f.Cluster.Nodes.AheadEpoch = []string{"n2"}, 13 }, false,
		[]string{"problem nodes: orders of this cluster are refused by 1 node: n2 (they follow a controller of epoch 13, and this one has 4"}},
	{"an upgrade was taken back", func(f *health.Facts) {
		f.Members[2].Version, f.Members[2].Unfit = "0.0.9", "this controller cannot lead: the store has format 4, and this program reads 1-3"
	}, false, []string{"problem member: controller c3 cannot lead (this controller cannot lead: the store has format 4", "note member: programs of several versions run (0.0.9 on c3; 0.1.0 on c1, c2"}},
	{"a standby lags", func(f *health.Facts) { f.Members[1].Behind = 5000 }, false, []string{"problem member: controller c2 is 5000 revisions behind the store"}},
	{"clocks differ", func(f *health.Facts) { f.Members[1].Ahead = -3 * time.Second }, false, []string{"problem clock: the clock of c2 is 3s behind"}},
	{"the clock of the one that was asked is off", func(f *health.Facts) {
		off := time.Hour
		f.Members[0].ClockAhead, f.Members[1].ClockAhead, f.Members[1].Ahead = &off, new(time.Duration), -off
	}, false, []string{"problem clock: the clock of c1 is 1h0m0s ahead (compared with the database", "ok store"}},
	{"tags of servers do not come", func(f *health.Facts) {
		f.Cluster.Tags = health.Tags{Servers: 2, Oldest: "s-1", Since: now.Add(-31 * time.Minute)}
	}, false, []string{"problem servers: tags of 2 servers do not come, of s-1 for 31 minutes"}},
	{"tags of servers are on their way", func(f *health.Facts) {
		f.Cluster.Tags = health.Tags{Servers: 2, Oldest: "s-1", Since: now.Add(-29 * time.Minute)}
	}, true, []string{"ok store"}},
	{"a job left something behind", func(f *health.Facts) {
		f.Cluster.Queue.Left = health.Jobs{Count: 1, Oldest: 12, Since: now.Add(-time.Hour)}
	}, true,
		[]string{"note jobs: something that 1 job did could not be taken back, job 12"}},
	{"a job left something behind long ago", func(f *health.Facts) {
		f.Cluster.Queue.Left = health.Jobs{Count: 1, Oldest: 12, Since: now.Add(-25 * time.Hour)}
	}, true, []string{"ok store"}},
	{"agents are away", func(f *health.Facts) {
		f.Cluster.Nodes.Away = []health.AwayNode{{"n1", now.Add(-time.Minute)}, {"n2", now.Add(-time.Hour)}, {"n3", now}, {"n4", now}, {"n5", now}}
	}, false, []string{"problem nodes: the agents of 5 nodes are away: n1, n2, n3 and 2 more (they are not connected to the controller that leads; jobs on them wait; 3600s)"}},
	{"nodes are out of service", func(f *health.Facts) {
		f.Cluster.Nodes.Offline, f.Cluster.Nodes.Drained = []string{"n1"}, []string{"n2", "n3"}
	}, true,
		[]string{"note nodes: 1 node offline: n1", "note nodes: 2 nodes drained: n2, n3"}},
	{"a cluster of servers is away", func(f *health.Facts) {
		f.Cluster.Servers = append(f.Cluster.Servers, health.ServerCluster{Name: "north", Away: now.Add(-time.Minute), Why: "no route to host"})
	}, false, []string{"problem servers: the cluster north does not answer: its servers wait (no route to host; 60s)"}},
	{"a part cannot be read", func(f *health.Facts) {
		f.Cluster.Unreadable, f.Cluster.Queue.Unreadable = []string{"node u-1"}, []string{"job 7"}
	}, false,
		[]string{"problem inventory: 1 object of the inventory cannot be read: node u-1", "problem queue: a part of the queue is set aside (job 7"}},
	{"a controller stops", func(f *health.Facts) { f.Members[1].Stopping = true }, true, []string{"note member: controller c2 is stopping"}},
	{"watchers are paused", func(f *health.Facts) { f.Cluster.Queue.PausedUntil = now.Add(time.Hour) }, true, []string{"note queue: watchers do nothing until 2026-03-04T04:00:00Z"}},
	{"clients are turned away", func(f *health.Facts) {
		f.Members[1].Crowds = []health.Crowd{{Surface: "LUXI", Trouble: health.Trouble{Text: "there are already 1000", Since: now.Add(-time.Minute)}}}
	}, true, []string{"note clients: c2 turns clients away (LUXI) (there are already 1000; 60s)"}},
	{"a controller has no file left", func(f *health.Facts) {
		f.Members[1].Crowds = []health.Crowd{{Surface: "RAPI", Trouble: health.Trouble{Text: "too many open files", Since: now}, Starved: true}}
	}, false, []string{"problem clients: c2 has no file or memory left for further clients (RAPI) (too many open files; 0s)"}},
	{"the list of controllers is from memory", func(f *health.Facts) { f.Remembered = "timeout" }, false, []string{"problem store: the store does not tell which controllers there are (timeout"}},
}

// told is a line in one: what stands before, and in brackets why and for how long.
func told(l *health.Line) string {
	text := string(l.State) + " " + l.Part + ": " + l.What
	if l.Why != "" {
		text += " (" + l.Why
		if !l.Since.IsZero() {
			text += fmt.Sprintf("; %.0fs", now.Sub(l.Since).Seconds())
		}
		text += ")"
	}
	return text
}

// TestLines: each incident is named in the first three lines, wherever it is asked, and it is said whether the cluster is well.
func TestLines(t *testing.T) {
	for _, c := range incidents {
		t.Run(c.name, func(t *testing.T) {
			f := three()
			c.make(f)
			f.Asked = "c1"
			r := health.Of(f)
			if want := f.Members[0].Role == health.Leads && f.Members[0].Doubt == ""; r.Asked != "c1" || r.Leads != want {
				t.Errorf("of who was asked it is said that it is %s, and leads: %v", r.Asked, r.Leads)
			}
			if r.Well != c.well || !r.Time.Equal(now) {
				t.Errorf("well: %v", r.Well)
			}
			var first []string
			for i := range min(3, len(r.Lines)) {
				first = append(first, told(&r.Lines[i]))
			}
			for _, want := range c.want {
				if !slices.ContainsFunc(first, func(line string) bool { return strings.HasPrefix(line, want) }) {
					t.Errorf("no line begins with\n\t%s\nin\n\t%s", want, strings.Join(first, "\n\t"))
				}
			}
		})
	}
}

// TestEachBadLineSaysWhatToDo: problems come before notes, and notes before what is well; what is not well has a reason and a remedy.
func TestEachBadLineSaysWhatToDo(t *testing.T) {
	rank := map[health.State]int{health.Problem: 0, health.Note: 1, health.OK: 2}
	for _, c := range incidents {
		f := three()
		c.make(f)
		lines := health.Of(f).Lines
		for i, l := range lines {
			bad := l.State != health.OK
			if bad != (l.Do != "") || bad != (l.Why != "") || l.What == "" || strings.HasSuffix(l.Do, ".") || strings.Contains(l.Do, "JOB") {
				t.Errorf("%s: %+v", c.name, l)
			}
			if i > 0 && rank[l.State] < rank[lines[i-1].State] {
				t.Errorf("%s: %s stands behind %s", c.name, l.What, lines[i-1].What)
			}
		}
	}
}

// TestEveryPartIsTold: a cluster that is well says so of each part.
func TestEveryPartIsTold(t *testing.T) {
	var parts []string
	for _, l := range health.Of(three()).Lines {
		parts = append(parts, l.Part)
	}
	if got := strings.Join(slices.Compact(parts), " "); got != "store lead member certificate disk backup queue jobs nodes events servers" {
		t.Errorf("told are %s", got)
	}
}
