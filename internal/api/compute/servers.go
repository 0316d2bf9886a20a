package compute

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
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
	server.Resize: "resize_prep", server.Restart: "resize_finish", server.Revert: "resize_reverting", server.Confirm: "resize_confirming",
	server.Rebuild: "rebuilding",
}

// Power states.
const running, off = 1, 4

// vmStates are the words for statuses, and power states by number.
var vmStates = map[server.Status]struct {
	vm    string
	power int
}{
	server.Build: {"building", 0}, server.Active: {"active", running}, server.Rebooting: {"active", running}, server.Shutoff: {"stopped", off},
	server.Failed: {"error", 0}, server.Gone: {"deleted", 0},
	server.Rebuilding: {"active", running},
	server.Resizing:   {"active", running}, server.Resized: {"resized", running}, server.Reverting: {"resized", running},
}

// vmOf is the vm_state of a server. One that is rebuilt is as it will be then.
func vmOf(s *server.Server) string {
	status := s.Status()
	if doing := s.Doing(); status == server.Rebuilding && doing.Anew != nil && !doing.Anew.Run {
		status = server.Shutoff
	}
	return vmStates[status].vm
}

// powerOf is the power state of a server, by number.
func powerOf(s *server.Server) int {
	status := s.Status()
	if status == server.Failed && s.Broken != nil && s.Unmatched == 0 { // its disk is what failed
		status = server.Active
	}
	power := vmStates[status].power
	if s.Stopped && power == running {
		return off
	}
	return power
}

// status is the status of a server in the words of the flavour.
func (r *request) status(s *server.Server) string {
	status, doing := s.Status(), s.Doing()
	switch {
	case r.flavour == cyclades && status == server.Shutoff:
		return "STOPPED"
	case r.flavour == nova && status == server.Rebooting && doing != nil && doing.Do == server.RebootHard:
		return "HARD_REBOOT"
	}
	return string(status)
}

// full is all that is shown of a server.
func (r *request) full(s *server.Server) object {
	out := r.brief(s)
	status := s.Status()
	var task any
	if doing := s.Doing(); doing != nil {
		task = taskStates[doing.Do]
	} else if of := r.captures(s); of != nil {
		task = captureStates[CaptureOf(of)]
	}
	maps.Copy(out, object{
		"status": r.status(s), "tenant_id": s.Project, "user_id": s.User, "created": stamp(s.Created), "updated": stamp(s.Updated),
		"hostId": "", "accessIPv4": s.Told.IPv4, "accessIPv6": s.Told.IPv6, "key_name": keyNameOf(s), "config_drive": "",
		"metadata": metadataOf(s), "addresses": r.addresses(s), "image": object{"id": s.Image.ID, "links": []any{}},
		"security_groups": []any{object{"name": "default"}}, "OS-DCF:diskConfig": diskConfig(s), "OS-EXT-AZ:availability_zone": cmp.Or(s.Backend, anyZone),
		"OS-EXT-STS:vm_state": vmOf(s), "OS-EXT-STS:task_state": task, "OS-EXT-STS:power_state": powerOf(s),
		"OS-SRV-USG:launched_at": nil, "OS-SRV-USG:terminated_at": nil, "os-extended-volumes:volumes_attached": []any{},
	})
	out["flavor"] = object{"id": r.number(s.Flavor.ID), "links": []any{}}
	if s.Built != 0 {
		// Nova writes this time without a zone, and clients read it so.
		out["OS-SRV-USG:launched_at"] = time.UnixMicro(int64(s.Built)).UTC().Format("2006-01-02T15:04:05.000000")
	}
	if s.Deleted != 0 {
		out["OS-SRV-USG:terminated_at"] = moment(s.Deleted)
	}
	if r.flavour == cyclades || status == server.Active || status == server.Build || status == server.Rebuilding { // Nova tells of progress in no other status
		out["progress"] = 0
	}
	if trouble := s.Trouble(); trouble != nil && status == server.Failed {
		out["fault"] = object{"code": http.StatusInternalServerError, "created": stamp(trouble.Time), "message": trouble.Text}
	}
	r.byVersion(s, out)
	return out
}

