package rapi

import (
	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/rights"
)

// serverResources are our own: what operators ask about the servers of the
// Compute API. GET tells what differs from the clusters, PUT has it dealt with, too.
var serverResources = []route{
	{"/2/servers/reconciliation", methods{
		get: {needs: rights.Look, serve: func(r *request) (any, error) { return r.reconcile(false) }},
		put: {needs: rights.Change, serve: func(r *request) (any, error) { return r.reconcile(true) }},
	}},
	{"/2/servers/clusters", methods{get: {needs: rights.Look, serve: (*request).serverClusters}}},
}

// serverClusters tells how the clusters are that servers are on.
func (r *request) serverClusters() (any, error) {
	if err := r.checkParameters(); err != nil {
		return nil, err
	}
	if r.Servers == nil {
		return nil, fault.New(fault.NotFound, "this controller keeps no servers")
	}
	return r.Servers.Clusters(), nil
}

// reconcile looks at one server, the parameter server, or at all.
func (r *request) reconcile(fix bool) (any, error) {
	if err := r.checkParameters("server", "reason"); err != nil {
		return nil, err
	}
	if r.Servers == nil {
		return nil, fault.New(fault.NotFound, "this controller keeps no servers")
	}
	return r.Servers.Examine(r.Context(), r.text("server"), fix)
}
