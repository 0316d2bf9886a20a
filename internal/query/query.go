// Package query answers questions about everything that Drover knows: any
// field of any item, with a status for each value, narrowed by a filter of
// package qlang. It is a function of values: the caller hands in a Source (an
// inventory snapshot, jobs, rules, locks) and fetches what only nodes know. Which
// items there are, and what their fields are, says a Catalog: items.All.
//
// A query runs in two steps. Prepare compiles fields and filter, picks the
// rows that the filter lets through as far as it can be told without asking a
// node, and says in Plan which nodes must be asked for what. Finish takes their
// answers, applies the filter again and returns a Result, whose cells are
// computed only when they are read. Run does both.
//
// Invariants:
//   - Each item has one table of fields (package items has them all); what a query
//     can return, list and filter by comes from it alone.
//   - A cell whose status is not Normal has no value.
//   - A filter test on such a cell holds, whatever the test (the reference's
//     rule; docs/compat/query.md); negation is applied after. Of fields that the
//     reference does not have (Field.Strict) no test holds on it.
//   - Evaluation in two passes keeps the same rows as evaluation in one.
//   - Unknown fields are columns of their own; an unknown field in a filter is
//     an error.
//   - A query that is interrupted, or cannot read something, is an error, never a
//     part of its answer. A single job that cannot be read is a row that says so.
package query

import (
	"iter"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/audit"
	"github.com/drover-project/drover/internal/cluster"
	"github.com/drover-project/drover/internal/deploy/course"
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/jobfilter"
	"github.com/drover-project/drover/internal/lock"
	"github.com/drover-project/drover/internal/qlang"
	"github.com/drover-project/drover/internal/server"
)

// Status says what is known of one value. The numbers are the wire form.
type Status uint8

// The statuses.
const (
	Normal  Status = 0 // the value is there
	Unknown Status = 1 // there is no such field
	NoData  Status = 2 // the value could not be had now
	Unavail Status = 3 // the value makes no sense for this item
	Offline Status = 4 // the node that knows is marked offline
)

// Kind is the type of a field's values. The texts are the wire form.
type Kind string

// The kinds of fields.
const (
	KindUnknown   Kind = "unknown"
	KindText      Kind = "text"
	KindBool      Kind = "bool"
	KindNumber    Kind = "number" // an integer
	KindFloat     Kind = "float"
	KindUnit      Kind = "unit"      // an integer, MiB
	KindTimestamp Kind = "timestamp" // seconds since the epoch
	KindOther     Kind = "other"     // any JSON
)

// Cell is one value with its status. Value is nil unless Status is Normal (and
// may be nil then, too).
type Cell struct {
	Status Status
	Value  any
}

// Def describes a field to clients.
type Def struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Kind  Kind   `json:"kind"`
	Doc   string `json:"doc"`
}

// Origin says where a field's values come from.
type Origin uint8

// The origins.
const (
	// Config values are in the inventory or the stored rules.
	Config Origin = iota
	// InMemory values are in the memory of the controller: jobs, locks.
	InMemory
	// Live values are asked from nodes.
	Live
)

// String returns "config", "memory" or "live".
func (o Origin) String() string { return [...]string{"config", "memory", "live"}[o] }

// Source is the state that a query is answered from. Only Inventory is needed
// for all items; a nil function stands for "there are none".
type Source struct {
	Inventory *cluster.Snapshot
	// Jobs yields jobs in order of their ids, with or without archived ones. An
	// error ends the query, whose error it then is; but for a *job.DamageError, which
	// stands for one job that cannot be read: it is a row whose values are NoData.
	// Jobs that have ended may be brief (job.Table).
	Jobs func(archived bool) iter.Seq2[*job.Job, error]
	// JobTable holds the jobs that are not archived, those that Jobs yields, with
	// their indexes; without it each query about jobs walks all of them.
	JobTable *job.Table
	// Archived yields the archived jobs with from <= end < until, in any order;
	// errors are as with Jobs.
	Archived func(from, until job.Time) iter.Seq2[*job.Job, error]
	// Job returns one job, whole, archived or not, nil if there is none; errors are
	// as with Jobs.
	Job func(job.ID) (*job.Job, error)
	// Rules returns the filter rules.
	Rules func() []*jobfilter.Rule
	// Locks returns the locks that are held or waited for.
	Locks func() []lock.State
	// Events yields what was recorded of changes that are no jobs, oldest first;
	// nil where nothing was.
	Events func() iter.Seq2[*audit.Event, error]
	// Deployments are the environments and deployments, in brief; nil where there are none. Plan returns the plan of one of
	// them, Tasks its tasks as they are in this state; an error ends the query.
	Deployments *course.Table
	Plan        func(*course.Deployment) (*course.Course, error)
	Tasks       func(*course.Deployment) ([]course.Task, error)
	// Servers are those of the Compute API; nil where there are none.
	Servers *server.Table
	// Runtime is what only the running program knows.
	Runtime Runtime
	// Live asks nodes, by UUID, for what need says. Nodes that it leaves out
	// of its answer count as failed.
	Live func(need Need, nodes []string) map[string]NodeState
	// Now is the moment that distances in filters (-1h) are counted from; its zone
	// is that of dates.
	Now time.Time
	// Interrupted is asked again and again while rows are picked, sorted and
	// grouped: an error ends the query, whose error it then is. nil lets every
	// query go on to its end.
	Interrupted func() error
}

