package compute

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/drover-project/drover/internal/fault"
)

// The microversions that are served: 2.1 to 2.96. Those that are not named below change nothing here: what they bring is refused (compat/compute.md).
const (
	minMinor = 1
	maxMinor = 96
)

// Newest is the newest microversion, and Suggested one that has most of what there is here, and that clients of the last years know: those refuse to ask
// for one that they do not.
const (
	Newest    = "2.96"
	Suggested = "2.73"
)

// The microversions that change something here.
const (
	withKeyType       = 2
	withConsoles      = 6
	withLock          = 9
	withKeyUser       = 10
	withGroupOwner    = 13
	withSoftPolicies  = 15
	withDescription   = 19
	withPast          = 21
	withTags          = 26
	withoutImages     = 36
	withoutNetworks   = 36
	withNetworks      = 37
	withStatusCheck   = 38
	withoutImageMeta  = 39
	withImageID       = 45
	withFlavor        = 47
	withClassGroups   = 50
	withEvents        = 51
	withCreateTags    = 52
	withRebuildKey    = 54
	withFlavorText    = 55
	withoutFiles      = 57
	withRebuildData   = 57
	withActPages      = 58
	withExtraSpecs    = 61
	withHosts         = 62
	withCertificates  = 63
	withGroupPolicy   = 64
	withChangesBefore = 66
	withGroups        = 71
	withLockReason    = 73
	strictly          = 75
	withTopology      = 78
	withDetails       = 84
	withHostname      = 90
	withoutKeyMaking  = 92
	withPinnedZone    = 96
)

var versionSyntax = regexp.MustCompile(`^([1-9]\d{0,4})\.([1-9]\d{0,4}|0)$`)

// readVersion reads the microversion in either spelling, and says in the answer
// which one counts. Only Nova's flavour has them.
func (r *request) readVersion() error {
	if r.flavour != nova {
		return nil
	}
	text := r.Header.Get("X-Openstack-Nova-Api-Version")
	for _, line := range r.Header.Values("Openstack-Api-Version") {
		for service := range strings.SplitSeq(line, ",") {
			if v, ok := strings.CutPrefix(strings.TrimSpace(service), "compute "); ok {
				text = strings.TrimSpace(v)
			}
		}
	}
	defer func() {
		version := "2." + strconv.Itoa(r.minor)
		h := r.w.Header()
		h.Set("Openstack-Api-Version", "compute "+version)
		h.Set("X-Openstack-Nova-Api-Version", version)
		h.Set("Vary", "OpenStack-API-Version, X-OpenStack-Nova-API-Version")
	}()
	switch text {
	case "":
		return nil
	case "latest":
		r.minor, r.said = maxMinor, true
		return nil
	}
	parts := versionSyntax.FindStringSubmatch(text)
	if parts == nil {
		return fault.New(fault.Invalid, "API Version String %s is of invalid format. Must be of format MajorNum.MinorNum.", fault.Clip(text, 100))
	}
	minor, _ := strconv.Atoi(parts[2]) // so many digits fit
	if parts[1] != "2" || minor < minMinor || minor > maxMinor {
		return refused{fault.New(fault.Invalid, "Version %s is not supported by the API. Minimum is 2.%d and maximum is 2.%d.", text, minMinor, maxMinor), http.StatusNotAcceptable}
	}
	r.minor, r.said = minor, true
	return nil
}

// since reports whether the request is of a microversion or a later one.
func (r *request) since(minor int) bool { return r.flavour == nova && r.minor >= minor }

// documents answers requests for version documents, which need no token.
func (r *request) documents(path string) (result, bool) {
	if r.Method != http.MethodGet {
		return result{}, false
	}
	base := r.base()
	entry := func(id, version, least, at string) object {
		return object{"id": id, "status": "CURRENT", "version": version, "min_version": least, "updated": "2013-07-23T11:33:21Z",
			"links": []any{object{"rel": "self", "href": base + at}}}
	}
	v21, v20 := entry("v2.1", Newest, "2.1", "/compute/v2.1/"), entry("v2.0", "", "", "/compute/v2.0/")
	v20["status"] = "SUPPORTED"
	image, network := entry("v2.9", "", "", "/image/v2/"), object{"id": "v2.0", "status": "CURRENT", "links": []any{object{"rel": "self", "href": base + "/network/v2.0/"}}}
	switch path {
	case "/compute", "/compute/":
		return result{http.StatusOK, object{"versions": []any{v20, v21}}}, true
	case "/compute/v2.1", "/compute/v2.1/":
		v21["media-types"] = []any{object{"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}}
		return result{http.StatusOK, object{"version": v21}}, true
	case "/compute/v2.0", "/compute/v2.0/":
		v20["media-types"] = []any{object{"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2"}}
		return result{http.StatusOK, object{"version": v20}}, true
	case "/image/versions":
		return result{http.StatusOK, object{"versions": []any{image}}}, true
	case "/image", "/image/":
		return result{http.StatusMultipleChoices, object{"versions": []any{image}}}, true
	case "/network", "/network/":
		return result{http.StatusOK, object{"versions": []any{network}}}, true
	case "/network/v2.0", "/network/v2.0/":
		return result{http.StatusOK, object{"resources": []any{}}}, true
	case "/image/v2", "/image/v2/":
		return result{http.StatusOK, object{"versions": []any{image}}}, true
	}
	return result{}, false
}
