// Package luxi serves the control socket: it reads requests of the LUXI
// protocol, hands them to the queue and the query engine, and writes what they
// answer. Every method is in one table, Methods.
//
// A connection handles its requests in order, each connection in a goroutine
// of its own: whatever a client sends, or fails to send, holds up nobody else.
//
// Invariants:
//   - A request that is not understood changes nothing; it is answered with a
//     text and the connection is closed.
//   - A request that was understood and failed is answered with a pair
//     [class, [arguments]], and the connection goes on.
//   - Reason entries from outside never carry a source of the system, other
//     than those of the command line (see allowedSource).
package luxi

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/console"
	"github.com/drover-project/drover/internal/flavor"
	"github.com/drover-project/drover/internal/health"
	"github.com/drover-project/drover/internal/live"
	"github.com/drover-project/drover/internal/queue"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/internal/reason"
	"github.com/drover-project/drover/internal/rollout"
	"github.com/drover-project/drover/internal/tagsync"
)

// Deps is what the methods work with.
type Deps struct {
	Queue   *queue.Queue
	Querier *live.Querier
	Rollout *rollout.Engine
	// Servers keeps the servers of the Compute API; nil where there are none.
	Servers *tagsync.Engine
	// Flavors are the sizes that they may have; nil where there are none.
	Flavors *flavor.Service
	// Quotas are how much projects may have; nil where there are none.
	Quotas *quota.Service
	// Accounts answers requests about the accounts of the Compute API, as an
	// administrator's; nil where none are kept.
	Accounts func(ctx context.Context, method, path string, body []byte) (status int, answer any)
	Log      *slog.Logger
	// Observe is told of each request that was answered: its context, its method,
	// "ok" or the code of its error, and how long it took. Nil when nobody wants
	// to know.
	Observe func(ctx context.Context, what, outcome string, took time.Duration)
	// Masters tells of all controllers of the cluster, and Failover makes this one
	// the leader; nil for a controller that is alone.
	Masters  func(ctx context.Context) ([]Master, error)
	Failover func(ctx context.Context) error
	// Drain has a controller lead no more, unless no other could, or again, and Forget removes one that is lost: or they say what would be done.
	Drain  func(ctx context.Context, name string, on bool, by queue.By, dry bool) (ControllerDrain, error)
	Forget func(ctx context.Context, name string, by queue.By, dry bool) (Forgotten, error)
	// Health says how the cluster is.
	Health func(ctx context.Context) health.Report
	// Bundle gathers what all controllers tell of themselves.
	Bundle func(ctx context.Context) health.Bundle
	// WebLink makes the address of the page for somebody of this machine, which signs in once; nil where the page is not served.
	WebLink func(name string) string
	// Format tells of the format of the store, and RaiseFormat raises it, without a copy of before where that is wanted.
	Format      func(ctx context.Context) (Format, error)
	RaiseFormat func(ctx context.Context, by queue.By, noCopy bool) (Format, error)
	// Assured returns when the controller is certain that what it knows is the
	// newest there is, or says why it cannot be; nil for one that always is.
	Assured func(ctx context.Context) error
	// Current reports whether a state that is not older than a revision, and was read
	// before the call, is what the controller that leads shows; nil for that one itself.
	Current func(revision int64) bool
	// Keyboards are those of consoles.
	Keyboards *console.Keyboards
	// Take takes a request, unless no more are taken: one that is to be answered before the controller ends or not; answered says that it was. Nil takes all.
	Take func(owed bool) (answered func(), taken bool)
	// NewID gives each request an id, which its context carries (requestid); nil
	// for none.
	NewID func() string
}

// method is one row of the table: its name, how many arguments it takes, and
// what it does. Beyond the protocol, our own additions are optional arguments
// at the end of a method, and the methods of the last part of the table. The last
// one of a method that changes something and makes no job is a reason trail.
type method struct {
	name     string
	min, max int
	effect   effect
	run      func(ctx context.Context, d *Deps, a *arguments) (any, error)
}

// effect is what a method may leave behind, and so who may carry it out, and how often.
type effect uint8

const (
	// changes: one that leads carries it out, once. Whether one that was lost did is not known.
	changes effect = iota
	// waits: as changes, but it lasts for as long as nothing comes, so nobody waits for its answer.
	waits
	// asks: one that leads answers, and may be asked again.
	asks
	// asksStored: what is stored is enough to answer, so a controller that stands by may, too.
	asksStored
)

// Asks tells whether a method changes nothing, so that a request can be sent again.
func Asks(name string) bool {
	i := slices.IndexFunc(Methods, func(m method) bool { return m.name == name })
	return i >= 0 && Methods[i].effect >= asks
}

// Methods are all the requests that the server understands.
var Methods = slices.Concat(jobMethods, deployMethods, serverMethods, flavorMethods, quotaMethods)

