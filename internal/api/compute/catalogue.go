package compute

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/keypair"
	"github.com/drover-project/drover/internal/rights"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

func (r *request) flavorBody(f server.Flavor, full bool) object {
	link := r.base() + r.root() + "/flavors/" + f.ID
	out := object{"id": r.number(f.ID), "name": f.Name, "links": []any{object{"rel": "self", "href": link}, object{"rel": "bookmark", "href": link}}}
	if full {
		out["ram"], out["disk"], out["vcpus"] = f.RAM, f.Disk, f.VCPUs
		out["swap"], out["OS-FLV-EXT-DATA:ephemeral"], out["OS-FLV-DISABLED:disabled"] = "", 0, false
		out["os-flavor-access:is_public"], out["rxtx_factor"] = true, 1.0
	}
	return out
}

// flavors lists those that the query asks for, a page of them.
func (r *request) flavors(full bool) (result, error) {
	q := r.URL.Query()
	limit, err := pageOf(q)
	if err != nil {
		return result{}, err
	}
	all, err := flavorsFor(r.api.cfg.Engine.Catalogue().Flavors, q)
	if err != nil {
		return result{}, err
	}
	out, body := []any{}, object{}
	for _, f := range all {
		if len(out) == limit {
			if limit > 0 {
				q.Set("marker", all[limit-1].ID)
				body["flavors_links"] = []any{object{"rel": "next", "href": r.base() + r.URL.EscapedPath() + "?" + q.Encode()}}
			}
			break
		}
		out = append(out, r.flavorBody(f, full))
	}
	body["flavors"] = out
	return result{http.StatusOK, body}, nil
}

// flavorOrders are what flavors can be sorted by, under Nova's names.
var flavorOrders = map[string]func(a, b server.Flavor) int{
	"flavorid": func(a, b server.Flavor) int { return cmp.Compare(a.ID, b.ID) }, "name": func(a, b server.Flavor) int { return cmp.Compare(a.Name, b.Name) },
	"memory_mb": func(a, b server.Flavor) int { return cmp.Compare(a.RAM, b.RAM) }, "root_gb": func(a, b server.Flavor) int { return cmp.Compare(a.Disk, b.Disk) },
	"vcpus": func(a, b server.Flavor) int { return cmp.Compare(a.VCPUs, b.VCPUs) },
}

// sortedFlavors returns flavors in the order that a query asks for: by their ids,
// upwards, if it asks for none. What is equal is in the order of ids.
func sortedFlavors(all []server.Flavor, q url.Values) ([]server.Flavor, error) {
	key, dir := cmp.Or(q.Get("sort_key"), "flavorid"), cmp.Or(q.Get("sort_dir"), "asc")
	order, known := flavorOrders[key]
	if !known {
		return nil, fault.New(fault.Invalid, "Invalid input for query parameters sort_key. Value: %s", fault.Clip(key, 100)).At("sort_key")
	}
	if dir != "asc" && dir != "desc" {
		return nil, fault.New(fault.Invalid, "Invalid input for query parameters sort_dir. Value: %s", fault.Clip(dir, 100)).At("sort_dir")
	}
	out := slices.Clone(all)
	slices.SortFunc(out, func(a, b server.Flavor) int {
		if dir == "desc" {
			a, b = b, a
		}
		return cmp.Or(order(a, b), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// flavorsFor returns the flavors that a query asks for, in its order, and behind its
// marker.
func flavorsFor(all []server.Flavor, q url.Values) ([]server.Flavor, error) {
	all, err := sortedFlavors(all, q)
	if err != nil {
		return nil, err
	}
	if marker := q.Get("marker"); marker != "" {
		i := slices.IndexFunc(all, func(f server.Flavor) bool { return f.ID == marker })
		if i < 0 {
			return nil, noMarker(marker)
		}
		all = all[i+1:]
	}
	if text := q.Get("is_public"); text != "" && !strings.EqualFold(text, "none") {
		public, known := truth(text)
		switch {
		case !known:
			return nil, fault.New(fault.Invalid, "Invalid is_public filter [%s]", fault.Clip(text, 100)).At("is_public")
		case !public:
			return nil, nil // everybody may see all of them
		}
	}
	for _, least := range []struct {
		key string
		of  func(server.Flavor) int64
	}{{"minRam", func(f server.Flavor) int64 { return f.RAM }}, {"minDisk", func(f server.Flavor) int64 { return f.Disk }}} {
		text := q.Get(least.key)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fault.New(fault.Invalid, "Invalid %s filter [%s]", least.key, fault.Clip(text, 100)).At(least.key)
		}
		all = slices.DeleteFunc(slices.Clone(all), func(f server.Flavor) bool { return least.of(f) < n })
	}
	return all, nil
}

func listFlavors(r *request) (result, error)       { return r.flavors(false) }
func listFlavorsInFull(r *request) (result, error) { return r.flavors(true) }

func showFlavor(r *request) (result, error) {
	f, err := r.api.cfg.Engine.Catalogue().Flavor(r.path[0])
	return result{http.StatusOK, object{"flavor": r.flavorBody(f, true)}}, err
}

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
