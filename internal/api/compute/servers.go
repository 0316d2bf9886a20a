package compute

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/forwarded"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

// base is the URL under which the client reaches the services.
func (r *request) base() string { return forwarded.Base(r.Request) }

// root is the path of the request's flavour.
func (r *request) root() string {
	for path, f := range roots {
		if f == r.flavour {
			return path
		}
	}
	return ""
}

// number is an id as the flavour writes it: as a number under Cyclades.
func (r *request) number(id string) any {
	if n, err := strconv.ParseInt(id, 10, 64); err == nil && r.flavour == cyclades {
		return n
	}
	return id
}

// idOf is the id of a server in the request's flavour.
func (r *request) idOf(s *server.Server) string {
	if r.flavour == cyclades {
		return strconv.FormatInt(s.Number, 10)
	}
	return s.ID
}

func (r *request) link(s *server.Server) string {
	return r.base() + r.root() + "/servers/" + r.idOf(s)
}

func (r *request) brief(s *server.Server) object {
	return object{"id": r.number(r.idOf(s)), "name": s.Name,
		"links": []any{object{"rel": "self", "href": r.link(s)}, object{"rel": "bookmark", "href": r.link(s)}}}
}

func stamp(t job.Time) string { return time.UnixMicro(int64(t)).UTC().Format("2006-01-02T15:04:05Z") }

// taskStates are the words of the Compute API for what is being done.
var taskStates = map[server.Do]string{
	server.Create: "spawning", server.Delete: "deleting", server.Start: "powering-on", server.Stop: "powering-off",
	server.Reboot: "rebooting", server.RebootHard: "rebooting_hard",
}

// vmStates are the words for statuses, and power states by number.
var vmStates = map[server.Status]struct {
	vm    string
	power int
}{
	server.Build: {"building", 0}, server.Active: {"active", 1}, server.Rebooting: {"active", 1}, server.Shutoff: {"stopped", 4},
	server.Failed: {"error", 0}, server.Gone: {"deleted", 0},
}

// status is the status of a server in the words of the flavour.
func (r *request) status(s *server.Server) string {
	status := s.Status()
	if r.flavour == cyclades && status == server.Shutoff {
		return "STOPPED"
	}
	return string(status)
}

// full is all that is shown of a server.
func (r *request) full(s *server.Server) object {
	out := r.brief(s)
	status := s.Status()
	state := vmStates[status]
	var task any
	if doing := s.Doing(); doing != nil {
		task = taskStates[doing.Do]
	}
	maps.Copy(out, object{
		"status": r.status(s), "tenant_id": s.Project, "user_id": s.User, "created": stamp(s.Created), "updated": stamp(s.Updated),
		"hostId": "", "accessIPv4": s.Told.IPv4, "accessIPv6": s.Told.IPv6, "key_name": nil, "config_drive": "",
		"metadata": metadataOf(s), "addresses": noAddresses, "image": object{"id": s.Image.ID, "links": []any{}},
		"security_groups": []any{object{"name": "default"}}, "OS-DCF:diskConfig": diskConfig(s), "OS-EXT-AZ:availability_zone": cmp.Or(s.Backend, anyZone),
		"OS-EXT-STS:vm_state": state.vm, "OS-EXT-STS:task_state": task, "OS-EXT-STS:power_state": state.power,
		"OS-SRV-USG:launched_at": nil, "OS-SRV-USG:terminated_at": nil, "os-extended-volumes:volumes_attached": []any{},
	})
	out["flavor"] = object{"id": r.number(s.Flavor.ID), "links": []any{}}
	if s.Built != 0 {
		// Nova writes this time without a zone, and clients read it so.
		out["OS-SRV-USG:launched_at"] = time.UnixMicro(int64(s.Built)).UTC().Format("2006-01-02T15:04:05.000000")
	}
	if r.flavour == cyclades || status == server.Active || status == server.Build { // Nova tells of progress in no other status
		out["progress"] = 0
	}
	if s.Fault != nil && status == server.Failed {
		out["fault"] = object{"code": http.StatusInternalServerError, "created": stamp(s.Fault.Time), "message": s.Fault.Text}
	}
	r.byVersion(s, out)
	return out
}

// byVersion adds what not all versions show.
func (r *request) byVersion(s *server.Server, out object) {
	if r.flavour == cyclades || r.since(withTags) {
		out["tags"] = s.Tags.Names(servertag.User)
	}
	if r.since(withLock) {
		out["locked"] = false // nobody can lock one
	}
	if r.since(withDescription) {
		out["description"] = nil
		if s.Description != "" {
			out["description"] = s.Description
		}
	}
	if r.since(withFlavor) {
		out["flavor"] = object{"original_name": s.Flavor.Name, "ram": s.Flavor.RAM, "disk": s.Flavor.Disk, "vcpus": s.Flavor.VCPUs,
			"swap": 0, "ephemeral": 0, "extra_specs": object{}}
	}
	if r.flavour == cyclades {
		out["SNF:task_state"], out["suspended"], out["deleted"] = "", false, s.Deleted != 0
	}
}

