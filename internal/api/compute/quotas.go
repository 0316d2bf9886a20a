package compute

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/internal/rights"
)

// quota are the limits of the project of the token.
func (r *request) quota() quota.Limits { return r.api.cfg.Quotas.Of(r.session.Project.ID) }

// tooMany refuses what a limit has no room for, as the flavour does.
func (r *request) tooMany(err *fault.Error) error {
	if r.flavour == cyclades {
		return refused{err, http.StatusBadRequest}
	}
	return refused{err, http.StatusForbidden}
}

// Which resources limits tell of, by microversion: what networks had until 2.36, in classes until 2.50; groups in classes from then on; injected files until 2.57.
func (r *request) shownLimits(of quota.Limits, class bool) object {
	nets := !r.since(withoutNetworks)
	if class {
		nets = !r.since(withClassGroups)
	}
	hidden := map[string]bool{"fixed_ips": !nets, "floating_ips": !nets, "security_groups": !nets, "security_group_rules": !nets,
		"injected_files": r.since(withoutFiles), "injected_file_content_bytes": r.since(withoutFiles), "injected_file_path_bytes": r.since(withoutFiles),
		"server_groups": class && !r.since(withClassGroups), "server_group_members": class && !r.since(withClassGroups)}
	for _, resource := range quota.Resources() {
		hidden[resource.Name] = hidden[resource.Name] || resource.Own
	}
	out := object{}
	for name, limit := range of {
		if !hidden[name] {
			out[name] = limit
		}
	}
	return out
}

// projectOf is the project of the path, of which the one of the token sees its own limits, and administrators all.
func (r *request) projectOf() (string, error) {
	id := r.path[0]
	if r.account.May(rights.Look, rights.Of{Project: id}) != rights.Allowed && r.account.May(rights.Administer, rights.Of{}) != rights.Allowed {
		return "", refused{fault.New(fault.Denied, "Policy doesn't allow os_compute_api:os-quota-sets:show to be performed."), http.StatusForbidden}
	}
	if known := r.api.cfg.HasProject; known != nil && !known(id) || id == quota.Default {
		return "", fault.New(fault.Invalid, "Project ID %s is not a valid project.", fault.Clip(id, 100)).At("project")
	}
	return id, nil
}

// quotaSet answers with limits of the project of the path.
func (r *request) quotaSet(of func(project string) object) (result, error) {
	id, err := r.projectOf()
	if err != nil {
		return result{}, err
	}
	out := of(id)
	out["id"] = id
	return result{http.StatusOK, object{"quota_set": out}}, nil
}

// showQuota shows the limits of a project. What is asked of a user is the same: limits are of projects.
func showQuota(r *request) (result, error) {
	return r.quotaSet(func(id string) object { return r.shownLimits(r.api.cfg.Quotas.Of(id), false) })
}

func showDefaultQuota(r *request) (result, error) {
	return r.quotaSet(func(string) object { return r.shownLimits(r.api.cfg.Quotas.Of(quota.Default), false) })
}

// showQuotaInFull shows them with what is used. Of what is counted for each user or server, and of what there is not, that is 0, as in Nova.
func showQuotaInFull(r *request) (result, error) {
	return r.quotaSet(func(id string) object {
		used := r.api.cfg.Quotas.Used(id)
		out := r.shownLimits(r.api.cfg.Quotas.Of(id), false)
		for name, limit := range out {
			out[name] = object{"limit": limit, "in_use": used[name], "reserved": 0}
		}
		return out
	})
}

// bodyOfLimits are the keys of a body that sets limits, at any microversion.
func bodyOfLimits(more ...string) intake.Object {
	keys := intake.Object{}
	for _, r := range quota.Resources() {
		if !r.Own {
			keys[r.Name] = done
		}
	}
	for _, key := range more {
		keys[key] = done
	}
	return keys
}

