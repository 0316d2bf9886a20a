package luxi

import (
	"context"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
	"github.com/drover-project/drover/internal/tagsync"
)

// serverMethods are the requests of operators about servers of the Compute API.
var serverMethods = []method{
	{"ReconcileServers", 2, 2, changes, reconcileServers}, // id or null, whether to fix what differs
	{"QueryServerClusters", 0, 0, asks, queryServerClusters},
	{"ChangeServerTags", 4, 4, changes, changeServerTags}, // id, namespace, what to do, tags
	{"MatchServer", 3, 4, changes, matchServer},           // id, instance, whether only to tell what it would do, [reason trail]
	{"LockServer", 4, 5, changes, lockServer},             // id, whether it is to be locked, why, whether only to tell what it would do, [reason trail]
	{"AskIdentity", 3, 3, changes, askIdentity},           // method, path with query, body or null
}

// askIdentity hands a request to the Identity API, as an administrator's: whoever
// may use the socket is one. The answer has its status and body.
func askIdentity(ctx context.Context, d *Deps, a *arguments) (any, error) {
	method, path := a.str(0), a.str(1)
	var body []byte
	if a.has(2) {
		body = a.items[2]
	}
	if err := a.bad(); err != nil {
		return nil, err
	}
	if d.Accounts == nil {
		return nil, fault.New(fault.NotFound, "this controller keeps no accounts").
			WithHint("they are kept by the identity service that its setting keystone names, if there is a Compute API at all")
	}
	status, answer := d.Accounts(ctx, method, path, body)
	return map[string]any{"status": status, "body": answer}, nil
}

func reconcileServers(ctx context.Context, d *Deps, a *arguments) (any, error) {
	id, fix := a.optionalStr(0), a.boolean(1)
	if err := a.bad(); err != nil {
		return nil, err
	}
	if d.Servers == nil {
		return nil, fault.New(fault.NotFound, "this controller keeps no servers")
	}
	return d.Servers.Examine(ctx, id, fix)
}

// queryServerClusters tells how the clusters are that servers are on.
func queryServerClusters(_ context.Context, d *Deps, _ *arguments) (any, error) {
	if d.Servers == nil {
		return nil, fault.New(fault.NotFound, "this controller keeps no servers")
	}
	return d.Servers.Clusters(), nil
}

// matchServer has a server be the instance that somebody vouches for.
func matchServer(ctx context.Context, d *Deps, a *arguments) (any, error) {
	id, instance, dry, by := a.str(0), a.str(1), a.boolean(2), a.as(3)
	if err := a.bad(); err != nil {
		return nil, err
	}
	if d.Servers == nil {
		return nil, fault.New(fault.NotFound, "this controller keeps no servers")
	}
	return d.Servers.Match(ctx, id, instance, dry, by)
}

// lockServer locks a server in the operator's name, or takes its lock away. The answer is whether that changes anything.
func lockServer(_ context.Context, d *Deps, a *arguments) (any, error) {
	id, locked, why, dry, by := a.str(0), a.boolean(1), a.str(2), a.boolean(3), a.as(4)
	if err := a.bad(); err != nil {
		return nil, err
	}
	if d.Servers == nil {
		return nil, fault.New(fault.NotFound, "this controller keeps no servers")
	}
	return d.Servers.HoldServer(id, locked, why, dry, by)
}

// tagChange is something that is done to the tags of a server.
type tagChange func(e *tagsync.Engine, id string, ns servertag.Namespace, tags []string, by servertag.Asked) error

// tagChanges are what may be done, by the word for it.
var tagChanges = map[string]tagChange{
	"add": func(e *tagsync.Engine, id string, ns servertag.Namespace, tags []string, by servertag.Asked) error {
		_, err := e.Want(id, ns, tags, by)
		return err
	},
	"replace": func(e *tagsync.Engine, id string, ns servertag.Namespace, tags []string, by servertag.Asked) error {
		_, err := e.Replace(id, ns, tags, by)
		return err
	},
	"delete": func(e *tagsync.Engine, id string, ns servertag.Namespace, tags []string, by servertag.Asked) error {
		// All or nothing, as far as what is there now tells: one that another takes away meanwhile is gone as it was to be.
		for _, tag := range tags {
			if s := e.Servers().Get(id); s != nil && !s.Tags.Has(ns, tag) {
				return fault.New(fault.NotFound, "Instance %s has no tag %q in the namespace %s", id, fault.Clip(tag, 4*servertag.MaxName), ns)
			}
		}
		for _, tag := range tags {
			if _, err := e.Unwant(id, ns, tag, by); err != nil {
				return err
			}
		}
		return nil
	},
}

// changeServerTags changes the tags of a server in a namespace, that of the
// operator too: whoever may use the socket is one. The answer are the tags that it
// is to have there now.
func changeServerTags(_ context.Context, d *Deps, a *arguments) (any, error) {
	id, ns, do, tags := a.str(0), servertag.Namespace(a.str(1)), a.str(2), a.strs(3)
	if err := a.bad(); err != nil {
		return nil, err
	}
	change := tagChanges[do]
	switch {
	case d.Servers == nil:
		return nil, fault.New(fault.NotFound, "this controller keeps no servers")
	case change == nil:
		return nil, fault.New(fault.Invalid, "tags of servers are changed by add, delete and replace, not %q", fault.Clip(do, 40)).At("args[2]")
	case ns != servertag.User && ns != servertag.System:
		return nil, fault.New(fault.Invalid, "there is no namespace %q of tags; there are user and system", fault.Clip(string(ns), 40)).At("args[1]")
	}
	by := servertag.Asked{User: a.by.Name, Front: a.by.Surface, From: a.by.From, Time: d.Servers.Now()}
	if err := change(d.Servers, id, ns, tags, by); err != nil {
		return nil, err
	}
	now := server.Server{}
	if s := d.Servers.Servers().Get(id); s != nil {
		now = *s
	}
	return now.Tags.Names(ns), nil
}
