package items

import (
	"cmp"
	"iter"

	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/query"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

// serverTag is a tag with its server.
type serverTag struct {
	s *server.Server
	t *servertag.Tag
}

var serverTagTable = query.Table[serverTag]{
	What:   "server-tag",
	Fields: strictly(append(tagFields(), tagLifeFields()...)),
	All: func(v *query.View) iter.Seq[serverTag] {
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
	Compare: func(a, b serverTag) int {
		return cmp.Or(cmp.Compare(a.s.Number, b.s.Number), cmp.Compare(a.t.Namespace, b.t.Namespace), cmp.Compare(a.t.Name, b.t.Name))
	},
	Identity: func(r serverTag) string { return r.s.ID + "/" + r.t.Raw },
	Object:   func(r serverTag) string { return r.s.ID },
	Affected: serversOf,
	RowsOf: func(v *query.View, _ *query.Delta, id string) (out []serverTag) {
		if s := v.Servers.Get(id); s != nil {
			for i := range s.Tags.Tags {
				out = append(out, serverTag{s, &s.Tags.Tags[i]})
			}
		}
		return out
	},
}.Indexed()

func tagFields() []query.Field[serverTag] {
	return []query.Field[serverTag]{
		textField("server", "ServerID", "UUID of the server", func(r serverTag) string { return r.s.ID }),
		textField("server_name", "Server", "Name of the server", func(r serverTag) string { return r.s.Name }),
		textField("project", "Project", "Id of the project that owns the server", func(r serverTag) string { return r.s.Project }),
		textField("backend", "Backend", "Cluster that the server is on; own for this one", func(r serverTag) string { return clusterName(r.s.Backend) }),
		textField("instance", "Instance", "Name of the server's instance there", func(r serverTag) string { return r.s.Instance }),
		textField("namespace", "Namespace", "To whom it belongs: user or system", func(r serverTag) string { return string(r.t.Namespace) }),
		textField("tag", "Tag", "The tag, as users write it", func(r serverTag) string { return r.t.Name }),
		textField("raw", "Raw", "The tag, as it is written on the cluster", func(r serverTag) string { return r.t.Raw }),
		textField("status", "Status", "One of PENDADD, ACTIVE, PENDDEL and ERROR", func(r serverTag) string { return string(r.t.Status()) }),
		{Def: def("wanted", "Wanted", query.KindBool, "Whether the server is to have it"), Get: func(_ *query.View, r serverTag) query.Cell { return truth(r.t.Wanted) }},
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
func (r serverTag) hold(v *query.View) *job.Hold {
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
func tagLifeFields() []query.Field[serverTag] {
	return []query.Field[serverTag]{
		textField("user", "User", "Who asked for the newest change", func(r serverTag) string { return r.t.Asked.User }),
		textField("front", "Front", "Over which interface; cluster for a tag that was found there", func(r serverTag) string { return r.t.Asked.Front }),
		textField("request", "Request", "Id of the request", func(r serverTag) string { return r.t.Asked.Request }),
		momentField("asked", "Asked", "When it was asked for", func(r serverTag) job.Time { return r.t.Asked.Time }),
		momentField("pending_since", "PendingSince", "The same, while the cluster does not show the change", func(r serverTag) job.Time {
			if !r.s.TagPending(r.t) {
				return 0
			}
			return r.t.Asked.Time
		}),
		{Def: def("pending_age", "PendingAge", query.KindFloat, "How long that is ago, in seconds; a filter may give 90s or 1h30m"), Mode: query.ModeDuration, Get: func(v *query.View, r serverTag) query.Cell {
			if !r.s.TagPending(r.t) {
				return query.Cell{Status: query.Unavail}
			}
			return age(v, r.t.Asked.Time)
		}},
		{Def: def("job", "Job", query.KindNumber, "Job of the cluster that is changing it"), Get: func(_ *query.View, r serverTag) query.Cell {
			if r.job() == 0 {
				return query.Cell{Status: query.Unavail}
			}
			return known(int64(r.job()))
		}},
		{Def: def("held_by", "HeldBy", query.KindText, "UUID of the filter rule that holds that job"), Mutual: true, Get: func(v *query.View, r serverTag) query.Cell {
			if h := r.hold(v); h != nil && h.Rule != "" {
				return text(h.Rule)
			}
			return query.Cell{Status: query.Unavail}
		}},
		textField("waits_for", "WaitsFor", "What keeps the change from being in force", func(r serverTag) string { return r.s.WaitOf(r.t).Why }),
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
