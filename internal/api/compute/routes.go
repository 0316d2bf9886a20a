package compute

import (
	"net/http"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/rights"
)

// handler answers one request.
type handler func(*request) (result, error)

// route is one resource with one method. "{}" stands for one segment, as it was
// sent; an empty one is none.
type route struct {
	method string
	path   []string
	needs  rights.Right
	serve  handler
	in     []flavour
}

func (rt *route) matches(f flavour, segments []string) bool {
	if len(segments) != len(rt.path) || !slices.Contains(rt.in, f) {
		return false
	}
	for i, part := range rt.path {
		if part != segments[i] && (part != "{}" || segments[i] == "") {
			return false
		}
	}
	return true
}

// policies are Nova's names of what is for administrators, by method and path.
var policies = map[string]string{
	"POST flavors": "os_compute_api:os-flavor-manage:create", "PUT flavors/{}": "os_compute_api:os-flavor-manage:update",
	"DELETE flavors/{}": "os_compute_api:os-flavor-manage:delete", "POST flavors/{}/action": "os_compute_api:os-flavor-access:add_tenant_access",
	"GET flavors/{}/os-flavor-access": "os_compute_api:os-flavor-access", "PUT os-quota-sets/{}": "os_compute_api:os-quota-sets:update",
	"DELETE os-quota-sets/{}": "os_compute_api:os-quota-sets:delete", "GET os-quota-class-sets/{}": "os_compute_api:os-quota-class-sets:show",
	"PUT os-quota-class-sets/{}": "os_compute_api:os-quota-class-sets:update",
}

// forbidden refuses the resource to an account that has not the right.
func (rt *route) forbidden() error {
	policy := policies[rt.method+" "+strings.Join(rt.path, "/")]
	if policy == "" {
		return errForbidden
	}
	return refused{fault.New(fault.Denied, "Policy doesn't allow %s to be performed.", policy), http.StatusForbidden}
}

var (
	both   = []flavour{nova, cyclades}
	novas  = []flavour{nova}
	images = []flavour{glance}
	nets   = []flavour{neutron}
)

