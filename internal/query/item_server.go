package query

import (
	"cmp"
	"iter"
	"math"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

// The items "server" and "server-tag" tell of the servers that users have over
// the Compute API. The reference has nothing like them.

var serverTable = table[*server.Server]{
	what:      "server",
	nameField: "id",
	fields:    strictly(append(serverFields(), serverTagFigures()...)),
	all:       allServers,
	named:     serversNamed,
	compare:   func(a, b *server.Server) int { return cmp.Compare(a.Number, b.Number) },
	identity:  func(s *server.Server) string { return s.ID },
	affected:  serversOf,
	rowsOf: func(v *view, _ *delta, id string) []*server.Server {
		if s := v.Servers.Get(id); s != nil {
			return []*server.Server{s}
		}
		return nil
	},
}.indexed()

func allServers(v *view) iter.Seq[*server.Server] {
	if v.Servers == nil {
		return none[*server.Server]
	}
	return v.Servers.Numbers()
}

func serversNamed(v *view, names []qlang.Value) (rows []*server.Server, ok bool, err error) {
	for _, n := range names {
		if n.IsInt() || v.Servers == nil || v.Servers.Get(n.Text) == nil {
			return nil, false, nil // the scan says what is wrong, or finds nothing
		}
		rows = append(rows, v.Servers.Get(n.Text))
	}
	return rows, true, nil
}

// serversOf names the servers that changed.
func serversOf(d *delta) (a affected) {
	for _, c := range d.changes {
		for _, s := range c.Servers {
			a.add(s.ID)
		}
		for _, id := range c.ServersRemoved {
			a.add(id)
		}
	}
	return a
}

// since shows a moment that may not have come, in seconds since the epoch.
func since(t job.Time) Cell {
	if t == 0 {
		return Cell{Status: Unavail}
	}
	return Cell{Value: float64(t) / 1e6}
}

// age shows how long ago something was, in seconds.
func age(v *view, t job.Time) Cell {
	if t == 0 {
		return Cell{Status: Unavail}
	}
	return Cell{Value: math.Max(0, math.Round(float64(int64(job.At(v.Now))-int64(t))/1e3)/1e3)}
}

func momentField[R any](name, title, doc string, get func(R) job.Time) field[R] {
	return field[R]{Def: Def{name, title, KindTimestamp, doc}, get: func(_ *view, r R) Cell { return since(get(r)) }}
}

// clusterName is how a backend is shown; Drover's own has no name.
func clusterName(backend string) string {
	if backend == "" {
		return "own"
	}
	return backend
}

func serverFields() []field[*server.Server] {
	type row = *server.Server
	return []field[row]{
		textField("id", "ID", "UUID of the server", func(s row) string { return s.ID }),
		numberField("number", "Number", "Its number, for clients that know numbers only", func(s row) int64 { return s.Number }),
		textField("name", "Server", "Name that its user gave it", func(s row) string { return s.Name }),
		textField("status", "Status", "One of BUILD, ACTIVE, SHUTOFF, REBOOT, ERROR and DELETED", func(s row) string { return string(s.Status()) }),
		textField("task", "Task", "What is being done to it: create, delete, start, stop, reboot or reboot-hard", func(s row) string {
			if t := s.Doing(); t != nil {
				return string(t.Do)
			}
			return ""
		}),
		textField("fault", "Fault", "Why the newest task failed", func(s row) string {
			if s.Fault == nil {
				return ""
			}
			return s.Fault.Text
		}),
		textField("project", "Project", "Id of the project that owns it", func(s row) string { return s.Project }),
		textField("user", "User", "Id of the user who made it", func(s row) string { return s.User }),
		textField("flavor", "Flavor", "Name of its flavor", func(s row) string { return s.Flavor.Name }),
		textField("image", "Image", "Name of its image", func(s row) string { return s.Image.Name }),
		textField("backend", "Backend", "Cluster that it is on; own for this one", func(s row) string { return clusterName(s.Backend) }),
		textField("instance", "Instance", "Name of its instance there", func(s row) string { return s.Instance }),
		momentField("ctime", "CTime", "When it was asked for", func(s row) job.Time { return s.Created }),
		momentField("mtime", "MTime", "When it was last changed", func(s row) job.Time { return s.Updated }),
		momentField("built", "Built", "When its instance was first seen", func(s row) job.Time { return s.Built }),
		momentField("deleted", "Deleted", "Since when its instance is gone", func(s row) job.Time { return s.Deleted }),
	}
}

// serverTagFigures are the fields that sum a server's tags up.
func serverTagFigures() []field[*server.Server] {
	type row = *server.Server
	count := func(s row, counts func(*servertag.Tag) bool) (n int64) {
		for i := range s.Tags.Tags {
			if counts(&s.Tags.Tags[i]) {
				n++
			}
		}
		return n
	}
	return []field[row]{
		{Def: Def{"tags", "Tags", KindOther, "Tags of the user that it is to have"},
			get: func(_ *view, s row) Cell { return known(s.Tags.Names(servertag.User)) }},
		{Def: Def{"system_tags", "SystemTags", KindOther, "Tags of the operator that it is to have"},
			get: func(_ *view, s row) Cell { return known(s.Tags.Names(servertag.System)) }},
		numberField("generation", "Generation", "How often it was changed which tags it is to have", func(s row) int64 { return s.Tags.Generation }),
		numberField("pending", "Pending", "Number of tags that its cluster does not show yet as they are wanted", func(s row) int64 {
			return count(s, (*servertag.Tag).Pending)
		}),
		numberField("failed", "Failed", "Number of tags whose change failed for good or too often", func(s row) int64 {
			return count(s, func(t *servertag.Tag) bool { return t.Status() == servertag.Error })
		}),
		momentField("pending_since", "PendingSince", "When the oldest change of a tag was asked for that its cluster does not show yet", func(s row) job.Time {
			return s.Tags.OldestPending()
		}),
		{Def: Def{"pending_age", "PendingAge", KindFloat, "How long that is ago, in seconds; a filter may give 90s or 1h30m"}, mode: duration,
			get: func(v *view, s row) Cell { return age(v, s.Tags.OldestPending()) }},
		{Def: Def{"jobs", "Jobs", KindOther, "Jobs of its cluster that are under way for it"}, get: func(_ *view, s row) Cell {
			out := []any{}
			for _, id := range s.Jobs() {
				out = append(out, int64(id))
			}
			return known(out)
		}},
	}
}

// serverTag is a tag with its server.
type serverTag struct {
	s *server.Server
	t *servertag.Tag
}

var serverTagTable = table[serverTag]{
	what:   "server-tag",
	fields: strictly(append(tagFields(), tagLifeFields()...)),
	all: func(v *view) iter.Seq[serverTag] {
		return func(yield func(serverTag) bool) {
			for s := range allServers(v) {
				for i := range s.Tags.Tags {
					if !yield(serverTag{s, &s.Tags.Tags[i]}) {
						return
					}
				}
			}
		}
	},
	compare: func(a, b serverTag) int {
		return cmp.Or(cmp.Compare(a.s.Number, b.s.Number), cmp.Compare(a.t.Namespace, b.t.Namespace), cmp.Compare(a.t.Name, b.t.Name))
	},
	identity: func(r serverTag) string { return r.s.ID + "/" + r.t.Raw },
	object:   func(r serverTag) string { return r.s.ID },
	affected: serversOf,
	rowsOf: func(v *view, _ *delta, id string) (out []serverTag) {
		if s := v.Servers.Get(id); s != nil {
			for i := range s.Tags.Tags {
				out = append(out, serverTag{s, &s.Tags.Tags[i]})
			}
		}
		return out
	},
}.indexed()

func tagFields() []field[serverTag] {
	return []field[serverTag]{
		textField("server", "ServerID", "UUID of the server", func(r serverTag) string { return r.s.ID }),
		textField("server_name", "Server", "Name of the server", func(r serverTag) string { return r.s.Name }),
		textField("project", "Project", "Id of the project that owns the server", func(r serverTag) string { return r.s.Project }),
		textField("backend", "Backend", "Cluster that the server is on; own for this one", func(r serverTag) string { return clusterName(r.s.Backend) }),
		textField("instance", "Instance", "Name of the server's instance there", func(r serverTag) string { return r.s.Instance }),
		textField("namespace", "Namespace", "To whom it belongs: user or system", func(r serverTag) string { return string(r.t.Namespace) }),
		textField("tag", "Tag", "The tag, as users write it", func(r serverTag) string { return r.t.Name }),
		textField("raw", "Raw", "The tag, as it is written on the cluster", func(r serverTag) string { return r.t.Raw }),
		textField("status", "Status", "One of PENDADD, ACTIVE, PENDDEL and ERROR", func(r serverTag) string { return string(r.t.Status()) }),
		{Def: Def{"wanted", "Wanted", KindBool, "Whether the server is to have it"}, get: func(_ *view, r serverTag) Cell { return truth(r.t.Wanted) }},
		textField("seen", "Seen", "What its cluster showed since it was changed: present or absent", func(r serverTag) string { return string(r.t.Seen) }),
		numberField("generation", "Generation", "Which change of the server's tags made it what it is to be", func(r serverTag) int64 { return r.t.Generation }),
	}
}

// job is the job that is changing a tag, zero for none.
func (r serverTag) job() job.ID {
	if j := r.s.Tags.Changing(r.t.Raw); j != nil {
		return j.ID
	}
	return 0
}

// hold is what holds the job that is changing a tag; nil for none, and for jobs
// of other clusters.
func (r serverTag) hold(v *view) *job.Hold {
	id := r.job()
	if id == 0 || r.s.Backend != "" || v.JobTable == nil {
		return nil
	}
	if j := v.JobTable.Get(id); j != nil {
		return j.Hold
	}
	return nil
}

// tagLifeFields tell of the newest change of a tag.
func tagLifeFields() []field[serverTag] {
	return []field[serverTag]{
		textField("user", "User", "Who asked for the newest change", func(r serverTag) string { return r.t.Asked.User }),
		textField("front", "Front", "Over which interface; cluster for a tag that was found there", func(r serverTag) string { return r.t.Asked.Front }),
		textField("request", "Request", "Id of the request", func(r serverTag) string { return r.t.Asked.Request }),
		momentField("asked", "Asked", "When it was asked for", func(r serverTag) job.Time { return r.t.Asked.Time }),
		momentField("pending_since", "PendingSince", "The same, while the cluster does not show the change", func(r serverTag) job.Time {
			if !r.t.Pending() {
				return 0
			}
			return r.t.Asked.Time
		}),
		{Def: Def{"pending_age", "PendingAge", KindFloat, "How long that is ago, in seconds; a filter may give 90s or 1h30m"}, mode: duration, get: func(v *view, r serverTag) Cell {
			if !r.t.Pending() {
				return Cell{Status: Unavail}
			}
			return age(v, r.t.Asked.Time)
		}},
		{Def: Def{"job", "Job", KindNumber, "Job of the cluster that is changing it"}, get: func(_ *view, r serverTag) Cell {
			if r.job() == 0 {
				return Cell{Status: Unavail}
			}
			return known(int64(r.job()))
		}},
		{Def: Def{"held_by", "HeldBy", KindText, "UUID of the filter rule that holds that job"}, mutual: true, get: func(v *view, r serverTag) Cell {
			if h := r.hold(v); h != nil {
				return text(h.Rule)
			}
			return Cell{Status: Unavail}
		}},
		textField("waits_for", "WaitsFor", "What keeps the change from being in force", func(r serverTag) string { return r.s.Tags.WaitOf(r.t).Why }),
		numberField("tries", "Tries", "Number of jobs that failed since the newest change", func(r serverTag) int64 { return int64(r.t.Tries) }),
		momentField("retry", "Retry", "When there will be another try", func(r serverTag) job.Time { return r.t.Retry }),
		textField("failure", "Failure", "Why the last of them failed", func(r serverTag) string {
			if r.t.Failure == nil {
				return ""
			}
			return r.t.Failure.Text
		}),
	}
}