// noAddresses are those of a server, by network: networks are the cluster's own, and
// it tells of no addresses.
var noAddresses = object{}

func listAddresses(r *request) (result, error) {
	_, err := r.server()
	return result{http.StatusOK, object{"addresses": noAddresses}}, err
}

func showAddresses(r *request) (result, error) {
	s, err := r.server()
	if err != nil {
		return result{}, err
	}
	return result{}, fault.New(fault.NotFound, "Instance %s has no addresses in a network '%s'", s.ID, fault.Clip(r.path[1], 100))
}

func metadataOf(s *server.Server) map[string]string {
	if s.Metadata == nil {
		return map[string]string{}
	}
	return s.Metadata
}

func showServer(r *request) (result, error) {
	s, err := r.server()
	if err != nil {
		return result{}, err
	}
	return result{http.StatusOK, object{"server": r.full(s)}}, nil
}

// maxPage is how many servers one answer lists.
const maxPage = 1000

func listServers(r *request) (result, error)       { return r.list((*request).brief) }
func listServersInFull(r *request) (result, error) { return r.list((*request).full) }

// list lists the servers of the project that the query asks for, a page of
// them.
func (r *request) list(show func(*request, *server.Server) object) (result, error) {
	q := r.URL.Query()
	keep, err := r.filter(q)
	if err != nil {
		return result{}, err
	}
	limit, err := pageOf(q)
	if err != nil {
		return result{}, err
	}
	servers, err := r.sorted(q)
	if err != nil {
		return result{}, err
	}
	marker, passed := q.Get("marker"), q.Get("marker") == ""
	out, more := []any{}, false
	var last *server.Server
	for s := range servers {
		switch {
		case !passed:
			passed = r.idOf(s) == marker
		case !keep(s):
		case len(out) == limit:
			more = true
		default:
			out, last = append(out, show(r, s)), s
		}
		if more {
			break
		}
	}
	if !passed {
		return result{}, fault.New(fault.Invalid, "marker [%s] not found", fault.Clip(marker, 100)).At("marker")
	}
	if r.flavour == cyclades && q.Get("changes-since") != "" && len(out) == 0 {
		return result{status: http.StatusNotModified}, nil
	}
	body := object{"servers": out}
	if more && last != nil {
		q.Set("marker", r.idOf(last))
		body["servers_links"] = []any{object{"rel": "next", "href": r.base() + r.URL.EscapedPath() + "?" + q.Encode()}}
	}
	return result{http.StatusOK, body}, nil
}

func pageOf(q url.Values) (int, error) {
	text := q.Get("limit")
	if text == "" {
		return maxPage, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fault.New(fault.Invalid, "Invalid input for query parameters limit. Value: %s", fault.Clip(text, 100)).At("limit")
	}
	return min(n, maxPage), nil
}

// tagFilters are the filters of lists by tags, as predicates on how many of the
// named ones a server has.
var tagFilters = map[string]func(has, named int) bool{
	"tags":         func(has, named int) bool { return has == named },
	"tags-any":     func(has, _ int) bool { return has > 0 },
	"not-tags":     func(has, named int) bool { return has < named },
	"not-tags-any": func(has, _ int) bool { return has == 0 },
}

// filters are the other filters of lists, by what the query says; each returns
// what a server must be.
var filters = map[string]func(r *request, text string) (func(*server.Server) bool, error){
	"name": func(_ *request, text string) (func(*server.Server) bool, error) {
		pattern, err := regexp.Compile(text)
		if err != nil {
			return nil, fault.New(fault.Invalid, "Invalid regular expression as a name: %s", fault.Clip(text, 100)).At("name")
		}
		return func(s *server.Server) bool { return pattern.MatchString(s.Name) }, nil
	},
	"status": func(r *request, text string) (func(*server.Server) bool, error) {
		text = strings.ToUpper(text)
		if _, known := vmStates[server.Status(text)]; !known && r.since(withStatusCheck) {
			return nil, fault.New(fault.Invalid, "Invalid status filter: %s", fault.Clip(text, 100)).At("status")
		}
		return func(s *server.Server) bool { return r.status(s) == text }, nil
	},
	"flavor":       equal(func(s *server.Server) string { return s.Flavor.ID }),
	"image":        equal(func(s *server.Server) string { return s.Image.ID }),
	"uuid":         equal(func(s *server.Server) string { return s.ID }),
	"user_id":      equal(func(s *server.Server) string { return s.User }),
	"project_id":   equal(func(s *server.Server) string { return s.Project }),
	"tenant_id":    equal(func(s *server.Server) string { return s.Project }),
	"description":  equal(func(s *server.Server) string { return s.Description }),
	"access_ip_v4": equal(func(s *server.Server) string { return s.Told.IPv4 }),
	"access_ip_v6": equal(func(s *server.Server) string { return s.Told.IPv6 }),
	"changes-since": func(_ *request, text string) (func(*server.Server) bool, error) {
		since, err := time.Parse(time.RFC3339, text)
		if err != nil {
			if since, err = time.Parse("2006-01-02T15:04:05", text); err != nil {
				return nil, fault.New(fault.Invalid, "Invalid time in changes-since: %s", fault.Clip(text, 100)).At("changes-since")
			}
		}
		return func(s *server.Server) bool { return s.Updated >= job.At(since) }, nil
	},
}

