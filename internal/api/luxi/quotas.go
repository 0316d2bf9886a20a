package luxi

import (
	"context"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/quota"
)

// quotaMethods are the requests of operators about how much projects may have.
var quotaMethods = []method{
	{"QueryQuotas", 0, 1, asks, queryQuotas},                  // [projects, of which all limits are told, also those that are nobody's own]
	{"SetQuota", 4, 5, changes, aboutQuotas(3, setQuota)},     // project, limits, whether also below what it has, whether only to tell what it would do, [reason trail]
	{"UnsetQuota", 2, 3, changes, aboutQuotas(1, unsetQuota)}, // project, the last two
}

// heldQuota is what is told of the limits of a project.
type heldQuota struct {
	Project string `json:"project"`
	// Own are those that are said for it, Limits those that hold, Used what it has of what is counted.
	Own    quota.Limits `json:"own"`
	Limits quota.Limits `json:"limits"`
	Used   quota.Limits `json:"used,omitempty"`
}

func errNoQuotas() error {
	return fault.New(fault.NotFound, "this controller keeps no servers, and so no limits of projects")
}

// queryQuotas tells of the default, of the projects for which something is said and of those that have servers; or of those that are named.
func queryQuotas(_ context.Context, d *Deps, a *arguments) (any, error) {
	named := a.optionalStrs(0)
	if err := a.bad(); err != nil {
		return nil, err
	}
	if d.Quotas == nil {
		return nil, errNoQuotas()
	}
	own := map[string]quota.Limits{}
	order := []string{}
	add := func(project string) {
		if _, known := own[project]; !known {
			own[project] = quota.Limits{}
			order = append(order, project)
		}
	}
	if len(named) == 0 {
		add(quota.Default)
	}
	for _, project := range named {
		add(project)
	}
	for _, set := range d.Quotas.All() {
		if len(named) == 0 {
			add(set.Project)
		}
		if _, wanted := own[set.Project]; wanted {
			own[set.Project] = set.Limits
		}
	}
	if len(named) == 0 {
		for s := range d.Servers.Servers().Numbers() {
			add(s.Project)
		}
	}
	out := []heldQuota{}
	for _, project := range order {
		q := heldQuota{Project: project, Own: own[project], Limits: d.Quotas.Of(project)}
		if project != quota.Default {
			q.Used = d.Quotas.Used(project)
		}
		out = append(out, q)
	}
	return out, nil
}

// aboutQuotas is a method that changes limits, and whose argument at dry says whether it is only to tell what it would do. It answers with those that
// hold for the project then.
func aboutQuotas(dry int, do func(ctx context.Context, all *quota.Service, a *arguments, ask quota.Ask) (quota.Limits, error)) func(context.Context, *Deps, *arguments) (any, error) {
	return func(ctx context.Context, d *Deps, a *arguments) (any, error) {
		if d.Quotas == nil {
			return nil, errNoQuotas()
		}
		return do(ctx, d.Quotas, a, quota.Ask{Dry: a.boolean(dry), By: a.as(dry + 1)})
	}
}

func setQuota(ctx context.Context, all *quota.Service, a *arguments, ask quota.Ask) (quota.Limits, error) {
	project, limits := a.str(0), quota.Limits{}
	a.object(1, &limits)
	ask.Force = a.boolean(2)
	if err := a.bad(); err != nil {
		return nil, err
	}
	if project == "" {
		return nil, fault.New(fault.Invalid, "limits are of a project, or of %q", quota.Default).At("args[0]")
	}
	return all.Set(ctx, project, limits, ask)
}

func unsetQuota(ctx context.Context, all *quota.Service, a *arguments, ask quota.Ask) (quota.Limits, error) {
	project := a.str(0)
	if err := a.bad(); err != nil {
		return nil, err
	}
	return all.Unset(ctx, project, ask)
}