// routes are all resources below the roots of the flavours.
var routes = []route{
	{"GET", []string{"servers"}, rights.Look, listServers, both},
	{"POST", []string{"servers"}, rights.Change, createServer, both},
	{"GET", []string{"servers", "detail"}, rights.Look, listServersInFull, both},
	{"GET", []string{"servers", "{}"}, rights.Look, showServer, both},
	{"PUT", []string{"servers", "{}"}, rights.Change, renameServer, both},
	{"DELETE", []string{"servers", "{}"}, rights.Change, deleteServer, both},
	{"POST", []string{"servers", "{}", "action"}, rights.Change, act, both},
	{"POST", []string{"servers", "{}", "remote-consoles"}, rights.Change, openRemoteConsole, novas},
	{"GET", []string{"servers", "{}", "os-instance-actions"}, rights.Look, listActs, novas},
	{"GET", []string{"servers", "{}", "os-instance-actions", "{}"}, rights.Look, showAct, novas},
	{"GET", []string{"servers", "{}", "topology"}, rights.Look, showTopology, novas},
	{"GET", []string{"servers", "{}", "metadata"}, rights.Look, showMetadata, both},
	{"POST", []string{"servers", "{}", "metadata"}, rights.Change, addMetadata, both},
	{"PUT", []string{"servers", "{}", "metadata"}, rights.Change, replaceMetadata, both},
	{"GET", []string{"servers", "{}", "metadata", "{}"}, rights.Look, showItem, both},
	{"PUT", []string{"servers", "{}", "metadata", "{}"}, rights.Change, putItem, both},
	{"DELETE", []string{"servers", "{}", "metadata", "{}"}, rights.Change, deleteItem, both},
	{"GET", []string{"servers", "{}", "tags"}, rights.Look, listTags, both},
	{"PUT", []string{"servers", "{}", "tags"}, rights.Change, replaceTags, both},
	{"DELETE", []string{"servers", "{}", "tags"}, rights.Change, deleteTags, both},
	{"GET", []string{"servers", "{}", "tags", "{}"}, rights.Look, checkTag, both},
	{"PUT", []string{"servers", "{}", "tags", "{}"}, rights.Change, addTag, both},
	{"DELETE", []string{"servers", "{}", "tags", "{}"}, rights.Change, deleteTag, both},
	{"GET", []string{"servers", "{}", "os-drover-tag-lives", "{}"}, rights.Look, lifeOfTag, both},
	{"GET", []string{"servers", "{}", "ips"}, rights.Look, listAddresses, novas},
	{"GET", []string{"servers", "{}", "ips", "{}"}, rights.Look, showAddresses, novas},
	{"GET", []string{"os-availability-zone"}, rights.Look, listZones, novas},
	{"GET", []string{"os-availability-zone", "detail"}, rights.Look, listZonesInFull, novas},
	{"GET", []string{"flavors"}, rights.Look, listFlavors, both},
	{"GET", []string{"flavors", "detail"}, rights.Look, listFlavorsInFull, both},
	{"GET", []string{"flavors", "{}"}, rights.Look, showFlavor, both},
	{"POST", []string{"flavors"}, rights.Administer, addFlavor, novas},
	{"PUT", []string{"flavors", "{}"}, rights.Administer, describeFlavor, novas},
	{"DELETE", []string{"flavors", "{}"}, rights.Administer, removeFlavor, novas},
	{"POST", []string{"flavors", "{}", "action"}, rights.Administer, changeFlavorAccess, novas},
	{"GET", []string{"flavors", "{}", "os-flavor-access"}, rights.Administer, showFlavorAccess, novas},
	{"GET", []string{"flavors", "{}", "os-extra_specs"}, rights.Look, listExtraSpecs, both},
	{"GET", []string{"images"}, rights.Look, listOldImages, both},
	{"GET", []string{"images", "detail"}, rights.Look, listOldImagesInFull, both},
	{"GET", []string{"images", "{}"}, rights.Look, showOldImage, both},
	{"DELETE", []string{"images", "{}"}, rights.Change, deleteOldImage, both},
	{"GET", []string{"images", "{}", "metadata"}, rights.Look, showImageMetadata, both},
	{"POST", []string{"images", "{}", "metadata"}, rights.Change, addImageMetadata, both},
	{"PUT", []string{"images", "{}", "metadata"}, rights.Change, replaceImageMetadata, both},
	{"GET", []string{"images", "{}", "metadata", "{}"}, rights.Look, showImageItem, both},
	{"PUT", []string{"images", "{}", "metadata", "{}"}, rights.Change, putImageItem, both},
	{"DELETE", []string{"images", "{}", "metadata", "{}"}, rights.Change, deleteImageItem, both},
	{"GET", []string{"extensions"}, rights.Look, fixed("extensions", []any{}), both},
	{"GET", []string{"os-keypairs"}, rights.Look, listKeyPairs, both},
	{"POST", []string{"os-keypairs"}, rights.Change, addKeyPair, novas},
	{"GET", []string{"os-keypairs", "{}"}, rights.Look, showKeyPair, novas},
	{"DELETE", []string{"os-keypairs", "{}"}, rights.Change, deleteKeyPair, novas},
	{"GET", []string{"os-server-groups"}, rights.Look, listGroups, novas},
	{"POST", []string{"os-server-groups"}, rights.Change, addGroup, novas},
	{"GET", []string{"os-server-groups", "{}"}, rights.Look, showGroup, novas},
	{"DELETE", []string{"os-server-groups", "{}"}, rights.Change, deleteGroup, novas},
	{"GET", []string{"limits"}, rights.Look, limits, both},
	{"GET", []string{"os-quota-sets", "{}"}, rights.Look, showQuota, novas},
	{"GET", []string{"os-quota-sets", "{}", "defaults"}, rights.Look, showDefaultQuota, novas},
	{"GET", []string{"os-quota-sets", "{}", "detail"}, rights.Look, showQuotaInFull, novas},
	{"PUT", []string{"os-quota-sets", "{}"}, rights.Administer, setQuota, novas},
	{"DELETE", []string{"os-quota-sets", "{}"}, rights.Administer, unsetQuota, novas},
	{"GET", []string{"os-quota-class-sets", "{}"}, rights.Administer, showQuotaClass, novas},
	{"PUT", []string{"os-quota-class-sets", "{}"}, rights.Administer, setQuotaClass, novas},
	{"GET", []string{"images"}, rights.Look, listImages, images},
	{"GET", []string{"schemas", "image"}, rights.Look, showImageSchema, images},
	{"GET", []string{"schemas", "images"}, rights.Look, showImagesSchema, images},
	{"POST", []string{"images"}, rights.Change, addImage, images},
	{"GET", []string{"images", "{}"}, rights.Look, showImage, images},
	{"PATCH", []string{"images", "{}"}, rights.Change, changeImage, images},
	{"DELETE", []string{"images", "{}"}, rights.Change, deleteImage, images},
	{"PUT", []string{"images", "{}", "file"}, rights.Change, uploadImage, images},
	{"GET", []string{"images", "{}", "file"}, rights.Look, downloadImage, images},
	{"PUT", []string{"images", "{}", "tags", "{}"}, rights.Change, tagImage(true), images},
	{"DELETE", []string{"images", "{}", "tags", "{}"}, rights.Change, tagImage(false), images},
	{"GET", []string{"networks"}, rights.Look, networks.list, nets},
	{"GET", []string{"networks", "{}"}, rights.Look, networks.show, nets},
	{"GET", []string{"subnets"}, rights.Look, subnets.list, nets},
	{"GET", []string{"subnets", "{}"}, rights.Look, subnets.show, nets},
	{"GET", []string{"ports"}, rights.Look, ports.list, nets},
	{"GET", []string{"ports", "{}"}, rights.Look, ports.show, nets},
	{"GET", []string{"quotas", "{}"}, rights.Look, showNetQuota, nets},
	{"GET", []string{"quotas", "{}", "default"}, rights.Look, showNetQuota, nets},
	{"GET", []string{"quotas", "{}", "details"}, rights.Look, showNetQuotaInFull, nets},
	{"PUT", []string{"quotas", "{}"}, rights.Administer, setNetQuota, nets},
	// There are none of these, and clients ask for them on their way.
	{"GET", []string{"floatingips"}, rights.Look, fixed("floatingips", []any{}), nets},
	{"GET", []string{"routers"}, rights.Look, fixed("routers", []any{}), nets},
	{"GET", []string{"security-groups"}, rights.Look, fixed("security_groups", []any{}), nets},
	{"GET", []string{"extensions"}, rights.Look, fixed("extensions", []any{}), nets},
}

// fixed answers with what never changes.
func fixed(key string, value any) handler {
	return func(*request) (result, error) { return result{http.StatusOK, object{key: value}}, nil }
}
