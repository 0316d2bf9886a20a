package compute

import (
	"net/http"
	"slices"
)

// handler answers one request.
type handler func(*request) (result, error)

// route is one resource with one method. "{}" stands for one segment, as it was
// sent; an empty one is none.
type route struct {
	method string
	path   []string
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

var (
	both   = []flavour{nova, cyclades}
	novas  = []flavour{nova}
	images = []flavour{glance}
)

// routes are all resources below the roots of the flavours.
var routes = []route{
	{"GET", []string{"servers"}, listServers, both},
	{"POST", []string{"servers"}, createServer, both},
	{"GET", []string{"servers", "detail"}, listServersInFull, both},
	{"GET", []string{"servers", "{}"}, showServer, both},
	{"PUT", []string{"servers", "{}"}, renameServer, both},
	{"DELETE", []string{"servers", "{}"}, deleteServer, both},
	{"POST", []string{"servers", "{}", "action"}, act, both},
	{"POST", []string{"servers", "{}", "remote-consoles"}, openRemoteConsole, novas},
	{"GET", []string{"servers", "{}", "metadata"}, showMetadata, both},
	{"POST", []string{"servers", "{}", "metadata"}, addMetadata, both},
	{"PUT", []string{"servers", "{}", "metadata"}, replaceMetadata, both},
	{"GET", []string{"servers", "{}", "metadata", "{}"}, showItem, both},
	{"PUT", []string{"servers", "{}", "metadata", "{}"}, putItem, both},
	{"DELETE", []string{"servers", "{}", "metadata", "{}"}, deleteItem, both},
	{"GET", []string{"servers", "{}", "tags"}, listTags, both},
	{"PUT", []string{"servers", "{}", "tags"}, replaceTags, both},
	{"DELETE", []string{"servers", "{}", "tags"}, deleteTags, both},
	{"GET", []string{"servers", "{}", "tags", "{}"}, checkTag, both},
	{"PUT", []string{"servers", "{}", "tags", "{}"}, addTag, both},
	{"DELETE", []string{"servers", "{}", "tags", "{}"}, deleteTag, both},
	{"GET", []string{"servers", "{}", "os-drover-tag-lives", "{}"}, lifeOfTag, both},
	{"GET", []string{"servers", "{}", "ips"}, listAddresses, novas},
	{"GET", []string{"servers", "{}", "ips", "{}"}, showAddresses, novas},
	{"GET", []string{"os-availability-zone"}, listZones, novas},
	{"GET", []string{"os-availability-zone", "detail"}, listZonesInFull, novas},
	{"GET", []string{"flavors"}, listFlavors, both},
	{"GET", []string{"flavors", "detail"}, listFlavorsInFull, both},
	{"GET", []string{"flavors", "{}"}, showFlavor, both},
	{"GET", []string{"flavors", "{}", "os-extra_specs"}, fixed("extra_specs", object{}), both},
	{"GET", []string{"images"}, listOldImages, both},
	{"GET", []string{"images", "detail"}, listOldImagesInFull, both},
	{"GET", []string{"images", "{}"}, showOldImage, both},
	{"GET", []string{"extensions"}, fixed("extensions", []any{}), both},
	{"GET", []string{"os-keypairs"}, listKeyPairs, both},
	{"GET", []string{"limits"}, limits, both},
	{"GET", []string{"images"}, listImages, images},
	{"GET", []string{"images", "{}"}, showImage, images},
}

// fixed answers with what never changes.
func fixed(key string, value any) handler {
	return func(*request) (result, error) { return result{http.StatusOK, object{key: value}}, nil }
}
