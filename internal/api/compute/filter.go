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
	"github.com/drover-project/drover/internal/intake"
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
		if !slices.Contains(statusWords, text) && r.since(withStatusCheck) {
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
	"vm_state":          equal(vmOf),
	"power_state":       equal(func(s *server.Server) string { return strconv.Itoa(powerOf(s)) }),
	"task_state":        equal(taskState),
	"changes-since":     moved("changes-since", func(s *server.Server, at job.Time) bool { return s.Updated >= at }),
	"changes-before":    moved("changes-before", func(s *server.Server, at job.Time) bool { return s.Updated <= at }),
	"created_at":        happened("created_at", func(s *server.Server) job.Time { return s.Created }),
	"launched_at":       happened("launched_at", func(s *server.Server) job.Time { return s.Built }),
	"terminated_at":     happened("terminated_at", func(s *server.Server) job.Time { return s.Deleted }),
	"hostname":          matching("hostname", func(s *server.Server) string { return s.Instance }),
	"ip":                reached("ip", 4),
	"ip6":               reached("ip6", 6),
	"locked":            whether("locked", func(s *server.Server) bool { return s.Lock != nil }),
	"locked_by":         equal(lockedBy),
	"config_drive":      whether("config_drive", func(*server.Server) bool { return false }),
	"auto_disk_config":  whether("auto_disk_config", func(s *server.Server) bool { return diskConfig(s) == automatic }),
	"progress":          equal(func(*server.Server) string { return "0" }),
	"metadata":          withItems,
}

// statusWords are the statuses that Nova's servers may have. Of some there are none here: who goes through them all gets empty lists.
var statusWords = strings.Fields("ACTIVE BUILD DELETED ERROR HARD_REBOOT MIGRATING PASSWORD PAUSED REBOOT REBUILD RESCUE RESIZE REVERT_RESIZE SHELVED SHELVED_OFFLOADED " +
	"SHUTOFF SOFT_DELETED SUSPENDED VERIFY_RESIZE")

// filtersSince are the microversions that brought filters; before them they are not looked at, as in Nova.
var filtersSince = map[string]int{"changes-before": withChangesBefore, "locked": withLockReason}

// readTime reads a time as clients write it in queries.
func readTime(key, text string) (job.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		at, err = time.Parse("2006-01-02T15:04:05", text)
	}
	if err != nil {
		at, err = time.Parse("2006-01-02", text)
	}
	if err != nil {
		return 0, fault.New(fault.Invalid, "Invalid time in %s: %s", key, fault.Clip(text, 100)).At(key)
	}
	return job.At(at), nil
}

// moved is a filter by a time.
func moved(key string, holds func(*server.Server, job.Time) bool) func(*request, string) (func(*server.Server) bool, error) {
	return func(_ *request, text string) (func(*server.Server) bool, error) {
		at, err := readTime(key, text)
		return func(s *server.Server) bool { return holds(s, at) }, err
	}
}

// happened is a filter by when something was, to the second, as the API shows it; or, for an empty text, by that it was not yet.
func happened(key string, of func(*server.Server) job.Time) func(*request, string) (func(*server.Server) bool, error) {
	return func(_ *request, text string) (func(*server.Server) bool, error) {
		if text == "" {
			return func(s *server.Server) bool { return of(s) == 0 }, nil
		}
		at, err := readTime(key, text)
		const second = 1e6
		return func(s *server.Server) bool { return of(s) != 0 && of(s)/second == at/second }, err
	}
}

// reached is a filter by the addresses of a version that servers have, with a regular expression for how these begin.
func reached(key string, version int) func(*request, string) (func(*server.Server) bool, error) {
	return func(r *request, text string) (func(*server.Server) bool, error) {
		pattern, err := regexp.Compile("^(?:" + text + ")")
		if err != nil {
			return nil, fault.New(fault.Invalid, "Invalid regular expression as %s: %s", key, fault.Clip(text, 100)).At(key)
		}
		inventory := r.api.cfg.Engine.Inventory()
		return func(s *server.Server) bool {
			return text == "" || slices.ContainsFunc(s.Addresses(inventory), func(a server.Address) bool {
				return a.IP != "" && a.Version() == version && pattern.MatchString(a.IP)
			})
		}, nil
	}
}