// equal is a filter by something that servers have.
func equal(of func(*server.Server) string) func(*request, string) (func(*server.Server) bool, error) {
	return func(_ *request, text string) (func(*server.Server) bool, error) {
		return func(s *server.Server) bool { return of(s) == text }, nil
	}
}

// unheld are the filters of Nova by what servers do not have here: a list that took
// no notice would show servers that were not asked for.
var unheld = []string{"deleted", "soft_deleted", "ip", "ip6", "host", "hostname", "node", "locked", "key_name", "config_drive", "reservation_id",
	"kernel_id", "ramdisk_id", "block_device_mapping", "changes-before", "launched_at", "terminated_at", "created_at", "progress", "root_device_name"}

// filter reads which servers are wanted. Of a parameter that is there twice the
// last counts; parameters that nobody knows are not looked at.
func (r *request) filter(q url.Values) (func(*server.Server) bool, error) {
	var all []func(*server.Server) bool
	for key, values := range q {
		text := values[len(values)-1]
		if read := filters[key]; read != nil {
			one, err := read(r, text)
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
		if holds := tagFilters[key]; holds != nil && r.since(withTags) {
			names := strings.Split(text, ",")
			all = append(all, func(s *server.Server) bool { return holds(count(s, names), len(names)) })
		}
		if no, known := truth(text); slices.Contains(unheld, key) && text != "" && (!known || no) {
			return nil, fault.New(fault.Invalid, "Servers have no '%s' here to be filtered by", key).At(key)
		}
		if key == "all_tenants" {
			if err := ownOnly(text); err != nil {
				return nil, err
			}
		}
	}
	return func(s *server.Server) bool {
		return !slices.ContainsFunc(all, func(holds func(*server.Server) bool) bool { return !holds(s) })
	}, nil
}

// ownOnly refuses to list the servers of all projects, which is asked for also by
// naming it without a value.
func ownOnly(text string) error {
	everybody, known := truth(text)
	switch {
	case text == "", everybody:
		return refused{fault.New(fault.Denied, "A list is of the servers of one project: that of the token."), http.StatusForbidden}
	case !known:
		return fault.New(fault.Invalid, "Invalid input for query parameters all_tenants. Value: %s", fault.Clip(text, 100)).At("all_tenants")
	}
	return nil
}

// truths are the words for truth values in a query, in small letters.
var truths = map[string]bool{"1": true, "t": true, "true": true, "on": true, "y": true, "yes": true,
	"0": false, "f": false, "false": false, "off": false, "n": false, "no": false}

func truth(text string) (yes, known bool) {
	yes, known = truths[strings.ToLower(strings.TrimSpace(text))]
	return yes, known
}

func count(s *server.Server, names []string) int {
	n := 0
	for _, name := range names {
		if s.Tags.Has(servertag.User, name) {
			n++
		}
	}
	return n
}

func deleteServer(r *request) (result, error) {
	s, err := r.server()
	if err != nil {
		return result{}, err
	}
	_, err = r.api.cfg.Engine.Begin(s.ID, server.Delete, r.asked())
	return result{status: http.StatusNoContent}, err
}

func renameServer(r *request) (result, error) {
	s, err := r.server()
	if err != nil {
		return result{}, err
	}
	var body struct {
		Server struct {
			Name, Description *string
			told
		}
	}
	if err := r.read(bodyOfUpdate, &body); err != nil {
		return result{}, err
	}
	if body.Server.Name != nil {
		if err := checkServerName(*body.Server.Name); err != nil {
			return result{}, err
		}
	}
	description, err := r.description(body.Server.Description, s.Description)
	if err != nil {
		return result{}, err
	}
	if _, err := body.Server.over(s.Told); err != nil {
		return result{}, err
	}
	by := r.asked()
	s, err = r.api.cfg.Engine.Change(s.ID, func(s *server.Server) (*server.Server, error) {
		next := *s
		next.Updated = by.Time
		if next.Told, err = body.Server.over(s.Told); err != nil {
			return nil, err
		}
		if body.Server.Name != nil {
			next.Name = *body.Server.Name
		}
		if body.Server.Description != nil {
			next.Description = description
		}
		return &next, nil
	})
	if err != nil {
		return result{}, err
	}
	if r.flavour == cyclades {
		return result{status: http.StatusNoContent}, nil
	}
	out := r.full(s)
	maps.DeleteFunc(out, func(key string, _ any) bool { return !inChange(key) })
	return result{http.StatusOK, object{"server": out}}, nil
}

// inChange reports whether an answer to a change of a server has a key: fewer than
// that which shows it, and clients that check answers take no other.
func inChange(key string) bool {
	for _, extension := range []string{"OS-EXT-", "OS-SRV-USG:", "os-extended-volumes:"} {
		if strings.HasPrefix(key, extension) {
			return false
		}
	}
	return key != "key_name" && key != "config_drive" && key != "security_groups"
}
