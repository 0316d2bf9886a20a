package compute

import (
	"net/http"

	"github.com/drover-project/drover/internal/intake"
)

// What of Neutron's limits clients ask for beside Nova's: users make no networks, and nothing else of a network, so there is
// nothing to limit. Zero is how many of each a project may make; interfaces come with servers, and have no limit of their own.
var netQuota = object{"network": 0, "subnet": 0, "subnetpool": 0, "port": -1, "router": 0, "floatingip": 0, "security_group": 0, "security_group_rule": 0, "rbac_policy": 0}

// bodyOfNetQuota says nothing: clients send such a body with limits of servers that are forced.
var bodyOfNetQuota = func() intake.Object {
	keys := intake.Object{"force": done, "check_limit": done}
	for name := range netQuota {
		keys[name] = intake.Key{Why: "networks are the operator's, and users make none"}
	}
	return intake.Object{"quota": {Done: true, In: keys}}
}()

func showNetQuota(r *request) (result, error) {
	if _, err := r.projectOf(); err != nil {
		return result{}, err
	}
	return result{http.StatusOK, object{"quota": netQuota}}, nil
}

func showNetQuotaInFull(r *request) (result, error) {
	if _, err := r.projectOf(); err != nil {
		return result{}, err
	}
	out := object{}
	for name, limit := range netQuota {
		out[name] = object{"limit": limit, "used": 0, "reserved": 0}
	}
	out["port"] = object{"limit": netQuota["port"], "used": len(r.portBodies()), "reserved": 0}
	return result{http.StatusOK, object{"quota": out}}, nil
}

func setNetQuota(r *request) (result, error) {
	if _, err := r.projectOf(); err != nil {
		return result{}, err
	}
	var body map[string]any
	if err := r.read(bodyOfNetQuota, &body); err != nil {
		return result{}, err
	}
	return result{http.StatusOK, object{"quota": netQuota}}, nil
}
