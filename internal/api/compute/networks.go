package compute

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/intake"
	"github.com/drover-project/drover/internal/server"
)

// wishedNets reads the networks that a server is to be in.
func (r *request) wishedNets(list []any, backend string) ([]server.Net, error) {
	if backend != "" {
		return nil, fault.New(fault.Invalid, "Networks of the availability zone %s cannot be chosen", backend).At("networks").
			WithHint("\"auto\" is one interface with that cluster's own settings, \"none\" is none")
	}
	const most = 16
	if len(list) > most {
		return nil, fault.New(fault.Invalid, "Invalid input for field/attribute networks. A server has at most %d interfaces", most).At("networks")
	}
	nets := make([]server.Net, len(list))
	for i := range list {
		raw, err := json.Marshal(list[i])
		if err != nil {
			return nil, err
		}
		if nets[i], err = readNet(fmt.Sprintf("networks[%d]", i), raw); err != nil {
			return nil, err
		}
		if err := server.CheckNet(r.api.cfg.Engine.Inventory(), nets[i]); err != nil {
			return nil, err
		}
		if nets[i].IP != "" && slices.Contains(nets[:i], nets[i]) {
			return nil, fault.New(fault.Invalid, "Fixed IP address %s is asked for twice.", nets[i].IP).At("networks")
		}
	}
	return nets, nil
}

// readNet reads one of them: its network, and perhaps an address.
func readNet(place string, raw json.RawMessage) (server.Net, error) {
	var body struct {
		UUID    string `json:"uuid"`
		FixedIP string `json:"fixed_ip"`
	}
	if err := intake.ReadOpen(raw, &body); err != nil {
		return server.Net{}, fault.New(fault.Invalid, "Invalid input for field/attribute %s. It must be an object with the uuid of a network", place).At(place)
	}
	if err := bodyOfNet.Check(raw); err != nil {
		return server.Net{}, fault.New(fault.Invalid, "Invalid input for field/attribute %s. %s", place, err.Error()).At(place)
	}
	if body.UUID == "" {
		return server.Net{}, fault.New(fault.Invalid, "Invalid input for field/attribute %s. It must have the uuid of a network", place).At(place)
	}
	if body.FixedIP != "" {
		ip, err := netip.ParseAddr(body.FixedIP)
		if err != nil || ip.Zone() != "" {
			return server.Net{}, fault.New(fault.Invalid, "Invalid input for field/attribute fixed_ip. Value: %s. It is no address", fault.Clip(body.FixedIP, 100)).At(place + ".fixed_ip")
		}
		body.FixedIP = ip.String()
	}
	return server.Net{ID: body.UUID, IP: body.FixedIP}, nil
}

// addresses are those of a server, by the names of their networks.
func (r *request) addresses(s *server.Server) map[string][]object {
	out := map[string][]object{}
	for _, a := range s.Addresses(r.api.cfg.Engine.Inventory()) {
		if a.IP != "" {
			out[a.Label] = append(out[a.Label], object{"addr": a.IP, "version": a.Version(), "OS-EXT-IPS:type": "fixed", "OS-EXT-IPS-MAC:mac_addr": a.MAC})
		}
	}
	return out
}

// briefly are addresses as the resource of their own shows them.
func briefly(all []object) []object {
	out := make([]object, len(all))
	for i, a := range all {
		out[i] = object{"addr": a["addr"], "version": a["version"]}
	}
	return out
}

func listAddresses(r *request) (result, error) {
	s, err := r.server()
	if err != nil {
		return result{}, err
	}
	out := map[string][]object{}
	for label, all := range r.addresses(s) {
		out[label] = briefly(all)
	}
	return result{http.StatusOK, object{"addresses": out}}, nil
}

func showAddresses(r *request) (result, error) {
	s, err := r.server()
	if err != nil {
		return result{}, err
	}
	all, there := r.addresses(s)[r.path[1]]
	if !there {
		return result{}, fault.New(fault.NotFound, "Instance %s has no addresses in a network '%s'", s.ID, fault.Clip(r.path[1], 100))
	}
	return result{http.StatusOK, object{r.path[1]: briefly(all)}}, nil
}

// The Network API (Neutron's), to read: networks that are offered, their subnets, and the interfaces of the project's servers as ports.

// resource is one of its collections.
type resource struct {
	one, many string
	// all are the objects that there are for who asks.
	all func(*request) []object
	// keys are those of each object, by which a query may ask.
	keys []string
}

var (
	networks = resource{"network", "networks", (*request).networkBodies, []string{"id", "name", "status", "admin_state_up", "shared", "router:external", "tenant_id",
		"project_id", "mtu", "subnets", "description", "tags", "availability_zones", "availability_zone_hints", "provider:network_type", "provider:physical_network", "is_default"}}
	subnets = resource{"subnet", "subnets", (*request).subnetBodies, []string{"id", "name", "network_id", "cidr", "gateway_ip", "ip_version", "enable_dhcp", "tenant_id", "project_id",
		"description", "dns_nameservers", "host_routes", "allocation_pools", "tags", "ipv6_address_mode", "ipv6_ra_mode"}}
	ports = resource{"port", "ports", (*request).portBodies, []string{"id", "name", "network_id", "mac_address", "fixed_ips", "device_id", "device_owner", "status", "admin_state_up",
		"tenant_id", "project_id", "description", "security_groups", "tags"}}
)

