package compute

import (
	"cmp"
	"net/http"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/keypair"
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

// limits tells what a project may have, and has: -1 is no limit. Nova's flavour has
// the keys that it has there, Cyclades' those of tags too.
func limits(r *request) (result, error) {
	if of := r.URL.Query().Get("tenant_id"); r.account.May(rights.Look, rights.Of{Project: of}) != rights.Allowed {
		return result{}, refused{fault.New(fault.Denied, "Limits are those of one project: that of the token.").At("tenant_id"), http.StatusForbidden}
	}
	var instances, cores, ram int64
	for s := range r.api.cfg.Engine.Servers().Of(r.session.Project.ID) {
		instances, cores, ram = instances+1, cores+s.Flavor.VCPUs, ram+s.Flavor.RAM
	}
	absolute := object{"maxTotalInstances": -1, "maxTotalCores": -1, "maxTotalRAMSize": -1, "maxServerMeta": maxMetadata, "maxTotalKeypairs": keypair.MaxPairs,
		"maxServerGroups": 0, "maxServerGroupMembers": 0, "totalServerGroupsUsed": 0, "maxPersonality": 0, "maxPersonalitySize": 0,
		"totalInstancesUsed": instances, "totalCoresUsed": cores, "totalRAMUsed": ram}
	if !r.since(withoutNetworks) {
		for _, key := range []string{"maxSecurityGroups", "maxSecurityGroupRules", "totalSecurityGroupsUsed", "maxTotalFloatingIps", "totalFloatingIpsUsed"} {
			absolute[key] = 0
		}
	}
	if !r.since(withoutImageMeta) {
		absolute["maxImageMeta"] = 0
	}
	if r.flavour == cyclades {
		absolute["maxServerTags"], absolute["maxServerTagLength"] = r.api.cfg.Engine.Policy().Max[servertag.User], servertag.MaxName
	}
	return result{http.StatusOK, object{"limits": object{"rate": []any{}, "absolute": absolute}}}, nil
}