// whether is a filter by what is so of servers, or not.
func whether(key string, is func(*server.Server) bool) func(*request, string) (func(*server.Server) bool, error) {
	return func(_ *request, text string) (func(*server.Server) bool, error) {
		want, known := truth(text)
		if !known {
			return nil, fault.New(fault.Invalid, "Invalid input for query parameters %s. Value: %s. It must be a boolean", key, fault.Clip(text, 100)).At(key)
		}
		return func(s *server.Server) bool { return is(s) == want }, nil
	}
}

// withItems is a filter by items of metadata, which are written as JSON.
func withItems(_ *request, text string) (func(*server.Server) bool, error) {
	var said map[string]*string
	err := intake.ReadOpen([]byte(text), &said)
	items, none := textsOf(said)
	if err != nil || none != nil {
		return nil, fault.New(fault.Invalid, "Invalid input for query parameters metadata. Value: %s. It must be an object of texts, as JSON", fault.Clip(text, 100)).At("metadata")
	}
	return func(s *server.Server) bool {
		for key, value := range items {
			if is, there := s.Metadata[key]; !there || is != value {
				return false
			}
		}
		return true
	}, nil
}

// lockedBy is who locked a server, in Nova's words; empty if nobody did.
func lockedBy(s *server.Server) string {
	switch {
	case s.Lock == nil:
		return ""
	case s.Lock.Operator:
		return "admin"
	}
	return "owner"
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
var unheld = []string{"deleted", "soft_deleted", "host", "node", "reservation_id", "kernel_id", "ramdisk_id", "block_device_mapping", "root_device_name",
	"launch_index", "services", "system_metadata", "info_cache", "security_groups", "pci_devices"}

// filter reads which servers are wanted. Of a parameter that is there twice the
// last counts, as in Nova, but any status that is said; parameters that nobody knows
// are not looked at.
func (r *request) filter(q url.Values) (func(*server.Server) bool, error) {
	var all []func(*server.Server) bool
	for key, values := range q {
		text := values[len(values)-1]
		if read := filters[key]; read != nil && (r.flavour != nova || r.since(filtersSince[key])) {
			texts := values[len(values)-1:]
			if key == "status" {
				texts = values
			}
			one, err := anyOf(r, read, texts)
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
	if err := r.between(q); err != nil {
		return nil, err
	}
	return func(s *server.Server) bool {
		return !slices.ContainsFunc(all, func(holds func(*server.Server) bool) bool { return !holds(s) })
	}, nil
}

// anyOf reads a filter by several texts, of which one has to hold.
func anyOf(r *request, read func(*request, string) (func(*server.Server) bool, error), texts []string) (func(*server.Server) bool, error) {
	var ways []func(*server.Server) bool
	for _, text := range texts {
		one, err := read(r, text)
		if err != nil {
			return nil, err
		}
		ways = append(ways, one)
	}
	return func(s *server.Server) bool {
		return slices.ContainsFunc(ways, func(holds func(*server.Server) bool) bool { return holds(s) })
	}, nil
}

// between refuses to look for changes since a time that is not before the other one. Both can be read.
func (r *request) between(q url.Values) error {
	since, before := q.Get("changes-since"), q.Get("changes-before")
	if since == "" || before == "" || !r.since(withChangesBefore) {
		return nil
	}
	from, _ := readTime("changes-since", since)
	if until, _ := readTime("changes-before", before); from > until {
		return fault.New(fault.Invalid, "The value of changes-since must be less than or equal to changes-before.").At("changes-since")
	}
	return nil
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