func (r *request) networkBodies() []object {
	out := []object{}
	for _, n := range server.Offered(r.api.cfg.Engine.Inventory()) {
		ids := []any{}
		for _, s := range server.SubnetsOf(n) {
			ids = append(ids, s.ID)
		}
		out = append(out, object{"id": n.UUID, "name": n.Name, "status": "ACTIVE", "admin_state_up": true, "shared": true, "router:external": false, "tenant_id": "", "project_id": "",
			"mtu": 1500, "subnets": ids, "description": "", "tags": []any{}, "availability_zones": []any{anyZone}, "availability_zone_hints": []any{}, "is_default": false,
			// Clients take what says so for a network whose addresses are reached from outside without further ones.
			"provider:network_type": "flat", "provider:physical_network": n.Name})
	}
	return out
}

func (r *request) subnetBodies() []object {
	out := []object{}
	for _, n := range server.Offered(r.api.cfg.Engine.Inventory()) {
		for _, s := range server.SubnetsOf(n) {
			out = append(out, object{"id": s.ID, "name": s.Name, "network_id": s.Network, "cidr": s.CIDR, "gateway_ip": orNull(s.Gateway), "ip_version": s.Version, "enable_dhcp": false,
				"tenant_id": "", "project_id": "", "description": "", "dns_nameservers": []any{}, "host_routes": []any{}, "allocation_pools": []any{}, "tags": []any{},
				"ipv6_address_mode": nil, "ipv6_ra_mode": nil})
		}
	}
	return out
}

func (r *request) portBodies() []object {
	out, inventory := []object{}, r.api.cfg.Engine.Inventory()
	subnet := map[string]string{} // of IPv4, by network
	for _, n := range server.Offered(inventory) {
		subnet[n.UUID] = server.SubnetsOf(n)[0].ID
	}
	for s := range r.api.cfg.Engine.Servers().Of(r.session.Project.ID) {
		for _, a := range s.Addresses(inventory) {
			fixed := []any{}
			if a.IP != "" {
				fixed = append(fixed, object{"ip_address": a.IP, "subnet_id": subnet[a.Network]})
			}
			out = append(out, object{"id": a.NIC, "name": "", "network_id": a.Network, "mac_address": a.MAC, "fixed_ips": fixed, "device_id": s.ID, "device_owner": "compute:" + anyZone,
				"status": "ACTIVE", "admin_state_up": true, "tenant_id": s.Project, "project_id": s.Project, "description": "", "security_groups": []any{}, "tags": []any{}})
		}
	}
	return out
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// list answers with those that a query asks for, and show with one.
func (res resource) list(r *request) (result, error) {
	q := r.URL.Query()
	out, err := res.wanted(res.all(r), q)
	if err != nil {
		return result{}, err
	}
	return result{http.StatusOK, object{res.many: only(out, q["fields"])}}, nil
}

func (res resource) show(r *request) (result, error) {
	for _, o := range res.all(r) {
		if o["id"] == r.path[0] {
			return result{http.StatusOK, object{res.one: only([]object{o}, r.URL.Query()["fields"])[0]}}, nil
		}
	}
	return result{}, fault.New(fault.NotFound, "%s %s could not be found.", strings.ToUpper(res.one[:1])+res.one[1:], fault.Clip(r.path[0], 100))
}

// only leaves the fields of objects that a query wants to see; all without any.
func only(all []object, fields []string) []object {
	if len(fields) == 0 {
		return all
	}
	for i, o := range all {
		all[i] = maps.Clone(o)
		maps.DeleteFunc(all[i], func(key string, _ any) bool { return !slices.Contains(fields, key) })
	}
	return all
}

// wanted are the objects that a query asks for, in its order: a value that is there several times is any of them. What cannot be asked is refused.
func (res resource) wanted(all []object, q url.Values) ([]object, error) {
	for key, texts := range q {
		switch {
		case slices.Contains([]string{"fields", "limit", "marker", "sort_key", "sort_dir"}, key):
		case !slices.Contains(res.keys, key):
			return nil, fault.New(fault.Invalid, "%s have no '%s' here to be filtered by", res.many, fault.Clip(key, 100)).At(key)
		default:
			all = slices.DeleteFunc(all, func(o object) bool {
				return !slices.ContainsFunc(texts, func(text string) bool { return isValue(o[key], text) })
			})
		}
	}
	key, dir := cmp.Or(q.Get("sort_key"), "id"), cmp.Or(q.Get("sort_dir"), "asc")
	if !slices.Contains(res.keys, key) || dir != "asc" && dir != "desc" {
		return nil, fault.New(fault.Invalid, "%s cannot be sorted by '%s', '%s'", res.many, fault.Clip(key, 100), fault.Clip(dir, 100)).At("sort_key")
	}
	slices.SortStableFunc(all, func(a, b object) int {
		if dir == "desc" {
			a, b = b, a
		}
		return cmp.Compare(fmt.Sprint(a[key]), fmt.Sprint(b[key]))
	})
	return pageOfObjects(all, q)
}

func pageOfObjects(all []object, q url.Values) ([]object, error) {
	limit, err := pageOf(q)
	if err != nil {
		return nil, err
	}
	if marker := q.Get("marker"); marker != "" {
		i := slices.IndexFunc(all, func(o object) bool { return o["id"] == marker })
		if i < 0 {
			return nil, noMarker(marker)
		}
		all = all[i+1:]
	}
	if limit == 0 || q.Get("limit") == "" { // as Neutron has it: no answer is cut off unasked
		return all, nil
	}
	return all[:min(limit, len(all))], nil
}

// isValue reports whether a field has a value as queries write it. One of several pairs is written KEY=VALUE, as of addresses of ports.
func isValue(have any, text string) bool {
	switch have := have.(type) {
	case bool:
		yes, known := truth(text)
		return known && yes == have
	case []any:
		key, value, pair := strings.Cut(text, "=")
		return slices.ContainsFunc(have, func(one any) bool {
			if o, is := one.(object); is {
				return pair && o[key] == value
			}
			return one == text
		})
	case nil:
		return text == ""
	}
	return fmt.Sprint(have) == text
}