var jobMethods = []method{
	{"SubmitJob", 1, 2, changes, submitJob},                   // opcodes, [key]
	{"SubmitJobToDrainedQueue", 1, 2, changes, submitDrained}, // opcodes, [key]
	{"SubmitManyJobs", 1, 2, changes, submitManyJobs},         // lists of opcodes, [keys]
	{"WaitForJobChange", 5, 5, asks, waitForJobChange},        // id, fields, previous values, previous log serial, seconds
	{"CancelJob", 1, 3, changes, cancelJob},                   // id, [kill]
	{"ChangeJobPriority", 2, 3, changes, changeJobPriority},   // id, priority
	{"ArchiveJob", 1, 2, changes, archiveJob},                 // id
	{"AutoArchiveJobs", 2, 3, changes, autoArchiveJobs},       // age and timeout in seconds
	{"PruneEvents", 2, 4, changes, pruneEvents},               // before, in seconds since the epoch, timeout in seconds, [reason trail], [whether to change nothing]
	{"PruneArchive", 3, 5, changes, pruneArchive},             // end before, in seconds since the epoch, or null, newest to keep or null, timeout in seconds, [reason trail], [whether to change nothing]
	{"PickupJob", 1, 1, changes, pickupJob},                   // id
	{"SetDrainFlag", 1, 2, changes, setDrainFlag},             // on or off
	{"SetWatcherPause", 1, 2, changes, setWatcherPause},       // until, in seconds since the epoch, or null

	{"ReplaceFilter", 5, 6, changes, replaceFilter},  // uuid or null, priority, predicates, action, reason
	{"DeleteFilter", 1, 2, changes, deleteFilter},    // uuid
	{"QueryFilters", 2, 2, asksStored, queryFilters}, // uuids or null, fields

	{"Query", 3, 4, asksStored, runQuery},                        // kind, fields, filter or null, [options]
	{"QueryFields", 2, 2, asks, queryFields},                     // kind, fields or null
	{"QueryJobs", 2, 2, asksStored, queryJobs},                   // ids or null, fields
	{"QueryInstances", 3, 3, asksStored, queryItems("instance")}, // names, fields, lock
	{"QueryNodes", 3, 3, asksStored, queryItems("node")},
	{"QueryGroups", 3, 3, asksStored, queryItems("group")},
	{"QueryNetworks", 3, 3, asksStored, queryItems("network")},
	{"QueryExports", 2, 2, asks, queryExports}, // nodes, lock
	{"QueryTags", 2, 2, asksStored, queryTags}, // kind, name
	{"QueryClusterInfo", 0, anything, asks, queryClusterInfo},
	{"QueryConfigValues", 1, 1, asks, queryConfigValues}, // names

	{"echo", 1, 1, asks, echo}, // a text; what the watcher asks of another daemon's socket, which is linked to this one

	// Our own.
	{"QueryOSes", 2, 2, asks, queryOSes},            // names or null, fields; as OP_OS_DIAGNOSE, without a job
	{"CheckJob", 1, 1, asks, checkJob},              // opcodes
	{"ExplainJob", 1, 1, asks, explainJob},          // id
	{"TestFilter", 2, 2, asks, testFilter},          // rule or edits, days of archived jobs
	{"ChangeFilters", 2, 3, changes, changeFilters}, // edits, digest or null, [reason trail]
	{"ReadConsole", 3, 4, waits, readConsole},       // instance, position, seconds, [{"id", "turn"} of who sits before it]
	{"TypeConsole", 2, 4, changes, typeConsole},     // instance, bytes in Base64, [id of who sits before it], [whether to take over]
	{"LeaveConsole", 2, 2, changes, leaveConsole},   // instance, id of who sits before it
	{"WebLink", 0, 0, changes, webLink},
	{QueryHealth, 0, 0, asks, queryHealth},
	{MakeBundle, 0, 0, asks, makeBundle},
	{"QueryMasters", 0, 0, asks, queryMasters},
	{"MasterFailover", 0, 0, changes, masterFailover},
	{"DrainController", 1, 3, changes, drainController(true)},    // name, [reason trail], [whether to change nothing]
	{"UndrainController", 1, 3, changes, drainController(false)}, // the same
	{"ForgetMaster", 1, 3, changes, forgetMaster},                // the same
	{"QueryFormat", 0, 0, asks, queryFormat},
	{"RaiseFormat", 0, 2, changes, raiseFormat}, // [reason trail], [without a copy of before]
}

// allowedSource says which reserved sources clients may send: those with which
// the command line, the client libraries and Ganeti's watcher begin a trail.
func allowedSource(source string) bool {
	return source == reason.SourceUser || source == reason.SourceClient || source == reason.SourceWatcher ||
		strings.HasPrefix(source, reason.SourceClient+":")
}