// serverKeys are what microversions have added since, each a key more.
var serverKeys = []struct {
	since int
	key   string
	of    func(*server.Server) any
}{
	{withCertificates, "trusted_image_certificates", func(*server.Server) any { return nil }}, // images have no signatures
	{withLockReason, "locked_reason", lockReason},
	{withHostname, "OS-EXT-SRV-ATTR:hostname", func(s *server.Server) any { return s.Instance }},
	{withPinnedZone, "pinned_availability_zone", func(s *server.Server) any { return cmp.Or(s.Backend, anyZone) }}, // servers never leave theirs
}

// byVersion adds what not all versions show.
func (r *request) byVersion(s *server.Server, out object) {
	if r.flavour == cyclades || r.since(withTags) {
		out["tags"] = s.Tags.Names(servertag.User)
	}
	if r.since(withLock) {
		out["locked"] = s.Lock != nil
	}
	for _, more := range serverKeys {
		if r.since(more.since) {
			out[more.key] = more.of(s)
		}
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
	return result{http.StatusOK, object{"server": r.single(s)}}, nil
}

// single is all that is shown of a server where one is asked for, and no list.
func (r *request) single(s *server.Server) object {
	out := r.full(s)
	if r.since(withGroups) {
		out["server_groups"] = r.groupsOf(s)
	}
	return out
}

// showTopology shows how the processors of a machine are laid out: as its node has it, which tells users nothing.
func showTopology(r *request) (result, error) {
	if !r.since(withTopology) {
		return result{}, errNoRoute
	}
	if _, err := r.server(); err != nil {
		return result{}, err
	}
	return result{http.StatusOK, object{"nodes": []any{}, "pagesize_kb": nil}}, nil
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
		return result{}, noMarker(marker)
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

func noMarker(marker string) error {
	return fault.New(fault.Invalid, "marker [%s] not found", fault.Clip(marker, 100)).At("marker")
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

func deleteServer(r *request) (result, error) {
	s, err := r.server()
	if err != nil {
		return result{}, err
	}
	_, err = r.begin(s, server.Delete)
	return result{status: http.StatusNoContent}, err
}

func renameServer(r *request) (result, error) {
	s, err := r.server()
	if err != nil {
		return result{}, err
	}
	var body struct {
		Server *struct {
			Name, Description json.RawMessage
			told
		}
	}
	if err := r.read(bodyOfUpdate, &body); err != nil {
		return result{}, err
	}
	if body.Server == nil {
		return result{}, fault.New(fault.Invalid, "Invalid input: 'server' is a required property").At("server")
	}
	name, err := clearable("name", body.Server.Name)
	if err == nil && name != nil {
		err = checkServerName(*name) // which null is none, either
	}
	if err != nil {
		return result{}, err
	}
	said, err := clearable("description", body.Server.Description)
	if err != nil {
		return result{}, err
	}
	description, err := r.description(said, s.Description)
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
		if name != nil {
			next.Name = *name
		}
		if said != nil {
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
	out := r.single(s)
	if !r.since(strictly) {
		maps.DeleteFunc(out, func(key string, _ any) bool { return !inChange(key) })
	}
	return result{http.StatusOK, object{"server": out}}, nil
}

// inChange reports whether an answer to a change of a server has a key before 2.75: fewer than
// that which shows it, and clients that check answers take no other.
func inChange(key string) bool {
	for _, extension := range []string{"OS-EXT-", "OS-SRV-USG:", "os-extended-volumes:"} {
		if strings.HasPrefix(key, extension) {
			return false
		}
	}
	return key != "key_name" && key != "config_drive" && key != "security_groups"
}
