package compute

import (
	"cmp"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-project/drover/internal/fault"
	"github.com/drover-project/drover/internal/job"
	"github.com/drover-project/drover/internal/server"
	"github.com/drover-project/drover/internal/servertag"
)

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
	"name":                matching("name", func(s *server.Server) string { return s.Name }),
	"display_name":        matching("display_name", func(s *server.Server) string { return s.Name }),
	"description":         matching("description", func(s *server.Server) string { return s.Description }),
	"display_description": matching("display_description", func(s *server.Server) string { return s.Description }),
	"status": func(r *request, text string) (func(*server.Server) bool, error) {
		text = strings.ToUpper(text)
		if _, known := vmStates[server.Status(text)]; !known && r.since(withStatusCheck) {
			return nil, fault.New(fault.Invalid, "Invalid status filter: %s", fault.Clip(text, 100)).At("status")
		}
		return func(s *server.Server) bool { return r.status(s) == text }, nil
	},
	"flavor":            equal(func(s *server.Server) string { return s.Flavor.ID }),
	"image":             equal(func(s *server.Server) string { return s.Image.ID }),
	"image_ref":         equal(func(s *server.Server) string { return s.Image.ID }),
	"key_name":          equal(func(s *server.Server) string { return s.KeyName() }),
	"uuid":              equal(func(s *server.Server) string { return s.ID }),
	"user_id":           equal(func(s *server.Server) string { return s.User }),
	"project_id":        equal(func(s *server.Server) string { return s.Project }),
	"tenant_id":         equal(func(s *server.Server) string { return s.Project }),
	"access_ip_v4":      equal(func(s *server.Server) string { return s.Told.IPv4 }),
	"access_ip_v6":      equal(func(s *server.Server) string { return s.Told.IPv6 }),
	"availability_zone": equal(func(s *server.Server) string { return cmp.Or(s.Backend, anyZone) }),
	"vm_state":          equal(func(s *server.Server) string { return vmStates[s.Status()].vm }),
	"power_state":       equal(func(s *server.Server) string { return strconv.Itoa(vmStates[s.Status()].power) }),
	"task_state":        equal(taskState),
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

// matching is a filter by something that servers have, with a regular expression.
func matching(key string, of func(*server.Server) string) func(*request, string) (func(*server.Server) bool, error) {
	return func(_ *request, text string) (func(*server.Server) bool, error) {
		pattern, err := regexp.Compile(text)
		if err != nil {
			return nil, fault.New(fault.Invalid, "Invalid regular expression as %s: %s", key, fault.Clip(text, 100)).At(key)
		}
		return func(s *server.Server) bool { return pattern.MatchString(of(s)) }, nil
	}
}

// taskState is the word of the Compute API for what is being done to a server;
// empty for nothing.
func taskState(s *server.Server) string {
	if doing := s.Doing(); doing != nil {
		return taskStates[doing.Do]
	}
	return ""
}

// equal is a filter by something that servers have.
func equal(of func(*server.Server) string) func(*request, string) (func(*server.Server) bool, error) {
	return func(_ *request, text string) (func(*server.Server) bool, error) {
		return func(s *server.Server) bool { return of(s) == text }, nil
	}
}

// unheld are the filters of Nova by what servers do not have here: a list that took
// no notice would show servers that were not asked for.
var unheld = []string{"deleted", "soft_deleted", "ip", "ip6", "host", "hostname", "node", "locked", "config_drive", "reservation_id",
	"kernel_id", "ramdisk_id", "block_device_mapping", "changes-before", "launched_at", "terminated_at", "created_at", "progress", "root_device_name",
	"launch_index", "locked_by", "auto_disk_config", "services", "metadata", "system_metadata", "info_cache", "security_groups", "pci_devices"}

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
		internal := strings.HasPrefix(key, "_")
		if no, known := truth(text); (internal || slices.Contains(unheld, key)) && text != "" && (!known || no) {
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
