package compute

import (
	"cmp"
	"net/http"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/quota"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/servertag"
)

// listZones lists the clusters that a server can be on, as availability zones.
func listZones(r *request) (result, error) {
	out := []any{}
	for _, name := range r.api.cfg.Engine.Backends() {
		out = append(out, object{"zoneName": cmp.Or(name, anyZone), "zoneState": object{"available": true}, "hosts": nil})
	}
	return result{http.StatusOK, object{"availabilityZoneInfo": out}}, nil
}

// listZonesInFull refuses to name hosts, which are the operator's; clients ask for
// zones without them then.
func listZonesInFull(*request) (result, error) {
	return result{}, refused{fault.New(fault.Denied, "Policy doesn't allow the hosts of availability zones to be shown."), http.StatusForbidden}
}

// limitsOf are the resources of which limits tell, by the words that they have there.
var limitsOf = map[string]string{
	"maxTotalInstances": quota.Instances, "maxTotalCores": quota.Cores, "maxTotalRAMSize": quota.RAM, "maxServerMeta": quota.Metadata, "maxTotalKeypairs": quota.KeyPairs,
	"maxServerGroups": quota.ServerGroups, "maxServerGroupMembers": quota.ServerGroupMembers, "maxPersonality": "injected_files", "maxPersonalitySize": "injected_file_content_bytes",
	"maxSecurityGroups": "security_groups", "maxSecurityGroupRules": "security_group_rules", "maxTotalFloatingIps": "floating_ips",
}

// limits tells what a project may have, and has: -1 is no limit. Nova's flavour has
// the keys that it has there, Cyclades' those of tags too.
func limits(r *request) (result, error) {
	if of := r.URL.Query().Get("tenant_id"); r.account.May(rights.Look, rights.Of{Project: of}) != rights.Allowed {
		return result{}, refused{fault.New(fault.Denied, "Limits are those of one project: that of the token.").At("tenant_id"), http.StatusForbidden}
	}
	most, used := r.quota(), r.api.cfg.Quotas.Used(r.session.Project.ID)
	absolute := object{"totalInstancesUsed": used[quota.Instances], "totalCoresUsed": used[quota.Cores], "totalRAMUsed": used[quota.RAM], "totalServerGroupsUsed": used[quota.ServerGroups]}
	for key, of := range limitsOf {
		absolute[key] = most[of]
	}
	if r.since(withoutNetworks) {
		for _, key := range []string{"maxSecurityGroups", "maxSecurityGroupRules", "maxTotalFloatingIps"} {
			delete(absolute, key)
		}
	} else {
		absolute["totalSecurityGroupsUsed"], absolute["totalFloatingIpsUsed"] = 0, 0
	}
	if r.since(withoutFiles) {
		delete(absolute, "maxPersonality")
		delete(absolute, "maxPersonalitySize")
	}
	if !r.since(withoutImageMeta) {
		absolute["maxImageMeta"] = 0
	}
	if r.flavour == cyclades {
		absolute["maxServerTags"], absolute["maxServerTagLength"] = r.api.cfg.Engine.Policy().Max[servertag.User], servertag.MaxName
	}
	return result{http.StatusOK, object{"limits": object{"rate": []any{}, "absolute": absolute}}}, nil
}