// readLimits reads the limits of a body; numbers may be written as texts. What the version does not know is refused.
func (r *request) readLimits(body map[string]json.RawMessage, class bool) (quota.Limits, error) {
	out := quota.Limits{}
	known := r.shownLimits(r.api.cfg.Quotas.Of(quota.Default), class)
	for name, raw := range body {
		if _, there := known[name]; !there {
			return nil, fault.New(fault.Invalid, "Invalid input: Additional properties are not allowed ('%s' was unexpected)", fault.Clip(name, 100)).At(name)
		}
		n, err := strconv.ParseInt(wordOf(raw), 10, 64)
		if err != nil {
			return nil, fault.New(fault.Invalid, "Invalid input for field/attribute %s. Value: %s. It must be a number", name, fault.Clip(wordOf(raw), 40)).At(name)
		}
		out[name] = n
	}
	return out, nil
}

// onlyProjects refuses limits of users.
func (r *request) onlyProjects() error {
	if user := r.URL.Query().Get("user_id"); user != "" {
		return fault.New(fault.Invalid, "Limits are those of projects: there are none of users").At("user_id").WithHint("leave user_id out")
	}
	return nil
}

func setQuota(r *request) (result, error) {
	if err := r.onlyProjects(); err != nil {
		return result{}, err
	}
	id, err := r.projectOf()
	if err != nil {
		return result{}, err
	}
	var body struct {
		Set map[string]json.RawMessage `json:"quota_set"`
	}
	if err := r.read(intake.Object{"quota_set": {Done: true, In: bodyOfLimits("force")}}, &body); err != nil {
		return result{}, err
	}
	ask := quota.Ask{By: r.asks().By}
	if raw, said := body.Set["force"]; said {
		var known bool
		if ask.Force, known = truth(wordOf(raw)); !known {
			return result{}, fault.New(fault.Invalid, "Invalid input for field/attribute force. It must be true or false").At("force")
		}
		delete(body.Set, "force")
	}
	limits, err := r.setLimits(id, body.Set, false, ask)
	return result{http.StatusOK, object{"quota_set": limits}}, err
}

// setLimits sets limits of a project, or the default.
func (r *request) setLimits(project string, body map[string]json.RawMessage, class bool, ask quota.Ask) (object, error) {
	limits, err := r.readLimits(body, class)
	if err != nil {
		return nil, err
	}
	if len(limits) == 0 && body != nil { // Nova takes this, and it changes nothing
		return r.shownLimits(r.api.cfg.Quotas.Of(project), class), nil
	}
	all, err := r.api.cfg.Quotas.Set(r.Context(), project, limits, ask)
	if fault.Is(err, fault.Conflict) {
		err = badReference(err)
	}
	return r.shownLimits(all, class), err
}

func unsetQuota(r *request) (result, error) {
	if err := r.onlyProjects(); err != nil {
		return result{}, err
	}
	id, err := r.projectOf()
	if err != nil {
		return result{}, err
	}
	if _, err := r.api.cfg.Quotas.Unset(r.Context(), id, quota.Ask{By: r.asks().By}); err != nil && !fault.Is(err, fault.NotFound) { // as Nova does
		return result{}, err
	}
	return result{status: http.StatusAccepted}, nil
}

// classOf refuses other classes of projects than the one that there is.
func (r *request) classOf() error {
	if r.path[0] != quota.Default {
		return fault.New(fault.NotFound, "There is no class %s of projects, but %s.", fault.Clip(r.path[0], 100), quota.Default)
	}
	return nil
}

func showQuotaClass(r *request) (result, error) {
	if err := r.classOf(); err != nil {
		return result{}, err
	}
	out := r.shownLimits(r.api.cfg.Quotas.Of(quota.Default), true)
	out["id"] = quota.Default
	return result{http.StatusOK, object{"quota_class_set": out}}, nil
}

func setQuotaClass(r *request) (result, error) {
	if err := r.classOf(); err != nil {
		return result{}, err
	}
	var body struct {
		Set map[string]json.RawMessage `json:"quota_class_set"`
	}
	if err := r.read(intake.Object{"quota_class_set": {Done: true, In: bodyOfLimits()}}, &body); err != nil {
		return result{}, err
	}
	limits, err := r.setLimits(quota.Default, body.Set, true, quota.Ask{By: r.asks().By})
	return result{http.StatusOK, object{"quota_class_set": limits}}, err
}
