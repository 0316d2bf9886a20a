package rapi_test

import (
	"net/http"
	"testing"
)

// TestTheAnsibleModuleMakesInstances: what sipgate.ganeti's module ganeti_instance sends to make
// one: memory in three ways, null for what was not given, and its defaults.
func TestTheAnsibleModuleMakesInstances(t *testing.T) {
	r := newRig(t, rigOptions{})
	for key, name := range map[string]string{"name": "vm1.example", "instance_name": "vm2.example"} { // by the version of its client
		body := map[string]any{
			"__version__": 1, "mode": "create", key: name, "disk_template": "file", "os_type": "noop+default", "hypervisor": nil, "iallocator": "hail", "pnode": nil, "snode": nil,
			"beparams": map[string]any{"memory": 512, "minmem": 512, "maxmem": 512, "vcpus": 1}, "conflicts_check": true, "ip_check": false, "name_check": false, "no_install": nil,
			"wait_for_sync": true, "tags": []any{}, "group_name": nil, "disks": []any{map[string]any{"name": "root", "size": "1G"}},
			"nics": []any{map[string]any{"mode": "bridged", "link": "br0"}}, "osparams": map[string]any{"test_param": "x"},
		}
		r.succeed(http.MethodPost, "/2/instances", body)
		var made struct {
			BE    map[string]any `json:"beparams"`
			Sizes []int          `json:"disk.sizes"`
		}
		r.do(http.MethodGet, "/2/instances/"+name, nil).decode(t, &made)
		if made.BE["minmem"] != made.BE["maxmem"] || len(made.Sizes) != 1 || made.Sizes[0] != 1024 {
			t.Errorf("%s is %+v", name, made)
		}
	}
}
