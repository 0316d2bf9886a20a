package items

import (
	"cmp"
	"iter"
	"math"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

// The items "server" and "server-tag" tell of the servers that users have over
// the Compute API. The reference has nothing like them.

var serverTable = query.Table[*server.Server]{
	What:      "server",
	NameField: "id",
	Fields:    strictly(append(serverFields(), serverTagFigures()...)),
	All:       allServers,
	Named:     serversNamed,
	Compare:   func(a, b *server.Server) int { return cmp.Compare(a.Number, b.Number) },
	Identity:  func(s *server.Server) string { return s.ID },
	Affected:  serversOf,
	RowsOf: func(v *query.View, _ *query.Delta, id string) []*server.Server {
		if s := v.Servers.Get(id); s != nil {
			return []*server.Server{s}
		}
		return nil
	},
}.Indexed()

func allServers(v *query.View) iter.Seq[*server.Server] {
	if v.Servers == nil {
		return none[*server.Server]
	}
	return v.Servers.Numbers()
}

func serversNamed(v *query.View, names []qlang.Value) (rows []*server.Server, ok bool, err error) {
	for _, n := range names {
		if n.IsInt() || v.Servers == nil || v.Servers.Get(n.Text) == nil {
			return nil, false, nil // the scan says what is wrong, or finds nothing
		}
		rows = append(rows, v.Servers.Get(n.Text))
	}
	return rows, true, nil
}

// serversOf names the servers that changed.
func serversOf(d *query.Delta) (a query.Affected) {
	for _, c := range d.Changes {
		for _, s := range c.Servers {
			a.Add(s.ID)
		}
		for _, id := range c.ServersRemoved {
			a.Add(id)
		}
	}
	return a
}

// since shows a moment that may not have come, in seconds since the epoch.
func since(t job.Time) query.Cell {
	if t == 0 {
		return query.Cell{Status: query.Unavail}
	}
	return query.Cell{Value: float64(t) / 1e6}
}

// age shows how long ago something was, in seconds.
func age(v *query.View, t job.Time) query.Cell {
	if t == 0 {
		return query.Cell{Status: query.Unavail}
	}
	return query.Cell{Value: math.Max(0, math.Round(float64(int64(job.At(v.Now))-int64(t))/1e3)/1e3)}
}

func momentField[R any](name, title, doc string, get func(R) job.Time) query.Field[R] {
	return query.Field[R]{Def: def(name, title, query.KindTimestamp, doc), Get: func(_ *query.View, r R) query.Cell { return since(get(r)) }}
}

// clusterName is how a backend is shown; Drover's own has no name.
func clusterName(backend string) string {
	if backend == "" {
		return "own"
	}
	return backend
}

func serverFields() []query.Field[*server.Server] {
	type row = *server.Server
	return []query.Field[row]{
		textField("id", "ID", "UUID of the server", func(s row) string { return s.ID }),
		numberField("number", "Number", "Its number, for clients that know numbers only", func(s row) int64 { return s.Number }),
		textField("name", "Server", "Name that its user gave it", func(s row) string { return s.Name }),
		textField("status", "Status", "One of BUILD, ACTIVE, SHUTOFF, REBOOT, RESIZE, VERIFY_RESIZE, REVERT_RESIZE, REBUILD, ERROR and DELETED", func(s row) string { return string(s.Status()) }),
		textField("task", "Task", "What is being done to it: create, delete, start, stop, reboot, reboot-hard, rebuild, resize, restart, revert-resize or confirm-resize", func(s row) string {
			if t := s.Doing(); t != nil {
				return string(t.Do)
			}
			return ""
		}),
		textField("fault", "Fault", "Why it is in error, or why the newest task failed", func(s row) string {
			if trouble := cmp.Or(s.Trouble(), s.Fault); trouble != nil {
				return trouble.Text
			}
			return ""
		}),
		textField("locked", "Locked", "Who locked it, so that its users have nothing done to it: user or operator; empty if nobody did", lockedBy),
		textField("lock_reason", "LockReason", "What was said about that", func(s row) string {
			if s.Lock == nil {
				return ""
			}
			return s.Lock.Reason
		}),
		textField("project", "Project", "Id of the project that owns it", func(s row) string { return s.Project }),
		textField("user", "User", "Id of the user who made it", func(s row) string { return s.User }),
		textField("flavor", "Flavor", "Name of its flavor", func(s row) string { return s.Flavor.Name }),
		textField("image", "Image", "Name of its image", func(s row) string { return s.Image.Name }),
		textField("backend", "Backend", "Cluster that it is on; own for this one", func(s row) string { return clusterName(s.Backend) }),
		textField("instance", "Instance", "Name of its instance there", func(s row) string { return s.Instance }),
		textField("instance_uuid", "InstanceUUID", "UUID of its instance there, where that is known", func(s row) string { return s.UUID }),
		momentField("ctime", "CTime", "When it was asked for", func(s row) job.Time { return s.Created }),
		momentField("mtime", "MTime", "When it was last changed", func(s row) job.Time { return s.Updated }),
		momentField("built", "Built", "When its instance was first seen", func(s row) job.Time { return s.Built }),
		momentField("unmatched", "Unmatched", "Since when nobody can tell which instance it is (drover server match)", func(s row) job.Time { return s.Unmatched }),
		momentField("deleted", "Deleted", "Since when its instance is gone", func(s row) job.Time { return s.Deleted }),
		textField("gone", "Gone", "Why that is known", func(s row) string { return s.Gone }),
		{Def: def("actions", "Actions", query.KindOther, "What was done to it, the oldest first: task, user, request, when it was asked for and over, job, why it failed"),
			Get: func(_ *query.View, s row) query.Cell { return known(actionsOf(s)) }},
	}
}

// lockedBy is who locked a server; empty if nobody did.
func lockedBy(s *server.Server) string {
	switch {
	case s.Lock == nil:
		return ""
	case s.Lock.Operator:
		return "operator"
	}
	return "user"
}

// actionsOf is what was done to a server, a list each, as trails are; null stands for what is not known, or not there.
func actionsOf(s *server.Server) []any {
	orNull := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	out := []any{}
	for _, a := range s.Acts() {
		var over, id any
		if a.Ended != 0 {
			over = since(a.Ended).Value
		}
		if a.Job != 0 {
			id = int64(a.Job)
		}
		out = append(out, []any{string(a.Do), a.Asked.User, orNull(a.Asked.Request), since(a.Asked.Time).Value, over, id, orNull(a.Failed)})
	}
	return out
}

// serverTagFigures are the fields that sum a server's tags up.
func serverTagFigures() []query.Field[*server.Server] {
	type row = *server.Server
	count := func(s row, counts func(*servertag.Tag) bool) (n int64) {
		for i := range s.Tags.Tags {
			if counts(&s.Tags.Tags[i]) {
				n++
			}
		}
		return n
	}
	return []query.Field[row]{
		{Def: def("tags", "Tags", query.KindOther, "Tags of the user that it is to have"),
			Get: func(_ *query.View, s row) query.Cell { return known(s.Tags.Names(servertag.User)) }},
		{Def: def("system_tags", "SystemTags", query.KindOther, "Tags of the operator that it is to have"),
			Get: func(_ *query.View, s row) query.Cell { return known(s.Tags.Names(servertag.System)) }},
		{Def: def("groups", "Groups", query.KindOther, "Ids of the server groups that it is in"),
			Get: func(_ *query.View, s row) query.Cell { return known(append([]string{}, s.Groups()...)) }},
		numberField("generation", "Generation", "How often it was changed which tags it is to have", func(s row) int64 { return s.Tags.Generation }),
		numberField("pending", "Pending", "Number of tags that its cluster does not show yet as they are wanted", func(s row) int64 {
			return count(s, s.TagPending)
		}),
		numberField("failed", "Failed", "Number of tags whose change failed for good or too often", func(s row) int64 {
			return count(s, func(t *servertag.Tag) bool { return t.Status() == servertag.Error })
		}),
		momentField("pending_since", "PendingSince", "When the oldest change of a tag was asked for that its cluster does not show yet", func(s row) job.Time {
			return s.PendingTags()
		}),
		{Def: def("pending_age", "PendingAge", query.KindFloat, "How long that is ago, in seconds; a filter may give 90s or 1h30m"), Mode: query.ModeDuration,
			Get: func(v *query.View, s row) query.Cell { return age(v, s.PendingTags()) }},
		{Def: def("jobs", "Jobs", query.KindOther, "Jobs of its cluster that are under way for it"), Get: func(_ *query.View, s row) query.Cell {
			out := []any{}
			for _, id := range s.Jobs() {
				out = append(out, int64(id))
			}
			return known(out)
		}},
	}
}