// interrupted returns the error that is to end the query, if there is one.
func (src *Source) interrupted() error {
	if src.Interrupted == nil {
		return nil
	}
	return src.Interrupted()
}

// Runtime is what the running program knows about itself and the cluster item
// shows.
type Runtime struct {
	SoftwareVersion string
	VCSVersion      string
	// The versions of protocols and formats, as the reference numbers them.
	ProtocolVersion, ConfigVersion, ExportVersion, OSAPIVersion int64
	// Architecture is a pair such as ["64bits", "x86_64"].
	Architecture [2]string
	Drained      bool
	// WatcherPause is until when watchers pause, in seconds since the epoch; 0
	// when they do not.
	WatcherPause float64
}

// Request is a query.
type Request struct {
	// What is the item, for example "instance".
	What string
	// Fields are the columns, in order; repeats are kept.
	Fields []string
	// Filter is the condition; nil is that of every item.
	Filter qlang.Node
	Options
}

// Options of a query beyond the reference's.
type Options struct {
	// Sort orders the rows by fields; without any they have their usual order.
	Sort []SortKey
	// Limit is the largest number of rows, 0 for any.
	Limit int
	// After is the page token of an earlier Result; rows begin after it.
	After string
	// Fresh asks nodes for what only they know, instead of taking what they
	// told last.
	Fresh bool
}

// SortKey is a field to sort by.
type SortKey struct {
	Field      string
	Descending bool
}

// Catalog are the items that can be asked for, in the order in which they are
// listed.
type Catalog []Item

// Names lists the items, in order.
func (c Catalog) Names() []string {
	out := make([]string, len(c))
	for i, it := range c {
		out[i] = it.name()
	}
	return out
}

// lookup returns the table of an item.
func (c Catalog) lookup(what string) (Item, error) {
	for _, it := range c {
		if it.name() == what {
			return it, nil
		}
	}
	return nil, fault.New(fault.Invalid, "Can't parse value '%s' as neitherQueryTypeLuxi nor QueryTypeOp", what).
		WithHint("%s", didYouMean(what, c.Names()))
}

// Fields describes fields of an item: the named ones in that order, unknown
// ones included, or all listed ones in nice order for an empty list.
func (c Catalog) Fields(what string, names []string) ([]Def, error) {
	it, err := c.lookup(what)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return it.defs(), nil
	}
	out := make([]Def, len(names))
	for i, n := range names {
		out[i] = it.def(n)
	}
	return out, nil
}

// CheckFields refuses unknown fields in the words of the old list requests.
func (c Catalog) CheckFields(what string, fields []string) error {
	it, err := c.lookup(what)
	if err != nil {
		return err
	}
	var unknown []string
	for _, name := range fields {
		if it.def(name).Kind == KindUnknown {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return prereqError("wrong_input", "Unknown output fields selected: %s", strings.Join(unknown, ", "))
	}
	return nil
}

// Prepare compiles a query and does what needs no node.
func (c Catalog) Prepare(src *Source, r Request) (*Plan, error) {
	it, r, err := c.checked(r)
	if err != nil {
		return nil, err
	}
	return it.prepare(src, r)
}

// Check refuses a query that makes no sense; now is what times in it are relative to.
func (c Catalog) Check(r Request, now time.Time) error {
	it, r, err := c.checked(r)
	if err != nil {
		return err
	}
	_, _, err = it.follower(r, now)
	return err
}

// checked returns the item that a request is about, and the request with a
// filter.
func (c Catalog) checked(r Request) (Item, Request, error) {
	it, err := c.lookup(r.What)
	if err != nil {
		return nil, r, err
	}
	if r.Filter == nil {
		r.Filter = &qlang.All{}
	}
	if r.Limit < 0 {
		return nil, r, fault.New(fault.Invalid, "the number of rows must not be negative, got %d", r.Limit).At("limit")
	}
	return it, r, nil
}

// Run answers a query, asking nodes through src.Live when it must.
func (c Catalog) Run(src *Source, what string, fields []string, filter qlang.Node, opts Options) (*Result, error) {
	it, r, err := c.checked(Request{What: what, Fields: fields, Filter: filter, Options: opts})
	if err != nil {
		return nil, err
	}
	return carryOut(src, it, r)
}

// carryOut answers a query about an item.
func carryOut(src *Source, it Item, r Request) (*Result, error) {
	plan, err := it.prepare(src, r)
	if err != nil {
		return nil, err
	}
	return plan.Finish(plan.answers(src))
}

// answers takes what the nodes know through src.Live.
func (p *Plan) answers(src *Source) map[string]NodeState {
	if len(p.Nodes) == 0 || src.Live == nil {
		return nil
	}
	return src.Live(p.Need, p.Nodes)
}

// Explain tells how a query is carried out, and how old what nodes know is.
func (c Catalog) Explain(src *Source, r Request) (Explanation, error) {
	plan, err := c.Prepare(src, r)
	if err != nil {
		return Explanation{}, err
	}
	ex, answers := plan.Explain, plan.answers(src)
	for _, node := range plan.Nodes {
		switch answer, ok := answers[node]; {
		case !ok || answer.Failed != "":
			ex.Silent++
		case ex.AsOf == 0 || answer.AsOf < ex.AsOf:
			ex.AsOf = answer.AsOf
		}
	}
	return ex, nil
}
