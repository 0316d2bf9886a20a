package compute

import (
	"maps"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// strictQuery is what a query of a resource may ask by, from a microversion on: other keys are refused then, and passed over before.
type strictQuery struct {
	since int
	keys  []string
}

var (
	pageKeys   = []string{"limit", "marker"}
	byUserID   = strictQuery{strictly, []string{"user_id"}}
	ofServers  = strictQuery{strictly, slices.Concat(pageKeys, []string{"sort_key", "sort_dir", "all_tenants"}, unheld, keysOf(filters), keysOf(tagFilters))}
	ofSizes    = strictQuery{strictly, slices.Concat(pageKeys, []string{"is_public", "minRam", "minDisk", "sort_key", "sort_dir"})}
	ofKeyPairs = strictQuery{strictly, slices.Concat(pageKeys, byUserID.keys)}
	ofGroups   = strictQuery{strictly, []string{"limit", "offset", "all_projects"}}
	ofActs     = strictQuery{withActPages, slices.Concat(pageKeys, []string{"changes-since"})}
	// since266 is ofActs with what came later.
	since266 = strictQuery{withChangesBefore, append([]string{"changes-before"}, ofActs.keys...)}
)

func keysOf[V any](table map[string]V) []string { return slices.Collect(maps.Keys(table)) }

// strictQueries are the resources of which Nova refuses queries by what nobody knows; the last that counts at a version does.
var strictQueries = map[string][]strictQuery{
	"GET servers": {ofServers}, "GET servers/detail": {ofServers}, "GET flavors": {ofSizes}, "GET flavors/detail": {ofSizes},
	"GET limits": {{strictly, []string{"tenant_id"}}}, "GET os-keypairs": {ofKeyPairs}, "GET os-keypairs/{}": {byUserID}, "DELETE os-keypairs/{}": {byUserID},
	"GET os-quota-sets/{}": {byUserID}, "GET os-quota-sets/{}/detail": {byUserID}, "PUT os-quota-sets/{}": {byUserID}, "DELETE os-quota-sets/{}": {byUserID},
	"GET servers/{}/os-instance-actions": {ofActs, since266}, "GET os-server-groups": {ofGroups},
}

// checkQuery refuses a query by what nobody knows, where the version does.
func (r *request) checkQuery(rt *route) error {
	var known *strictQuery
	all := strictQueries[rt.method+" "+strings.Join(rt.path, "/")]
	for i := range all {
		if r.since(all[i].since) {
			known = &all[i]
		}
	}
	if known == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(r.URL.Query())) {
		if !slices.Contains(known.keys, key) {
			return fault.New(fault.Invalid, "Invalid input for query parameters: Additional properties are not allowed ('%s' was unexpected)", fault.Clip(key, 100)).At(key)
		}
	}
	return nil
}
